# says: three are enough
# SPDX-License-Identifier: MIT
"""One reduction for each value."""

import spcomm


def solve(comm, values):
    total = 0
    for index in range(6):
        total += comm.global_sum(values[index] if index < len(values) else 0)
    least, where = comm.allreduce((min(values), comm.rank), op=spcomm.MINLOC)
    return total, least, where
