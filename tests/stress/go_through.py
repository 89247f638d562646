# SPDX-License-Identifier: MIT
"""One node's part of a list of cycles (test_random_steps.py), checked against what the list says."""

import os
import random
from typing import NamedTuple

import numpy as np

import spcomm
from nodetools import same

ORDINARY, AHEAD = 5, 6


class Cycle(NamedTuple):
    """The events of one cycle; the order of `sends` is that of each source."""

    sends: list  # of (source, destinations, size)
    slow: int | None


def contents(cycle, number, source, size):
    """Every message is another one; `size` decides how it travels."""
    if size > 100:
        return np.full(size // 8, 1000 * cycle + 10 * number + source)
    return (cycle, number, source, "x" * size)


class Traveller:
    """Goes through the cycles of one node. Its habits (when it waits, polls, errs) are random, from a seed."""

    def __init__(self, comm, cycles, seed):
        self.comm = comm
        self.cycles = [Cycle(*cycle) for cycle in cycles]
        self.chance = random.Random(f"{seed} {comm.rank}")
        self.index = 0

    def run(self):
        for index, cycle in enumerate(self.cycles):
            self.index = index
            self.send(cycle)
            self.tell_the_slow()
            self.receive(cycle)
            for _ in range(sum(source != self.comm.rank for source, _, _ in cycle.sends)):
                assert self.comm.recv(tag=ORDINARY) == "ordinary"
        self.comm.barrier()
        assert self.comm.poll() == 0

    # ---- sending

    def send(self, cycle):
        """The node's own messages, and an ordinary one to all others after each."""
        for number, (source, targets, size) in enumerate(cycle.sends):
            if source == self.comm.rank:
                self.comm.coordinated_send(contents(self.index, number, source, size), self.form(targets))
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

    def tell_the_slow(self):
        """A node that was slow in the cycle before waits, within it, until all others are in this one and have sent."""
        if self.index > 0:
            slow = self.cycles[self.index - 1].slow
            if slow is not None and slow != self.comm.rank:
                self.comm.send(self.index, slow, tag=AHEAD)

    # ---- receiving

    def receive(self, cycle):
        left = {source: [] for source in range(self.comm.size)}
        for number, (source, targets, size) in enumerate(cycle.sends):
            if self.comm.rank in targets:
                left[source].append(contents(self.index, number, source, size))
        message = self.next()
        self.be_slow(cycle)
        while message is not None:
            assert left[message.source], f"one too many: {message}"
            expected = left[message.source].pop(0)
            assert same(message.data, expected), f"{message} is not {expected!r:.100}"
            self.err_by_sending()
            self.err_by_synchronising()
            self.dawdle()
            message = self.next()
        assert not any(left.values()), f"over too early: {left}"

    def be_slow(self, cycle):
        """After the first receive, with which this node has entered: the others can go on, and do."""
        if cycle.slow == self.comm.rank and self.index + 1 < len(self.cycles):
            for other in range(self.comm.size):
                if other != self.comm.rank:
                    assert self.comm.recv(other, tag=AHEAD) == self.index + 1

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

    # ---- habits

    def dawdle(self):
        if self.chance.random() < 0.1:
            for _ in range(self.chance.randrange(30)):
                os.sched_yield()

    def refused(self, call):
        try:
            call()
        except spcomm.CycleError:
            return
        raise AssertionError("it was not refused")

    def err_by_synchronising(self):
        if self.chance.random() < 0.1:
            calls = [self.comm.barrier, self.comm.fuzzy_barrier, lambda: self.comm.global_sum(np.ones(2000))]
            self.refused(self.chance.choice(calls))

    def err_by_sending(self):
        if self.chance.random() < 0.1:
            size = self.chance.choice([1, 100, 20_000])
            self.refused(lambda: self.comm.coordinated_send(bytes(size), spcomm.ALL))


def go_through(comm, steps, seed):
    Traveller(comm, steps, seed).run()
