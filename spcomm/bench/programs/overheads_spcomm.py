# SPDX-License-Identifier: MIT
"""The overheads of LogP, which are the calls of send or recv on node 0 that wait for nothing, and chains of hops."""

from time import perf_counter

import driver
from payload import buffers, check, check_mark, marked
from works_spcomm import share

import spcomm

FEW = 8  # messages that a node has not taken, at most
LAST = 1  # tag


def send_overhead(comm, count, size):
    """Calls of send: after every few of them node 1 says that it has received these."""
    arrays, seconds = buffers(size, False), 0.0
    for value in range(count if comm.rank < 2 else 0):
        if comm.rank == 0:
            begin = perf_counter()
            for _ in range(FEW):
                comm.send(next(arrays), 1)
            seconds += perf_counter() - begin
            received = comm.recv(1)
            check(received == value, received, value)
        else:
            for _ in range(FEW):
                comm.recv(0, out=next(arrays))
            comm.send(value, 0)
    return FEW * count, seconds


def receive_overhead(comm, count, size):
    """Calls of recv that find their message: the last of every few has arrived before the first is taken."""
    arrays, seconds = buffers(size, False), 0.0
    for value in range(count if comm.rank < 2 else 0):
        if comm.rank == 0:
            last = comm.recv(1, tag=LAST)
            check(last == value, last, value)
            begin = perf_counter()
            for _ in range(FEW):
                received = comm.recv(1, tag=0, out=next(arrays))
            seconds += perf_counter() - begin
            check_mark(received, value)
            comm.send(None, 1)
        else:
            for _ in range(FEW):
                comm.send(marked(next(arrays), value), 0)
            comm.send(value, 0, tag=LAST)
            comm.recv(0)
    return FEW * count, seconds


def chain(comm, count, size):
    """A message from node 0 by way of every node to the last one, and back: half of that."""
    arrays = buffers(size, False)
    left, right, last = comm.rank - 1, comm.rank + 1, comm.size - 1
    begin = perf_counter()
    for value in range(count):
        if comm.rank == 0:
            comm.send(marked(next(arrays), value), right)
            check_mark(comm.recv(right, out=next(arrays)), value)
            continue
        received = comm.recv(left, out=next(arrays))
        if comm.rank < last:
            comm.send(received, right)
            received = comm.recv(right, out=next(arrays))
        comm.send(received, left)
    return 2 * count, perf_counter() - begin


if __name__ == "__main__":
    driver.main(spcomm.startup(), share, globals())
