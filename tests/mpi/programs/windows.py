# SPDX-License-Identifier: MIT
"""Windows: what concurrent operations leave is what they leave one after another."""

import numpy as np
from mpi4py import MPI

ROUNDS = 100

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def value(number):
    return np.array([number], "i8")


def counters(window):
    """Sums are exact, tickets are all different, and a lock excludes the others."""
    tickets = []
    memory = np.frombuffer(window, "i8")
    window.Lock_all()
    for _ in range(ROUNDS):
        window.Accumulate(value(rank + 1), 0, (0, 1, MPI.INT64_T))
        ticket = value(-1)
        window.Fetch_and_op(value(1), ticket, 0, 1)
        tickets.append(int(ticket[0]))
    window.Unlock_all()
    for _ in range(ROUNDS):
        window.Lock(0)
        seen = value(0)
        window.Get(seen, 0, (2, 1, MPI.INT64_T))
        window.Put(seen + 1, 0, (2, 1, MPI.INT64_T))
        window.Unlock(0)
    all_tickets = sorted(ticket for some in comm.allgather(tickets) for ticket in some)
    assert all_tickets == list(range(ROUNDS * size)), all_tickets
    if rank == 0:
        assert memory[0] == ROUNDS * size * (size + 1) // 2, memory
        assert memory[2] == ROUNDS * size, memory


def one_winner(window):
    """One of all that compare and swap the same value finds it."""
    found = value(-1)
    window.Lock_all()
    window.Compare_and_swap(value(rank + 1), value(0), found, 0, 3)
    window.Unlock_all()
    assert sum(comm.allgather(int(found[0] == 0))) == 1


def halo(memory, window):
    """Each writes into its neighbours, between two fences."""
    memory[:] = -1
    window.Fence()
    window.Put(value(rank), (rank + 1) % size, (0, 1, MPI.INT64_T))
    window.Put(value(rank), (rank - 1) % size, (1, 1, MPI.INT64_T))
    window.Fence(MPI.MODE_NOSUCCEED)
    assert list(memory[:2]) == [(rank - 1) % size, (rank + 1) % size], memory


def ring(memory, window):
    """Post, start, complete and wait: a ring of neighbours."""
    group = comm.Get_group()
    window.Post(group.Incl([(rank - 1) % size]))
    window.Start(group.Incl([(rank + 1) % size]))
    window.Put(value(10 * rank), (rank + 1) % size, (2, 1, MPI.INT64_T))
    window.Complete()
    window.Wait()
    assert memory[2] == 10 * ((rank - 1) % size), memory


def shared():
    """The parts of a shared window follow one another in the memory of all."""
    window = MPI.Win.Allocate_shared(8, 8, comm=comm)
    np.frombuffer(window, "i8")[0] = rank
    window.Fence()
    first, unit = window.Shared_query(0)
    everything = np.ndarray((size,), "i8", buffer=MPI.memory.fromaddress(first.address, 8 * size))
    assert unit == 8
    assert list(everything) == list(range(size)), everything
    window.Free()


def refusals(window):
    """Errors come as MPI's classes, with the numbers in question."""
    for error_class, words, call in (
        (MPI.ERR_RMA_SYNC, "no epoch lets this node use", lambda: window.Put(value(0), 0)),
        (MPI.ERR_RMA_SYNC, "no lock of rank 0", lambda: window.Unlock(0)),
        (MPI.ERR_RANK, "there is no rank", lambda: window.Lock(size)),
    ):
        try:
            call()
        except MPI.Exception as error:
            assert error.Get_error_class() == error_class, error
            assert words in str(error), error
        else:
            raise AssertionError(words)


allocated = MPI.Win.Allocate(32, 8, comm=comm)
own = np.zeros(4, "i8")
created = MPI.Win.Create(own, 8, comm=comm)
counters(allocated)
counters(created)
one_winner(allocated)
one_winner(created)
refusals(allocated)
comm.Barrier()
halo(np.frombuffer(allocated, "i8"), allocated)
halo(own, created)
ring(np.frombuffer(allocated, "i8"), allocated)
ring(own, created)
shared()
allocated.Free()
created.Free()
