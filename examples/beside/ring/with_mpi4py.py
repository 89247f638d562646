# SPDX-License-Identifier: MIT
"""A list goes round, and each process signs it: mpiexec -n 4 python with_mpi4py.py"""

from mpi4py import MPI

comm = MPI.COMM_WORLD
right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
if comm.rank == 0:
    request = comm.isend([0], right)  # alone, send() to itself may wait for ever
    print("signed by", comm.recv(source=left))
    request.wait()
else:
    comm.send([*comm.recv(source=left), comm.rank], right)
