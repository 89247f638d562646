# SPDX-License-Identifier: MIT
"""How large is a ball in five dimensions? Throw points into the cube around it, and count those that hit the ball.

    spcomm run -n 4 04_monte_carlo.py [POINTS]

`comm.rng(seed)` gives each node random numbers of its own, independent of the others' and the same in every run.
Look: the result comes with its error, and the true value lies within a few errors of it.
Try: 100 times as many points, so that the error falls by 10; `numpy.random.default_rng(1)`: all throw the same points.
"""

import math
import sys

import spcomm

DIMENSIONS, BATCH = 5, 100_000


def throw(rng, points):
    """The number of points, of so many, that hit the ball of radius 1 in the cube of side 2."""
    hits = 0
    for done in range(0, points, BATCH):
        throws = rng.uniform(-1, 1, (min(BATCH, points - done), DIMENSIONS))
        hits += int(((throws**2).sum(axis=1) <= 1).sum())
    return hits


comm = spcomm.startup()
points = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
mine = (comm.rank + 1) * points // comm.size - comm.rank * points // comm.size

hits = comm.global_sum(throw(comm.rng(seed=1), mine))

if comm.rank == 0:
    part, cube = hits / points, 2.0**DIMENSIONS
    error = cube * math.sqrt(max(part * (1 - part), 1 / points) / points)
    true = math.pi ** (DIMENSIONS / 2) / math.gamma(DIMENSIONS / 2 + 1)
    print(f"{hits} of {points} points hit: the volume is {cube * part:.4f} ± {error:.4f}")
    if abs(cube * part - true) > 5 * error:
        raise SystemExit(f"wrong: the true volume is {true:.4f}, more than five errors away")
    print(f"checked: the true volume, 8π²/15, is {true:.4f}")
