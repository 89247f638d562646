# SPDX-License-Identifier: MIT
"""Odd-even sort talks to neighbours only: of each pair one node keeps the lower half of their values, one the upper.

    spcomm run -n 4 13_odd_even_sort.py [COUNT]

The pairs are 0-1, 2-3, … in even phases and 1-2, 3-4, … in odd ones. After as many phases as there are nodes
everything is sorted: it is bubble sort, with all bubbles at once.
Look: the number of phases in which a value moved. In each phase a value goes one node further at most.
Try: begin with values that are sorted, or in reverse order. Why does each node need the same number of values?
"""

import sys

import numpy as np

import spcomm

comm = spcomm.startup()
count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
block = -(-count // comm.size)  # equally many on each node: values could not get past a node with few
first, last = (min(rank * block, count) for rank in (comm.rank, comm.rank + 1))
values = np.random.default_rng(5).integers(10 * count, size=count).astype(float)  # on all nodes the same
mine = np.pad(np.sort(values[first:last]), (0, block - (last - first)), constant_values=np.inf)

last_move = 0
for phase in range(comm.size):
    partner = comm.rank + (1 if (comm.rank + phase) % 2 == 0 else -1)
    if not 0 <= partner < comm.size:
        continue
    both = np.sort(np.concatenate([mine, comm.sendrecv(mine, partner, source=partner)]))
    kept = both[:block] if comm.rank < partner else both[block:]
    if not np.array_equal(kept, mine):
        last_move = phase + 1
    mine = kept

needed = comm.global_max(last_move)
parts = comm.gather(mine)
if comm.rank == 0:
    print(f"{count} numbers on {comm.size} nodes: sorted after {needed} of {comm.size} phases")
    if not np.array_equal(np.concatenate(parts)[:count], np.sort(values)):
        raise SystemExit("wrong: one node sorts them otherwise")
    print("checked: one node sorts them in the same way")
