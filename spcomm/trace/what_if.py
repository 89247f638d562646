# SPDX-License-Identifier: MIT
"""A recorded run in another world: its dependencies replayed with other cores and computing times.

A node's time is cut at each begin and end of a call, at each message, and where a wait ends. What it computed or did in
calls between two cuts takes its recorded time, times a factor. A wait lasts until what it waited for is there, and then
its recorded delay. So a world without a difference gives the recorded times, and noise stays in the prediction.
"""

import heapq
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import inf
from typing import NamedTuple

from spcomm.text import aligned, ranks_text
from spcomm.trace.errors import TraceError
from spcomm.trace.model import Trace, Track
from spcomm.trace.spans import length, within
from spcomm.trace.steps import Step, check, edited, not_there, steps_of
from spcomm.trace.table import seconds

_TIMES = "predicted times"
_FLIGHT_US = 0.5, 30.0  # of a message that nobody waited for: within a box, and to another
_SHOWN = 8  # entries of the critical path
_NOTHING = 1e-6  # µs: less is rounding
_COUNT = re.compile(r"0*[1-9][0-9]{0,8}"), "a whole number from 1 on"
_FACTOR = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+"), "a number such as 0.5"
_SETTINGS = {"cores": _COUNT, "compute": _FACTOR, "compute-R": _FACTOR, "calls": _FACTOR}

# (kind, name of a call, its line): a share of the critical path
Key = tuple[str, str, str]
Place = tuple[int, int]  # the rank of a piece, and its number
Span = tuple[float, float]


class World(NamedTuple):
    """Where a run takes place."""

    compute: "list[float]"  # factors of computing, by rank
    cores: int  # of each box, shared by its nodes that do something; 0: each has its own
    calls: float  # factor of the time in calls, without waiting


def world_of(trace: Trace, words: str) -> World:
    """Return the world that settings such as ``cores=2,compute=0.5,compute-3=2`` make; else raise `TraceError`."""
    asked: dict[str, float] = {}
    for part in words.split(","):
        name, has_value, text = (word.strip() for word in part.partition("="))
        kind = "compute-R" if name.startswith("compute-") else name
        if not has_value or kind not in _SETTINGS:
            near = get_close_matches(name, _SETTINGS, 1) if kind not in _SETTINGS else []
            hint = f"did you mean {near[0]}=?" if near else f"there are {', '.join(_SETTINGS)}"
            raise TraceError(f"--what-if has {part.strip()!r}, not a setting such as cores=2; {hint}")
        if name in asked:
            raise TraceError(f"--what-if has {name} twice; give it once")
        form, takes = _SETTINGS[kind]
        if not form.fullmatch(text):
            raise TraceError(f"--what-if has {name}={text}, and {name} takes {takes}")
        asked[name] = float(text)
    cores, calls = int(asked.pop("cores", 0)), asked.pop("calls", 1.0)
    compute = [asked.pop("compute", 1.0)] * trace.nodes
    for name, factor in asked.items():
        rank = name.removeprefix("compute-")
        if not rank.isdecimal() or int(rank) >= trace.nodes:
            raise TraceError(f"--what-if has {name}=, and this run has nodes 0 to {trace.nodes - 1}")
        compute[int(rank)] *= factor
    return World(compute, cores, calls)


@dataclass(slots=True)
class _Piece:
    """A part of a node's time: it is busy, and then it may wait."""

    step: Step
    begin: float  # in the trace, µs
    end: float
    busy: "list[tuple[Key, float]]"  # how long, in the other world
    wait: Key
    waits: float  # how long, in the trace
    givers: "list[Place]" = field(default_factory=list)  # what it waits for,
    delay: float = 0.0  # and how long from when all of that is there


