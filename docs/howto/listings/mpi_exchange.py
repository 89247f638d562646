# SPDX-License-Identifier: MIT
from mpi4py import MPI

comm = MPI.COMM_WORLD
partner = 1 - comm.Get_rank()

theirs = comm.recv(source=partner, tag=7)
comm.send(comm.Get_rank(), dest=partner, tag=7)
print(f"rank {comm.Get_rank()} got {theirs}")
