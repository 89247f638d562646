# SPDX-License-Identifier: MIT
"""Waitany and Testany give receives in the order in which their messages were delivered, not in that of the list."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
COUNT = 6

for complete in (MPI.Request.Waitany, lambda requests: MPI.Request.Testany(requests)[0]):
    if comm.rank > 0:
        for number in range(COUNT):
            comm.Send(np.array([number], "i"), dest=0)
        comm.Barrier()
        continue
    count = COUNT * (comm.size - 1)
    values = np.zeros((count, 1), "i")
    requests = [comm.Irecv(values[at], source=MPI.ANY_SOURCE) for at in range(count)][::-1]
    comm.Barrier()
    order = [complete(requests) for _ in range(count)]
    assert order == list(range(count))[::-1], order
