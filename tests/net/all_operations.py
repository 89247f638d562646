# SPDX-License-Identifier: MIT
"""A program that does everything nodes can do with each other, at random from a seed, until a file is there. A fourth
argument is an infile, of boxes without a launcher.

Each round is compared with what must come of it: the work and the oracles are those of tests/stress.
"""

import os
import random
import sys

import numpy as np

import spcomm
from carry_out import carry_out
from gather_all import gather_all
from go_through import go_through
from reduce_all import reduce_all

SIZES = (0, 1, 40, 41, 500, 3000, 8193, 20_000, 300_000)


def everything_mixed(comm, chance):
    carry_out(comm, chance.getrandbits(32), 150, 400_000)


def cycles(comm, chance):
    def send():
        targets = sorted(chance.sample(range(comm.size), chance.randint(1, comm.size)))
        return chance.randrange(comm.size), targets, chance.choice(SIZES[:-1])

    made = [([send() for _ in range(chance.randrange(12))], None) for _ in range(8)]
    go_through(comm, made, chance.getrandbits(32))


def gatherings(comm, chance):
    names = ["bcast", "gather", "allgather", "scatter", "alltoall"]
    steps = [
        (chance.choice(names), chance.randrange(comm.size), chance.choices(SIZES[:-1], k=comm.size), None)
        for _ in range(15)
    ]
    gather_all(comm, steps, chance.getrandbits(32))


def reductions(comm, chance):
    names = ["allreduce", "reduce", "scan", "exscan", "bcast", "alltoall"]
    steps = [
        (chance.choice(names), chance.choice(["SUM", "MAX", "latest"]), chance.choice(["f8", "i4"]),
         (chance.choice([1, 7, 513, 9000]),), chance.randrange(comm.size), None)
        for _ in range(12)
    ]  # fmt: skip
    reduce_all(comm, steps, chance.getrandbits(32))


def parts(comm, chance):
    color = chance.randrange(2)
    part = comm.split((comm.rank + color) % 2)
    ranks = range(comm.rank % 2, comm.size, 2)
    assert part.global_sum(comm.rank) == sum(ranks)
    part.close()


def rings(comm, chance):
    """Synchronous sends, and long ones, around; one multicast from each."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in chance.choices(SIZES, k=8):
        mine = np.full(size, comm.rank, "u1")
        if comm.rank == 0:
            comm.ssend(mine, after)
        assert (comm.recv(before) == np.full(size, before, "u1")).all()
        if comm.rank != 0:
            comm.ssend(mine, after)
        comm.send((comm.rank, size), spcomm.OTHERS, tag=3)
        for other in range(comm.size):
            if other != comm.rank:
                assert comm.recv(other, 3) == (other, size)
        number = comm.fuzzy_barrier()
        comm.send(size, after, tag=4)
        number.wait()
        assert comm.recv(before, 4) == size


def main():
    seed, done, least = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    comm = spcomm.startup(infile=sys.argv[4] if sys.argv[4:] else None)
    kinds = [everything_mixed, cycles, gatherings, reductions, parts, rings]
    number = 0
    while number < least or not comm.bcast(os.path.exists(done) if comm.rank == 0 else None, 0):
        kinds[number % len(kinds)](comm, random.Random(f"{seed} {number}"))
        comm.barrier()  # some look whether messages are left, and those of the next round are not
        number += 1
    comm.barrier()
    print(comm.rank, number, flush=True)


main()