def pieces_of(trace: Trace, world: World) -> "list[list[_Piece]]":
    """Cut the time of each node into pieces; raise `TraceError` if the trace is not one of a whole, good run."""
    check(trace, _TIMES)
    tracks = trace.firsts()
    queued = [track.queued() if world.cores else [] for track in tracks]  # the replay makes its own
    found = [_cut(*one, world) for one in zip(tracks, steps_of(trace), queued, strict=True)]
    every = [((rank, number), piece) for rank, own in enumerate(found) for number, piece in enumerate(own)]
    places = {piece.step.gives: place for place, piece in every}  # of a step's last piece
    for (rank, _number), piece in every:
        kind, needs = piece.wait[0], piece.step.needs
        if kind == "wait":
            continue
        if any(key not in places for key in needs):
            raise not_there(_TIMES, piece.step, rank)
        piece.givers = [places[key] for key in needs]
        ready = max(found[giver][number].end for giver, number in piece.givers)
        delay = piece.end - ready - length(within(queued[rank], max(ready, piece.begin), piece.end))
        if not piece.waits:  # all was there before, for how long nobody knows
            others = [giver for giver, _number in piece.givers if giver != rank or kind == "message"]
            flights = (_FLIGHT_US[tracks[other].box != tracks[rank].box] for other in others)
            delay = min(delay, max(flights, default=0.0))
        piece.delay = max(delay, 0.0) if world.cores else delay  # shared, they go on in the order of time
    return found


def _cut(track: Track, steps: "list[Step]", queued: "list[Span]", world: World) -> "list[_Piece]":
    """Cut a node's time at its steps, and at the end of a wait before them."""
    computing, waiting = track.computing(), track.waiting()
    found: list[_Piece] = []
    begin = track.begin
    for step in [*steps, Step("the end", moment=track.end)]:
        call = step.call
        place = (call.name, call.line or "") if call is not None else (step.name, "")
        wait = "wait" if not step.needs else "together" if step.message is None else "message"
        step_end = max(step.moment, begin)
        waits = within(waiting, begin, step_end)
        for end in dict.fromkeys((waits[-1][1] if waits else step_end, step_end)):
            waited, computed, idle = (length(within(one, begin, end)) for one in (waiting, computing, queued))
            called = max(0.0, end - begin - waited - computed - idle)
            is_work = call is not None and call.cost is not None and begin >= call.begin
            busy = [
                (("work" if is_work else "compute", *place), computed * world.compute[track.rank]),
                (("call", *place), called * world.calls),
            ]
            found.append(_Piece(step, begin, end, busy, (wait, *place), waited))
            begin, wait = end, "wait"
    return found


class _Times(NamedTuple):
    """The times of a piece in the other world."""

    begin: float
    waits_from: float
    end: float
    cause: "Place | None"  # the piece that it waited for


class _Processors:
    """Cores that processes share: while more of them are busy than there are cores, all are slower alike."""

    def __init__(self, cores: float) -> None:
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

    def next(self) -> float:
        """Return the time at which the first of them is done."""
        return self._now + max(0.0, self._busy[0][0] - self._done) / self._rate() if self._busy else inf

    def pop(self) -> "tuple[float, int]":
        self._go_to(self.next())  # at the rate of all
        return self._now, heapq.heappop(self._busy)[1]


