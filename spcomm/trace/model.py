# SPDX-License-Identifier: MIT
"""A trace in memory: the events of each thread of each node, and the messages. Times are microseconds from its begin.

At every moment of its life a thread waits for a core (it is ready, and none is free), computes (it is in no call of
spcomm, in `work`, or in a handler that a call runs), waits (for another node, within a call) or transfers (is in a call
and does not wait: it copies, packs, looks). A node's life begins when `startup` has made it a node. Until then it is
starting, which counts nowhere: the trace begins when the first node is live.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spcomm.trace import spans

FORMAT = 1  # of the file; one with another number is refused
MOST = 2**63  # all numbers in it are smaller: bytes, or microseconds (300,000 years)
CONTEXTS = (
    "user",
    "collective",
    "coordinated",
    "handled",
)  # of messages, by the remainder of a context's number
THREADS_APART = 1024  # the file numbers the tracks of a node: rank, rank + 1024, rank + 2048, ...


class Part(NamedTuple):
    """Description of a communicator that is a part of the run; number and first identify it."""

    number: int
    first: int  # its node 0, as a rank in the run
    size: int
    rank: int  # of the caller, in it


@dataclass(slots=True)
class Call:
    """An operation of spcomm, from its begin to its return."""

    name: str
    begin: float
    end: float
    line: "str | None" = None  # of the program, "heat.py:12"
    open: bool = False  # it had not returned when the trace ended
    cost: "float | None" = None  # of `work`: the units that it declared
    part: "Part | None" = None  # of a communicator that `split` has made
    number: int = 0  # the root; or which fuzzy barrier, from 1 on; 0: not told
    ended: str = ""  # "left" by a timeout, or "raised"


@dataclass(slots=True)
class Wait:
    """A part of a call in which the thread had to wait."""

    begin: float
    end: float
    line: "str | None" = None  # that of the innermost call around it


@dataclass(slots=True)
class Region:
    """A part of the program that has a name."""

    name: str
    begin: float
    end: float


@dataclass(slots=True)
class Message:
    """A message; None for an end that is not in the trace: never received, or overwritten."""

    source: int
    dest: int
    tag: int
    bytes: int
    context: str  # "user": the program's own; else the operation that it belongs to
    sent: "float | None" = None
    received: "float | None" = None
    sender: "int | None" = None  # number of the track on which it was sent,
    receiver: "int | None" = None  # and of that on which it was received


@dataclass(slots=True)
class Track:
    """One thread of a node: its life, and its events, by time; no event is outside of it."""

    rank: int
    thread: int  # 0: the node's first
    box: int
    begin: float = 0.0
    end: float = 0.0
    calls: "list[Call]" = field(default_factory=list)
    waits: "list[Wait]" = field(default_factory=list)
    regions: "list[Region]" = field(default_factory=list)
    handlers: "list[Region]" = field(default_factory=list)  # of messages: the program's, run within calls
    starting: float = 0.0  # µs before `begin` in which it was starting
    core_waits: "list[Region]" = field(default_factory=list)  # spans in which it was ready, without a core

    @property
    def number(self) -> int:
        """The track's number in the file."""
        return self.rank + THREADS_APART * self.thread

    @property
    def name(self) -> str:
        """`3`, or `3, thread 1`."""
        return f"{self.rank}, thread {self.thread}" if self.thread else str(self.rank)

    def queued(self) -> "list[tuple[float, float]]":
        """Spans in which it waits for a core, whatever it was doing."""
        return spans.union((core.begin, core.end) for core in self.core_waits)

    def waiting(self) -> "list[tuple[float, float]]":
        """Spans in which it waits for others."""
        return spans.without(self._in_waits(), self.queued())

    def _in_waits(self) -> "list[tuple[float, float]]":
        return spans.union((wait.begin, wait.end) for wait in self.waits)

    def calling(self) -> "list[tuple[float, float]]":
        """Spans in which it is in a call, and neither in declared work nor in a handler that the call runs."""
        calls = [(call.begin, call.end) for call in self.calls if call.cost is None]
        work = [(call.begin, call.end) for call in self.calls if call.cost is not None]
        handlers = [(handler.begin, handler.end) for handler in self.handlers]
        return spans.innermost(calls, [*work, *handlers]) if work or handlers else spans.union(calls)

    def transferring(self) -> "list[tuple[float, float]]":
        """Spans in which it is in a call and does not wait."""
        return spans.without(self.calling(), spans.union((*self._in_waits(), *self.queued())))

    def computing(self) -> "list[tuple[float, float]]":
        """Spans in which it is in no call, in `work`, or in a handler, and has a core."""
        busy = spans.union((*self.calling(), *self._in_waits(), *self.queued()))
        return spans.without(spans.union([(self.begin, self.end)]), busy)


