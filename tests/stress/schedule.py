# SPDX-License-Identifier: MIT
"""Random work for all nodes: the language of schedules, and what draws them.

A schedule is one list of events, the same on every node because it is drawn from a seed. Carried out one after
the other it is a correct sequential program: nothing is received before it was sent, and what is under way never
exceeds a bound. So the nodes, each doing its own part of the list in order, cannot deadlock as long as the buffers
(queues included) hold the bound. The beginning of a schedule does not depend on its length.

What a receive finds is defined by the order of each sender alone:

* tags below SHARED are received from a named source, by tag, or with any tag while that source has sent nothing
  else: always the first such message that is left of that source;
* tags from SHARED on are received from any source: the first one left of whichever source it is, as many in
  all as were sent;
* now and then nodes take all that is left, whatever it is.

With `across`, so many fuzzy barriers are open across every collective, and nodes are late now and then: what one box is
told of another may be ahead of what it knows.

The oracle (oracle.py) says what must come of the events. The players are play.py, in Python, and play.c, in C
(tests/interfaces/programs), which carries out what is `plain`: bytes and whole numbers.
"""

import random
from dataclasses import dataclass, field
from typing import NamedTuple

ANY = -101  # source or tag, as C programs have it
SHARED = 100
DIRECT_TAGS = (0, 1, 2, 7)
SHARED_TAGS = (100, 101)
NEVER = 55  # no message has this tag
SIZES = (0, 1, 8, 40, 41, 60, 200, 500, 1000, 1100, 3000, 8192, 8200, 20_000, 70_000, 300_000)
CYCLE_SIZES = (0, 1, 30, 60, 100, 800, 3000, 8192, 9000, 30_000)
MOVE_SIZES = (0, 1, 2, 30, 60, 300, 500, 505, 511, 600, 1021, 1024, 4000, 4096, 9000, 20_000)
# Elements: none, some, and around what lies in a message, in a step of the reducer, and where slices begin.
LENGTHS = (
    0, 1, 2, 3, 5, 7, 8, 9, 63, 511, 513, 1023, 1025, 2047, 2049, 4095, 4097, 8191, 8192, 8193, 16_385, 33_000,
)  # fmt: skip
MOVES = ("bcast", "gather", "allgather", "scatter", "alltoall")
REDUCTIONS = ("allreduce", "reduce", "scan")
OTHERS = ("allreduce", "reduce", "exscan", "reduce_scatter", "bcast", "alltoall")
OPERATORS = ("SUM", "PROD", "MIN", "MAX", "BXOR", "latest", "composed", "whole", "failing")
ALGORITHMS = (None, "tree", "flat", "slices", "binary-swap")


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
    plain: bool


class Cycle(NamedTuple):
    """Coordinated messages: (source, destinations, size), in the order of each source; and a slow node, or None."""

    sends: list
    slow: int | None


