# SPDX-License-Identifier: MIT
"""Rank 0 calls a function that is not there."""

from mpi4py import MPI

if MPI.COMM_WORLD.Get_rank() == 0:
    MPI.Open_port()
