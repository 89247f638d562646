# SPDX-License-Identifier: MIT
"""More communicators, one after another, than there are numbers for them."""

from mpi4py import MPI

world = MPI.COMM_WORLD
for turn in range(20_000):
    other = world.Dup() if turn % 2 else world.Split(0, world.rank)
    if turn % 1000 == 0:
        found = other.sendrecv(turn, dest=1 - other.rank, source=1 - other.rank)
        assert found == turn, (found, turn)
        assert other.allreduce(1) == other.size
    other.Free()
