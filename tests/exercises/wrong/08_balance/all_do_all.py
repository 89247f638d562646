# says: have done task 0
# SPDX-License-Identifier: MIT
"""Every node does all."""


def do(comm, task, cost):
    comm.work(cost)
    return task


def solve(comm, costs):
    return [do(comm, task, cost) for task, cost in enumerate(costs)]
