# says: every node had all of them
# SPDX-License-Identifier: MIT
"""Everybody sorts everything and keeps a part."""

from itertools import chain


def solve(comm, mine):
    whole = sorted(chain.from_iterable(comm.allgather(mine)))
    return whole[comm.rank * len(whole) // comm.size : (comm.rank + 1) * len(whole) // comm.size]
