# SPDX-License-Identifier: MIT
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.Get_rank() == 0:
    comm.Send(np.linspace(0, 1, 4), dest=1)
else:
    numbers = np.zeros(8, dtype=np.int32)
    comm.Recv(numbers, source=0)
    print(numbers)
