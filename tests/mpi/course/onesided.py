# SPDX-License-Identifier: MIT
"""Windows: memory that other nodes read and write."""

from itertools import chain

import numpy as np
from mpi4py import MPI

from course import program, say, say_all


@program("shared")
def put_to_neighbor(comm):
    """Between two fences each node writes into the next one's memory."""
    memory = np.full(2, -1, "i8")
    window = MPI.Win.Create(memory, disp_unit=8, comm=comm)
    window.Fence()
    window.Put(np.array([comm.rank], "i8"), (comm.rank + 1) % comm.size, target=0)
    window.Put(np.array([comm.rank * 10], "i8"), (comm.rank - 1) % comm.size, target=1)
    window.Fence()
    say_all(comm, memory.tolist())
    window.Free()


@program("shared")
def get_from_all(comm):
    """Node 0 reads the memory of all."""
    window = MPI.Win.Allocate(3 * 8, 8, comm=comm)
    memory = np.frombuffer(window, "f8")
    memory[:] = np.arange(3) + comm.rank / 10
    table = np.zeros((comm.size, 3))
    window.Fence()
    if comm.rank == 0:
        for rank in range(comm.size):
            window.Get(table[rank], rank)
    window.Fence()
    say(comm, table.tolist())
    window.Free()


@program("shared")
def histogram(comm):
    """All add to the counters of node 0."""
    window = MPI.Win.Allocate(5 * 8, 8, comm=comm)
    memory = np.frombuffer(window, "i8")
    memory[:] = 0
    window.Fence()
    counts = np.bincount([(comm.rank * 3 + at * at) % 5 for at in range(20)], minlength=5)
    window.Accumulate(counts.astype("i8"), 0, op=MPI.SUM)
    window.Fence()
    say(comm, memory.tolist())
    window.Free()


@program("shared")
def shared_counter(comm):
    """Tickets by Fetch_and_op are all different."""
    window = MPI.Win.Allocate(8 if comm.rank == 0 else 0, 8, comm=comm)
    if comm.rank == 0:
        np.frombuffer(window, "i8")[:] = 0
    comm.Barrier()
    tickets, one = [], np.ones(1, "i8")
    window.Lock_all()
    for _ in range(10):
        ticket = np.empty(1, "i8")
        window.Fetch_and_op(one, ticket, 0)
        window.Flush(0)
        tickets.append(int(ticket[0]))
    window.Unlock_all()
    drawn = comm.gather(tickets)
    say(
        comm,
        sorted(chain.from_iterable(drawn or [])) == list(range(10 * comm.size)),
        all(part == sorted(part) for part in drawn or []),
    )
    window.Free()


@program("shared")
def spin_lock(comm):
    """A lock by Compare_and_swap guards a counter."""
    window = MPI.Win.Allocate(16 if comm.rank == 0 else 0, 8, comm=comm)
    if comm.rank == 0:
        np.frombuffer(window, "i8")[:] = 0
    comm.Barrier()
    taken, free, found = np.ones(1, "i8"), np.zeros(1, "i8"), np.empty(1, "i8")
    value, ignored = np.empty(1, "i8"), np.empty(1, "i8")
    window.Lock_all()
    for _ in range(5):
        while True:
            window.Compare_and_swap(taken, free, found, 0, 0)
            window.Flush(0)
            if found[0] == 0:
                break
        window.Get(value, 0, target=1)
        window.Flush(0)
        value += comm.rank + 1
        window.Put(value, 0, target=1)
        window.Flush(0)
        window.Fetch_and_op(free, ignored, 0, 0, MPI.REPLACE)
        window.Flush(0)
    window.Unlock_all()
    comm.Barrier()
    if comm.rank == 0:
        window.Lock(0)
        print(np.frombuffer(window, "i8").tolist())
        window.Unlock(0)
    window.Free()


