# SPDX-License-Identifier: MIT
"""Requests that are never completed, of two calls; and one that is."""

from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
data = array("i", [0])
if comm.rank == 0:
    comm.send("here", dest=1, tag=1)
else:
    left = [comm.irecv(source=0, tag=tag) for tag in (1, 2)]
    also_left = comm.Irecv(data, source=0, tag=3)
comm.Ibarrier().Wait()
