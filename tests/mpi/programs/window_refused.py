# SPDX-License-Identifier: MIT
"""Windows for which the arena has no room, again and again: each leaves the arena as it was."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
for _ in range(3000):
    try:
        MPI.Win.Allocate_shared(1 << 30, comm=comm)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_NO_MEM, error
    else:
        raise AssertionError
MPI.Win.Allocate_shared(8, comm=comm).Free()