@dataclass(slots=True)
class Trace:
    """All of it. `begin` and `end` are those of the part that is looked at."""

    program: str
    version: str  # of the spcomm that wrote it
    nodes: int
    boxes: int
    begin: float
    end: float
    tracks: "list[Track]"  # by rank, then by thread; every node has its first
    messages: "list[Message]"  # by the time at which they were sent
    overwritten: "list[int]"  # events lost, by rank
    clock_error: "list[float]"  # µs, by box
    cores: int = 0  # of the machine on which it was started; 0: not known
    exit_code: int = 0  # of the run
    min_bytes: int = 0  # shorter messages are left out
    missing: "list[int]" = field(default_factory=list)  # ranks that sent nothing
    unnamed: int = 0  # events whose name or line found no room
    is_part: bool = False  # something before `begin` or after `end` is left out

    @property
    def length(self) -> float:
        """Microseconds."""
        return self.end - self.begin

    def firsts(self) -> "list[Track]":
        """The tracks of the nodes' first threads, by rank."""
        return [track for track in self.tracks if track.thread == 0]

    def running(self) -> "list[tuple[float, int]]":
        """The number of nodes that compute: (from when on, how many), from the beginning to the end."""
        found = spans.steps(track.computing() for track in self.firsts())
        if not found or found[0][0] > self.begin:
            found.insert(0, (self.begin, 0))
        return found

    def crossing(self) -> "list[Message]":
        """Messages from one box to another."""
        if self.boxes == 1:
            return []
        box = {track.rank: track.box for track in self.tracks}
        return [message for message in self.messages if box[message.source] != box[message.dest]]

    def within(self, moment: "float | None") -> bool:
        """Whether something happened, and in the part that is looked at."""
        return moment is not None and self.begin <= moment <= self.end


def cut(trace: Trace, begin: "float | None" = None, end: "float | None" = None, min_bytes: int = 0) -> Trace:
    """A part of a trace.

    Parameters
    ----------
    trace
        It stays as it is; calls and messages of the part are its own.
    begin, end
        Microseconds from the begin of the trace; None: its begin, its end. Calls in progress at these moments are
        cut off there. They must lie within the trace, `begin` before `end`.
    min_bytes
        Messages shorter than that are left out.

    Returns
    -------
    Trace
    """
    first = trace.begin if begin is None else begin
    last = trace.end if end is None else end

    def kept(item: "Call | Wait | Region") -> bool:
        return (item.begin < last and item.end > first) or first <= item.begin == item.end <= last

    def crossing(message: Message) -> bool:
        ends = [moment for moment in (message.sent, message.received) if moment is not None]
        return min(ends) <= last and max(ends) >= first

    def part(track: Track) -> Track:
        return Track(
            track.rank,
            track.thread,
            track.box,
            min(max(track.begin, first), last),
            max(min(track.end, last), first),
            [_clipped(call, first, last) for call in track.calls if kept(call)],
            [_clipped(wait, first, last) for wait in track.waits if kept(wait)],
            [_clipped(region, first, last) for region in track.regions if kept(region)],
            [_clipped(handler, first, last) for handler in track.handlers if kept(handler)],
            max(0.0, min(track.begin, last) - max(track.begin - track.starting, first)),
            [_clipped(core, first, last) for core in track.core_waits if kept(core)],
        )

    messages = [m for m in trace.messages if m.bytes >= min_bytes and crossing(m)]
    tracks = [part(track) for track in trace.tracks]
    return replace(
        trace,
        begin=first,
        end=last,
        tracks=tracks,
        messages=messages,
        min_bytes=min_bytes,
        is_part=trace.is_part or first > trace.begin or last < trace.end,
    )


def _clipped(item: "Call | Wait | Region", first: float, last: float) -> "Call | Wait | Region":
    if item.begin >= first and item.end <= last:
        return item
    return replace(item, begin=max(item.begin, first), end=min(item.end, last))
