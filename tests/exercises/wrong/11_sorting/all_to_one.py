# says: then one node has all of it
# SPDX-License-Identifier: MIT
"""Node 0 sorts everything."""

from itertools import chain


def solve(comm, mine):
    lists = comm.gather(mine)
    shares = None
    if comm.rank == 0:
        whole = sorted(chain.from_iterable(lists))
        shares = [
            whole[rank * len(whole) // comm.size : (rank + 1) * len(whole) // comm.size]
            for rank in range(comm.size)
        ]
    return comm.scatter(shares)
