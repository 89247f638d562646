# says: take it out of the loop
# SPDX-License-Identifier: MIT
"""One reduction for each round of strips."""


def area(comm, strip, strips):
    comm.work(1)
    x = (strip + 0.5) / strips
    return 4.0 / (1.0 + x * x) / strips


def solve(comm, strips):
    total = 0.0
    for begin in range(0, strips, comm.size):
        strip = begin + comm.rank
        part = area(comm, strip, strips) if strip < strips else 0.0
        total += comm.global_sum(part)
    return total
