# SPDX-License-Identifier: MIT
"""A second simulator, slow and plain, for the tests of `spcomm.model.simulate`.

It shares nothing with the engine but the rules: programs are generators, every processor takes one piece of work after
another from a queue, and each end of work is an event of its own. The engine computes these moments ahead.
"""

import heapq
from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import count, product

MASK = 2**64 - 1


def mix(word):
    word = (word + 0x9E3779B97F4A7C15) & MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def draw(seed, who, number, limit):
    word = mix((mix((seed + who) & MASK) + number) & MASK)
    return ((word >> 32) * limit) >> 32


# ---- what a node does: generators of ("send", dest, channel, bytes), ("receive", channel) and
# ("receive", channel, bytes), which combines; "server" is the node's server


def children(rank, nodes):
    """The children of r in the binomial tree: r + 1, r + 2, r + 4, … below its lowest bit."""
    distance = 1
    while rank + distance < nodes and not (rank and rank & distance):
        yield rank + distance
        distance *= 2


def lowest_bit(rank):
    return rank & -rank


def tree_broadcast(run, rank, channel=0):
    if rank:
        yield "receive", channel
    for child in reversed(list(children(rank, run.nodes))):
        yield "send", child, channel, run.bytes


def tree_barrier(run, rank):
    for _child in children(rank, run.nodes):
        yield "receive", 0, run.bytes
    if rank:
        yield "send", rank - lowest_bit(rank), 0, run.bytes
    yield from tree_broadcast(run, rank, channel=1)


def dissemination(run, rank):
    distance = 1
    for number in count():
        if distance >= run.nodes:
            break
        yield "send", (rank + distance) % run.nodes, number, run.bytes
        yield "receive", number
        distance *= 2


def binary_swap(run, rank):
    rounds = run.nodes.bit_length() - 1
    inside = 2**rounds
    first, last = 2 * rounds, 2 * rounds + 1
    if rank >= inside:
        yield "send", rank - inside, first, run.bytes
        yield "receive", last
        return
    has_partner = rank + inside < run.nodes
    if has_partner:
        yield "receive", first, run.bytes
    for number in range(rounds):
        half = run.bytes // 2 ** (number + 1)
        yield "send", rank ^ 2**number, number, half
        yield "receive", number, half
    for step, number in enumerate(reversed(range(rounds)), rounds):
        yield "send", rank ^ 2**number, step, run.bytes // 2 ** (number + 1)
        yield "receive", step
    if has_partner:
        yield "send", rank + inside, last, run.bytes


def ring(run, rank):
    n = run.nodes
    parts = [len(range(part, run.bytes, n)) for part in range(n)]
    for step in range(2 * (n - 1)):
        yield "send", (rank + 1) % n, 0, parts[(rank - step) % n]
        received = parts[(rank - 1 - step) % n]
        yield ("receive", 0, received) if step < n - 1 else ("receive", 0)


def all_to_all(run, rank):
    for distance in range(1, run.nodes):
        yield "send", (rank + distance) % run.nodes, 0, run.bytes
        yield "receive", 0


def neighbors(run, rank):
    places = list(product(*map(range, run.torus)))  # the last dimension varies first
    ways = [(dimension, step) for dimension in (3, 2, 1, 0) if run.torus[dimension] > 1 for step in (1, -1)]
    for way, (dimension, step) in enumerate(ways):
        peer = list(places[rank])
        peer[dimension] = (peer[dimension] + step) % run.torus[dimension]
        yield "send", places.index(tuple(peer)), way, run.bytes
    for way in range(len(ways)):
        yield "receive", way


def multicast(run, rank):
    if rank:
        yield "receive", 0
    for child in range(rank * run.fanout + 1, min((rank + 1) * run.fanout + 1, run.nodes)):
        yield "send", child, 0, run.bytes


def server_barrier(run, _rank):
    yield "send", "server", "arrive", run.bytes
    yield "receive", 0


