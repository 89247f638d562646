# SPDX-License-Identifier: MIT
"""Tasks of unequal length, to whoever is ready: spcomm run -n 4 with_spcomm.py"""

import spcomm

NUMBERS, TASK = 20_000, 500


def longest(first):
    """The most steps of Collatz's rule that one of the numbers of a task needs, and which it is."""
    best = 0, 0
    for number in range(first, first + TASK):
        steps, n = 0, number
        while n > 1:
            steps, n = steps + 1, (3 * n + 1 if n % 2 else n // 2)
        best = max(best, (steps, -number))
    return best


def hand_out(tasks):
    """Node 0: give the next task to whoever has sent a result, until all have got None."""
    best, busy = (0, 0), comm.size - 1
    while busy:
        result, worker, _ = comm.recv_message()
        best = max(best, result)
        comm.send(task := next(tasks, None), worker)
        busy -= task is None
    return max([best, *map(longest, tasks)])  # alone, it does all of them itself


comm = spcomm.startup()
if comm.rank == 0:
    steps, number = hand_out(iter(range(1, NUMBERS, TASK)))
    print(f"{-number} needs {steps} steps")
else:
    result = 0, 0
    while (task := comm.sendrecv(result, 0, source=0)) is not None:
        result = longest(task)
