# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
counter = 0
counter += 1  # each node has a variable of its own
comm.barrier()
if comm.rank == 0:
    print("counted", counter, "and should be", comm.size)
