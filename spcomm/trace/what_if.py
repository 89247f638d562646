# SPDX-License-Identifier: MIT
"""A recorded run in another world: its dependencies replayed with other latencies, boxes, cores and computing times.

A node's time in the trace is cut at each begin and end of a call and at each message. What it computed or did in
calls between two cuts takes its recorded time, times a factor. A wait lasts until what it waited for is there, and then
a delay: the recorded one, and the difference between the times that a message takes in the two worlds. So a world in
which nothing differs gives the recorded times, and noise of the run stays in the prediction.

Between boxes a message takes its turn on the link of its pair of boxes. Where cores are few, gateways and the server
take their share of them, and a message waits for that, too.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from spcomm.model import ModelError, loggp, settings
from spcomm.model.settings import NUMBER, TIME, WHOLE
from spcomm.text import aligned, ranks_text
from spcomm.trace import spans
from spcomm.trace.errors import TraceError
from spcomm.trace.model import Trace, Track, Wait
from spcomm.trace.steps import Step, check, steps_of
from spcomm.trace.table import seconds

SETTINGS = {
    "latency": TIME,
    "latency-inside": TIME,
    "byte": TIME,
    "nodes-per-box": WHOLE,
    "gap": TIME,
    "gateway": TIME,
    "cores": WHOLE,
    "machine-cores": WHOLE,
    "compute": NUMBER,
    "compute-*": NUMBER,
    "calls": NUMBER,
}
_SHOWN = 8  # entries of the critical path
_NOTHING = 1e-6  # µs: less is rounding

# (kind, name of a call, its line): a share of the critical path
Key = tuple[str, str, str]
Place = tuple[int, int]  # the rank of a piece, and its number


@dataclass(frozen=True, slots=True)
class Link:
    """A message takes `latency` + bytes · `byte`, in µs, and occupies the link for `gap` + bytes · `byte`."""

    latency: float
    byte: float
    gap: float = 0.0

    def time(self, size: int) -> float:
        return self.latency + size * self.byte


# Shared memory, and TCP through the server of one machine, where there is no fit.
INSIDE, BETWEEN = Link(0.6, 0.0001), Link(30.0, 0.001, 1.0)
# The processor time of a gateway, and of the server, for a message; measured in a ping-pong, with 8 bytes and 1 MiB.
# For one that finds it awake it is `gap`.
GATEWAY = Link(9.0, 0.0004, 1.0)


@dataclass(frozen=True, slots=True)
class World:
    """Where a run takes place.

    Attributes
    ----------
    boxes : the box of each node.
    inside, between : messages within a box, and from one to another.
    cores : of each box, shared by its gateway and its nodes that do something; 0: each has its own.
    machine_cores : shared by all boxes and the server, on one machine; 0: each box has its own.
    gateway : processor time of a gateway, and of the server, for a message.
    compute : factors of computing, by rank.
    calls : factor of the time in calls, without waiting.
    """

    boxes: "tuple[int, ...]"
    inside: Link = INSIDE
    between: Link = BETWEEN
    cores: int = 0
    machine_cores: int = 0
    gateway: Link = GATEWAY
    compute: "tuple[float, ...]" = ()
    calls: float = 1.0

    def message(self, source: int, dest: int, size: int) -> float:
        return (self.inside if self.boxes[source] == self.boxes[dest] else self.between).time(size)

    def processors(self) -> "dict[int, _Processors]":
        """Return the cores that each box uses; the server's have number -1. Empty: nobody waits for any."""
        if self.machine_cores:
            return dict.fromkeys((-1, *self.boxes), _Processors(self.machine_cores))
        if self.cores:
            return {box: _Processors(self.cores) for box in set(self.boxes)}
        return {}