@program("shared")
def exclusive_lock(comm):
    """Read, add and write, while nobody else may."""
    window = MPI.Win.Allocate(8, 8, comm=comm)
    np.frombuffer(window, "i8")[:] = 0
    comm.Barrier()
    last, value = comm.size - 1, np.empty(1, "i8")
    for _ in range(5):
        window.Lock(last, MPI.LOCK_EXCLUSIVE)
        window.Get(value, last)
        window.Flush(last)
        value += comm.rank + 1
        window.Put(value, last)
        window.Unlock(last)
    comm.Barrier()
    window.Lock(last, MPI.LOCK_SHARED)
    window.Get(value, last)
    window.Unlock(last)
    say_all(comm, int(value[0]))
    window.Free()


@program("shared")
def post_start(comm):
    """Only pairs synchronize: Post, Start, Complete, Wait."""
    memory = np.zeros(4)
    window = MPI.Win.Create(memory, disp_unit=8, comm=comm)
    world = comm.Get_group()
    left, right = world.Incl([(comm.rank - 1) % comm.size]), world.Incl([(comm.rank + 1) % comm.size])
    window.Post(left)
    window.Start(right)
    window.Put(np.arange(4.0) * (comm.rank + 1), (comm.rank + 1) % comm.size)
    window.Complete()
    window.Wait()
    say_all(comm, memory.tolist())
    window.Free()


@program("shared")
def one_memory(comm):
    """A shared window: each reads its neighbour's part directly."""
    window = MPI.Win.Allocate_shared(2 * 8, 8, comm=comm)
    mine = np.frombuffer(window, "i8")
    window.Lock_all()
    mine[:] = [comm.rank, comm.rank**2]
    window.Sync()
    comm.Barrier()
    window.Sync()
    memory, unit = window.Shared_query((comm.rank + 1) % comm.size)
    total = int(np.frombuffer(memory, "i8").sum())

    comm.Barrier()
    window.Unlock_all()
    say_all(comm, (total, unit))
    window.Free()


@program("shared")
def attached_memory(comm):
    """A dynamic window; addresses travel as messages."""
    window = MPI.Win.Create_dynamic(comm=comm)
    memory = np.zeros(3, "i")
    window.Attach(memory)
    places = comm.allgather(MPI.Get_address(memory))
    right = (comm.rank + 1) % comm.size
    window.Fence()
    window.Put(np.arange(3, dtype="i") + comm.rank, right, target=(places[right], 3, MPI.INT))
    window.Fence()
    say_all(comm, memory.tolist())
    window.Detach(memory)
    window.Free()


@program("shared")
def get_and_add(comm):
    """Get_accumulate gives the old values; their set does not depend on the order."""
    window = MPI.Win.Allocate(2 * 8, 8, comm=comm)
    memory = np.frombuffer(window, "i8")
    memory[:] = [0, 100]
    old = np.zeros(2, "i8")
    window.Fence()
    window.Get_accumulate(np.array([1, 1], "i8"), old, 0)
    window.Fence()
    say(comm, memory.tolist())
    found = comm.gather(old.tolist())
    say(comm, sorted(found or []))
    window.Free()


@program("shared")
def requests_of_a_window(comm):
    """Rput and Rget complete one by one."""
    window = MPI.Win.Allocate(8 * comm.size, 8, comm=comm)
    np.frombuffer(window, "i8")[:] = -1
    comm.Barrier()
    mine = np.array([comm.rank * 5], "i8")
    window.Lock_all()
    MPI.Request.Waitall([window.Rput(mine, rank, target=comm.rank) for rank in range(comm.size)])
    window.Flush_all()
    comm.Barrier()
    back = np.zeros(comm.size, "i8")
    window.Rget(back, comm.size - 1).Wait()
    window.Unlock_all()
    say_all(comm, back.tolist())
    window.Free()


@program("shared")
def column_of_a_window(comm):
    """A derived type on the other side: a column of the neighbour's matrix."""
    matrix = np.arange(9, dtype="i").reshape(3, 3) + 10 * comm.rank
    window = MPI.Win.Create(matrix, disp_unit=4, comm=comm)
    kind = MPI.INT.Create_vector(3, 1, 3).Commit()
    column = np.zeros(3, "i")
    window.Fence()
    window.Get(column, (comm.rank + 1) % comm.size, target=(2, 1, kind))
    window.Fence()
    kind.Free()
    say_all(comm, column.tolist())
    window.Free()