def server_broadcast(run, rank):
    if run.nodes > 1:
        yield ("receive", 0) if rank else ("send", "server", "copy", run.bytes)


def unbalanced_dest(run, rank, number):
    if draw(~run.seed & MASK, rank, 2 * number, 100) < run.hot_percent:
        return 0
    return draw(~run.seed & MASK, rank, 2 * number + 1, run.nodes)


def unbalanced(run, rank):
    for number in range(run.rounds):
        yield "send", unbalanced_dest(run, rank, number), 0, run.bytes
    dests = Counter(unbalanced_dest(run, r, number) for r in range(run.nodes) for number in range(run.rounds))
    for _message in range(dests[rank]):
        yield "receive", 0


PROGRAMS = [
    server_barrier,
    server_broadcast,
    tree_barrier,
    tree_broadcast,
    dissemination,
    binary_swap,
    ring,
    all_to_all,
    neighbors,
    unbalanced,
    multicast,
]


@dataclass
class Message:
    sender: int
    number: int
    at: int
    dest: int
    bytes: int
    kind: str  # "to node", "arrive", "release", "copy"
    channel: int = 0


@dataclass
class Place:
    """A node or a server."""

    name: int
    numbers: "count" = field(default_factory=count)
    draws: "count" = field(default_factory=count)
    out_free: int = 0
    in_free: int = 0


@dataclass
class Node(Place):
    actions: object = None
    parent: "int | None" = None
    waiting: "tuple | None" = None
    there: Counter = field(default_factory=Counter)
    finished: "int | None" = None


@dataclass
class Server(Place):
    parent: "int | None" = None
    children: list = field(default_factory=list)
    below: set = field(default_factory=set)  # the nodes
    inbox: deque = field(default_factory=deque)
    is_busy: bool = False
    arrived: int = 0
    busy: int = 0


