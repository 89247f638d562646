# says: not sorted
# SPDX-License-Identifier: MIT
"""Each node has splitters of its own."""

from bisect import bisect_left
from itertools import chain

EVERY = 16  # one sample of so many numbers


def solve(comm, mine):
    """Return this node's share of the sorted whole."""
    keys = sorted((number, comm.rank, place) for place, number in enumerate(mine))
    samples = sorted(keys[::EVERY])
    if not samples:
        return list(chain.from_iterable(comm.alltoall([[]] * comm.size)))
    splitters = [samples[node * len(samples) // comm.size] for node in range(1, comm.size)]
    fences = [0, *(bisect_left(keys, splitter) for splitter in splitters), len(keys)]
    numbers = [key[0] for key in keys]
    pieces = [numbers[fences[node] : fences[node + 1]] for node in range(comm.size)]
    return sorted(chain.from_iterable(comm.alltoall(pieces)))
