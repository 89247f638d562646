# says: items[9] is on no node (10 items on 3 nodes)
# SPDX-License-Identifier: MIT
"""Loses the rest."""


def solve(comm, items):
    size = len(items) // comm.size
    return items[comm.rank * size : (comm.rank + 1) * size]