class Replay:
    """The run in another world, where the share `free` of its critical path takes no time; `makespan`: its end."""

    def __init__(
        self, pieces: "list[list[_Piece]]", boxes: "list[int]", world: World, free: "Key | None" = None
    ) -> None:
        self._pieces, self._free = pieces, free
        self._times: list[list[_Times]] = [[] for _rank in pieces]
        self._takers: dict[Place, list[int]] = {}  # ranks that cannot go on without it
        self._timers = _Processors(inf)
        shared = {box: _Processors(world.cores) for box in boxes} if world.cores else {}
        lives = [self._life(rank, shared.get(box)) for rank, box in enumerate(boxes)]
        for rank, own in enumerate(pieces):
            self._timers.add(0.0, rank, own[0].begin)
        while (first := min((self._timers, *shared.values()), key=_Processors.next)).next() < inf:
            self._now, rank = first.pop()
            next(lives[rank], None)
        unfinished = [rank for rank, own in enumerate(pieces) if len(self._times[rank]) < len(own)]
        if unfinished:
            raise edited(_TIMES, f"{ranks_text(unfinished)} wait for each other in the trace")
        self.makespan = max(times[-1].end for times in self._times)

    def _life(self, rank: int, processors: "_Processors | None") -> "Iterator[None]":
        """Take a node through its pieces; without processors to share, only others hold it up."""
        end = self._pieces[rank][0].begin
        for number, piece in enumerate(self._pieces[rank]):
            begin, cause = end, None
            work = sum(took for key, took in piece.busy if key != self._free)
            waits_from = begin + work
            if processors and work > 0:
                processors.add(begin, rank, work)
                yield
                waits_from = self._now
            for giver in piece.givers:
                while len(self._times[giver[0]]) <= giver[1]:
                    self._takers.setdefault(giver, []).append(rank)
                    yield
            waits, delay = (0.0, 0.0) if piece.wait == self._free else (piece.waits, piece.delay)
            end = waits_from + waits
            if piece.givers:
                last = max(piece.givers, key=self._end_of)
                ready = self._end_of(last)
                end = max(waits_from, ready + delay)
                cause = last if max(end, ready) > waits_from + _NOTHING else None
            if processors and end > self._now:
                self._timers.add(self._now, rank, end - self._now)
                yield
            self._times[rank].append(_Times(begin, waits_from, end, cause))
            for taker in self._takers.pop((rank, number), ()):
                self._timers.add(self._now, taker, 0.0)

    def _end_of(self, place: Place) -> float:
        return self._times[place[0]][place[1]].end

    def critical_path(self) -> "Iterator[tuple[Key, int, float]]":
        """Yield the longest chain of dependencies, its end first: what it was, of which rank, and how long it took."""
        rank = max(range(len(self._times)), key=lambda one: self._times[one][-1].end)
        number = len(self._times[rank]) - 1
        while number >= 0:
            piece, times = self._pieces[rank][number], self._times[rank][number]
            yield (
                piece.wait,
                rank,
                times.end - (self._end_of(times.cause) if times.cause else times.waits_from),
            )
            if times.cause:
                rank, number = times.cause
                continue
            work = sum(took for _key, took in piece.busy)
            for key, took in piece.busy if work else ():
                yield key, rank, (times.waits_from - times.begin) * took / work
            number -= 1


class Prediction(NamedTuple):
    """A run in another world; times in microseconds."""

    recorded: float  # end to end
    predicted: float
    path: "list[tuple[Key, float, list[int], float]]"  # key, time on the critical path, ranks, end to end if free
    unexplained: float  # waits without a recorded cause, all nodes; they keep their length


def predict(trace: Trace, words: str) -> Prediction:
    """Predict a recorded run in the world of `words`; what `world_of` and `pieces_of` refuse is a `TraceError`."""
    world = world_of(trace, words)
    pieces = pieces_of(trace, world)
    boxes = [track.box for track in trace.firsts()]
    found = Replay(pieces, boxes, world)
    took: dict[Key, float] = {}
    ranks: dict[Key, set[int]] = {}
    for key, rank, one in found.critical_path():
        if one > _NOTHING:
            took[key] = took.get(key, 0.0) + one
            ranks.setdefault(key, set()).add(rank)
    largest = sorted(took, key=lambda key: -took[key])[:_SHOWN]
    free = {key: Replay(pieces, boxes, world, key).makespan for key in largest}
    path = [(key, took[key], sorted(ranks[key]), free[key]) for key in largest]
    unexplained = sum(piece.waits for own in pieces for piece in own if not piece.givers)
    return Prediction(trace.end, found.makespan, path, unexplained)


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
    ratio = found.recorded / found.predicted if found.predicted else 1.0
    faster = f"{ratio:.2f} times as fast" if ratio >= 1 else f"{1 / ratio:.2f} times as long"
    times = [("recorded", seconds(found.recorded)), ("predicted", seconds(found.predicted), faster)]
    rows = [["share", "time", "critical path", "line", "nodes", "if it took no time"]]
    whole = found.predicted or inf
    for (kind, name, line), took, ranks, free in found.path:
        share, gain = 100 * took / whole, 100 * (free / whole - 1)
        nodes = ranks_text(ranks).partition(" ")[2] if len(ranks) <= 8 else f"{len(ranks)} of them"
        what = f"{_KINDS[kind]} {name}".strip()
        rows.append([f"{share:.1f} %", seconds(took), what, line, nodes, f"{seconds(free)} ({gain:+.1f} %)"])
    lines = [f"what if {words}\n", aligned(times, left=(0, 2)), "\n", aligned(rows, left=(2, 3, 4))]
    if found.unexplained > 0:
        what = f"{seconds(found.unexplained)} of waiting, over all nodes,"
        lines.append(f"  {what} has no recorded cause and keeps its length\n")
    return "".join(lines)