def worlds(trace: Trace, words: str, fit: "loggp.Fit | None" = None) -> "tuple[World, World]":
    """Return the world of a trace, and the one that the settings make of it.

    Parameters
    ----------
    trace
        The run.
    words
        Settings such as ``latency=10us,nodes-per-box=4,compute=0.5``.
    fit
        Times of messages; None: round numbers.

    Raises
    ------
    TraceError
        There is no such setting, or no such node.
    """
    try:
        asked = settings.parse(words, SETTINGS, "--what-if")
        inside = INSIDE if fit is None else _link(fit, loggp.MEMORY)
        between = BETWEEN if fit is None else _link(fit, loggp.TCP)
    except ModelError as error:
        raise TraceError(str(error)) from None
    recorded = World(tuple(t.box for t in trace.firsts()), inside, between, compute=(1.0,) * trace.nodes)
    boxes = recorded.boxes
    if "nodes-per-box" in asked:
        boxes = tuple(int(rank // asked["nodes-per-box"]) for rank in range(trace.nodes))
    if "latency-inside" in asked:
        inside = replace(inside, latency=asked["latency-inside"] / 1e3)
    changes = {name: asked[name] / 1e3 for name in ("latency", "byte", "gap") if name in asked}
    if len(set(boxes)) > 1:
        between = replace(between, **changes)
    else:
        inside = replace(inside, **changes)
    compute = [asked.get("compute", 1.0)] * trace.nodes
    for name in asked:
        rank = name.removeprefix("compute-")
        if rank != name:
            if not rank.isdigit() or int(rank) >= trace.nodes:
                raise TraceError(f"--what-if has {name}=, and this run has nodes 0 to {trace.nodes - 1}")
            compute[int(rank)] *= asked[name]
    cores, machine_cores = int(asked.get("cores", 0)), int(asked.get("machine-cores", 0))
    if cores and machine_cores:
        raise TraceError(
            "--what-if has cores= of each box and machine-cores= of all boxes together; give one of them"
        )
    gateway = replace(GATEWAY, latency=asked["gateway"] / 1e3) if "gateway" in asked else GATEWAY
    calls = asked.get("calls", 1.0)
    return recorded, World(boxes, inside, between, cores, machine_cores, gateway, tuple(compute), calls)


def _link(fit: loggp.Fit, transport: str) -> Link:
    found = fit.of(transport)
    return Link(found.message_ns(0) / 1e3, found.gap_per_byte_ns.value / 1e3, found.gap_ns.value / 1e3)


# ---- what a trace says


@dataclass(slots=True)
class _Piece:
    """A part of a node's time, from one cut to the next: it is busy, waits, and is busy again."""

    rank: int
    begin: float  # in the trace, µs
    end: float
    step: Step
    key: "tuple[str, str]"  # name and line of the call
    computes: float = 0.0
    calls: float = 0.0
    waits: float = 0.0
    computes_after: float = 0.0  # after the wait
    calls_after: float = 0.0
    queued: "list[tuple[float, float]]" = field(
        default_factory=list
    )  # it waits for a core, which `cores` decide anew
    givers: "list[Place]" = field(default_factory=list)  # what it needs
    delay: float = 0.0  # from when all of that was there to the end of the wait
    is_work: bool = False

    def kind_of_wait(self) -> str:
        if not self.givers:
            return "wait"
        return "message" if self.step.message is not None else "together"


class _Spans:
    """Looks up how much of an interval some spans cover."""

    def __init__(self, found: "list[tuple[float, float]]") -> None:
        self.found = found
        self._ends = [end for _begin, end in found]

    def within(self, begin: float, end: float) -> "list[tuple[float, float]]":
        cut = []
        for at in range(bisect_right(self._ends, begin), len(self.found)):
            first, last = self.found[at]
            if first >= end:
                break
            cut.append((max(first, begin), min(last, end)))
        return cut

    def length(self, begin: float, end: float) -> float:
        return spans.length(self.within(begin, end))


def pieces_of(trace: Trace, world: World) -> "list[list[_Piece]]":
    """Cut the time of each node into pieces, for a replay in `world`.

    Raises
    ------
    TraceError
        The trace is not one of a whole run that ended well, or a node has called from several threads.
    """
    check(trace, "predicted times")
    steps = steps_of(trace, is_timed=True)
    is_shared = world.cores > 0 or world.machine_cores > 0
    found = [_pieces(track, steps[track.rank], is_shared) for track in trace.firsts()]
    places: dict[Hashable, Place] = {}
    for rank, pieces in enumerate(found):
        for number, piece in enumerate(pieces):
            if piece.step.gives is not None:
                places[piece.step.gives] = rank, number
    for pieces in found:
        for piece in pieces:
            _connect(piece, places, found)
    return found


def _pieces(track: Track, steps: "list[Step]", is_shared: bool) -> "list[_Piece]":
    computing, waiting = _Spans(track.computing()), _Spans(track.waiting())
    queued = _Spans(track.queued() if is_shared else [])
    found = []
    at = track.begin
    for step in [*steps, Step("the end", moment=track.end)]:
        end = max(step.moment, at)
        name, line = _place(step)
        piece = _Piece(track.rank, at, end, step, (name, line))
        waits = waiting.within(at, end)
        piece.waits = spans.length(waits)
        last = waits[-1][1] if waits else end
        piece.computes = computing.length(at, last)
        piece.queued = queued.within(at, end)
        piece.calls = max(0.0, last - at - piece.waits - piece.computes - queued.length(at, last))
        piece.computes_after = computing.length(last, end)
        piece.calls_after = max(0.0, end - last - piece.computes_after - queued.length(last, end))
        piece.is_work = step.call is not None and step.call.cost is not None and at >= step.call.begin
        found.append(piece)
        at = end
    return found


def _place(step: Step) -> "tuple[str, str]":
    return (step.call.name, step.call.line or "") if step.call is not None else (step.name, "")


def _connect(
    piece: _Piece,
    places: "dict[Hashable, Place]",
    found: "list[list[_Piece]]",
) -> None:
    if not piece.step.needs:
        return
    missing = next((key for key in piece.step.needs if key not in places), None)
    if missing is not None:
        raise TraceError(
            f"no predicted times: what {piece.step.name} of node {piece.rank} has waited for is not in the trace; was "
            "it edited? Run the program with --trace once more"
        )
    piece.givers = [places[key] for key in piece.step.needs]
    ready = max(found[rank][number].end for rank, number in piece.givers)
    delay = piece.end - piece.computes_after - piece.calls_after - ready
    piece.delay = delay - sum(max(0.0, end - max(begin, ready)) for begin, end in piece.queued)


def _way(piece: _Piece, world: World) -> float:
    """Return the time from when all that a step needs is there to when its node can go on."""
    if piece.step.message is not None:
        message = piece.step.message
        return world.message(message.source, message.dest, message.bytes)
    others = [rank for rank, _number in piece.givers if rank != piece.rank]
    return max((world.message(rank, piece.rank, 0) for rank in others), default=0.0)


# ---- the other world


@dataclass(slots=True)
class _Times:
    """The times of a piece in the other world."""

    begin: float
    waits_from: float = 0.0
    ready: float = 0.0  # the wait is over
    end: float = 0.0
    cause: "Place | None" = None  # the piece that it waited for


class _Processors:
    """Cores that processes share: while more of them are busy than there are cores, all are slower alike."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._now = self._done = 0.0  # work that each busy process has done since the beginning
        self._busy: list[tuple[float, int]] = []  # (`_done` at which it is over, process)

    def _rate(self) -> float:
        return min(1.0, self._cores / len(self._busy)) if self._busy else 1.0

    def _go_to(self, now: float) -> None:
        self._done += max(0.0, now - self._now) * self._rate()
        self._now = max(now, self._now)

    def add(self, now: float, process: int, work: float) -> None:
        self._go_to(now)
        heapq.heappush(self._busy, (self._done + work, process))

    def next(self) -> "float | None":
        """The time at which the first of them is done."""
        if not self._busy:
            return None
        return self._now + max(0.0, self._busy[0][0] - self._done) / self._rate()

    def pop(self, now: float) -> int:
        self._go_to(now)  # at the rate of all
        return heapq.heappop(self._busy)[1]


@dataclass(slots=True)
class _Flight:
    """A message between boxes, or the arrivals of a box at a collective operation, on its way through processes."""

    hops: "list[int]"  # the processes that it has yet to pass
    bytes: int
    share: float  # of their time that it takes: alone it is as fast as without them
    takers: "list[Place]"


class Replay:
    """The run in another world: `times` of each piece; `makespan`: when the last node is done.

    `turns` are the times for which messages waited for the link of their boxes, by the piece that sent them. Given
    those of the recorded world, the difference counts; without them this is the recorded world.
    """

    def __init__(
        self,
        pieces: "list[list[_Piece]]",
        recorded: World,
        world: World,
        turns: "dict[Place, float] | None" = None,
        free: "Key | None" = None,
    ) -> None:
        self._pieces, self._recorded, self._world, self._free = pieces, recorded, world, free
        self._recorded_turns = turns
        self.turns: dict[Place, float] = {}
        self.times: list[list[_Times]] = [[] for _rank in pieces]
        self._missing = [[len(piece.givers) for piece in own] for own in pieces]  # what is not there yet
        self._takers = self._takers_of_all()
        self._timers: list[tuple[float, int]] = []
        self._phase = [0] * len(pieces)
        self._processors = world.processors()
        self._links: dict[tuple[int, int], float] = {}  # by boxes: busy until then
        self._flights: dict[Hashable, _Flight] = {}
        self._queues: dict[int, deque[_Flight]] = {}  # of gateways and the server, which come after the ranks
        for rank, own in enumerate(pieces):
            self._start_piece(rank, own[0].begin)
        self._run()
        unfinished = [rank for rank, own in enumerate(pieces) if len(self.times[rank]) < len(own)]
        if unfinished:
            raise TraceError(
                f"no predicted times: {ranks_text(unfinished)} wait for each other in the trace; was it edited? Run "
                "the program with --trace once more"
            )
        self.makespan = max(times[-1].end for times in self.times)

    def _takers_of_all(self) -> "dict[Place, list[Place]]":
        found: dict[Place, list[Place]] = {}
        for rank, own in enumerate(self._pieces):
            for number, piece in enumerate(own):
                for giver in piece.givers:
                    found.setdefault(giver, []).append((rank, number))
        return found

    def _run(self) -> None:
        shared = list({id(one): one for one in self._processors.values()}.values())
        while True:
            found, moment = None, self._timers[0][0] if self._timers else None
            for one in shared:
                candidate = one.next()
                if candidate is not None and (moment is None or candidate < moment):
                    found, moment = one, candidate
            if moment is None:
                return
            process = heapq.heappop(self._timers)[1] if found is None else found.pop(moment)
            if process >= len(self._pieces):
                self._pass_on(process, moment)
            else:
                self._go_on(process, moment)

    def _busy(self, rank: int, now: float, work: float) -> None:
        if work > 0 and self._processors:
            self._processors[self._world.boxes[rank]].add(now, rank, work)
        else:
            heapq.heappush(self._timers, (now + work, rank))

    def _work(self, piece: _Piece, computes: float, calls: float) -> float:
        name, line = piece.key
        if self._free == ("work" if piece.is_work else "compute", name, line):
            computes = 0.0
        if self._free == ("call", name, line):
            calls = 0.0
        return computes * self._world.compute[piece.rank] + calls * self._world.calls

    def _start_piece(self, rank: int, now: float) -> None:
        piece = self._pieces[rank][len(self.times[rank])]
        self.times[rank].append(_Times(now))
        self._phase[rank] = 0
        self._busy(rank, now, self._work(piece, piece.computes, piece.calls))

    def _go_on(self, rank: int, now: float) -> None:
        number = len(self.times[rank]) - 1
        piece, times = self._pieces[rank][number], self.times[rank][number]
        self._phase[rank] += 1
        if self._phase[rank] == 1:
            times.waits_from = now
            if not self._missing[rank][number]:
                self._end_of_wait(rank, now)
        elif self._phase[rank] == 2:
            times.ready = now
            self._busy(rank, now, self._work(piece, piece.computes_after, piece.calls_after))
        else:
            times.end = now
            self._give((rank, number), now)
            if number + 1 < len(self._pieces[rank]):
                self._start_piece(rank, now)

    def _is_free(self, piece: _Piece) -> bool:
        return self._free == (piece.kind_of_wait(), *piece.key)

    def _is_waiting(self, taker: Place) -> bool:
        rank, number = taker
        return number == len(self.times[rank]) - 1 and self._phase[rank] == 1

    def _give(self, giver: Place, now: float) -> None:
        """A piece is over; those for which it is the last one that they need can go on, or wait for its message."""
        boxes, crossing = self._world.boxes, {}
        for taker in self._takers.get(giver, ()):
            rank, number = taker
            self._missing[rank][number] -= 1
            if self._missing[rank][number]:
                continue
            if boxes[rank] != boxes[giver[0]] and not self._is_free(self._pieces[rank][number]):
                crossing.setdefault(boxes[rank], []).append(taker)
            elif self._is_waiting(taker):
                self._end_of_wait(rank, now)
        for takers in crossing.values():
            self._leave(giver, takers, now)

    # ---- between boxes

    def _leave(self, giver: Place, takers: "list[Place]", now: float) -> None:
        """A message to another box takes its turn on the link, and passes the gateways if they share cores."""
        pieces = [self._pieces[rank][number] for rank, number in takers]
        world, message = self._world, pieces[0].step.message
        size = message.bytes if message is not None else 0
        if message is not None:
            pair = world.boxes[giver[0]], world.boxes[takers[0][0]]
            turn = max(now, self._links.get(pair, now))
            self._links[pair] = turn + world.between.gap + size * world.between.byte
            self.turns[giver] = turn - now
        first, gateway = len(self._pieces), world.gateway
        hops = [first + 1 + world.boxes[giver[0]], first + 1 + world.boxes[takers[0][0]]]
        if -1 in self._processors:
            hops.insert(1, first)
        alone = min(self._alone(piece, giver) for piece in pieces)
        takes = len(hops) * gateway.time(size)
        if self._processors and takes > 0 and alone > 0:
            for rank, number in takers:
                self._missing[rank][number] = 1
            self._pass(_Flight(hops, size, min(1.0, alone / takes), takers), now)
            return
        for taker in takers:
            if self._is_waiting(taker):
                self._end_of_wait(taker[0], now)

    def _pass(self, flight: _Flight, now: float) -> None:
        """It is at the next process, or at its end."""
        if flight.hops:
            process = flight.hops.pop(0)
            queue = self._queues.setdefault(process, deque())
            queue.append(flight)
            if len(queue) == 1:
                self._handle(process, flight, now, self._world.gateway.latency)
            return
        for taker in flight.takers:
            self._missing[taker[0]][taker[1]] = 0
            if self._is_waiting(taker):
                self._end_of_wait(taker[0], now)

    def _handle(self, process: int, flight: _Flight, now: float, message: float) -> None:
        work = (message + flight.bytes * self._world.gateway.byte) * flight.share
        self._processors[process - len(self._pieces) - 1].add(now, process, work)

    def _pass_on(self, process: int, now: float) -> None:
        """A gateway is done with a message; it takes the next with little more to do, for it is awake."""
        queue, gateway = self._queues[process], self._world.gateway
        flight = queue.popleft()
        if queue:
            self._handle(process, queue[0], now, min(gateway.latency, gateway.gap))
        self._pass(flight, now)

    def _end_of_wait(self, rank: int, now: float) -> None:
        """All that a node needs is there, or will be at a known time."""
        number = len(self.times[rank]) - 1
        piece, times = self._pieces[rank][number], self.times[rank][number]
        last = max(piece.givers, key=lambda giver: self.times[giver[0]][giver[1]].end, default=None)
        if last is None:
            end = times.waits_from + (0.0 if self._is_free(piece) else piece.waits)
        else:
            delay = (
                0.0
                if self._is_free(piece)
                else self._turn(piece, self.turns, last) + self._alone(piece, last)
            )
            end = max(times.waits_from, self.times[last[0]][last[1]].end + delay)
            times.cause = last if max(end, now) > times.waits_from + _NOTHING else None
        heapq.heappush(self._timers, (max(end, now) if self._processors else end, rank))

    def _turn(self, piece: _Piece, turns: "dict[Place, float]", giver: Place) -> float:
        return turns.get(giver, 0.0) if piece.step.message is not None else 0.0

    def _alone(self, piece: _Piece, giver: Place) -> float:
        """Return the time from when all is given to the end of the wait, without waiting for the link or for cores."""
        recorded = self.turns if self._recorded_turns is None else self._recorded_turns
        alone, way = piece.delay - self._turn(piece, recorded, giver), _way(piece, self._recorded)
        if not piece.waits:
            alone = min(alone, way)
        change = _way(piece, self._world) - way
        return max(alone + change, min(alone, 0.0)) if change else alone

    def critical_path(self) -> "dict[Key, tuple[float, set[int]]]":
        """Return time on the longest chain of dependencies, and the ranks, by kind and call."""
        found: dict[Key, tuple[float, set[int]]] = {}

        def add(kind: str, piece: _Piece, length: float) -> None:
            if length > 0:
                key = (kind, *piece.key)
                total, ranks = found.setdefault(key, (0.0, set()))
                found[key] = total + length, ranks | {piece.rank}

        rank = max(range(len(self.times)), key=lambda one: self.times[one][-1].end)
        number = len(self.times[rank]) - 1
        while number >= 0:
            piece, times = self._pieces[rank][number], self.times[rank][number]
            self._add_busy(add, piece, times.end - times.ready, piece.computes_after, piece.calls_after)
            if times.cause is not None:
                other = self.times[times.cause[0]][times.cause[1]].end
                add(piece.kind_of_wait(), piece, times.ready - other)
                rank, number = times.cause
                continue
            add("wait", piece, times.ready - times.waits_from)
            self._add_busy(add, piece, times.waits_from - times.begin, piece.computes, piece.calls)
            number -= 1
        return found

    def _add_busy(
        self,
        add: "Callable[[str, _Piece, float], None]",
        piece: _Piece,
        took: float,
        computes: float,
        calls: float,
    ) -> None:
        computes *= self._world.compute[piece.rank]
        calls *= self._world.calls
        share = computes / (computes + calls) if computes + calls > 0 else 0.0
        add("work" if piece.is_work else "compute", piece, took * share)
        add("call", piece, took * (1 - share))

    # ---- as a trace

    def trace(self, trace: Trace) -> Trace:
        """Return the trace of the run in this world."""
        moves = [_Move(own, times) for own, times in zip(self._pieces, self.times, strict=True)]
        edges, ends = self._places()
        tracks = []
        for track, move, own in zip(trace.firsts(), moves, self.times, strict=True):
            waits = [Wait(one.waits_from, one.ready) for one in own if one.ready > one.waits_from]
            tracks.append(
                Track(
                    track.rank,
                    track.thread,
                    self._world.boxes[track.rank],
                    track.begin,
                    own[-1].end,
                    [replace(call, begin=edges[id(call)][0], end=edges[id(call)][1]) for call in track.calls],
                    waits,
                    [replace(one, begin=move(one.begin), end=move(one.end)) for one in track.regions],
                    [replace(one, begin=move(one.begin), end=move(one.end)) for one in track.handlers],
                    track.starting,
                )
            )
        messages = []
        for message in trace.messages:
            sent, received = ends.get(id(message), (None, None))
            if sent is None and message.sent is not None:  # part of a collective operation, or never received
                sent = moves[message.source](message.sent)
            if received is None and message.received is not None:
                received = moves[message.dest](message.received)
            messages.append(replace(message, sent=sent, received=received))
        boxes = max(self._world.boxes) + 1
        return replace(trace, boxes=boxes, end=self.makespan, tracks=tracks, messages=messages, cores=0)

    def _places(self) -> "tuple[dict[int, list[float]], dict[int, tuple[float | None, float | None]]]":
        """Return (begin, end) of each call, and (sent, received) of each message, by `id`."""
        edges: dict[int, list[float]] = {}
        ends: dict[int, tuple[float | None, float | None]] = {}
        for own, times in zip(self._pieces, self.times, strict=True):
            for piece, new in zip(own, times, strict=True):
                step = piece.step
                if step.is_edge:
                    edges.setdefault(id(step.call), [new.end, new.end])[1] = new.end
                elif step.message is not None:
                    sent, received = ends.get(id(step.message), (None, None))
                    ends[id(step.message)] = (sent, new.end) if step.is_message else (new.end, received)
        return edges, ends


class _Move:
    """From the time of the trace to that of another world, along straight lines between the cuts."""

    def __init__(self, pieces: "list[_Piece]", times: "list[_Times]") -> None:
        self._old, self._new = [pieces[0].begin], [times[0].begin]
        for piece, new in zip(pieces, times, strict=True):
            ready = piece.end - piece.computes_after - piece.calls_after
            for old, moment in (
                (ready - piece.waits, new.waits_from),
                (ready, new.ready),
                (piece.end, new.end),
            ):
                self._old.append(max(old, self._old[-1]))
                self._new.append(moment)

    def __call__(self, moment: float) -> float:
        at = bisect_left(self._old, moment)
        if at == 0:
            return self._new[0]
        if at == len(self._old):
            return self._new[-1]
        begin, end = self._old[at - 1], self._old[at]
        share = (moment - begin) / (end - begin) if end > begin else 1.0
        return self._new[at - 1] + share * (self._new[at] - self._new[at - 1])


# ---- what the user sees


@dataclass(frozen=True, slots=True)
class Prediction:
    """A run in another world; times in microseconds."""

    recorded: float  # end to end
    predicted: float
    path: "list[tuple[Key, float, list[int], float]]"  # key, time on the critical path, ranks, end to end if free
    trace: Trace  # in that world
    unexplained: float  # waits without a recorded cause, all nodes; they keep their length


def predict(trace: Trace, words: str, fit: "loggp.Fit | None" = None) -> Prediction:
    """Predict a recorded run in another world.

    Parameters
    ----------
    trace
        All of a run that ended well, as `reader.read` gives it.
    words, fit
        As for `worlds`.

    Returns
    -------
    Prediction

    Raises
    ------
    TraceError
        The settings make no sense, or the trace is not that of a whole run that ended well.
    """
    recorded, world = worlds(trace, words, fit)
    pieces = pieces_of(trace, world)
    turns = Replay(pieces, recorded, recorded).turns if trace.boxes > 1 else {}
    found = Replay(pieces, recorded, world, turns)
    path = found.critical_path()
    largest = sorted(path, key=lambda key: -path[key][0])[:_SHOWN]
    rows = [
        (key, path[key][0], sorted(path[key][1]), Replay(pieces, recorded, world, turns, key).makespan)
        for key in largest
    ]
    unexplained = sum(piece.waits for own in pieces for piece in own if not piece.givers)
    return Prediction(trace.end, found.makespan, rows, found.trace(trace), unexplained)


_KINDS = {
    "compute": "computing before",
    "work": "",
    "call": "in",
    "message": "message to",
    "together": "all meet in",
    "wait": "other waiting in",
}


def text(words: str, found: Prediction) -> str:
    """Describe a prediction: both times, and the critical path."""
    lines = [f"what if {words}\n"]
    ratio = found.recorded / found.predicted if found.predicted else 1.0
    faster = f"{ratio:.2f} times as fast" if ratio >= 1 else f"{1 / ratio:.2f} times as long"
    lines.append(
        aligned(
            [
                ("recorded", seconds(found.recorded)),
                ("predicted", seconds(found.predicted), faster),
            ],
            left=(0, 2),
        )
    )
    rows = [["share", "time", "critical path", "line", "nodes", "if it took no time"]]
    for (kind, name, line), took, ranks, free in found.path:
        share = f"{100 * took / found.predicted:.1f} %" if found.predicted else "-"
        gain = f"{seconds(free)} ({_percent(free, found.predicted)})"
        rows.append([share, seconds(took), f"{_KINDS[kind]} {name}".strip(), line, _few(ranks), gain])
    lines += ["\n", aligned(rows, left=(2, 3, 4))]
    if found.unexplained > 0:
        lines.append(
            f"  {seconds(found.unexplained)} of waiting, over all nodes, has no recorded cause and keeps its length\n"
        )
    return "".join(lines)


def _few(ranks: "list[int]") -> str:
    return ranks_text(ranks).partition(" ")[2] if len(ranks) <= 8 else f"{len(ranks)} of them"


def _percent(new: float, old: float) -> str:
    return f"{100 * (new / old - 1):+.1f} %" if old else "-"
