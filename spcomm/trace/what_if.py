# SPDX-License-Identifier: MIT
"""A recorded run in another world: its dependencies replayed with other cores and computing times.

A node's time in the trace is cut at each begin and end of a call and at each message. What it computed or did in
calls between two cuts takes its recorded time, times a factor. A wait lasts until what it waited for is there, and then
its recorded delay. So a world in which nothing differs gives the recorded times, and noise of the run stays in the
prediction.
"""

import heapq
import re
from bisect import bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from difflib import get_close_matches

from spcomm.text import aligned, ranks_text
from spcomm.trace import spans
from spcomm.trace.errors import TraceError
from spcomm.trace.model import Trace, Track
from spcomm.trace.steps import Step, check, steps_of
from spcomm.trace.table import seconds

SETTINGS = "cores", "compute", "compute-R", "calls"
_FLIGHT_US = 0.5, 30.0  # of a message that nobody waited for: within a box, and to another
_SHOWN = 8  # entries of the critical path
_NOTHING = 1e-6  # µs: less is rounding
_NUMBER, _WHOLE = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+"), re.compile(r"0*[1-9][0-9]{0,8}")

# (kind, name of a call, its line): a share of the critical path
Key = tuple[str, str, str]
Place = tuple[int, int]  # the rank of a piece, and its number


@dataclass(frozen=True, slots=True)
class World:
    """Where a run takes place.

    Attributes
    ----------
    compute : factors of computing, by rank.
    cores : of each box, shared by its nodes that do something; 0: each has its own.
    calls : factor of the time in calls, without waiting.
    """

    compute: "tuple[float, ...]"
    cores: int = 0
    calls: float = 1.0


def world_of(trace: Trace, words: str) -> World:
    """Return the world that settings such as ``cores=2,compute=0.5,compute-3=2`` make.

    Raises
    ------
    TraceError
        There is no such setting, or no such node.
    """
    asked: dict[str, float] = {}
    for part in words.split(","):
        name, has_value, text = (word.strip() for word in part.partition("="))
        kind = "compute-R" if name.startswith("compute-") else name
        if not has_value or kind not in SETTINGS:
            near = get_close_matches(name, SETTINGS, 1)
            hint = f"did you mean {near[0]}=?" if near and kind not in SETTINGS else ""
            raise TraceError(
                f"--what-if has {part.strip()!r}, not a setting such as cores=2; "
                + (hint or f"there are {', '.join(SETTINGS)}")
            )
        if name in asked:
            raise TraceError(f"--what-if has {name} twice; give it once")
        if not (_WHOLE if kind == "cores" else _NUMBER).fullmatch(text):
            takes = "a whole number from 1 on" if kind == "cores" else "a number such as 0.5"
            raise TraceError(f"--what-if has {name}={text}, and {name} takes {takes}")
        asked[name] = float(text)
    compute = [asked.get("compute", 1.0)] * trace.nodes
    for name in asked:
        rank = name.removeprefix("compute-")
        if rank != name:
            if not rank.isdecimal() or int(rank) >= trace.nodes:
                raise TraceError(f"--what-if has {name}=, and this run has nodes 0 to {trace.nodes - 1}")
            compute[int(rank)] *= asked[name]
    return World(tuple(compute), int(asked.get("cores", 0)), asked.get("calls", 1.0))


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
    found = [_pieces(track, steps[track.rank], world.cores > 0) for track in trace.firsts()]
    places: dict[Hashable, Place] = {}
    for rank, pieces in enumerate(found):
        for number, piece in enumerate(pieces):
            if piece.step.gives is not None:
                places[piece.step.gives] = rank, number
    for pieces in found:
        for piece in pieces:
            _connect(piece, places, found, trace)
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
    trace: Trace,
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
    if not piece.waits:  # all was there before, for how long nobody knows
        piece.delay = min(piece.delay, _flight(piece, trace))


