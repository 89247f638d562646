# SPDX-License-Identifier: MIT
"""Node 1 holds the lock that node 0 waits for, and waits for node 0."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
window = MPI.Win.Allocate(8, 8, comm=comm)
if comm.rank == 1:
    window.Lock(0)
    comm.send("locked", dest=0)
    comm.recv(source=0, tag=5)
else:
    comm.recv(source=1)
    window.Lock(0)
