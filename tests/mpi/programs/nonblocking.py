# SPDX-License-Identifier: MIT
"""Collectives that return a request: no call waits, and they end in any order."""

import sys

import numpy as np
from mpi4py import MPI
from values import expect, given, matrix, multiply, product

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def a_message_between_the_calls():
    """Each call returns before the next node, which waits for a message, has made its own."""
    total = np.zeros(3, "i")
    if rank > 0:
        comm.recv(source=rank - 1, tag=5)
    request = comm.Iallreduce(given(rank), total)
    if rank < size - 1:
        comm.send(None, dest=rank + 1, tag=5)
    request.Wait()
    expect(total, sum(given(node) for node in range(size)))


def a_wait_for_something_else():
    """A node that waits in a receive lets the others' collective end."""
    data = given(7, 100_000) if rank == 0 else np.zeros(100_000, "i")
    request = comm.Ibcast(data, root=0)
    if rank == 1:
        request.Wait()
        expect(data, given(7, 100_000))
        comm.send(None, dest=0, tag=6)
    if rank == 0 and size > 1:
        comm.recv(source=1, tag=6)
    if rank != 1:
        request.Wait()


def many_at_once():
    """More than the open barriers that a communicator may have, completed last first."""
    totals = [np.zeros(3, "i") for _ in range(30)]
    parts = [np.zeros(3 * size, "i") for _ in range(30)]
    requests = []
    for number in range(30):
        requests.append(comm.Iallreduce(given(rank + number), totals[number]))
        requests.append(comm.Igather(given(rank), parts[number], root=number % size))
    for request in reversed(requests):
        request.Wait()
    for number in range(30):
        expect(totals[number], sum(given(node + number) for node in range(size)))
        if number % size == rank:
            expect(parts[number], np.concatenate([given(node) for node in range(size)]))


def in_order():
    """Reductions combine in the order of ranks."""
    operator = MPI.Op.Create(multiply, commute=False)
    pair = MPI.INT64_T.Create_contiguous(4).Commit()
    mine, found = matrix(rank), np.zeros((2, 2), "q")
    comm.Ireduce([mine, 1, pair], [found, 1, pair], operator, root=size - 1).Wait()
    expect(found, product(range(size)) if rank == size - 1 else np.zeros((2, 2), "q"))
    comm.Iscan([mine, 1, pair], [found, 1, pair], operator).Wait()
    expect(found, product(range(rank + 1)))
    comm.Iexscan([mine, 1, pair], [found, 1, pair], operator).Wait()
    expect(found, product(range(rank)) if rank else product([0]))
    pair.Free()
    operator.Free()


