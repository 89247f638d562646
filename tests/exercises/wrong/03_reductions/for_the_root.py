# says: is something within an if, or meant for the root only
# SPDX-License-Identifier: MIT
"""Node 0 gets the result, the others do not."""

import spcomm


def solve(comm, values):
    total = comm.reduce(sum(values), root=0)
    pair = comm.reduce((min(values), comm.rank), op=spcomm.MINLOC, root=0)
    if comm.rank == 0:
        return total, *pair
