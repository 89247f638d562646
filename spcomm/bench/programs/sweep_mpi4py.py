# SPDX-License-Identifier: MIT
"""The operations of the sweep with mpi4py. `sweep_spcomm.py` has the same, in the same order.

Each returns the seconds that the operations alone took, on node 0's clock: to the acknowledgement, or to a barrier at
the end. The last message of a batch is marked, and the mark is checked.
"""

from time import perf_counter

import driver
import numpy as np
from mpi4py import MPI
from payload import buffers, check, check_mark, marked
from works_mpi4py import share


def one_way(comm, count, size, cold):
    """Node 0 sends messages to node 1, which acknowledges the last one (Gonzalez 2000, figure 6)."""
    arrays = buffers(size, cold)
    begin = perf_counter()
    if comm.rank == 0:
        for _ in range(count - 1):
            comm.Send(next(arrays), 1)
        comm.Send(marked(next(arrays), count), 1)
        comm.Recv(np.empty(1), 1)
    elif comm.rank == 1:
        for _ in range(count):
            comm.Recv(received := next(arrays), 0)
        comm.Send(np.empty(1), 0)
        check_mark(received, count)
    return count, perf_counter() - begin


def pingpong(comm, count, size, cold):
    """Half a round trip between nodes 0 and 1 (Gonzalez 2000, figure 7)."""
    arrays = buffers(size, cold)
    begin = perf_counter()
    if comm.rank == 0:
        for _ in range(count - 1):
            comm.Send(next(arrays), 1)
            comm.Recv(next(arrays), 1)
        comm.Send(marked(next(arrays), count), 1)
        comm.Recv(received := next(arrays), 1)
        check_mark(received, count)
    elif comm.rank == 1:
        for _ in range(count):
            comm.Recv(received := next(arrays), 0)
            comm.Send(received, 0)
    return 2 * count, perf_counter() - begin


def one_to_all(comm, count, size, cold):
    """Node 0 sends a message of its own to each other node."""
    arrays = buffers(size, cold)
    others = range(1, comm.size)
    begin = perf_counter()
    for value in range(count):
        if comm.rank == 0:
            for other in others:
                comm.Send(marked(next(arrays), value + other), other)
        else:
            comm.Recv(received := next(arrays), 0)
    comm.Barrier()
    if comm.rank:
        check_mark(received, count - 1 + comm.rank)
    return count, perf_counter() - begin


def all_to_one(comm, count, size, cold):
    """Each other node sends a message to node 0."""
    arrays = buffers(size, cold)
    others = range(1, comm.size)
    begin = perf_counter()
    for value in range(count):
        if comm.rank == 0:
            for other in others:
                comm.Recv(received := next(arrays), other)
                check_mark(received, value + other)
        else:
            comm.Send(marked(next(arrays), value + comm.rank), 0)
    comm.Barrier()
    return count, perf_counter() - begin


def all_to_all(comm, count, size, cold):
    """Each node sends a message of its own to each node."""
    arrays = buffers(size * comm.size, cold)
    received = np.empty((comm.size, size), np.uint8)
    begin = perf_counter()
    for value in range(count):
        source = next(arrays).reshape(comm.size, size)
        source[:, 0] = (comm.rank + value) % 251
        comm.Alltoall(source, received)
        check(received[-1][0] == (comm.size - 1 + value) % 251, received, value)
    comm.Barrier()
    return count, perf_counter() - begin


def broadcast(comm, count, size, cold):
    """Each node gets node 0's message."""
    arrays = buffers(size, cold)
    begin = perf_counter()
    for value in range(count):
        received = marked(next(arrays), value) if comm.rank == 0 else next(arrays)
        comm.Bcast(received)
        check_mark(received, value)
    comm.Barrier()
    return count, perf_counter() - begin


def reduce(comm, count, size, cold):
    """Node 0 gets the sums of the elements of all nodes' arrays of doubles."""
    return array_sums(comm, comm.Reduce, comm.rank == 0, count, size, cold)


def allreduce(comm, count, size, cold):
    """Each node gets the sums of the elements of all nodes' arrays of doubles."""
    return array_sums(comm, comm.Allreduce, True, count, size, cold)


def array_sums(comm, operation, is_receiver, count, size, cold):
    arrays, ranks = buffers(size, cold, doubles=True), sum(rank % 251 for rank in range(comm.size))
    received = np.empty(size // 8)
    begin = perf_counter()
    for value in range(count):
        operation(marked(next(arrays), comm.rank), received)
        check(not is_receiver or received[0] == received[-1] == ranks, received, value)
    comm.Barrier()
    return count, perf_counter() - begin


def global_sum(comm, count):
    """Each node gets the sum of one float of each node."""
    ranks = sum(range(comm.size))
    source, received = np.empty(1), np.empty(1)
    begin = perf_counter()
    for value in range(count):
        source[0] = comm.rank + value
        comm.Allreduce(source, received)
        check(received[0] == ranks + comm.size * value, received, value)
    return count, perf_counter() - begin


def barrier(comm, count):
    """All nodes meet."""
    begin = perf_counter()
    for _ in range(count):
        comm.Barrier()
    return count, perf_counter() - begin


if __name__ == "__main__":
    driver.main(MPI.COMM_WORLD, share, globals())
