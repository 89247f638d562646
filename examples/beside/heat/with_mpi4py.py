# SPDX-License-Identifier: MIT
"""Heat in a rod, neighbours exchange their ends: mpiexec -n 4 python with_mpi4py.py"""

import numpy as np
from mpi4py import MPI

CELLS, STEPS = 240, 50

comm = MPI.COMM_WORLD
left = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
right = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL
u = np.zeros((comm.rank + 1) * CELLS // comm.size - comm.rank * CELLS // comm.size + 2)
u[0] = 100.0 if comm.rank == 0 else 0.0
for _ in range(STEPS):
    comm.Sendrecv(u[-2:-1], right, recvbuf=u[:1], source=left)
    comm.Sendrecv(u[1:2], left, recvbuf=u[-1:], source=right)
    u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
heat = comm.allreduce(float(u[1:-1].sum()))
if comm.rank == 0:
    print(f"{heat:.6f} degrees in all cells together")
