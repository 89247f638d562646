# SPDX-License-Identifier: MIT
"""Solves it with mpi4py, whose reductions of objects are named for the judge."""

from mpi4py import MPI


def solve(comm, values):
    total = comm.allreduce(sum(values))
    least, where = comm.allreduce((min(values), comm.Get_rank()), op=MPI.MINLOC)
    return total, least, where


if __name__ == "__main__":
    print(solve(MPI.COMM_WORLD, [10 - MPI.COMM_WORLD.rank, 20]))
