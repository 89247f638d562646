# says: return items, not their numbers
# SPDX-License-Identifier: MIT
"""Returns where the items are."""


def solve(comm, items):
    begin = comm.rank * len(items) // comm.size
    end = (comm.rank + 1) * len(items) // comm.size
    return [*items[begin:end], begin]
