# SPDX-License-Identifier: MIT
"""A program that does everything nodes can do with each other, at random from a seed, until a file is there. A fourth
argument is an infile, of boxes without a launcher.

Each round is a schedule of tests/stress, with its oracle, and a part that comes and goes.
"""

import os
import random
import sys

import spcomm
from play import play

BOUND = 3_000_000


def main():
    seed, done, least = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    comm = spcomm.startup(infile=sys.argv[4] if sys.argv[4:] else None)
    number = 0
    while number < least or not comm.bcast(os.path.exists(done) if comm.rank == 0 else None, 0):
        chance = random.Random(f"{seed} {number}")
        play(comm, chance.getrandbits(32), 300 // comm.size, 0, BOUND)
        with comm.split(comm.rank % 2) as part:
            assert part.global_sum(comm.rank) == sum(range(comm.rank % 2, comm.size, 2))
        number += 1
    print(comm.rank, number, flush=True)


main()
