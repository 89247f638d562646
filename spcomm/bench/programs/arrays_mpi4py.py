# SPDX-License-Identifier: MIT
"""The works with arrays, with mpi4py, each in the fastest way it has. `arrays_spcomm.py` has the same."""

import driver
import numpy as np
from mpi4py import MPI
from payload import check, look, write
from works_mpi4py import share


def pingpong_arrays(comm, count, size, into, fresh, read):
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


def moved_pingpong(comm, count, size, rewrite, read):
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


def stream(comm, count, size, read):
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


def dict_pingpong(comm, count, size, read):
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


def one_copy(comm, count, size):
    """An array of `size` bytes written anew and copied, by node 0 alone: the floor of any message."""
    source, target = np.empty(size, np.uint8), np.empty(size, np.uint8)
    for value in range(count if comm.rank == 0 else 0):
        source.fill(value % 251)
        np.copyto(target, source)
        check(target[-1] == value % 251, target, value)
    return count


def array_sum(comm, count, size, read):
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


def broadcast(comm, count, size, copy, read):
    """Node 0's array of `size` bytes for all: a copy for each, or one that they only read."""
    received = np.zeros(size, np.uint8)
    for value in range(count):
        if comm.rank == 0:
            received[0] = received[-1] = value % 251
        comm.Bcast(received)
        look(received, read)
        check(received[0] == received[-1] == value % 251, received, value)
    return count


def all_to_all(comm, count, size, read):
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


if __name__ == "__main__":
    driver.main(MPI.COMM_WORLD, share, globals())
