# SPDX-License-Identifier: MIT
"""π is the area under 4 / (1 + x²) between 0 and 1: each node adds up its part of the strips.

    spcomm run -n 4 03_pi.py [STRIPS]

Look: the time on all nodes beside that on one. With as many nodes as cores it should be shorter by that factor.
Try: 10 strips, 100, 1000: how does the error fall? How many strips does it take until four nodes are faster than one?
"""

import math
import sys
from time import perf_counter

import numpy as np

import spcomm

BLOCK = 1 << 16  # strips at a time: what fits into a cache


def area(first, last, strips):
    """Area of the strips first … last-1 of so many, each as high as the curve is in its middle."""
    total = 0.0
    for begin in range(first, last, BLOCK):
        x = (np.arange(begin, min(begin + BLOCK, last)) + 0.5) / strips
        total += float(np.sum(4.0 / (1.0 + x * x)))
    return total / strips


comm = spcomm.startup()
strips = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000

comm.barrier()  # all start the clock together
begin = perf_counter()
mine = area(comm.rank * strips // comm.size, (comm.rank + 1) * strips // comm.size, strips)
pi = comm.global_sum(mine)  # every node gets it, the same to the last bit
spent = perf_counter() - begin

if comm.rank == 0:
    print(f"π ≈ {pi:.11f}, {abs(pi - math.pi):.1e} from the true value")
    print(f"{strips} strips on {comm.size} nodes: {spent:.3f} s")
    begin = perf_counter()
    alone = area(0, strips, strips)
    print(f"the same on one node: {perf_counter() - begin:.3f} s")
    # Adding up in a different order rounds differently, and strips of finite width leave out 1 / (6 strips²).
    if abs(pi - alone) > 1e-12 or abs(pi - math.pi) > 1e-12 + 1 / (6 * strips**2):
        raise SystemExit(f"wrong: one node finds {alone!r}, all together {pi!r}")
    print("checked: one node finds the same, and so does math.pi")
