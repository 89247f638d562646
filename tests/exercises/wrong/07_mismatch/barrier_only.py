# says: node 1: global_sum() of an int
# SPDX-License-Identifier: MIT
"""Mends the first mistake."""


def solve(comm, values):
    count = comm.global_sum(len(values))
    total = comm.global_sum(sum(values))
    largest = None
    if values:
        largest = comm.global_max(max(values))
    return count, total / count, largest
