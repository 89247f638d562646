# SPDX-License-Identifier: MIT
"""A recorded run in another world: its dependencies replayed with other latencies, boxes, cores and computing times.

A node's time in the trace is cut at each begin and end of a call and at each message. What it computed or did in
calls between two cuts takes its recorded time, times a factor. A wait lasts until what it waited for is there, and then
a delay: the recorded one, and the difference between the times that a message takes in the two worlds. So a world in
which nothing differs gives the recorded times, and noise of the run stays in the prediction.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from spcomm.model import loggp, settings
from spcomm.model.errors import ModelError
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
    "cores": WHOLE,
    "compute": NUMBER,
    "compute-*": NUMBER,
    "calls": NUMBER,
}
_SHOWN = 8  # entries of the critical path
_NOTHING = 1e-6  # µs: less is rounding

# (kind, name of a call, its line): a share of the critical path
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Link:
    """The time of a message, in microseconds: `latency` + bytes · `byte`."""

    latency: float
    byte: float

    def time(self, size: int) -> float:
        return self.latency + size * self.byte


# Shared memory, and TCP through the server of one machine, where there is no fit.
INSIDE, BETWEEN = Link(0.6, 0.0001), Link(30.0, 0.001)


@dataclass(frozen=True, slots=True)
class World:
    """Where a run takes place.

    Attributes
    ----------
    boxes : the box of each node.
    inside, between : messages within a box, and from one to another.
    cores : of each box, shared by its nodes that do something; 0: each node has its own.
    compute : factors of computing, by rank.
    calls : factor of the time in calls, without waiting.
    """

    boxes: "tuple[int, ...]"
    inside: Link = INSIDE
    between: Link = BETWEEN
    cores: int = 0
    compute: "tuple[float, ...]" = ()
    calls: float = 1.0

    def message(self, source: int, dest: int, size: int) -> float:
        return (self.inside if self.boxes[source] == self.boxes[dest] else self.between).time(size)


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
    changes = {name: asked[name] / 1e3 for name in ("latency", "byte") if name in asked}
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
    cores = int(asked.get("cores", 0))
    return recorded, World(boxes, inside, between, cores, tuple(compute), asked.get("calls", 1.0))


def _link(fit: loggp.Fit, transport: str) -> Link:
    found = fit.of(transport)
    return Link(found.message_ns(0) / 1e3, found.gap_per_byte_ns.value / 1e3)


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
    givers: "list[tuple[int, int]]" = field(default_factory=list)  # rank and piece of what it needs
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


def pieces_of(trace: Trace, recorded: World) -> "list[list[_Piece]]":
    """Cut the time of each node into pieces.

    Raises
    ------
    TraceError
        The trace is not one of a whole run that ended well, or a node has called from several threads.
    """
    check(trace, "predicted times")
    steps = steps_of(trace, is_timed=True)
    found = [_pieces(track, steps[track.rank]) for track in trace.firsts()]
    places: dict[Hashable, tuple[int, int]] = {}
    for rank, pieces in enumerate(found):
        for number, piece in enumerate(pieces):
            if piece.step.gives is not None:
                places[piece.step.gives] = rank, number
    for pieces in found:
        for piece in pieces:
            _connect(piece, places, found, recorded)
    return found


def _pieces(track: Track, steps: "list[Step]") -> "list[_Piece]":
    computing, waiting = _Spans(track.computing()), _Spans(track.waiting())
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
        piece.calls = max(0.0, last - at - piece.waits - piece.computes)
        piece.computes_after = computing.length(last, end)
        piece.calls_after = max(0.0, end - last - piece.computes_after)
        piece.is_work = step.call is not None and step.call.cost is not None and at >= step.call.begin
        found.append(piece)
        at = end
    return found


def _place(step: Step) -> "tuple[str, str]":
    return (step.call.name, step.call.line or "") if step.call is not None else (step.name, "")


def _connect(
    piece: _Piece,
    places: "dict[Hashable, tuple[int, int]]",
    found: "list[list[_Piece]]",
    recorded: World,
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
    piece.delay = delay if piece.waits else min(delay, _way(piece, recorded))


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
    cause: "tuple[int, int] | None" = None  # the piece that it waited for


class _Box:
    """Cores that nodes share: while more of them are busy than there are cores, all are slower alike."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._now = self._done = 0.0  # work that each busy node has done since the beginning
        self._busy: list[tuple[float, int]] = []  # (`_done` at which it is over, rank)

    def _rate(self) -> float:
        return min(1.0, self._cores / len(self._busy)) if self._busy else 1.0

    def _go_to(self, now: float) -> None:
        self._done += max(0.0, now - self._now) * self._rate()
        self._now = max(now, self._now)

    def add(self, now: float, rank: int, work: float) -> None:
        self._go_to(now)
        heapq.heappush(self._busy, (self._done + work, rank))

    def next(self) -> "float | None":
        """The time at which the first of them is done."""
        if not self._busy:
            return None
        return self._now + max(0.0, self._busy[0][0] - self._done) / self._rate()

    def pop(self, now: float) -> int:
        self._go_to(now)  # at the rate of all
        return heapq.heappop(self._busy)[1]


