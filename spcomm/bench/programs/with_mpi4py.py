# SPDX-License-Identifier: MIT
"""The works with mpi4py, each in the fastest way it has: functions `<program>_<work>`.

`with_spcomm.py` has the same `works`, `arrays` and `sweep`, in the same order. All MPI libraries run `mpi`, spcomm's
too; `mpi.c` has its works in C.
"""

from time import perf_counter

import numpy as np
from mpi4py import MPI
from payload import buffers, check, check_mark, look, marked, one_copy, write


def start():
    return MPI.COMM_WORLD


def share(comm, value):
    """Node 0's object, on every node."""
    return comm.bcast(value)


# ---- works: small messages and meetings


def works_array_pingpong(comm, count):
    """An array of 8 bytes, there and back."""
    if comm.rank == 0:
        source = np.zeros(1)
        for value in range(count):
            source[0] = value
            comm.Send(source, 1)
            received = np.empty(1)
            comm.Recv(received, 1)
            check(received[0] == value, received, value)
    elif comm.rank == 1:
        for _ in range(count):
            received = np.empty(1)
            comm.Recv(received, 0)
            comm.Send(received, 0)
    return 2 * count


def works_object_pingpong(comm, count):
    """A small dict, there and back."""
    if comm.rank == 0:
        for value in range(count):
            source = {"step": value, "mass": 0.5, "name": "particle"}
            comm.send(source, 1)
            received = comm.recv(None, 1)
            check(received == source, received, source)
    elif comm.rank == 1:
        for _ in range(count):
            received = comm.recv(None, 0)
            comm.send(received, 0)
    return 2 * count


def works_written_pingpong(comm, count, size):
    """An array of `size` bytes, written anew by each sender, there and back."""
    received = None
    if comm.rank == 0:
        source = np.empty(size, np.uint8)
        for value in range(count):
            source.fill(value % 251)
            comm.Send(source, 1)
            received = np.empty(size, np.uint8)
            comm.Recv(received, 1)
            check(received[0] == received[-1] == value % 251, received, value)
        check((received == source).all(), received, source)
    elif comm.rank == 1:
        source = np.empty(size, np.uint8)
        for _ in range(count):
            received = np.empty(size, np.uint8)
            comm.Recv(received, 0)
            source.fill(received[0])
            comm.Send(source, 0)
    return 2 * count


def works_ring(comm, count):
    """A small dict, once round all nodes."""
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    if comm.rank == 0:
        for value in range(count):
            source = {"lap": value, "mass": 0.5, "name": "particle"}
            comm.send(source, right)
            received = comm.recv(None, left)
            check(received == source, received, source)
    else:
        for _ in range(count):
            received = comm.recv(None, left)
            comm.send(received, right)
    return count * comm.size


def works_barrier(comm, count):
    """All nodes meet."""
    for _ in range(count):
        comm.Barrier()
    return count


def works_float_sum(comm, count):
    """The sum of one float."""
    rank, size = comm.rank, comm.size
    ranks = size * (size - 1) // 2
    source = np.zeros(1)
    for value in range(count):
        source[0] = rank + value
        received = np.empty(1)
        comm.Allreduce(source, received)
        check(received[0] == ranks + size * value, received, value)
    return count


# ---- arrays


def arrays_pingpong_arrays(comm, count, size, into, fresh, read):
    """An array of `size` bytes there and back, received as a new one, or into one.

    Each sender writes all of it, or its first and last byte.
    """
    source = np.empty(size, np.uint8)
    received = np.empty(size, np.uint8)
    for value in range(count if comm.rank < 2 else 0):
        if comm.rank == 1:
            received = received if into else np.empty(size, np.uint8)
            comm.Recv(received, 0)
            look(received, read)
        source[:: 1 if fresh else size - 1] = value % 251
        comm.Send(source, 1 - comm.rank)
        if comm.rank == 0:
            received = received if into else np.empty(size, np.uint8)
            comm.Recv(received, 1)
            look(received, read)
        check(received[0] == received[-1] == value % 251, received, value)
    return 2 * count


def arrays_moved_pingpong(comm, count, size, rewrite, read):
    """An array of `size` bytes handed over and back; its owner writes all of it, or a byte of each page."""
    received = np.empty(size, np.uint8)
    for value in range(count if comm.rank < 2 else 0):
        if comm.rank == 1:
            comm.Recv(received, 0)
            look(received, read)
            check(received[0] == received[-4096] == value % 251, received, value)
        write(received, value, rewrite)
        comm.Send(received, 1 - comm.rank)
        if comm.rank == 0:
            comm.Recv(received, 1)
            look(received, read)
            check(received[0] == received[-4096] == value % 251, received, value)
    return 2 * count


def arrays_stream(comm, count, size, read):
    """Arrays of `size` bytes one way, 64 before the receiver answers."""
    source, answer = np.zeros(size, np.uint8), np.zeros(1)
    received = np.empty((64, size), np.uint8)
    for value in range(count):
        if comm.rank == 0:
            source[0] = value % 251
            MPI.Request.Waitall([comm.Isend(source, 1) for _ in range(64)])
            comm.Recv(answer, 1)
        elif comm.rank == 1:
            MPI.Request.Waitall([comm.Irecv(one, 0) for one in received])
            for one in received:
                look(one, read)
                check(one[0] == value % 251, one, value)
            comm.Send(answer, 0)
    return 64 * count


