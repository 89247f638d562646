# SPDX-License-Identifier: MIT
"""Sample sort: a few samples decide which values each node gets, and one exchange brings them there.

    spcomm run -n 4 12_sample_sort.py [COUNT]

Each node sorts its values and gives some samples to all. All nodes choose the same splitters from them, cut their
values there, and give each piece to the node that it belongs to: two collective operations, whatever the size.
Look: the largest share. All nodes wait for that one.
Try: one sample from each node; then values half of which are equal. What happens to the largest share?
"""

import sys

import numpy as np

import spcomm

SAMPLES = 32  # of each node


def some_of(values, count):
    """So many of the sorted values, evenly spread; of none, none."""
    return values[np.arange(count) * len(values) // count] if len(values) else values


comm = spcomm.startup()
count = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
mine = comm.rng(7).normal(size=(comm.rank + 1) * count // comm.size - comm.rank * count // comm.size)
before = comm.gather(mine)  # for the check only

mine.sort()
samples = np.sort(np.concatenate(comm.allgather(some_of(mine, SAMPLES))))
splitters = some_of(samples, comm.size)[1:]  # size - 1 of them: between two nodes
pieces = np.split(mine, np.searchsorted(mine, splitters))
mine = np.sort(np.concatenate(comm.alltoall(pieces)))

share = comm.global_max(len(mine)) * comm.size / count
after = comm.gather(mine)
if comm.rank == 0:
    print(f"{count} numbers on {comm.size} nodes; the largest share is {share:.2f} times the mean")
    if not np.array_equal(np.concatenate(after), np.sort(np.concatenate(before))):
        raise SystemExit("wrong: one node sorts them otherwise")
    print("checked: one node sorts them in the same way")
