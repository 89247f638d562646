# SPDX-License-Identifier: MIT
"""Exercise 8: tasks of very unequal length; no node should wait long for the one that has the most to do."""

import spcomm


def do(comm, task, cost):
    """Do one task, which takes so many units of work. (Leave this as it is.)"""
    comm.work(cost)
    return task


def solve(comm, costs):
    """Do each of the tasks 0, 1, ... on one node; return the list of those that this node has done."""
    # TODO: equal numbers of tasks are not equal amounts of work
    begin = comm.rank * len(costs) // comm.size
    end = (comm.rank + 1) * len(costs) // comm.size
    return [do(comm, task, costs[task]) for task in range(begin, end)]


if __name__ == "__main__":
    comm = spcomm.startup()
    print(solve(comm, [8] * 10 + [1] * 30))
