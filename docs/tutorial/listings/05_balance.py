# SPDX-License-Identifier: MIT
"""How many primes are below 150,000? The numbers are divided in blocks, dealt like cards, or shuffled and dealt."""

import sys

import numpy as np

import spcomm

LIMIT = 150_000
WAYS = ("blocks", "cards", "shuffled")


def smallest_divisor(number):
    """And how many divisions it took to find it."""
    for tried, divisor in enumerate(range(2, number), 1):
        if divisor * divisor > number:
            return number, tried
        if number % divisor == 0:
            return divisor, tried
    return number, 1


if sys.argv[1:] not in ([way] for way in WAYS):
    sys.exit(f"usage: spcomm run -n 4 05_balance.py {'|'.join(WAYS)}")
comm = spcomm.startup()
if sys.argv[1] == "blocks":
    share = LIMIT // comm.size
    mine = range(comm.rank * share, LIMIT if comm.rank == comm.size - 1 else (comm.rank + 1) * share)
elif sys.argv[1] == "cards":
    mine = range(comm.rank, LIMIT, comm.size)
else:
    shuffled = np.random.default_rng(seed=1).permutation(LIMIT)  # the same seed: the same order on all nodes
    mine = shuffled[comm.rank :: comm.size].tolist()

primes = work = 0
for number in mine:
    divisor, tried = smallest_divisor(number)
    primes += number > 1 and divisor == number
    work += tried

print(f"node {comm.rank}: {work} divisions")
primes, total, most = comm.global_sum(primes), comm.global_sum(work), comm.global_max(work)
if comm.rank == 0:
    print(f"{primes} primes; the node with most to do has {most * comm.size / total:.2f} times the mean")
