# says: what becomes of the rest
# SPDX-License-Identifier: MIT
"""Loses the strips that cannot be divided equally."""


def area(comm, strip, strips):
    comm.work(1)
    x = (strip + 0.5) / strips
    return 4.0 / (1.0 + x * x) / strips


def solve(comm, strips):
    count = strips // comm.size
    mine = range(comm.rank * count, (comm.rank + 1) * count)
    return comm.global_sum(sum((area(comm, strip, strips) for strip in mine), 0.0))
