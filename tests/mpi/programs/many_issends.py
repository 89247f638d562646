# SPDX-License-Identifier: MIT
"""A thousand synchronous sends to each other rank are open before any receive is posted."""

import sys

import numpy as np
from mpi4py import MPI

COUNT = 1000
comm = MPI.COMM_WORLD
others = [rank for rank in range(comm.size) if rank != comm.rank]


def value(source, dest, number):
    return (source * comm.size + dest) * COUNT + number


def start_sends(tag_of):
    return {
        (dest, number): comm.Issend(np.array([value(comm.rank, dest, number)]), dest, tag_of(number))
        for number in range(COUNT)
        for dest in others
    }


def all_at_once():
    """Messages of one tag keep their order, and a message that is sent later comes behind them."""
    sends = start_sends(lambda number: 7)
    for dest in others:
        comm.send("behind", dest, 7)
    into = {source: np.zeros((COUNT, 1), dtype=int) for source in others}
    receives = [comm.Irecv(into[source][number], source, 7) for number in range(COUNT) for source in others]
    behind = [comm.irecv(source=source, tag=7) for source in others]
    MPI.Request.Waitall([*receives, *sends.values()])
    assert [request.wait() for request in behind] == ["behind"] * len(others)
    for source, got in into.items():
        assert got[:, 0].tolist() == [value(source, comm.rank, number) for number in range(COUNT)]


def last_first():
    """A request is done when its own message is received, whichever others are not."""
    sends = start_sends(lambda number: number)
    into = np.zeros(1, dtype=int)

    def receive(source, number):
        comm.Recv(into, source, number)
        assert into[0] == value(source, comm.rank, number)

    for source in others:
        receive(source, COUNT - 1)
    for dest in others:
        sends.pop((dest, COUNT - 1)).Wait()
        assert not sends[dest, 0].Test() and not sends[dest, COUNT - 2].Test()
        comm.send("seen", dest, COUNT)
    for source in others:
        assert comm.recv(source=source, tag=COUNT) == "seen"
    for number in reversed(range(COUNT - 1)):
        for source in others:
            receive(source, number)
    MPI.Request.Waitall([*sends.values()])


def never_received():
    sends = start_sends(lambda number: number) if comm.rank == 0 else {}
    if comm.rank == 1:
        for number in range(COUNT - 1):
            comm.Recv(np.zeros(1, dtype=int), 0, number)
        comm.Recv(np.zeros(1, dtype=int), 0, COUNT)  # the last one has another tag
    MPI.Request.Waitall([*sends.values()])


{"all_at_once": all_at_once, "last_first": last_first, "never_received": never_received}[sys.argv[1]]()
