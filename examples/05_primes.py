# SPDX-License-Identifier: MIT
"""The sieve of Eratosthenes in pieces: each node strikes out the multiples in its part of the numbers.

    spcomm run -n 4 05_primes.py [LIMIT]

All nodes need the primes up to the root of the limit. These are few, so each node finds them itself, which is
quicker than waiting for another node. `exscan` gives each node the number of primes before its part.
Look: so the node that has the middle prime knows it, although no node ever has all primes.
Try: print `before` on every node. Why do parts of equal length have fewer and fewer primes?
"""

import math
import sys

import numpy as np

import spcomm


def sieve(first, last):
    """The primes p with first <= p < last."""
    small = sieve(2, math.isqrt(last) + 1) if last > 4 else []
    is_prime = np.ones(max(last - first, 0), bool)
    for p in small:
        is_prime[max(p * p, -(-first // p) * p) - first :: p] = False
    return first + np.flatnonzero(is_prime)


comm = spcomm.startup()
limit = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
bounds = [2 + rank * (limit - 1) // comm.size for rank in range(comm.size + 1)]  # 2 … limit

mine = sieve(bounds[comm.rank], bounds[comm.rank + 1])
count, most = comm.global_sum(len(mine)), comm.global_max(len(mine))
before = comm.exscan(len(mine)) or 0  # of the lower ranks; node 0 has none and gets None
middle = (count - 1) // 2
found = int(mine[middle - before]) if before <= middle < before + len(mine) else 0
middle_prime = comm.global_max(found)
largest = comm.global_max(int(mine[-1]) if len(mine) else 0)

if comm.rank == 0:
    print(f"{count} primes up to {limit}, at most {most} on a node; the last is {largest}")
    print(f"the middle one is {middle_prime}")
    alone = sieve(2, limit + 1)
    if (len(alone), alone[middle], alone[-1]) != (count, middle_prime, largest):
        raise SystemExit(f"wrong: one node finds {len(alone)} primes, with {alone[middle]} and {alone[-1]}")
    print("checked: one node finds the same")
