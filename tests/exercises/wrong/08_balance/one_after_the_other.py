# says: does somebody wait for a result
# SPDX-License-Identifier: MIT
"""The manager waits for each result before it hands out the next task."""

import spcomm


def do(comm, task, cost):
    comm.work(cost)
    return task


def solve(comm, costs):
    if comm.size == 1:
        return [do(comm, task, cost) for task, cost in enumerate(costs)]
    if comm.rank == 0:
        for task in range(len(costs)):
            worker = task % (comm.size - 1) + 1
            comm.send(task, dest=worker)
            comm.recv(source=worker)
        comm.send(None, dest=spcomm.OTHERS)
        return []
    done = []
    while (task := comm.recv(source=0)) is not None:
        done.append(do(comm, task, costs[task]))
        comm.send("done", dest=0)
    return done
