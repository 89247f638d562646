# SPDX-License-Identifier: MIT
"""The player in Python: one node's part of a schedule (schedule.py), checked against the oracle step by step.

Its habits (how it names nodes, what it keeps, when it errs) are random, too.
"""

import math
import os
import random
import time

import numpy as np

import oracle
import spcomm
from nodetools import refused, same, tree
from schedule import ANY, NEVER, Schedule

ORDINARY, AHEAD = 300, 301  # tags, beside coordinated messages
OWN = {
    "latest": spcomm.op(elementwise=True)(oracle.latest),
    "composed": spcomm.op(elementwise=True, element_axes=1)(oracle.composed),
    "whole": spcomm.op(oracle.whole),
    "failing": spcomm.op(elementwise=True)(oracle.failing),
}


def constant(value):
    """The public name of what the schedule says, or the same rank, tag or list."""
    names = {ANY: spcomm.ANY, "all": spcomm.ALL, "others": spcomm.OTHERS}
    return value if isinstance(value, list) else names.get(value, value)


class Broken:
    """Cannot be pickled."""

    def __reduce__(self):
        raise ValueError("broken on purpose")


class Player:
    """Does the events of one node."""

    def __init__(self, comm, schedule):
        self.comm = comm
        self.schedule = schedule
        self.mailbox = oracle.Mailbox(schedule, comm.rank)
        self.chance = random.Random(f"{schedule.seed} {comm.rank}")
        self.fuzzy = {}
        self.kept = []  # results and messages that nobody may change, and what must be in them

    def run(self):
        for step, event in enumerate(self.schedule.events):
            if event.node in (None, self.comm.rank):
                try:
                    getattr(self, event.kind)(*event.data)
                    self.check_kept(self.chance.randrange(1, 40))
                except BaseException as error:
                    made = self.schedule
                    error.add_note(
                        f"seed {made.seed}, length {made.length}, across {made.across}, bound {made.bound}, "
                        f"step {step}: {event}"
                    )
                    raise
        self.check_kept(0)
        assert not any(self.mailbox.waiting), self.mailbox.waiting

    def finish(self):
        """Nothing is under way to any node any more."""
        self.comm.barrier()
        assert self.comm.poll() == 0
        self.comm.barrier()

    def check_kept(self, most):
        while len(self.kept) > most:
            got, expected = self.kept.pop(self.chance.randrange(len(self.kept)))
            assert same(got, expected), "a result or a message has changed while it was kept"

    # ---- messages

    def send(self, dest, ranks, sent):
        self.comm.send(oracle.contents(self.comm.rank, sent), constant(dest), sent.tag)

    def receive(self, how, source, tag):
        message = getattr(self, f"by_{how}")(constant(source), constant(tag))
        if isinstance(message, spcomm.Message):
            sent = self.mailbox.take(source, tag, message.source, message.tag)
            self.check(message.data, message.source, sent)
        else:
            self.check(*message)

    def check(self, data, source, sent):
        expected = oracle.contents(source, sent)
        assert same(data, expected), f"{sent} of node {source}: {data!r:.200} is not {expected!r:.200}"
        array = data["data"] if isinstance(data, dict) else data
        if isinstance(array, np.ndarray):
            assert array.flags.writeable
            if sent.number % 3:
                array[...] = -1  # it is this node's own
            else:
                self.kept.append((data, expected))

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
            self.comm.recv(constant(source), NEVER, timeout=timeout)
        except spcomm.WaitTimeoutError:
            return
        raise AssertionError(f"something arrived with tag {NEVER}")

    def poll(self):
        """At most what has been sent to this node, now or later, and what comes in exchanges and cycles."""
        others = sum(event.kind == "exchange" for event in self.schedule.events)
        for event in self.schedule.events:
            if event.kind == "cycles":
                others += sum(len(cycle.sends) + self.comm.size for cycle in event.data[0])
        assert self.comm.poll() <= sum(map(len, self.mailbox.waiting)) + others

    # ---- collectives

    def reduce_numbers(self, kind, shape, seed):
        given = oracle.numbers(seed, shape, self.comm.size)
        result = getattr(self.comm, kind)(given[self.comm.rank])
        expected = tree(given, oracle.combiner(kind))
        assert same(result, expected), f"{result!r:.200} is not {expected!r:.200}"

    def reduce_arrays(self, step, operation, name, dtype, shape, root, algorithm):
        comm, rank = self.comm, self.comm.rank
        made = oracle.Reduction(step, operation, name, dtype, shape, root, algorithm, comm.size)
        mine, op = made.given[rank].copy(), OWN.get(name) or getattr(spcomm, name)
        calls = {
            "allreduce": lambda: comm.allreduce(mine, op, algorithm),
            "reduce": lambda: comm.reduce(mine, op, root, algorithm),
            "scan": lambda: comm.scan(mine, op),
            "exscan": lambda: comm.exscan(mine, op),
            "reduce_scatter": lambda: comm.reduce_scatter(mine, op, made.counts),
            "bcast": lambda: comm.bcast(mine, root).copy(),
            "alltoall": lambda: comm.alltoall(np.array_split(mine, comm.size)),
        }
        if made.fails:
            self.fail(calls[operation], operation == "allreduce" or rank == root)
            return
        got, expected = calls[operation](), made.result(rank)
        assert same(got, expected), f"{got!r:.300} is not {expected!r:.300}"
        assert same(mine, made.given[rank]), "its input has changed"
        if isinstance(got, np.ndarray):
            assert got.flags.writeable and not np.shares_memory(got, mine)
            if self.chance.random() < 0.3:
                got[...] = 7  # private: nobody else sees it
                expected = got.copy()
            self.kept.append((got, expected))

    @staticmethod
    def fail(call, has_result):
        """Nobody gets a wrong result, and nobody waits for one. The round in which each node hears of it is open."""
        try:
            result = call()
        except (ZeroDivisionError, spcomm.SpcommError) as error:
            assert "on purpose" in str(error)
        else:
            assert result is None and not has_result

    def move(self, step, name, root, sizes, culprit):
        """A node that needs what the culprit should have given hears of it; one that needs nothing does not."""
        comm, rank = self.comm, self.comm.rank
        made = oracle.Move(step, name, root, sizes, comm.size)
        given = [Broken() if rank == culprit else made.given(rank, dest) for dest in range(comm.size)]
        copy = self.chance.random() < 0.5
        calls = {
            "bcast": lambda: comm.bcast(given[0] if rank == root else None, root, copy=copy),
            "gather": lambda: comm.gather(given[0], root),
            "allgather": lambda: comm.allgather(given[0], copy=copy),
            "scatter": lambda: comm.scatter(given if rank == root else None, root),
            "alltoall": lambda: comm.alltoall(given),
        }
        expected, givers = made.result(rank)
        if culprit == rank and (rank in givers or name in ("gather", "allgather", "alltoall")):
            with refused(TypeError, "broken on purpose"):
                calls[name]()
        elif culprit in givers:
            words = f"node {comm.members[culprit]} gave nothing"
            with refused(spcomm.SpcommError, words, "broken on purpose"):
                calls[name]()
        else:
            got = calls[name]()
            assert same(got, expected), f"{got!r:.200} is not {expected!r:.200}"
            self.kept.append((got, expected))

    def drop_kept(self):
        """On all nodes: parts need room in the arenas."""
        self.check_kept(0)
        self.comm.barrier()

    def part(self, number):
        self.drop_kept()
        rank = self.comm.rank
        with self.comm.split(rank % 2, -rank) as part:
            barriers = [part.fuzzy_barrier() for _ in range(number % 3)]
            assert part.global_sum(rank) == sum(range(rank % 2, self.comm.size, 2))
            last = part.fuzzy_barrier()
            for barrier in barriers:
                barrier.wait()
            if number % 2:
                last.wait()

    def leave_early(self, entered, waits):
        """Each node enters so many barriers of a part; some close it at once, and nobody misses them at these."""
        self.drop_kept()
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

    def exchange(self, distance, size, is_synchronous):
        """Everybody with everybody's neighbour at a distance, in a tag of its own."""
        rank, nodes = self.comm.rank, self.comm.size
        after, before = (rank + distance) % nodes, (rank - distance) % nodes
        mine, expected = np.full(size, rank, dtype="u1"), np.full(size, before, dtype="u1")
        if not is_synchronous:
            theirs = self.comm.sendrecv(mine, after, before, tag=200)
        elif rank < math.gcd(distance, nodes):  # the first of its ring
            self.comm.ssend(mine, after, tag=200)
            theirs = self.comm.recv(before, tag=200)
        else:
            theirs = self.comm.recv(before, tag=200)
            self.comm.ssend(mine, after, tag=200)
        assert same(theirs, expected)

    # ---- cycles of coordinated messages

    def cycles(self, made, until_all_are_through):
        """In each, an ordinary message to all others after each coordinated one."""
        for index, cycle in enumerate(made):
            self.send_cycle(index, cycle)
            if index and made[index - 1].slow not in (None, self.comm.rank):
                self.comm.send(index, made[index - 1].slow, tag=AHEAD)
            self.receive_cycle(index, cycle, index + 1 == len(made))
            for source in [source for source, _, _ in cycle.sends if source != self.comm.rank]:
                # Without a barrier at the end, others may be in cycles of a later event.
                source = spcomm.ANY if until_all_are_through else source
                assert self.comm.recv(source, ORDINARY) == "ordinary"
        if until_all_are_through:
            self.comm.barrier()

    def send_cycle(self, index, cycle):
        for number, (source, targets, size) in enumerate(cycle.sends):
            if source == self.comm.rank:
                data = oracle.coordinated(index, number, source, size)
                self.comm.coordinated_send(data, self.form(targets))
                self.comm.send("ordinary", spcomm.OTHERS, tag=ORDINARY)
                self.dawdle()
                self.err_by_synchronising()

    def form(self, targets):
        """The same nodes, said in another way."""
        forms = [targets, list(targets) * 2]
        if len(targets) == 1:
            forms.append(targets[0])
        if len(targets) == self.comm.size:
            forms.append(spcomm.ALL)
        if not targets:
            forms.append(spcomm.PROC_NULL)
        return self.chance.choice(forms)

    def receive_cycle(self, index, cycle, is_last):
        left = oracle.arrivals(index, cycle, self.comm.rank, self.comm.size)
        message = self.next()
        if cycle.slow == self.comm.rank and not is_last:
            self.be_slow(index)
        while message is not None:
            assert left[message.source], f"one too many: {message}"
            expected = left[message.source].pop(0)
            assert same(message.data, expected), f"{message} is not {expected!r:.100}"
            self.err_by_sending()
            self.err_by_synchronising()
            self.dawdle()
            message = self.next()
        assert not any(left.values()), f"over too early: {left}"

    def be_slow(self, index):
        """Stay in a cycle, which the first receive has entered, until all others are in the next one and have sent."""
        for other in range(self.comm.size):
            if other != self.comm.rank:
                assert self.comm.recv(other, tag=AHEAD) == index + 1

    def next(self):
        match self.chance.randrange(4):
            case 0:
                while True:
                    try:
                        return self.comm.coordinated_recv(timeout=0)
                    except spcomm.WaitTimeoutError:
                        os.sched_yield()
            case 1:
                return next(self.comm.coordinated_messages(), None)
            case 2:
                for message in self.comm.coordinated_messages(timeout=300):
                    return message
                return None
            case _:
                return self.comm.coordinated_recv()

    def dawdle(self):
        if self.chance.random() < 0.1:
            for _ in range(self.chance.randrange(30)):
                os.sched_yield()

    def err_by_synchronising(self):
        if self.chance.random() < 0.1:
            calls = [self.comm.barrier, self.comm.fuzzy_barrier, lambda: self.comm.global_sum(np.ones(2000))]
            with refused(spcomm.CycleError):
                self.chance.choice(calls)()

    def err_by_sending(self):
        if self.chance.random() < 0.1:
            with refused(spcomm.CycleError):
                self.comm.coordinated_send(bytes(self.chance.choice([1, 100, 20_000])), spcomm.ALL)


def play(comm, seed, length, across, bound):
    player = Player(comm, Schedule(seed, comm.size, length, across, bound))
    player.run()
    player.finish()
