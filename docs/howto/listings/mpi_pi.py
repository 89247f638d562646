# SPDX-License-Identifier: MIT
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()

strips = comm.bcast(1_000_000 if rank == 0 else None, root=0)
part = sum(4 / (1 + ((strip + 0.5) / strips) ** 2) for strip in range(rank, strips, size)) / strips
pi = comm.reduce(part, op=MPI.SUM, root=0)
if rank == 0:
    print(f"{size} processes: pi is about {pi:.9f}")