class Replay:
    """The run in another world: `times` of each piece; `makespan`: when the last node is done."""

    def __init__(
        self,
        pieces: "list[list[_Piece]]",
        recorded: World,
        world: World,
        free: "Key | None" = None,
    ) -> None:
        self._pieces, self._recorded, self._world, self._free = pieces, recorded, world, free
        self.times: list[list[_Times]] = [[] for _rank in pieces]
        self._missing = [0] * len(pieces)  # how many of the things that it needs are not there
        self._waiting: dict[tuple[int, int], list[int]] = {}
        self._timers: list[tuple[float, int]] = []
        self._phase = [0] * len(pieces)
        self._boxes = {box: _Box(world.cores) for box in set(world.boxes)} if world.cores else {}
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

    def _run(self) -> None:
        while True:
            box, moment = None, self._timers[0][0] if self._timers else None
            for other in self._boxes.values():
                candidate = other.next()
                if candidate is not None and (moment is None or candidate < moment):
                    box, moment = other, candidate
            if moment is None:
                return
            rank = heapq.heappop(self._timers)[1] if box is None else box.pop(moment)
            self._go_on(rank, moment)

    def _busy(self, rank: int, now: float, work: float) -> None:
        if work > 0 and self._boxes:
            self._boxes[self._world.boxes[rank]].add(now, rank, work)
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
            missing = {giver for giver in piece.givers if not self._is_done(giver)}
            self._missing[rank] = len(missing)
            for giver in missing:
                self._waiting.setdefault(giver, []).append(rank)
            if not missing:
                self._end_of_wait(rank, now)
        elif self._phase[rank] == 2:
            times.ready = now
            self._busy(rank, now, self._work(piece, piece.computes_after, piece.calls_after))
        else:
            times.end = now
            if number + 1 < len(self._pieces[rank]):
                self._start_piece(rank, now)
            for other in self._waiting.pop((rank, number), ()):
                self._missing[other] -= 1
                if not self._missing[other]:
                    self._end_of_wait(other, now)

    def _is_done(self, giver: "tuple[int, int]") -> bool:
        """Whether a piece is over: it is not the last that its node has begun, or is in its last phase."""
        rank, number = giver
        begun = len(self.times[rank]) - 1
        return number < begun or (number == begun and self._phase[rank] > 2)

    def _end_of_wait(self, rank: int, now: float) -> None:
        """All that a node needs is there, or will be at a known time."""
        number = len(self.times[rank]) - 1
        piece, times = self._pieces[rank][number], self.times[rank][number]
        is_free = self._free == (piece.kind_of_wait(), *piece.key)
        if not piece.givers:
            end = times.waits_from + (0.0 if is_free else piece.waits)
        else:
            last = max(piece.givers, key=lambda giver: self.times[giver[0]][giver[1]].end)
            ready = self.times[last[0]][last[1]].end
            delay = 0.0 if is_free else piece.delay
            change = _way(piece, self._world) - _way(piece, self._recorded)
            if change and not is_free:
                delay = max(delay + change, min(delay, 0.0))
            end = max(times.waits_from, ready + delay)
            times.cause = last if end > times.waits_from + _NOTHING else None
        heapq.heappush(self._timers, (max(end, now) if self._boxes else end, rank))

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
    pieces = pieces_of(trace, recorded)
    found = Replay(pieces, recorded, world)
    path = found.critical_path()
    largest = sorted(path, key=lambda key: -path[key][0])[:_SHOWN]
    rows = [
        (key, path[key][0], sorted(path[key][1]), Replay(pieces, recorded, world, key).makespan)
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
