# SPDX-License-Identifier: MIT
"""One node's part of a schedule (schedule.py), checked against its oracle step by step."""

import operator
import random
import time

import numpy as np

import spcomm
from nodetools import same, tree
from schedule import NEVER, Mailbox, Schedule, contents


class Worker:
    """Does the events of one node."""

    def __init__(self, comm, schedule):
        self.comm = comm
        self.schedule = schedule
        self.mailbox = Mailbox(schedule, comm.rank)
        self.fuzzy = {}
        self.kept = []

    def run(self):
        for step, event in enumerate(self.schedule.events):
            if event.node in (None, self.comm.rank):
                try:
                    getattr(self, event.kind)(*event.data)
                except BaseException as error:
                    seed, length = self.schedule.seed, self.schedule.length
                    error.add_note(
                        f"seed {seed}, length {length}, bound {self.schedule.bound}, across {self.schedule.across}, "
                        f"step {step}: {event}"
                    )
                    raise
        for array, copy in self.kept:
            assert same(array, copy), "a received array changed while it was kept"
        assert not any(self.mailbox.waiting), self.mailbox.waiting

    # ---- messages

    def send(self, dest, ranks, sent):
        target = (
            {"all": spcomm.ALL, "others": spcomm.OTHERS}.get(dest, dest) if isinstance(dest, str) else dest
        )
        self.comm.send(contents(self.comm.rank, sent), target, sent.tag)

    def receive(self, how, source, tag):
        message = getattr(self, f"by_{how}")(source, tag)
        if isinstance(message, spcomm.Message):
            sent = self.mailbox.take(source, tag, message.source, message.tag)
            self.check(message.data, message.source, sent)
        else:
            self.check(*message)

    def check(self, data, source, sent):
        expected = contents(source, sent)
        assert same(data, expected), f"{sent} of node {source}: {data!r:.200} is not {expected!r:.200}"
        array = data["data"] if isinstance(data, dict) else data
        if isinstance(array, np.ndarray):
            assert array.flags.writeable
            if sent.number % 3:
                array[...] = -1  # it is this node's own
            else:
                self.kept.append((array, array.copy()))
                del self.kept[: -20 + sent.number % 20]

    def by_recv_message(self, source, tag):
        return self.comm.recv_message(source, tag)

    def by_recv(self, source, tag):
        """The payload alone; from any source, nobody could say what it should be."""
        if source == spcomm.ANY:
            return self.by_recv_message(source, tag)
        waiting = self.mailbox.waiting[source]
        sent = next(sent for sent in waiting if tag in (spcomm.ANY, sent.tag))
        waiting.remove(sent)
        return self.comm.recv(source, tag), source, sent

    def by_view(self, source, tag):
        message = self.comm.recv_message(source, tag, copy=False)
        data = message.data
        if isinstance(data, np.ndarray) and not data.flags.writeable:
            data = data.copy(order="A")
        elif isinstance(data, dict) and not data["data"].flags.writeable:
            data = {**data, "data": data["data"].copy(order="A")}
        return spcomm.Message(data, message.source, message.tag)

    def by_try(self, source, tag):
        while (message := self.comm.try_recv_message(source, tag)) is None:
            pass
        return message

    def by_probe(self, source, tag):
        found = self.comm.probe(source, tag)
        assert found.data is None
        message = self.comm.recv_message(found.source, found.tag)
        assert (message.source, message.tag) == (found.source, found.tag)
        return message

    def by_timed(self, source, tag):
        while True:
            try:
                return self.comm.recv_message(source, tag, timeout=0.0002)
            except spcomm.WaitTimeoutError:
                continue

    def time_out(self, source, timeout):
        try:
            self.comm.recv(source, NEVER, timeout=timeout)
        except spcomm.WaitTimeoutError:
            return
        raise AssertionError(f"something arrived with tag {NEVER}")

    def poll(self):
        exchanges = sum(event.kind == "exchange" for event in self.schedule.events)
        assert self.comm.poll() <= sum(map(len, self.mailbox.waiting)) + exchanges

    # ---- collectives

    def reduce(self, kind, shape, seed):
        given = [value(random.Random(f"{seed}/{rank}"), shape) for rank in range(self.comm.size)]
        result = getattr(self.comm, kind)(given[self.comm.rank])
        expected = tree(given, combiner(kind))
        assert same(result, expected), f"{result!r:.200} is not {expected!r:.200}"

    def collect(self, kind, root, size):
        """Any other collective; values are whole numbers, so that the order of additions does not matter."""
        rank, nodes = self.comm.rank, self.comm.size
        given = [np.arange(size) * (node + 1) for node in range(nodes)]
        mine = given[rank]
        match kind:
            case "allreduce":
                result, expected = self.comm.allreduce(mine), sum(given)
            case "reduce":
                result, expected = self.comm.reduce(mine, root=root), sum(given) if rank == root else None
            case "scan":
                result, expected = self.comm.scan(mine), sum(given[: rank + 1])
            case "bcast":
                result, expected = self.comm.bcast(mine if rank == root else None, root), given[root]
            case "gather":
                result, expected = self.comm.gather(mine, root), given if rank == root else None
            case "allgather":
                result, expected = self.comm.allgather(mine), given
            case "scatter":
                result, expected = self.comm.scatter(given if rank == root else None, root), mine
            case "alltoall":
                result = self.comm.alltoall([mine + node for node in range(nodes)])
                expected = [array + rank for array in given]
            case _:
                with self.comm.split(rank % 2, -rank) as part:
                    barriers = [part.fuzzy_barrier() for _ in range(root % 3)]
                    result, expected = part.allreduce(mine), sum(given[rank % 2 :: 2])
                    last = part.fuzzy_barrier()
                    for barrier in barriers:
                        barrier.wait()
                    if root % 2:
                        last.wait()
        pairs = zip(result, expected, strict=True) if isinstance(expected, list) else [(result, expected)]
        for found, wanted in pairs:
            assert same(found, wanted), f"{kind}: {found!r:.200} is not {wanted!r:.200}"

    def leave_early(self, entered, waits):
        """Each node enters so many barriers of a part; some close it at once, and nobody misses them at these."""
        common = min(entered)
        with self.comm.split() as part:
            barriers = [part.fuzzy_barrier() for _ in range(entered[part.rank])]
            for number, barrier in enumerate(barriers if waits[part.rank] else []):
                try:
                    barrier.wait()
                    assert number < common, f"barrier {number} of {entered} is over"
                except spcomm.NodeLostError:
                    assert number >= common, f"somebody is missed at barrier {number} of {entered}"

    @staticmethod
    def be_late(seconds):
        time.sleep(seconds)

    def barrier(self, timeout):
        self.insist(self.comm.barrier, timeout)

    def enter(self, number):
        self.fuzzy[number] = self.comm.fuzzy_barrier()

    def leave(self, number, how):
        fuzzy = self.fuzzy.pop(number)
        if how == "done":
            while not fuzzy.done():
                pass
        self.insist(fuzzy.wait, 0.0002 if how == "timed" else None)

    @staticmethod
    def insist(call, timeout):
        """Until it does not time out."""
        while True:
            try:
                return call(timeout=timeout)
            except spcomm.WaitTimeoutError:
                continue

    def exchange(self, distance, size):
        """Everybody with everybody's neighbour at a distance, in a tag of its own."""
        rank, nodes = self.comm.rank, self.comm.size
        mine = np.full(size, rank, dtype="u1")
        theirs = self.comm.sendrecv(mine, (rank + distance) % nodes, (rank - distance) % nodes, tag=200)
        assert same(theirs, np.full(size, (rank - distance) % nodes, dtype="u1"))


def value(chance, shape):
    """One node's contribution to a reduction."""
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
            return np.array(
                [chance.randrange(-(2**31), 2**31) for _ in range(chance.getrandbits(0) + 40)], dtype="i4"
            )
        case _:
            return np.random.default_rng(chance.getrandbits(32)).standard_normal(9000)


def combiner(kind):
    """The operator as plain Python and NumPy have it; tuples item by item."""
    scalar = {"global_sum": operator.add, "global_min": min, "global_max": max}[kind]
    arrays = {"global_sum": np.add, "global_min": np.minimum, "global_max": np.maximum}[kind]

    def combine(one, other):
        if isinstance(one, tuple):
            return tuple(map(combine, one, other))
        return (arrays if isinstance(one, np.ndarray) else scalar)(one, other)

    return combine


def carry_out(comm, seed, length, bound, across=0):
    Worker(comm, Schedule(seed, comm.size, length, bound, across)).run()
