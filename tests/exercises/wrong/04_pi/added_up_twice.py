# says: node 0 has computed 12 strips
# SPDX-License-Identifier: MIT
"""All compute everything, and add it up."""


def area(comm, strip, strips):
    comm.work(1)
    x = (strip + 0.5) / strips
    return 4.0 / (1.0 + x * x) / strips


def solve(comm, strips):
    total = sum(area(comm, strip, strips) for strip in range(strips))
    return comm.global_sum(total) / comm.size
