# SPDX-License-Identifier: MIT
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size

if rank % 2 == 0:
    comm.send(rank, dest=right)
    theirs = comm.recv(source=left)
else:
    theirs = comm.recv(source=left)
    comm.send(rank, dest=right)
print(f"rank {rank} got {theirs}")
