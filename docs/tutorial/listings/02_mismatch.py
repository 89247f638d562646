# SPDX-License-Identifier: MIT
import spcomm

comm = spcomm.startup()

if comm.rank == 0:
    total = comm.global_sum(1)  # meant for all
    print(f"we are {total}")
else:
    comm.barrier()
