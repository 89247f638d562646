# SPDX-License-Identifier: MIT
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
data = np.zeros(4)
if comm.Get_rank() == 0:
    comm.Bcast(data, root=0)
    comm.Barrier()
else:
    comm.Barrier()
    comm.Bcast(data, root=0)
