# says: has done 0 units of work
# SPDX-License-Identifier: MIT
"""Says that it has done the tasks, and has not."""


def do(comm, task, cost):
    comm.work(cost)
    return task


def solve(comm, costs):
    return list(range(comm.rank, len(costs), comm.size))
