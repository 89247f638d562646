# SPDX-License-Identifier: MIT
"""π by adding up strips: mpiexec -n 4 python with_mpi4py.py"""

import numpy as np
from mpi4py import MPI

STRIPS = 4_000_000

comm = MPI.COMM_WORLD
x = (np.arange(comm.rank, STRIPS, comm.size) + 0.5) / STRIPS
pi = comm.allreduce(float(np.sum(4 / (1 + x * x))) / STRIPS)
if comm.rank == 0:
    print(f"π ≈ {pi:.10f}")
