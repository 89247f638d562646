# SPDX-License-Identifier: MIT
"""The oracle of schedules (schedule.py): what each node gives, and what each call must find, by plain Python and NumPy.

Everything follows from the schedule, so each node knows what all others have sent and contributed.
"""

import operator
import random

import numpy as np

from nodetools import tree
from schedule import ANY


def contents(source, sent):
    """The payload of a message: each type travels in its own way, and every byte depends on sender and number."""
    word = f"{source}:{sent.number}:"
    size = sent.size
    match 1 if sent.plain else sent.number % 7:
        case 0:
            return np.arange(size // 8) + (source * 1_000_003 + sent.number)
        case 1:
            return (word * (size // len(word) + 1))[:size].encode()
        case 2:
            return (source, sent.number, word * (size // len(word)))
        case 3:
            return {
                "from": source,
                "number": sent.number,
                "data": np.full(size // 4, sent.number, dtype="f4"),
            }
        case 4:
            return source * 10**6 + sent.number if size < 50 else word * (size // len(word))
        case 5:
            return np.asfortranarray(np.full((size // 16 + 1, 2), float(sent.number)))
        case _:
            return [word] * (size // 30 + 1)


class Mailbox:
    """The messages that a node has been sent and not received, by sender, in the order of the sends."""

    def __init__(self, schedule, node):
        self.waiting = [[] for _ in range(schedule.nodes)]
        for event in schedule.events:
            if event.kind == "send":
                _, ranks, sent = event.data
                if node in ranks:
                    self.waiting[event.node].append(sent)

    def take(self, source, tag, message_source, message_tag):
        """The message that has been received, if that may be; checks source and tag."""
        assert source in (ANY, message_source), (source, message_source)
        waiting = self.waiting[message_source]
        index = next(i for i, sent in enumerate(waiting) if tag in (ANY, sent.tag))
        assert waiting[index].tag == message_tag, (waiting[index], message_tag)
        return waiting.pop(index)


# ---- cycles and data


def coordinated(cycle, number, source, size):
    """The payload of a coordinated message."""
    if size > 100:
        return np.full(size // 8, 1000 * cycle + 10 * number + source)
    return (cycle, number, source, "x" * size)


def arrivals(index, cycle, rank, nodes):
    """The coordinated messages to a node in a cycle, by sender."""
    found = {source: [] for source in range(nodes)}
    for number, (source, targets, size) in enumerate(cycle.sends):
        if rank in targets:
            found[source].append(coordinated(index, number, source, size))
    return found


class Move:
    """A collective that moves data: each node gives each other one another object."""

    def __init__(self, step, name, root, sizes, nodes):
        self.step, self.name, self.root = step, name, root
        self.sizes = [sizes[(step + rank) % len(sizes)] for rank in range(nodes)]

    def given(self, source, dest):
        """The size decides how it travels."""
        number, size = 10_000 * self.step + 100 * source + dest, self.sizes[source]
        if size % 3 == 0:
            return {"number": number, "text": "x" * size}
        return np.full(size, number) if size % 3 == 1 else (number, bytes(size))

    def result(self, rank):
        """The result on a node, and whose objects that node needs for it."""
        ranks = range(len(self.sizes))
        match self.name:
            case "bcast":
                return self.given(self.root, 0), {self.root}
            case "scatter":
                return self.given(self.root, rank), {self.root}
            case "gather" if rank != self.root:
                return None, set()
        dest = rank if self.name == "alltoall" else 0
        return [self.given(source, dest) for source in ranks], set(ranks)


# ---- reductions


def number(chance, shape):
    """A node's contribution to a reduction of numbers."""
    match shape:
        case "int":
            return chance.randrange(-1000, 1000)
        case "float":
            return chance.uniform(-1, 1) * 10.0 ** chance.randrange(-20, 20)
        case "wide":
            return chance.choice([chance.getrandbits(10), chance.getrandbits(63), -chance.getrandbits(100)])
        case "tuple":
            return (chance.randrange(100), chance.random(), np.array([chance.random() for _ in range(3)]))
        case "array":
            return np.array([chance.randrange(-(2**31), 2**31) for _ in range(40)], dtype="i4")
        case _:
            return np.random.default_rng(chance.getrandbits(32)).standard_normal(9000)


def numbers(seed, shape, nodes):
    """The contributions of all."""
    return [number(random.Random(f"{seed}/{rank}"), shape) for rank in range(nodes)]


def combiner(kind):
    """The operator of global_sum, global_min or global_max; tuples item by item."""
    scalar = {"global_sum": operator.add, "global_min": min, "global_max": max}[kind]
    arrays = {"global_sum": np.add, "global_min": np.minimum, "global_max": np.maximum}[kind]

    def combine(one, other):
        if isinstance(one, tuple):
            return tuple(map(combine, one, other))
        return (arrays if isinstance(one, np.ndarray) else scalar)(one, other)

    return combine


def latest(left, right):
    """Not commutative: the higher rank wins, but where it has zero. Changes both, which are its own."""
    left[right != 0] = right[right != 0]
    right[:] = 9
    return left


def composed(left, right):
    """The composition of x -> a x + b, as pairs (a, b): one after the other. Not commutative."""
    return np.stack([left[..., 0] * right[..., 0], right[..., 0] * left[..., 1] + right[..., 1]], -1)


def whole(left, right):
    """A function of whole arrays: the value at an index depends on others."""
    return left + right[::-1]


def failing(left, right):
    """Raises where the first of all numbers is combined with one of those that node 0 gives."""
    if (left == 99).any():
        raise ZeroDivisionError("on purpose")
    return left + right


OWN = {"latest": latest, "composed": composed, "whole": whole, "failing": failing}
UFUNCS = {"SUM": np.add, "PROD": np.multiply, "MIN": np.minimum, "MAX": np.maximum, "BXOR": np.bitwise_xor}


class Reduction:
    """A reduction of arrays, and what two others do with the same arrays."""

    def __init__(self, step, operation, name, dtype, shape, root, algorithm, nodes):
        shape = (*shape, 2) if name == "composed" else shape
        self.operation, self.name, self.root = operation, name, root
        self.given = [self.array(step, rank, shape, np.dtype(dtype)) for rank in range(nodes)]
        self.fails = name == "failing" and self.given[0].size > 0 and nodes > 1
        length = shape[0]
        even = [len(part) for part in np.array_split(np.empty(length), nodes)]
        self.counts = even if algorithm else [length if rank == root else 0 for rank in range(nodes)]

    def array(self, step, rank, shape, dtype):
        """A node's contribution."""
        chance = np.random.default_rng([step, rank])
        if dtype.kind in "iu":
            items = np.arange(np.prod(shape))  # play.c has the same
            made = (((items * 7919 + 31 * step + 104_729 * (rank + 1)) >> 3) % 5).reshape(shape).astype(dtype)
        else:
            made = chance.standard_normal(shape) * 10.0 ** chance.integers(-3, 3, shape)
            made = np.asarray(made).astype(dtype)
        if self.name == "failing" and rank == 0 and made.size:
            made.reshape(-1)[0] = 99
        return made

    def combine(self, left, right):
        if self.name in OWN:
            return OWN[self.name](left.copy(), right.copy())
        with np.errstate(all="ignore"):
            return np.asarray(UFUNCS[self.name](left, right)).astype(left.dtype)

    def result(self, rank):
        """The result on a node."""
        given, nodes = self.given, len(self.given)
        match self.operation:
            case "bcast":
                return given[self.root]
            case "alltoall":
                return [np.array_split(one, nodes)[rank] for one in given]
            case "scan" | "exscan":
                before = given[: rank + (self.operation == "scan")]
                return tree(before, self.combine) if before else None
            case "reduce_scatter":
                first = sum(self.counts[:rank])
                return tree([one[first : first + self.counts[rank]] for one in given], self.combine)
            case "reduce" if rank != self.root:
                return None
        return tree(given, self.combine)
