# SPDX-License-Identifier: MIT
"""One node's part of a list of reductions and other collectives (test_random_steps.py), checked against NumPy."""

import random

import numpy as np

import spcomm
from nodetools import refused, same, tree

UFUNCS = {"SUM": np.add, "PROD": np.multiply, "MIN": np.minimum, "MAX": np.maximum, "BXOR": np.bitwise_xor}


@spcomm.op(elementwise=True)
def latest(left, right):
    """Not commutative: the higher rank wins, but where it has zero. Changes both, which are its own."""
    left[right != 0] = right[right != 0]
    right[:] = 9
    return left


@spcomm.op(elementwise=True, element_axes=1)
def composed(left, right):
    """The composition of x -> a x + b, as pairs (a, b): one after the other. Not commutative."""
    return np.stack([left[..., 0] * right[..., 0], right[..., 0] * left[..., 1] + right[..., 1]], -1)


@spcomm.op
def whole(left, right):
    """A function of whole arrays: the value at an index depends on others."""
    return left + right[::-1]


@spcomm.op(elementwise=True)
def failing(left, right):
    """Where the first of all numbers is combined with one of those that node 0 gives."""
    if (left == 99).any():
        raise ZeroDivisionError("on purpose")
    return left + right


OWN = {"latest": latest, "composed": composed, "whole": whole, "failing": failing}
NEEDS_WHOLE = ("whole",)


def contribution(step, rank, shape, dtype, name):
    chance = np.random.default_rng([step, rank])
    if np.dtype(dtype).kind in "iu":
        array = np.asarray(chance.integers(0, 5, shape)).astype(dtype)
    else:
        array = np.asarray(chance.standard_normal(shape) * 10.0 ** chance.integers(-3, 3, shape)).astype(
            dtype
        )
    if name == "failing" and rank == 0 and array.size:
        array.reshape(-1)[0] = 99
    return array


def function_of(name):
    if name in OWN:
        return lambda left, right: OWN[name](left.copy(), right.copy())

    def combined(left, right):
        with np.errstate(all="ignore"):
            return np.asarray(UFUNCS[name](left, right)).astype(left.dtype)

    return combined


class Reducer:
    """Goes through the steps; in between it sends, polls and keeps results, at random from a seed."""

    def __init__(self, comm, steps, seed):
        self.comm, self.steps = comm, steps
        self.chance = random.Random(f"{seed} {comm.rank}")
        self.kept = []

    def run(self):
        for number, step in enumerate(self.steps):
            if self.chance.random() < 0.3:
                self.comm.poll()
            self.step(number, *step)
            if self.kept and self.chance.random() < 0.5:
                got, expected = self.kept.pop(self.chance.randrange(len(self.kept)))
                assert same(got, expected), "a kept result has changed"
            del self.kept[:-10]

    def step(self, number, operation, name, dtype, shape, root, algorithm):
        comm, rank = self.comm, self.comm.rank
        shape = (*shape, 2) if name == "composed" else shape or (1,)
        everybody = [contribution(number, source, shape, dtype, name) for source in range(comm.size)]
        mine = everybody[rank].copy()
        op = OWN.get(name) or getattr(spcomm, name)
        if name in NEEDS_WHOLE and algorithm in ("slices", "binary-swap"):
            algorithm = "tree"
        if name == "failing" and everybody[0].size and comm.size > 1:
            return self.fails(operation, op, mine, root, algorithm)
        got, expected = getattr(self, operation)(everybody, mine, op, name, root, algorithm)
        words = f"step {number}: {operation} {name} {dtype} {shape} {root} {algorithm}"
        assert same(got, expected), f"{words}: {got!r:.300} is not {expected!r:.300}"
        assert same(mine, everybody[rank]), f"{words}: its input has changed"
        if isinstance(got, np.ndarray):
            assert got.flags.writeable and not np.shares_memory(got, mine)
            if self.chance.random() < 0.3:
                got[...] = 7  # private: nobody else sees it
                expected = got.copy()
            self.kept.append((got, expected))

    def fails(self, operation, op, mine, root, algorithm):
        """Nobody gets a wrong result, and nobody waits for one. In which rounds who hears of it is not said here."""
        call = self.comm.reduce if operation == "reduce" else self.comm.allreduce
        root, kinds = (root,) if operation == "reduce" else (), (ZeroDivisionError, spcomm.SpcommError)
        if operation == "reduce" and root != (self.comm.rank,):
            try:
                assert call(mine, op, *root, algorithm=algorithm) is None
            except kinds as error:
                assert "on purpose" in str(error)
        else:
            with refused(kinds, "on purpose"):
                call(mine, op, *root, algorithm=algorithm)

    # Each makes the call and says what must come of it.

    def allreduce(self, everybody, mine, op, name, root, algorithm):
        return self.comm.allreduce(mine, op, algorithm), tree(everybody, function_of(name))

    def reduce(self, everybody, mine, op, name, root, algorithm):
        expected = tree(everybody, function_of(name)) if self.comm.rank == root else None
        return self.comm.reduce(mine, op, root, algorithm), expected

    def scan(self, everybody, mine, op, name, root, algorithm):
        return self.comm.scan(mine, op), tree(everybody[: self.comm.rank + 1], function_of(name))

    def exscan(self, everybody, mine, op, name, root, algorithm):
        before = everybody[: self.comm.rank]
        return self.comm.exscan(mine, op), tree(before, function_of(name)) if before else None

    def reduce_scatter(self, everybody, mine, op, name, root, algorithm):
        counts = [len(mine) if rank == root else 0 for rank in range(self.comm.size)]
        if algorithm is not None:
            counts = [len(part) for part in np.array_split(mine, self.comm.size)]
        first = sum(counts[: self.comm.rank])
        rows = [each[first : first + counts[self.comm.rank]] for each in everybody]
        return self.comm.reduce_scatter(mine, op, counts), tree(rows, function_of(name))

    def bcast(self, everybody, mine, op, name, root, algorithm):
        return self.comm.bcast(mine, root).copy(), everybody[root]

    def alltoall(self, everybody, mine, op, name, root, algorithm):
        parts = [np.array_split(each, self.comm.size)[self.comm.rank] for each in everybody]
        return self.comm.alltoall(np.array_split(mine, self.comm.size)), parts


def reduce_all(comm, steps, seed):
    Reducer(comm, steps, seed).run()
