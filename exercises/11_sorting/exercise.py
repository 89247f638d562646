# SPDX-License-Identifier: MIT
"""Exercise 11: sample sort, also of equal numbers. README.md has the task."""

from bisect import bisect_left
from itertools import chain

import spcomm

EVERY = 16  # one sample of so many numbers


def solve(comm, mine):
    """Return this node's share of the sorted whole."""
    # TODO: equal numbers all go to one node. What must be compared, so that a splitter can separate them?
    keys = sorted(mine)
    samples = sorted(chain.from_iterable(comm.allgather(keys[::EVERY])))
    if not samples:
        return []  # no node has a number
    splitters = [samples[node * len(samples) // comm.size] for node in range(1, comm.size)]
    fences = [0, *(bisect_left(keys, splitter) for splitter in splitters), len(keys)]
    pieces = [keys[fences[node] : fences[node + 1]] for node in range(comm.size)]
    return sorted(chain.from_iterable(comm.alltoall(pieces)))


if __name__ == "__main__":
    comm = spcomm.startup()
    numbers = comm.rng(3).integers(5, size=100).tolist()  # 0 to 4: many are equal
    print(f"node {comm.rank} has {len(solve(comm, numbers))} numbers")