def arrays_dict_pingpong(comm, count, size, read):
    """A dict that holds an array of `size` bytes, written anew by each sender, there and back."""
    source = np.empty(size, np.uint8)
    for value in range(count if comm.rank < 2 else 0):
        if comm.rank == 1:
            received = comm.recv(None, 0)
        source.fill(value % 251)
        comm.send({"step": value, "field": source}, 1 - comm.rank)
        if comm.rank == 0:
            received = comm.recv(None, 1)
        look(received["field"], read)
        check(received["field"][-1] == value % 251 and received["step"] == value, received, value)
    return 2 * count


def arrays_array_sum(comm, count, size, read):
    """The sum of arrays of `size` bytes over all nodes, for all."""
    source = np.full(size // 8, float(comm.rank))
    ranks = comm.size * (comm.size - 1) // 2
    received = np.empty_like(source)
    for value in range(count):
        source[0] = source[-1] = comm.rank + value
        comm.Allreduce(source, received)
        look(received, read)
        check(received[0] == received[-1] == ranks + comm.size * value, received, value)
    return count


def arrays_broadcast(comm, count, size, copy, read):
    """Node 0's array of `size` bytes for all: a copy for each, or one that they only read."""
    received = np.zeros(size, np.uint8)
    for value in range(count):
        if comm.rank == 0:
            received[0] = received[-1] = value % 251
        comm.Bcast(received)
        look(received, read)
        check(received[0] == received[-1] == value % 251, received, value)
    return count


def arrays_all_to_all(comm, count, size, read):
    """An array of `size` bytes from each node to each."""
    source = np.zeros((comm.size, size), np.uint8)
    received = np.empty_like(source)
    for value in range(count):
        source[:, 0] = (comm.rank + value) % 251
        comm.Alltoall(source, received)
        for rank in range(comm.size):
            look(received[rank], read)
            check(received[rank][0] == (rank + value) % 251, received, value)
    return count


arrays_one_copy = one_copy


# ---- sweep
# Each returns the seconds that the operations alone took, on node 0's clock: to the acknowledgement, or to a barrier at
# the end. The last message of a batch is marked, and the mark is checked.


def sweep_one_way(comm, count, size, cold):
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


def sweep_pingpong(comm, count, size, cold):
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


def sweep_one_to_all(comm, count, size, cold):
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


def sweep_all_to_one(comm, count, size, cold):
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


def sweep_all_to_all(comm, count, size, cold):
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


def sweep_broadcast(comm, count, size, cold):
    """Each node gets node 0's message."""
    arrays = buffers(size, cold)
    begin = perf_counter()
    for value in range(count):
        received = marked(next(arrays), value) if comm.rank == 0 else next(arrays)
        comm.Bcast(received)
        check_mark(received, value)
    comm.Barrier()
    return count, perf_counter() - begin


def sweep_reduce(comm, count, size, cold):
    """Node 0 gets the sums of the elements of all nodes' arrays of doubles."""
    return array_sums(comm, comm.Reduce, comm.rank == 0, count, size, cold)


def sweep_allreduce(comm, count, size, cold):
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


def sweep_global_sum(comm, count):
    """Each node gets the sum of one float of each node."""
    ranks = sum(range(comm.size))
    source, received = np.empty(1), np.empty(1)
    begin = perf_counter()
    for value in range(count):
        source[0] = comm.rank + value
        comm.Allreduce(source, received)
        check(received[0] == ranks + comm.size * value, received, value)
    return count, perf_counter() - begin


sweep_barrier = works_barrier


# ---- mpi: buffers stay the same, and what arrived is checked once a batch; a barrier ends those of collectives


def mpi_exchange(comm, count, size):
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


def mpi_allreduce(comm, count, size):
    """Each node gets the sums of arrays of `size` bytes of doubles."""
    source, received = np.full(size // 8, float(comm.rank)), np.zeros(size // 8)
    begin = perf_counter()
    for _ in range(count):
        comm.Allreduce(source, received)
    comm.Barrier()
    spent = perf_counter() - begin
    check((received == comm.size * (comm.size - 1) / 2).all(), received, source)
    return count, spent


def mpi_broadcast(comm, count, size):
    """Each node gets node 0's array of `size` bytes."""
    array = np.full(size, 0 if comm.rank else count % 251, np.uint8)
    begin = perf_counter()
    for _ in range(count):
        comm.Bcast(array)
    comm.Barrier()
    spent = perf_counter() - begin
    check((array == count % 251).all(), array, count)
    return count, spent


def mpi_object_broadcast(comm, count):
    """Each node gets node 0's small dict."""
    source = {"step": count, "mass": 0.5, "name": "particle"}
    begin = perf_counter()
    for _ in range(count):
        received = comm.bcast(source if comm.rank == 0 else None)
    comm.Barrier()
    spent = perf_counter() - begin
    check(received == source, received, source)
    return count, spent


mpi_barrier, mpi_pingpong = sweep_barrier, sweep_pingpong
mpi_object_pingpong, mpi_ring = works_object_pingpong, works_ring
