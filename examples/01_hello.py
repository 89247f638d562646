# SPDX-License-Identifier: MIT
"""Every node is a process that runs this same file; only its rank differs. Here they greet one after the other.

    spcomm run -n 4 01_hello.py

Look: the greetings come in the order of the ranks, because of the barrier in the loop.
Try: take the barrier out and run the program a few times. Which facts about the order still hold?
"""

import spcomm

comm = spcomm.startup()

for turn in range(comm.size):
    if turn == comm.rank:
        print(f"hello from node {comm.rank} of {comm.size}", flush=True)
    comm.barrier()  # no node goes on to the next turn before all are here

total = comm.global_sum(comm.rank)
if total != comm.size * (comm.size - 1) // 2:
    raise SystemExit(f"wrong: node {comm.rank} got {total} as the sum of all ranks")
if comm.rank == 0:
    print(f"checked: the sum of all ranks is {total}, as n (n - 1) / 2")
