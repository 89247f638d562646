# says: the values travel to other nodes
# SPDX-License-Identifier: MIT
"""Every node gets all lists."""


def solve(comm, values):
    lists = comm.allgather(values)
    least = min(min(values) for values in lists)
    where = next(rank for rank, values in enumerate(lists) if least in values)
    return sum(map(sum, lists)), least, where
