# says: may begin only
# SPDX-License-Identifier: MIT
"""The others begin before node 0 is ready."""


def amdahl(f, n):
    """The speed-up on n nodes, if the share f of the work cannot be divided."""
    return 1 / (f + (1 - f) / n)


def karp_flatt(speedup, n):
    """The share that behaves as if it could not be divided, from a speed-up measured on n nodes."""
    return (1 / speedup - 1 / n) / (1 - 1 / n)


def solve(comm, serial, tasks):
    """Do the work; return the speed-up that Amdahl's law foresees for it."""
    if comm.rank == 0:
        comm.work(serial)
    for cost in tasks[comm.rank :: comm.size]:
        comm.work(cost)
    comm.barrier()
    f = serial / (serial + sum(tasks))
    return amdahl(f, comm.size)


def formulas(comm, shares, speedups):
    """For the judge: both functions for many numbers, pairs (f, n) and (speedup, n)."""
    return [[amdahl(*pair) for pair in shares], [karp_flatt(*pair) for pair in speedups]]
