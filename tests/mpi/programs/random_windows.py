# SPDX-License-Identifier: MIT
"""Random one-sided operations, and the same ones carried out one after another by each node for itself.

In every round each node makes operations from a sequence that all nodes know. Operations of different nodes touch
different cells, or are sums: so their order does not matter, and what a window has afterwards follows from the
sequence alone.
"""

import random
import sys

import numpy as np
from mpi4py import MPI

CELLS = 24  # of each member: the first half has a slot for each origin, the second is for sums
ROUNDS = 12

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
WIDTH = CELLS // 2 // size


def make(kind):
    """A window of that kind, and this member's memory of it."""
    if kind == "create":
        memory = np.zeros(CELLS, "i8")
        return MPI.Win.Create(memory, 8, comm=comm), memory
    if kind == "dynamic":
        window, memory = MPI.Win.Create_dynamic(comm=comm), np.zeros(CELLS, "i8")
        window.Attach(memory)
        return window, memory
    allocate = MPI.Win.Allocate if kind == "allocate" else MPI.Win.Allocate_shared
    window = allocate(8 * CELLS, 8, comm=comm)
    return window, np.frombuffer(window, "i8")


def plan(source, number):
    """The operations of one origin in one round: (what, target, cell, values)."""
    draw = random.Random(f"{number} {source}")
    found, used = [], set()
    for _ in range(draw.randrange(1, 8)):
        what = draw.choice(["put", "accumulate", "fetch", "swap", "get", "replace"])
        target, cell = draw.randrange(size), source * WIDTH + draw.randrange(WIDTH)
        if what in ("accumulate", "fetch"):
            cell = CELLS // 2 + draw.randrange(CELLS // 2)
        elif (target, cell) in used:
            continue  # two of one epoch to the same place have no order
        used.add((target, cell))
        found.append((what, target, cell, draw.randrange(1, 1000)))
    return found


def carry_out(window, operations, known, place):
    """Make the operations. Fetched values of cells that only this node changes are those that are known."""
    for what, target, cell, number in operations:
        value, result, at = np.array([number]), np.array([-1]), place(target, cell)
        if what == "put":
            window.Put(value, target, at)
        elif what == "replace":
            window.Accumulate(value, target, at, MPI.REPLACE)
        elif what == "accumulate":
            window.Accumulate(value, target, at)
        elif what == "fetch":
            window.Fetch_and_op(value, result, target, at[0])
        elif what == "swap":
            window.Compare_and_swap(value, np.array([known[target][cell]]), result, target, at[0])
        else:
            window.Get(result, target, at)
        keep.append((what, target, cell, value, result))


def apply(known, operations):
    for what, target, cell, number in operations:
        if what in ("accumulate", "fetch"):
            known[target][cell] += number
        elif what in ("put", "swap", "replace"):
            known[target][cell] = number


def synchronized(window, way, operations, known, place):
    """Make them in an epoch of that kind."""
    if way == "fence":
        window.Fence()
        carry_out(window, operations, known, place)
        window.Fence()
    elif way == "pscw":
        group = comm.Get_group()
        window.Post(group)
        window.Start(group)
        carry_out(window, operations, known, place)
        window.Complete()
        window.Wait()
    elif way == "lock_all":
        window.Lock_all()
        carry_out(window, operations, known, place)
        window.Flush_all()
        window.Unlock_all()
    else:
        for target in range(size):
            window.Lock(target, MPI.LOCK_EXCLUSIVE if way == "lock" else MPI.LOCK_SHARED)
            carry_out(window, [one for one in operations if one[1] == target], known, place)
            window.Unlock(target)


for kind in ("create", "dynamic", "allocate", "shared"):
    window, memory = make(kind)
    bases = comm.allgather(MPI.Get_address(memory) if kind == "dynamic" else 0)
    unit = 8 if kind == "dynamic" else 1
    known = np.zeros((size, CELLS), "i8")

    def place(target, cell, bases=bases, unit=unit):
        return bases[target] + unit * cell, 1, MPI.INT64_T

    for number in range(ROUNDS):
        way = random.Random(f"{sys.argv[1]} {kind} {number}").choice(
            ["fence", "pscw", "lock_all", "lock", "share"]
        )
        plans = [plan(source, f"{sys.argv[1]} {kind} {number}") for source in range(size)]
        keep = []
        before = known.copy()
        synchronized(window, way, plans[rank], before, place)
        comm.Barrier()
        for operations in plans:
            apply(known, operations)
        assert (memory == known[rank]).all(), (kind, number, way, memory, known[rank])
        for what, target, cell, _, result in keep:
            if what in ("swap", "get"):
                assert result[0] == before[target][cell], (kind, number, way, what, target, cell)
            elif what == "fetch":
                assert before[target][cell] <= result[0] < known[target][cell], (kind, number, way)
        comm.Barrier()
    if kind == "dynamic":
        window.Detach(memory)
    window.Free()
