# SPDX-License-Identifier: MIT
"""Solves it with mpi4py and an operator that is a plain function."""

from mpi4py import MPI

P = 1_000_003
NOTHING = (1, 0)


def then(first, second):
    a, b = first
    c, d = second
    return (c * a) % P, (c * b + d) % P


def solve(comm, maps, x):
    mine = NOTHING
    for pair in maps:
        mine = then(mine, pair)
    a, b = comm.exscan(mine, op=then) or NOTHING
    x = (a * x + b) % P
    values = []
    for a, b in maps:
        x = (a * x + b) % P
        values.append(x)
    return values


if __name__ == "__main__":
    world = MPI.COMM_WORLD
    print(world.rank, solve(world, [(2, 1), (3, world.rank)], x=1))
