# says: has the most to do
# SPDX-License-Identifier: MIT
"""The manager hands out all at once, in turn."""


def do(comm, task, cost):
    comm.work(cost)
    return task


def solve(comm, costs):
    workers = max(1, comm.size - 1)
    if comm.rank == 0:
        for rank in range(1, comm.size):
            comm.send(
                [task for task in range(len(costs)) if task * workers // max(1, len(costs)) == rank - 1], rank
            )
        mine = range(len(costs)) if comm.size == 1 else []
    else:
        mine = comm.recv(source=0)
    return [do(comm, task, costs[task]) for task in mine]
