# SPDX-License-Identifier: MIT
"""Exercise 14: predict a speed-up, then measure it. README.md has the task."""

import spcomm


def amdahl(f, n):
    """The speed-up on n nodes, if the share f of the work cannot be divided."""
    return n  # TODO: that would be so for f = 0


def karp_flatt(speedup, n):
    """The share that behaves as if it could not be divided, from a speed-up measured on n nodes."""
    return 0.0  # TODO


def solve(comm, serial, tasks):
    """Do the work; return the speed-up that Amdahl's law predicts for it."""
    if comm.rank == 0:
        comm.work(serial)
    comm.barrier()
    # TODO: every node does all tasks
    for cost in tasks:
        comm.work(cost)
    comm.barrier()
    f = serial / (serial + sum(tasks))
    return amdahl(f, comm.size)


def formulas(comm, shares, speedups):
    """For the checker: both functions for many numbers, pairs (f, n) and (speedup, n)."""
    return [[amdahl(*pair) for pair in shares], [karp_flatt(*pair) for pair in speedups]]


if __name__ == "__main__":
    comm = spcomm.startup()
    print(f"node {comm.rank} of {comm.size} foresees {solve(comm, 20, [5] * 16):.2f}")
