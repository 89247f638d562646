# SPDX-License-Identifier: MIT
"""The works with spcomm. `works_mpi4py.py` has the same, in the same order."""

import driver
import numpy as np
from payload import check

import spcomm


def array_pingpong(comm, count):
    """An array of 8 bytes, there and back."""
    if comm.rank == 0:
        source = np.zeros(1)
        for value in range(count):
            source[0] = value
            comm.send(source, 1)
            received = comm.recv()
            check(received[0] == value, received, value)
    elif comm.rank == 1:
        for _ in range(count):
            received = comm.recv()
            comm.send(received, 0)
    return 2 * count


def object_pingpong(comm, count):
    """A small dict, there and back."""
    if comm.rank == 0:
        for value in range(count):
            source = {"step": value, "mass": 0.5, "name": "particle"}
            comm.send(source, 1)
            received = comm.recv()
            check(received == source, received, source)
    elif comm.rank == 1:
        for _ in range(count):
            received = comm.recv()
            comm.send(received, 0)
    return 2 * count


def written_pingpong(comm, count, size):
    """An array of `size` bytes, written anew by each sender, there and back."""
    received = None
    if comm.rank == 0:
        source = np.empty(size, np.uint8)
        for value in range(count):
            source.fill(value % 251)
            comm.send(source, 1)
            received = comm.recv()
            check(received[0] == received[-1] == value % 251, received, value)
        check((received == source).all(), received, source)
    elif comm.rank == 1:
        source = np.empty(size, np.uint8)
        for _ in range(count):
            received = comm.recv()
            source.fill(received[0])
            comm.send(source, 0)
    return 2 * count


def ring(comm, count):
    """A small dict, once round all nodes."""
    right = (comm.rank + 1) % comm.size
    if comm.rank == 0:
        for value in range(count):
            source = {"lap": value, "mass": 0.5, "name": "particle"}
            comm.send(source, right)
            received = comm.recv()
            check(received == source, received, source)
    else:
        for _ in range(count):
            received = comm.recv()
            comm.send(received, right)
    return count * comm.size


def barrier(comm, count):
    """All nodes meet."""
    for _ in range(count):
        comm.barrier()
    return count


def float_sum(comm, count):
    """The sum of one float."""
    rank, size = comm.rank, comm.size
    ranks = size * (size - 1) // 2
    for value in range(count):
        received = comm.global_sum(float(rank + value))
        check(received == ranks + size * value, received, value)
    return count


def share(comm, value):
    """Node 0's object, on every node."""
    if comm.rank == 0:
        for other in range(1, comm.size):
            comm.send(value, other)
        return value
    return comm.recv(0)


if __name__ == "__main__":
    driver.main(spcomm.startup(), share, globals())
