# SPDX-License-Identifier: MIT
"""Received items lead to new messages, which belong to the next cycle. The program ends when no node has any left."""

import spcomm

comm = spcomm.startup()
tokens = [40] if comm.rank == 0 else []  # each has some hops left
cycles = handled = 0

while comm.global_sum(len(tokens)):
    for hops in tokens:
        if hops > 1:  # it becomes two, which go on to the right, and further
            comm.coordinated_send(hops // 2, dest=(comm.rank + 1) % comm.size)
            comm.coordinated_send(hops // 3, dest=(comm.rank + 2) % comm.size)
    handled += len(tokens)
    tokens = [message.data for message in comm.coordinated_messages()]
    cycles += 1

total = comm.global_sum(handled)
if comm.rank == 0:
    print(f"{total} tokens in {cycles} cycles")
