# says: has the most to do
# SPDX-License-Identifier: MIT
"""Deals the tasks like cards, in step with the long ones."""


def do(comm, task, cost):
    comm.work(cost)
    return task


def solve(comm, costs):
    return [do(comm, task, costs[task]) for task in range(comm.rank, len(costs), comm.size)]
