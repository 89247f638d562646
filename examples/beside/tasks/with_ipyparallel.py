# SPDX-License-Identifier: MIT
"""Tasks of unequal length, to whoever is ready: python with_ipyparallel.py 4"""

import sys

import ipyparallel

NUMBERS, TASK = 20_000, 500


def longest(first, count):
    """The most steps of Collatz's rule that one of the numbers of a task needs, and which it is."""
    best = 0, 0
    for number in range(first, first + count):
        steps, n = 0, number
        while n > 1:
            steps, n = steps + 1, (3 * n + 1 if n % 2 else n // 2)
        best = max(best, (steps, -number))
    return best


with ipyparallel.Cluster(n=int(sys.argv[1])) as engines:
    firsts = range(1, NUMBERS, TASK)
    steps, number = max(engines.load_balanced_view().map_sync(longest, firsts, [TASK] * len(firsts)))
print(f"{-number} needs {steps} steps")
