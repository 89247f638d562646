# says: the parts of one node only
# SPDX-License-Identifier: MIT
"""Leaves the reduction out."""


def area(comm, strip, strips):
    comm.work(1)
    x = (strip + 0.5) / strips
    return 4.0 / (1.0 + x * x) / strips


def solve(comm, strips):
    return sum(area(comm, strip, strips) for strip in range(comm.rank, strips, comm.size))
