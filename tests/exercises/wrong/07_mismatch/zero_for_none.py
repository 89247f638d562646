# says: It must be less than all others
# SPDX-License-Identifier: MIT
"""A node without values gives 0 to the maximum."""


def solve(comm, values):
    count = comm.global_sum(len(values))
    total = comm.global_sum(sum(values, 0.0))
    largest = comm.global_max(max(values, default=0.0))
    return count, total / count, largest
