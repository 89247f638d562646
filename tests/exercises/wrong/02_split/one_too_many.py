# says: is on nodes 0 and 1
# SPDX-License-Identifier: MIT
"""Takes the end for one of its own items."""


def solve(comm, items):
    begin = comm.rank * len(items) // comm.size
    end = (comm.rank + 1) * len(items) // comm.size
    return items[begin : end + 1]
