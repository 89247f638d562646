# SPDX-License-Identifier: MIT
"""The operations of the sweep with spcomm. `sweep_mpi4py.py` has the same, in the same order.

Each returns the seconds that the operations alone took, on node 0's clock: to the acknowledgement, or to a barrier at
the end. The last message of a batch is marked, and the mark is checked.
"""

from time import perf_counter

import driver
from payload import buffers, check, check_mark, marked
from works_spcomm import share

import spcomm


def one_way(comm, count, size, cold):
    """Node 0 sends messages to node 1, which acknowledges the last one (Gonzalez 2000, figure 6)."""
    arrays = buffers(size, cold)
    begin = perf_counter()
    if comm.rank == 0:
        for _ in range(count - 1):
            comm.send(next(arrays), 1)
        comm.send(marked(next(arrays), count), 1)
        comm.recv(1)
    elif comm.rank == 1:
        for _ in range(count):
            received = comm.recv(0, out=next(arrays))
        comm.send(None, 0)
        check_mark(received, count)
    return count, perf_counter() - begin


def pingpong(comm, count, size, cold):
    """Half a round trip between nodes 0 and 1 (Gonzalez 2000, figure 7)."""
    arrays = buffers(size, cold)
    begin = perf_counter()
    if comm.rank == 0:
        for _ in range(count - 1):
            comm.send(next(arrays), 1)
            comm.recv(1, out=next(arrays))
        comm.send(marked(next(arrays), count), 1)
        check_mark(comm.recv(1, out=next(arrays)), count)
    elif comm.rank == 1:
        for _ in range(count):
            received = comm.recv(0, out=next(arrays))
            comm.send(received, 0)
    return 2 * count, perf_counter() - begin


def one_to_all(comm, count, size, cold):
    """Node 0 sends a message of its own to each other node."""
    arrays = buffers(size, cold)
    others = range(1, comm.size)
    begin = perf_counter()
    for value in range(count):
        if comm.rank == 0:
            for other in others:
                comm.send(marked(next(arrays), value + other), other)
        else:
            received = comm.recv(0, out=next(arrays))
    comm.barrier()
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
                check_mark(comm.recv(other, out=next(arrays)), value + other)
        else:
            comm.send(marked(next(arrays), value + comm.rank), 0)
    comm.barrier()
    return count, perf_counter() - begin


def all_to_all(comm, count, size, cold):
    """Each node sends a message of its own to each node."""
    arrays = buffers(size * comm.size, cold)
    begin = perf_counter()
    for value in range(count):
        source = next(arrays).reshape(comm.size, size)
        source[:, 0] = (comm.rank + value) % 251
        received = comm.alltoall(source)
        check(received[-1][0] == (comm.size - 1 + value) % 251, received, value)
    comm.barrier()
    return count, perf_counter() - begin


def broadcast(comm, count, size, cold):
    """Each node gets node 0's message."""
    arrays = buffers(size, cold)
    begin = perf_counter()
    for value in range(count):
        source = marked(next(arrays), value) if comm.rank == 0 else None
        check_mark(comm.bcast(source), value)
    comm.barrier()
    return count, perf_counter() - begin


def reduce(comm, count, size, cold):
    """Node 0 gets the sums of the elements of all nodes' arrays of doubles."""
    return array_sums(comm, comm.reduce, comm.rank == 0, count, size, cold)


def allreduce(comm, count, size, cold):
    """Each node gets the sums of the elements of all nodes' arrays of doubles."""
    return array_sums(comm, comm.allreduce, True, count, size, cold)


def array_sums(comm, operation, is_receiver, count, size, cold):
    arrays, ranks = buffers(size, cold, doubles=True), sum(rank % 251 for rank in range(comm.size))
    begin = perf_counter()
    for value in range(count):
        received = operation(marked(next(arrays), comm.rank))
        check(not is_receiver or received[0] == received[-1] == ranks, received, value)
    comm.barrier()
    return count, perf_counter() - begin


def global_sum(comm, count):
    """Each node gets the sum of one float of each node."""
    ranks = sum(range(comm.size))
    begin = perf_counter()
    for value in range(count):
        received = comm.global_sum(float(comm.rank + value))
        check(received == ranks + comm.size * value, received, value)
    return count, perf_counter() - begin


def barrier(comm, count):
    """All nodes meet."""
    begin = perf_counter()
    for _ in range(count):
        comm.barrier()
    return count, perf_counter() - begin


if __name__ == "__main__":
    driver.main(spcomm.startup(), share, globals())
