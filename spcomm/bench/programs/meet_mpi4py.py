# SPDX-License-Identifier: MIT
"""Imports NumPy and meets once; node 0 prints how many met."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
comm.Barrier()
if comm.rank == 0:
    print(np.int64(comm.size))
