# SPDX-License-Identifier: MIT
"""Tasks of unknown length: node 0 hands them out one by one, to the next worker that is ready.

    spcomm run -n 4 16_master_workers.py [NUMBERS [TASKS]]

A task is a range of numbers; its result is the number that Collatz's rule leads to 1 in the most steps.
Look: the master receives from ANY and answers the sender. In the end each worker gets None: no task is left.
Try: few large tasks, then many small ones. What is the disadvantage of each?
"""

import sys

import spcomm


def steps(number):
    """The number of times that Collatz's rule (n / 2, or 3 n + 1 if n is odd) must be applied to get to 1."""
    count = 0
    while number > 1:
        number = 3 * number + 1 if number % 2 else number // 2
        count += 1
    return count


def longest(task):
    """The most steps of the numbers in a range, and the first number that needs so many."""
    return max(((steps(number), -number) for number in task), default=(0, 0))


def master(tasks):
    """Hand out all tasks, of an iterator; returns the best result, and how many results each node gave."""
    best, done, busy = (0, 0), [0] * comm.size, comm.size - 1
    while busy:
        result, worker, _ = comm.recv_message()  # each worker's first is None: it has done nothing yet
        if result is not None:
            best, done[worker] = max(best, result), done[worker] + 1
        comm.send(task := next(tasks, None), worker)
        busy -= task is None
    for task in tasks:  # there was no worker to do it
        best, done[0] = max(best, longest(task)), done[0] + 1
    return best, done


comm = spcomm.startup()
numbers = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
parts = int(sys.argv[2]) if len(sys.argv) > 2 else 100
tasks = [range(1 + i * numbers // parts, 1 + (i + 1) * numbers // parts) for i in range(parts)]

if comm.rank == 0:
    best, done = master(iter(tasks))
    print(f"of 1 to {numbers}, {-best[1]} needs the most steps: {best[0]}")
    print(f"tasks done by the nodes: {done}")
    if (alone := longest(range(1, numbers + 1))) != best or sum(done) != parts:
        raise SystemExit(f"wrong: one node finds {alone}, and {sum(done)} of {parts} tasks were done")
    print("checked: one node finds the same")
else:
    result = None
    while (task := comm.sendrecv(result, 0, source=0)) is not None:
        result = longest(task)
