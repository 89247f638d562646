# says: SP10
# SPDX-License-Identifier: MIT
"""A node without values goes home."""


def solve(comm, values):
    if not values:
        return None
    count = comm.global_sum(len(values))
    total = comm.global_sum(sum(values))
    return count, total / count, comm.global_max(max(values))
