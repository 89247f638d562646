# SPDX-License-Identifier: MIT
"""Random work for all nodes, and what must come of it.

A schedule is one list of events, the same on every node because it is drawn from a seed. Carried out one after
the other it is a correct sequential program: nothing is received before it was sent, and what is under way never
exceeds a bound. So the nodes, each doing its own part of the list in order, cannot deadlock as long as the buffers
(queues included) hold the bound.

What a receive finds is defined by the order of each sender alone:

* tags below SHARED are received from a named source, by tag, or with any tag while that source has sent nothing
  else: always the first such message that is left of that source;
* tags from SHARED on are received from any source: the first one left of whichever source it is, as many in
  all as were sent;
* now and then nodes take all that is left, whatever it is.

With `across`, so many fuzzy barriers are open across every collective, there are more kinds of those, and nodes are
late now and then: what one box is told of another may be ahead of what it knows.
"""

import random
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

import spcomm

SHARED = 100
DIRECT_TAGS = (0, 1, 2, 7)
SHARED_TAGS = (100, 101)
NEVER = 55  # no message has this tag
SIZES = (0, 1, 8, 40, 41, 60, 200, 500, 1000, 1100, 3000, 8192, 8200, 20_000, 70_000)


class Event(NamedTuple):
    """Something that one node does (or all, if node is None)."""

    kind: str
    node: int | None
    data: tuple = ()


class Sent(NamedTuple):
    """A message of a sender: its running number says all about the contents."""

    number: int
    tag: int
    size: int


def contents(source, sent):
    """The payload: each type has its own ways, and every byte depends on who sent it and when."""
    word = f"{source}:{sent.number}:"
    size = sent.size
    match sent.number % 7:
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


