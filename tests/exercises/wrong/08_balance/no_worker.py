# says: SP10
# SPDX-License-Identifier: MIT
"""On one node the manager waits for workers."""


def do(comm, task, cost):
    comm.work(cost)
    return task


def solve(comm, costs):
    if comm.rank == 0:
        for task in [*range(len(costs)), *[None] * (comm.size - 1)]:
            comm.send(task, dest=comm.recv_message().source)
        return []
    done = []
    comm.send(None, dest=0)
    while (task := comm.recv(source=0)) is not None:
        done.append(do(comm, task, costs[task]))
        comm.send(None, dest=0)
    return done
