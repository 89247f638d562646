# SPDX-License-Identifier: MIT
"""Every node says hello, one after the other.

spcomm run -n 4 01_hello.py
"""

import spcomm

comm = spcomm.startup()

for turn in range(comm.size):
    if turn == comm.rank:
        print(f"hello from node {comm.rank} of {comm.size}", flush=True)
    comm.barrier()  # nobody goes on to the next turn before everybody is here

total = comm.global_sum(comm.rank)
if comm.rank == 0:
    print(f"the sum of all ranks is {total}")
if total != comm.size * (comm.size - 1) // 2:
    raise SystemExit(f"node {comm.rank}: the sum should be {comm.size * (comm.size - 1) // 2}, not {total}")
