# SPDX-License-Identifier: MIT
"""An mpi4py program, the same for every MPI library, spcomm's too; `mpi.c` has its works in C.

Buffers stay the same, and what arrived is checked once a batch. Each batch of a collective ends with a barrier.
"""

from time import perf_counter

import driver
import numpy as np
from mpi4py import MPI
from payload import check
from sweep_mpi4py import barrier, pingpong
from works_mpi4py import object_pingpong, ring, share

__all__ = ["barrier", "object_pingpong", "pingpong", "ring"]


def exchange(comm, count, size):
    """Messages from the left neighbour and to the right one at once: Irecv, Isend, Waitall."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    source, received = np.full(size, count % 251, np.uint8), np.zeros(size, np.uint8)
    begin = perf_counter()
    for _ in range(count):
        requests = [comm.Irecv(received, left), comm.Isend(source, right)]
        MPI.Request.Waitall(requests)
    comm.Barrier()
    spent = perf_counter() - begin
    check((received == source).all(), received, source)
    return count, spent


def allreduce(comm, count, size):
    """Each node gets the sums of arrays of `size` bytes of doubles."""
    source, received = np.full(size // 8, float(comm.rank)), np.zeros(size // 8)
    begin = perf_counter()
    for _ in range(count):
        comm.Allreduce(source, received)
    comm.Barrier()
    spent = perf_counter() - begin
    check((received == comm.size * (comm.size - 1) / 2).all(), received, source)
    return count, spent


def broadcast(comm, count, size):
    """Each node gets node 0's array of `size` bytes."""
    array = np.full(size, 0 if comm.rank else count % 251, np.uint8)
    begin = perf_counter()
    for _ in range(count):
        comm.Bcast(array)
    comm.Barrier()
    spent = perf_counter() - begin
    check((array == count % 251).all(), array, count)
    return count, spent


def object_broadcast(comm, count):
    """Each node gets node 0's small dict."""
    source = {"step": count, "mass": 0.5, "name": "particle"}
    begin = perf_counter()
    for _ in range(count):
        received = comm.bcast(source if comm.rank == 0 else None)
    comm.Barrier()
    spent = perf_counter() - begin
    check(received == source, received, source)
    return count, spent


if __name__ == "__main__":
    driver.main(MPI.COMM_WORLD, share, globals())
