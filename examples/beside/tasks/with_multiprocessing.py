# SPDX-License-Identifier: MIT
"""Tasks of unequal length, to whoever is ready: python with_multiprocessing.py 4"""

import sys
from multiprocessing import Pool

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


if __name__ == "__main__":
    with Pool(int(sys.argv[1])) as pool:
        steps, number = max(pool.imap_unordered(longest, range(1, NUMBERS, TASK)))
    print(f"{-number} needs {steps} steps")