def _flight(piece: _Piece, trace: Trace) -> float:
    boxes = [track.box for track in trace.firsts()]
    message = piece.step.message
    sources = [message.source] if message is not None else [rank for rank, _number in piece.givers]
    others = [rank for rank in sources if rank != piece.rank or message is not None]
    return max((_FLIGHT_US[boxes[rank] != boxes[piece.rank]] for rank in others), default=0.0)


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


class Replay:
    """The run in another world: `times` of each piece; `makespan`: when the last node is done.

    `free` is a share of the critical path that takes no time.
    """

    def __init__(
        self,
        pieces: "list[list[_Piece]]",
        boxes: "list[int]",
        world: World,
        free: "Key | None" = None,
    ) -> None:
        self._pieces, self._boxes, self._world, self._free = pieces, boxes, world, free
        self.times: list[list[_Times]] = [[] for _rank in pieces]
        self._missing = [[len(piece.givers) for piece in own] for own in pieces]  # what is not there yet
        self._takers = self._takers_of_all()
        self._timers: list[tuple[float, int]] = []
        self._phase = [0] * len(pieces)
        self._processors = {box: _Processors(world.cores) for box in set(boxes)} if world.cores else {}
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
        while True:
            found, moment = None, self._timers[0][0] if self._timers else None
            for one in self._processors.values():
                candidate = one.next()
                if candidate is not None and (moment is None or candidate < moment):
                    found, moment = one, candidate
            if moment is None:
                return
            self._go_on(heapq.heappop(self._timers)[1] if found is None else found.pop(moment), moment)

    def _busy(self, rank: int, now: float, work: float) -> None:
        if work > 0 and self._processors:
            self._processors[self._boxes[rank]].add(now, rank, work)
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
        """A piece is over; those for which it is the last one that they need can go on."""
        for rank, number in self._takers.get(giver, ()):
            self._missing[rank][number] -= 1
            if not self._missing[rank][number] and self._is_waiting((rank, number)):
                self._end_of_wait(rank, now)

    def _end_of_wait(self, rank: int, now: float) -> None:
        """All that a node needs is there, or will be at a known time."""
        number = len(self.times[rank]) - 1
        piece, times = self._pieces[rank][number], self.times[rank][number]
        last = max(piece.givers, key=lambda giver: self.times[giver[0]][giver[1]].end, default=None)
        if last is None:
            end = times.waits_from + (0.0 if self._is_free(piece) else piece.waits)
        else:
            delay = 0.0 if self._is_free(piece) else piece.delay
            end = max(times.waits_from, self.times[last[0]][last[1]].end + delay)
            times.cause = last if max(end, now) > times.waits_from + _NOTHING else None
        heapq.heappush(self._timers, (max(end, now) if self._processors else end, rank))

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


# ---- what the user sees


@dataclass(frozen=True, slots=True)
class Prediction:
    """A run in another world; times in microseconds."""

    recorded: float  # end to end
    predicted: float
    path: "list[tuple[Key, float, list[int], float]]"  # key, time on the critical path, ranks, end to end if free
    unexplained: float  # waits without a recorded cause, all nodes; they keep their length


def predict(trace: Trace, words: str) -> Prediction:
    """Predict a recorded run in another world.

    Parameters
    ----------
    trace
        All of a run that ended well, as `reader.read` gives it.
    words
        As for `world_of`.

    Returns
    -------
    Prediction

    Raises
    ------
    TraceError
        The settings make no sense, or the trace is not that of a whole run that ended well.
    """
    world = world_of(trace, words)
    pieces = pieces_of(trace, world)
    boxes = [track.box for track in trace.firsts()]
    found = Replay(pieces, boxes, world)
    path = found.critical_path()
    largest = sorted(path, key=lambda key: -path[key][0])[:_SHOWN]
    rows = [
        (key, path[key][0], sorted(path[key][1]), Replay(pieces, boxes, world, key).makespan)
        for key in largest
    ]
    unexplained = sum(piece.waits for own in pieces for piece in own if not piece.givers)
    return Prediction(trace.end, found.makespan, rows, unexplained)


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
