# SPDX-License-Identifier: MIT
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size

theirs = comm.sendrecv(rank, dest=right, source=left)
print(f"rank {rank} got {theirs}")
