# says: SP10
# SPDX-License-Identifier: MIT
"""The manager leaves when it has no more."""


def do(comm, task, cost):
    comm.work(cost)
    return task


def solve(comm, costs):
    if comm.size == 1:
        return [do(comm, task, cost) for task, cost in enumerate(costs)]
    if comm.rank == 0:
        for task in range(len(costs)):
            comm.send(task, dest=comm.recv_message().source)
        return []
    done = []
    while len(done) < len(costs):
        comm.send(None, dest=0)
        task = comm.recv(source=0)
        done.append(do(comm, task, costs[task]))
    return done
