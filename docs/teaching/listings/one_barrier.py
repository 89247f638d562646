# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()
if comm.rank == 0:
    comm.barrier()  # the others never come
