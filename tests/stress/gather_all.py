# SPDX-License-Identifier: MIT
"""One node's part of a list of collectives that move data (test_random_steps.py), checked against the list."""

import random

import numpy as np

import spcomm
from nodetools import refused, same


class Broken:
    """Cannot be pickled."""

    def __reduce__(self):
        raise ValueError("broken on purpose")


def thing(step, source, dest, size):
    """The object that `source` gives to `dest`: every one is another, and `size` decides how it travels."""
    number = 10_000 * step + 100 * source + dest
    if size % 3 == 0:
        return {"number": number, "text": "x" * size}
    return np.full(size, number) if size % 3 == 1 else (number, bytes(size))


class Giver:
    """Goes through the steps. Its habits (what it does in between, whether it copies) are random, from a seed."""

    def __init__(self, comm, steps, seed):
        self.comm, self.steps = comm, steps
        self.chance = random.Random(f"{seed} {comm.rank}")
        self.kept = []  # results of former steps, which nobody may change

    def run(self):
        for number, (name, root, sizes, culprit) in enumerate(self.steps):
            self.idle(number)
            self.number, self.root = number, root
            self.sizes = [sizes[(number + rank) % len(sizes)] for rank in range(self.comm.size)]
            self.culprit = culprit
            self.step(name)
            self.check_kept()
        self.take_idle()

    def given(self, dest):
        mine = self.comm.rank
        return Broken() if mine == self.culprit else thing(self.number, mine, dest, self.sizes[mine])

    def expected(self, source, dest):
        return thing(self.number, source, dest, self.sizes[source])

    def step(self, name):
        """A node that needs what the culprit should have given hears of it; one that needs nothing does not."""
        mine, ranks = self.comm.rank, range(self.comm.size)
        call, expected, givers = getattr(self, name)(mine, ranks)
        if self.culprit == mine and (mine in givers or name in ("gather", "allgather", "alltoall")):
            with refused(TypeError, "broken on purpose"):
                call()
        elif self.culprit in givers:
            culprit = self.comm.members[self.culprit]
            with refused(spcomm.SpcommError, f"node {culprit} gave nothing", "broken on purpose"):
                call()
        else:
            got = call()
            assert same(got, expected), f"{self.number} {name}: {got!r:.200}"
            self.kept.append((got, expected))

    # Each gives the call, what it must return, and whose things this node needs.

    def bcast(self, mine, ranks):
        root, copy = self.root, self.chance.random() < 0.5
        value = self.given(0) if mine == root else None
        return lambda: self.comm.bcast(value, root, copy=copy), self.expected(root, 0), {root}

    def gather(self, mine, ranks):
        expected = [self.expected(rank, 0) for rank in ranks] if mine == self.root else None
        return lambda: self.comm.gather(self.given(0), self.root), expected, set(ranks) if expected else set()

    def allgather(self, mine, ranks):
        copy = self.chance.random() < 0.5
        expected = [self.expected(rank, 0) for rank in ranks]
        return lambda: self.comm.allgather(self.given(0), copy=copy), expected, set(ranks)

    def scatter(self, mine, ranks):
        values = [self.given(rank) for rank in ranks] if mine == self.root else None
        return lambda: self.comm.scatter(values, self.root), self.expected(self.root, mine), {self.root}

    def alltoall(self, mine, ranks):
        expected = [self.expected(rank, mine) for rank in ranks]
        return lambda: self.comm.alltoall([self.given(rank) for rank in ranks]), expected, set(ranks)

    # ---- in between

    def idle(self, number):
        if self.chance.random() < 0.3:
            self.comm.send(number, (self.comm.rank + 1) % self.comm.size, tag=number)
        if self.chance.random() < 0.3:
            self.comm.poll()

    def take_idle(self):
        self.comm.send("end", (self.comm.rank + 1) % self.comm.size)
        while self.comm.recv((self.comm.rank - 1) % self.comm.size) != "end":
            pass

    def check_kept(self):
        if self.kept and self.chance.random() < 0.5:
            got, expected = self.kept.pop(self.chance.randrange(len(self.kept)))
            assert same(got, expected), "a kept result has changed"
        del self.kept[:-10]


def gather_all(comm, steps, seed):
    Giver(comm, steps, seed).run()
