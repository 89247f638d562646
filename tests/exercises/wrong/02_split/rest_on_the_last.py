# says: the blocks have 2, 2, 2, 5 items
# SPDX-License-Identifier: MIT
"""The last node takes all that is left."""


def solve(comm, items):
    size = len(items) // comm.size
    end = len(items) if comm.rank == comm.size - 1 else (comm.rank + 1) * size
    return items[comm.rank * size : end]