class Slow:
    """A simulation; the arguments are those of `engine.run`."""

    def __init__(self, program, nodes, radix, rounds, bytes, fanout, hot_percent, seed, torus, costs, noise):
        self.nodes, self.rounds, self.bytes, self.fanout = nodes, rounds, bytes, fanout
        self.hot_percent, self.seed, self.torus, self.noise = hot_percent, seed, torus, noise
        names = "send receive latency gap server_receive server_send byte combine server_byte"
        self.cost = dict(zip(names.split(), costs, strict=True))
        self.program = PROGRAMS[program]
        self.heap, self.serial, self.log = [], count(), []
        self.places = [Node(rank, actions=self.repeated(rank)) for rank in range(nodes)]
        if radix:
            self.build_servers(radix)

    def repeated(self, rank):
        for _round in range(1 if self.program is unbalanced else self.rounds):
            yield from self.program(self, rank)

    def build_servers(self, radix):
        level = self.places[:]
        while True:
            above = []
            for first in range(0, len(level), radix):
                server = Server(len(self.places))
                self.places.append(server)
                for child in level[first : first + radix]:
                    child.parent = server.name
                    server.children.append(child.name)
                    server.below |= child.below if isinstance(child, Server) else {child.name}
                above.append(server)
            level = above
            if len(level) == 1:
                return

    # ---- events: those of messages in the order of (time, sender, number), which the engine must log alike;
    # ends of work after them

    def at(self, time, message):
        heapq.heappush(self.heap, (time, 0, message[0].sender, message[0].number, message))

    def after(self, time, action):
        heapq.heappush(self.heap, (time, 1, next(self.serial), 0, action))

    def run(self):
        for rank in range(self.nodes):
            self.after(0, lambda rank=rank: self.go_on(self.places[rank]))
        while self.heap:
            self.now, is_work, _sender, _number, what = heapq.heappop(self.heap)
            if is_work:
                what()
            else:
                self.arrive(*what)
        assert all(node.finished is not None for node in self.places[: self.nodes])
        return self

    def per_byte(self, which, bytes):
        return (self.cost[which] * bytes + 500) // 1000

    def work(self, place, length):
        if not self.noise:
            return length
        series = self.noise[place.name % len(self.noise)]
        return length + series[draw(self.seed, place.name, next(place.draws), len(series))]

    def transmit(self, place, to, dest, bytes, kind, channel):
        transfer = self.per_byte("byte", bytes)
        leaves = max(self.now, place.out_free)
        place.out_free = leaves + self.cost["gap"] + transfer
        message = Message(place.name, next(place.numbers), to, dest, bytes, kind, channel)
        self.at(leaves + self.cost["latency"] + transfer, (message, False))

    def arrive(self, message, waited):
        self.log.append((self.now, message.at, message.sender, message.number, waited))
        place = self.places[message.at]
        if not waited:
            turn = max(self.now, place.in_free)
            place.in_free = turn + self.cost["gap"] + self.per_byte("byte", message.bytes)
            if turn > self.now:
                self.at(turn, (message, True))
                return
        if isinstance(place, Server):
            place.inbox.append(message)
            self.serve(place)
        else:
            place.there[message.channel] += 1
            if place.waiting is not None and place.there[place.waiting[1]]:
                self.receive(place, place.waiting)

    # ---- nodes

    def go_on(self, node):
        action = next(node.actions, None)
        if action is None:
            node.finished = self.now
        elif action[0] == "send":
            self.after(self.now + self.work(node, self.cost["send"]), lambda: self.sent(node, *action[1:]))
        elif node.there[action[1]]:
            self.receive(node, action)
        else:
            node.waiting = action

    def sent(self, node, dest, channel, bytes):
        if dest == "server":
            self.transmit(node, node.parent, node.name, bytes, channel, 0)
        else:
            to = node.parent if len(self.places) > self.nodes else dest
            self.transmit(node, to, dest, bytes, "to node", channel)
        self.go_on(node)

    def receive(self, node, action):
        node.waiting = None
        node.there[action[1]] -= 1
        combining = self.per_byte("combine", action[2]) if len(action) == 3 else 0
        self.after(self.now + self.work(node, self.cost["receive"]) + combining, lambda: self.go_on(node))

    # ---- servers

    def serve(self, server):
        if server.is_busy or not server.inbox:
            return
        server.is_busy = True
        message = server.inbox.popleft()
        took = self.work(server, self.cost["server_receive"] + self.per_byte("server_byte", message.bytes))
        if message.kind == "arrive":
            took += self.per_byte("combine", message.bytes)
        server.busy += took
        self.after(
            self.now + took, lambda: self.pass_on(server, message, deque(self.targets(server, message)))
        )

    def targets(self, server, message):
        """(to whom, kind) of the messages that this one leads to."""
        if message.kind == "to node":
            below = [c for c in server.children if message.dest in self.nodes_below(c)]
            return [(below[0] if below else server.parent, "to node")]
        if message.kind == "arrive":
            server.arrived += 1
            if server.arrived < len(server.children):
                return []
            server.arrived = 0
            if server.parent is not None:
                return [(server.parent, "arrive")]
            return [(child, "release") for child in server.children]
        up = [server.parent] if message.kind == "copy" and server.parent is not None else []
        return [(place, message.kind) for place in up + server.children if place != message.sender]

    def nodes_below(self, name):
        place = self.places[name]
        return place.below if isinstance(place, Server) else {name}

    def pass_on(self, server, message, targets):
        if not targets:
            server.is_busy = False
            self.serve(server)
            return
        to, kind = targets.popleft()
        took = self.work(server, self.cost["server_send"] + self.per_byte("server_byte", message.bytes))
        server.busy += took

        def sent():
            self.transmit(server, to, message.dest, message.bytes, kind, message.channel)
            self.pass_on(server, message, targets)

        self.after(self.now + took, sent)
