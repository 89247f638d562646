# SPDX-License-Identifier: MIT
"""Hands out the tasks one at a time, and has their numbers as floats."""

from spcomm import ANY


def solve(comm, costs):
    if comm.size == 1:
        comm.work(sum(costs))
        return [float(task) for task in range(len(costs))]
    if comm.rank > 0:
        return worker(comm, costs)
    tasks = sorted(range(len(costs)), key=lambda task: -costs[task])
    for number in range(len(tasks) + comm.size - 1):
        message = comm.recv_message(source=ANY)
        comm.send(float(tasks[number]) if number < len(tasks) else None, dest=message.source)
    return []


def worker(comm, costs):
    done = []
    while True:
        comm.send(None, dest=0)
        task = comm.recv(source=0)
        if task is None:
            return done
        comm.work(costs[int(task)])
        done.append(task)
