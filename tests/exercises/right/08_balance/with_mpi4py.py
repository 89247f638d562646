# SPDX-License-Identifier: MIT
"""Declares its work with spcomm, and sends with mpi4py."""

from mpi4py import MPI

import spcomm

world = MPI.COMM_WORLD


def do(comm, task, cost):
    comm.work(cost)
    return task


def hand_out(count):
    status = MPI.Status()
    for task in [*range(count), *[None] * (world.size - 1)]:
        world.recv(status=status)
        world.send(task, dest=status.Get_source())
    return []


def pull(comm, costs):
    done = []
    while True:
        world.send(None, dest=0)
        task = world.recv(source=0)
        if task is None:
            return done
        done.append(do(comm, task, costs[task]))


def solve(comm, costs):
    if comm.size == 1:
        return [do(comm, task, cost) for task, cost in enumerate(costs)]
    return hand_out(len(costs)) if comm.rank == 0 else pull(comm, costs)


if __name__ == "__main__":
    print(solve(spcomm.startup(), [8] * 10 + [1] * 30))