def of_two_groups():
    """Between two groups each gets what the other gives."""
    if size < 2:
        return
    half = rank * 2 // size
    local = comm.Split(half, rank)
    inter = local.Create_intercomm(0, comm, 0 if half else (size + 1) // 2)
    others = [node for node in range(size) if node * 2 // size != half]
    root = MPI.ROOT if rank == 0 else MPI.PROC_NULL if half == 0 else 0
    data = given(3) if rank == 0 else np.zeros(3, "i")
    total, everything = np.zeros(3, "i"), np.zeros(3 * len(others), "i")
    requests = [
        inter.Ibcast(data, root),
        inter.Iallgather(given(rank), everything),
        inter.Iallreduce(given(rank), total),
    ]
    MPI.Request.Waitall(requests)
    expect(data, given(3) if half or rank == 0 else np.zeros(3, "i"))
    expect(everything, np.concatenate([given(node) for node in others]))
    expect(total, sum(given(node) for node in others))
    inter.Ireduce(given(rank), total, root=root).Wait()
    if rank == 0:
        expect(total, sum(given(node) for node in others))
    inter.Free()
    local.Free()


def persistent():
    """A persistent one starts on all nodes in any order, and again."""
    total = np.zeros(3, "i")
    mine = given(rank)
    request = comm.Allreduce_init(mine, total)
    for number in range(3):
        mine[:] = given(rank + number)
        if rank > 0:
            comm.recv(source=rank - 1, tag=7)
        request.Start()
        if rank < size - 1:
            comm.send(None, dest=rank + 1, tag=7)
        request.Wait()
        expect(total, sum(given(node + number) for node in range(size)))
    request.Free()


def of_neighbours():
    """The messages of the program go the other way round before the neighbours' items."""
    ring = comm.Create_cart([size], periods=[True])
    found = np.zeros(6, "i")
    start = ring.Neighbor_allgather_init(given(rank), found)
    for again in range(2):
        if rank > 0:
            comm.recv(source=rank - 1, tag=8)
        if again:
            start.Start()
        request = start if again else ring.Ineighbor_allgather(given(rank), found)
        if rank < size - 1:
            comm.send(None, dest=rank + 1, tag=8)
        request.Wait()
        expect(found, np.concatenate([given((rank - 1) % size), given((rank + 1) % size)]))
        found[:] = 0
    start.Free()
    ring.Free()


def started_in_another_order():
    """Persistent collectives match in the order in which they were made."""
    first, second = np.full(3, rank == 0, "i"), np.full(3, 2 * (rank == 0), "i")
    calls = [comm.Bcast_init(first, root=0), comm.Bcast_init(second, root=0), comm.Barrier_init()]
    mine = [given(rank), given(rank) + 100]  # mpi4py 4.1 does not keep them
    total = np.zeros(3, "i")
    calls.append(comm.Allreduce_init(mine[0], total))
    ring = comm.Create_cart([size], periods=[True])
    around = [np.zeros(6, "i") for _ in mine]
    calls += [ring.Neighbor_allgather_init(mine[i], around[i]) for i in (0, 1)]
    for _ in range(3):
        third = np.full(3, 3 * (rank == 0), "i")
        MPI.Prequest.Startall(calls if rank else calls[::-1])
        alone = comm.Ibcast(third, root=0)
        MPI.Request.Waitall([alone, *calls])
        expect(first, np.full(3, 1))
        expect(second, np.full(3, 2))
        expect(third, np.full(3, 3))
        expect(total, sum(given(node) for node in range(size)))
        for i, found in enumerate(around):
            sides = [given((rank - 1) % size), given((rank + 1) % size)]
            expect(found, np.concatenate(sides) + 100 * i)
    for call in calls:
        call.Free()
    ring.Free()


def many_barriers():
    """No number of open barriers makes a node wait."""
    if rank == 0:
        barriers = [comm.Ibarrier() for _ in range(50)]
        for node in range(1, size):
            comm.send(None, dest=node, tag=9)
    else:
        comm.recv(source=0, tag=9)
        barriers = [comm.Ibarrier() for _ in range(50)]
    MPI.Request.Waitall(barriers[::-1])


def status_first():
    """The result is there when the status says so, and only once."""
    total = np.zeros(3, "i")
    request = comm.Iallreduce(given(rank), total)
    while not request.Get_status():
        pass
    expect(total, sum(given(node) for node in range(size)))
    request.Wait()
    expect(total, sum(given(node) for node in range(size)))


def other_operators():
    """Calls that do not match are told apart by what their messages say."""
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    total = np.zeros(3, "i")
    try:
        comm.Iallreduce(given(rank), total, MPI.SUM if rank else MPI.MAX).Wait()
    except MPI.Exception as error:
        print("refused:", error.Get_error_string(), flush=True)


def other_lengths():
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    data = np.zeros(3 if rank else 5, "i")
    try:
        comm.Ibcast(data, root=0).Wait()
    except MPI.Exception as error:
        print("refused:", error.Get_error_string(), flush=True)


def left_alone():
    """The root waits for parts, and the others for an answer that it gives only then."""
    if rank == 0:
        comm.Igather(given(rank), np.zeros(3 * size, "i"), root=0).Wait()
        comm.bcast(None)
    else:
        comm.bcast(None)
        comm.Igather(given(rank), np.zeros(3 * size, "i"), root=0).Wait()


ALL = (
    a_message_between_the_calls,
    a_wait_for_something_else,
    many_at_once,
    in_order,
    of_two_groups,
    persistent,
    started_in_another_order,
    many_barriers,
)
for name in sys.argv[1:] or [case.__name__ for case in (*ALL, status_first)]:
    globals()[name]()
