# says: do you compare with a number that no node has
# SPDX-License-Identifier: MIT
"""The least value so far is 0 at the begin."""

import spcomm


def solve(comm, values):
    least = 0
    for value in values:
        if value < least:
            least = value
    total = comm.global_sum(sum(values))
    least, where = comm.allreduce((least, comm.rank), op=spcomm.MINLOC)
    return total, least, where