@dataclass
class Schedule:
    """Draws events; `events` is the result.

    `bound`: bytes under way at once, all pairs of nodes together. `across`: fuzzy barriers open across collectives.
    """

    seed: int
    nodes: int
    length: int
    bound: int
    across: int = 0
    events: list = field(default_factory=list)

    def __post_init__(self):
        self.chance = random.Random(f"{self.seed}/{self.nodes}")
        pairs = [(source, dest) for source in range(self.nodes) for dest in range(self.nodes)]
        self.direct = {pair: [] for pair in pairs}  # under way, with direct tags
        self.shared = {(dest, tag): [] for dest in range(self.nodes) for tag in SHARED_TAGS}
        self.spoiled = dict.fromkeys(pairs, False)  # shared tags were used since everything was taken
        self.numbers = [0] * self.nodes
        self.open = []
        self.fuzzy_number = 0
        kinds = {
            self.send: 10, self.receive: 8, self.receive_shared: 4, self.take_all: 1, self.time_out: 1, self.poll: 1,
            self.reduce: 2, self.barrier: 1, self.enter: 2, self.leave: 1, self.exchange: 1,
        }  # fmt: skip
        if self.across:
            kinds[self.collect] = 6
        weights = [max(0.0, weight * self.chance.choice([0.2, 1, 1, 2])) for weight in kinds.values()]
        while len(self.events) < self.length:
            self.chance.choices(list(kinds), weights)[0]()
        self.finish()

    def add(self, kind, node, *data):
        self.events.append(Event(kind, node, data))

    def any_node(self):
        return self.chance.randrange(self.nodes)

    def under_way(self):
        direct = sum(sent.size + 100 for waiting in self.direct.values() for sent in waiting)
        return direct + sum(size + 100 for waiting in self.shared.values() for size in waiting)

    # ---- messages

    def destinations(self, source):
        match self.chance.randrange(8):
            case 0:
                return "all", list(range(self.nodes))
            case 1:
                return "others", [rank for rank in range(self.nodes) if rank != source]
            case 2 | 3:
                ranks = self.chance.sample(range(self.nodes), self.chance.randint(1, self.nodes))
                return ranks, ranks
            case _:
                rank = self.any_node()
                return rank, [rank]

    def send(self):
        source = self.any_node()
        dest, ranks = self.destinations(source)
        tag = self.chance.choice(DIRECT_TAGS * 2 + SHARED_TAGS)
        size = self.chance.choice([size for size in SIZES if size <= self.bound // (2 * self.nodes)])
        while self.under_way() + (size + 100) * len(ranks) > self.bound:
            self.relieve()
        sent = Sent(self.numbers[source], tag, size)
        self.numbers[source] += 1
        self.add("send", source, dest, ranks, sent)
        for rank in ranks:
            if tag >= SHARED:
                self.shared[rank, tag].append(size)
                self.spoiled[source, rank] = True
            else:
                self.direct[source, rank].append(sent)

    def relieve(self):
        """Makes room: something that is under way is received."""
        if any(self.direct.values()):
            self.receive()
        else:
            self.receive_shared()

    def receive(self):
        candidates = [pair for pair, waiting in self.direct.items() if waiting]
        if candidates:
            source, dest = self.chance.choice(candidates)
            waiting = self.direct[source, dest]
            if not self.spoiled[source, dest] and self.chance.random() < 0.5:
                tag = spcomm.ANY
                waiting.pop(0)
            else:
                tag = self.chance.choice(waiting).tag
                waiting.remove(next(sent for sent in waiting if sent.tag == tag))
            self.add("receive", dest, self.how(), source, tag)

    def receive_shared(self):
        candidates = [key for key, waiting in self.shared.items() if waiting]
        if candidates:
            dest, tag = self.chance.choice(candidates)
            # The message that comes is not known: count the smallest, so that the bound holds in any case.
            self.shared[dest, tag].remove(min(self.shared[dest, tag]))
            self.add("receive", dest, self.how(), spcomm.ANY, tag)

    def take_all(self):
        """Some nodes take what is left, whatever it is. A barrier keeps what is sent later out of it."""
        for dest in self.chance.sample(range(self.nodes), self.chance.randint(1, self.nodes)):
            count = sum(len(self.shared[dest, tag]) for tag in SHARED_TAGS)
            count += sum(len(self.direct[source, dest]) for source in range(self.nodes))
            for _ in range(count):
                self.add("receive", dest, self.how(), spcomm.ANY, spcomm.ANY)
            for source in range(self.nodes):
                self.direct[source, dest].clear()
                self.spoiled[source, dest] = False
            for tag in SHARED_TAGS:
                self.shared[dest, tag].clear()
        self.add("barrier", None, None)

    def how(self):
        return self.chance.choice(["recv", "recv", "recv_message", "try", "probe", "timed", "view"])

    def time_out(self):
        source = self.chance.choice([spcomm.ANY, self.any_node()])
        self.add("time_out", self.any_node(), source, self.chance.choice([0, 0.0002]))

    def poll(self):
        self.add("poll", self.any_node())

    # ---- collectives

    def hold(self):
        """Enters barriers; whoever is late here makes its box late for all of them."""
        if self.across and self.chance.random() < 0.5:
            self.add("be_late", self.any_node(), self.chance.choice([0.001, 0.01, 0.03]))
        while len(self.open) < self.across:
            self.enter()

    def collect(self):
        self.hold()
        names = ["allreduce", "reduce", "scan", "bcast", "gather", "allgather", "scatter", "alltoall", "part"]
        size = self.chance.choice([1, 100, 3000, 20_000])
        if self.chance.random() < 0.1:
            entered = [self.chance.randrange(9) for _ in range(self.nodes)]
            self.add("leave_early", None, entered, [self.chance.random() < 0.5 for _ in entered])
        else:
            self.add("collect", None, self.chance.choice(names), self.any_node(), size)

    def reduce(self):
        self.hold()
        kind = self.chance.choice(["global_sum", "global_min", "global_max"])
        shape = self.chance.choice(["int", "float", "wide", "tuple", "array", "long"])
        self.add("reduce", None, kind, shape, self.chance.getrandbits(30))

    def barrier(self):
        self.hold()
        self.add("barrier", None, self.chance.choice([None, None, 0, 0.0002]))

    def enter(self):
        if len(self.open) < 8:
            self.add("enter", None, self.fuzzy_number)
            self.open.append(self.fuzzy_number)
            self.fuzzy_number += 1

    def leave(self):
        if self.open:
            number = self.open.pop(self.chance.randrange(len(self.open)))
            self.add("leave", None, number, self.chance.choice(["wait", "done", "timed"]))

    def exchange(self):
        size = self.chance.choice([size for size in SIZES if size <= self.bound // (2 * self.nodes)])
        while self.under_way() + (size + 100) * self.nodes > self.bound:
            self.relieve()
        self.add("exchange", None, self.chance.randrange(1, self.nodes + 1), size)

    def finish(self):
        while self.open:
            self.leave()
        self.take_all()
        for dest in range(self.nodes):
            for source in range(self.nodes):
                while self.direct[source, dest]:
                    sent = self.direct[source, dest].pop(0)
                    self.add("receive", dest, "recv", source, sent.tag)
            for tag in SHARED_TAGS:
                while self.shared[dest, tag]:
                    self.shared[dest, tag].pop()
                    self.add("receive", dest, "recv", spcomm.ANY, tag)


class Mailbox:
    """The oracle of one node: what it has been sent and not received, by sender, in the order of the sends."""

    def __init__(self, schedule, node):
        self.waiting = [[] for _ in range(schedule.nodes)]
        for event in schedule.events:
            if event.kind == "send":
                _, ranks, sent = event.data
                if node in ranks:
                    self.waiting[event.node].append(sent)

    def take(self, source, tag, message_source, message_tag):
        """The message that has been received, if that may be; checks source and tag."""
        assert source in (spcomm.ANY, message_source), (source, message_source)
        waiting = self.waiting[message_source]
        index = next(i for i, sent in enumerate(waiting) if tag in (spcomm.ANY, sent.tag))
        assert waiting[index].tag == message_tag, (waiting[index], message_tag)
        return waiting.pop(index)