@dataclass
class Schedule:
    """Draws events; `events` is the result.

    `bound`: bytes under way at once, all pairs of nodes together. `across`: fuzzy barriers open across collectives.
    `plain`: only what both players have.
    """

    seed: int
    nodes: int
    length: int
    across: int
    bound: int
    plain: bool = False
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
            self.send: 10, self.receive: 8, self.receive_shared: 4, self.take_all: 1, self.barrier: 1, self.enter: 2,
            self.leave: 1, self.reduce_numbers: 2, self.reduce_arrays: 2,
        }  # fmt: skip
        if not self.plain:
            kinds |= {
                self.time_out: 1, self.poll: 1, self.exchange: 1, self.move: 2, self.cycles: 0.7,
            }  # fmt: skip
        if self.across and not self.plain:
            kinds |= {self.part: 0.5, self.move: 4, self.reduce_arrays: 4}
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
        size = self.size(SIZES)
        self.make_room((size + 100) * len(ranks))
        sent = Sent(self.numbers[source], tag, size, self.plain)
        self.numbers[source] += 1
        self.add("send", source, dest, ranks, sent)
        for rank in ranks:
            if tag >= SHARED:
                self.shared[rank, tag].append(size)
                self.spoiled[source, rank] = True
            else:
                self.direct[source, rank].append(sent)

    def size(self, sizes):
        """One of those that all nodes can send at once."""
        return self.chance.choice([size for size in sizes if size <= self.bound // (2 * self.nodes)])

    def make_room(self, size):
        """Receive what is under way, until there is room for so many bytes."""
        while self.under_way() + size > self.bound and self.under_way():
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
                tag = ANY
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
            self.add("receive", dest, self.how(), ANY, tag)

    def take_all(self):
        """Some nodes take what is left, whatever it is. A barrier keeps what is sent later out of it."""
        for dest in self.chance.sample(range(self.nodes), self.chance.randint(1, self.nodes)):
            count = sum(len(self.shared[dest, tag]) for tag in SHARED_TAGS)
            count += sum(len(self.direct[source, dest]) for source in range(self.nodes))
            for _ in range(count):
                self.add("receive", dest, self.how(), ANY, ANY)
            for source in range(self.nodes):
                self.direct[source, dest].clear()
                self.spoiled[source, dest] = False
            for tag in SHARED_TAGS:
                self.shared[dest, tag].clear()
        self.add("barrier", None, None)

    def how(self):
        return self.chance.choice(["recv", "recv", "recv_message", "try", "probe", "timed", "view"])

    def time_out(self):
        source = self.chance.choice([ANY, self.any_node()])
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

    def reduce_numbers(self):
        self.hold()
        kind = self.chance.choice(["global_sum", "global_min", "global_max"])
        shape = self.chance.choice(["int", "float", "wide", "tuple", "array", "long"])
        self.add("reduce_numbers", None, kind, "int" if self.plain else shape, self.chance.getrandbits(30))

    def reduce_arrays(self):
        """Sums of whole numbers, or any of the rest that there is."""
        self.hold()
        shape, root = (self.chance.choice(LENGTHS),), self.any_node()
        operation, name, dtype, algorithm = self.chance.choice(REDUCTIONS), "SUM", "i8", None
        if not self.plain:
            operation = self.chance.choice(REDUCTIONS + OTHERS)
            name, dtype = (
                self.chance.choice(OPERATORS),
                self.chance.choice(["f8", "f4", "f2", "i8", "u1", "i4"]),
            )
            algorithm = self.chance.choice(ALGORITHMS)
            if self.chance.random() < 0.3:
                shape = tuple(map(self.chance.randint, (0, 0, 1), (5, 40, 3)))
        if name == "BXOR" and dtype[0] == "f":
            name = "SUM"
        is_tree = operation in ("allreduce", "reduce")
        if (name in ("whole", "failing") and not is_tree) or (name, operation) == (
            "composed",
            "reduce_scatter",
        ):
            name = "latest"
        if name == "whole" and algorithm in ("slices", "binary-swap"):
            algorithm = "tree"
        self.add("reduce_arrays", None, len(self.events), operation, name, dtype, shape, root, algorithm)

    def move(self):
        """Data of all sizes; now and then a node cannot give any."""
        self.hold()
        sizes = [self.size(MOVE_SIZES) for _ in range(self.chance.randint(1, self.nodes))]
        self.make_room(sum(sizes) * self.nodes)
        culprit = self.any_node() if self.chance.random() < 0.2 else None
        self.add("move", None, len(self.events), self.chance.choice(MOVES), self.any_node(), sizes, culprit)

    def cycles(self):
        """A few in a row, with as much as there is room for."""
        self.hold()
        room, made = self.bound - self.under_way(), []
        for _ in range(self.chance.randint(1, 4)):
            sends = []
            for _ in range(self.chance.randrange(12)):
                targets = sorted(set(self.destinations(0)[1]) if self.chance.random() < 0.9 else [])
                size = self.size(CYCLE_SIZES)
                room -= (size + 100) * len(targets) + 100 * self.nodes
                if room > 0:
                    sends.append((self.any_node(), targets, size))
            slow = self.any_node() if self.chance.random() < 0.5 else None
            made.append(Cycle(sends, slow))
        self.add("cycles", None, made, self.chance.random() < 0.5)

    def part(self):
        """A part of the nodes that comes and goes, with barriers of its own."""
        self.hold()
        if self.chance.random() < 0.5:
            entered = [self.chance.randrange(9) for _ in range(self.nodes)]
            self.add("leave_early", None, entered, [self.chance.random() < 0.5 for _ in entered])
        else:
            self.add("part", None, self.any_node())

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
        size, distance = self.size(SIZES), self.chance.randrange(1, self.nodes + 1)
        self.make_room((size + 100) * self.nodes)
        self.add("exchange", None, distance, size, distance < self.nodes and self.chance.random() < 0.5)

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
                    self.add("receive", dest, "recv", ANY, tag)
