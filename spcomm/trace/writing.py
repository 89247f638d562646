# SPDX-License-Identifier: MIT
"""Writer of a trace file: `spcomm run --trace`. docs/reference/trace.md describes it.

Events are points in time (csrc/segment/spc_trace.h); the file has spans. Of a ring that was full the oldest events are
missing: a return without its call is left out, and a call without its return lasts to the end of the trace.
"""

import json
import os
from typing import TYPE_CHECKING

from spcomm._core import traces
from spcomm.text import ranks_text
from spcomm.trace import files, told
from spcomm.trace.counters import Counters
from spcomm.trace.model import CONTEXTS, FORMAT, MOST, THREADS_APART

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from spcomm._core.traces import Event

_OPENS = {traces.CALL: "call", traces.WAIT: "wait", traces.ENTER: "region", traces.HANDLE: "handler"}
_CLOSES = {traces.RETURN: "call", traces.GO_ON: "wait", traces.LEAVE: "region", traces.HANDLED: "handler"}
_COLORS = {"wait": "terrible", "region": "grey", "work": "good"}
_PIECE = 4096  # rows that are made into text at once


def write(
    path: str,
    group: "Any",
    program: str,
    version: str,
    warn: "Callable[[str], None] | None" = None,
    code: int = 0,
) -> "str | None":
    """Write the file, after all nodes of a group (`spcomm.launch.cmdline.groups`) have ended.

    Parameters
    ----------
    path
        Where to. The file is there as a whole or not at all, if that can be had (`files.replace`).
    group
        Whose nodes have ended.
    program, version
        Their description in the file.
    warn
        Is called with a sentence for each box whose part is missing.
    code
        The exit code of the run.

    Returns
    -------
    str or None
        Why it could not be written.
    """
    gathered = _Gathered(group, program, version, code)
    for sentence in gathered.missing:
        if warn is not None:
            warn(f"{sentence} in {path}")
    try:
        files.replace(path, lambda file: file.writelines(gathered.text()))
    except OSError as error:
        return f"the trace cannot be written to {path} ({error.strerror or error})"
    return None


class _Gathered:
    """Records of all nodes, and of all of them together."""

    def __init__(self, group: "Any", program: str, version: str, code: int) -> None:
        self._places = list(group.places) or [0] * group.size
        self.missing: list[str] = []
        self._missing_ranks: list[int] = []
        self._check(group)
        found = [_read(group.segments[self._places[rank]], rank) for rank in range(group.size)]
        self._events = [events for events, _lost in found]
        times = [(min(times), max(times)) for times in map(_times, self._events) if times]
        self._begin_ns = min((begin for begin, _end in times), default=0)
        self._end_ns = max((end for _begin, end in times), default=0)
        self._about = {
            "spcomm": version,
            "format": FORMAT,
            "nodes": group.size,
            "boxes": group.boxes,
            "map": self._places,
            "program": program,
            "cores": os.cpu_count(),
            "exit_code": code,
            "overwritten": [lost for _events, lost in found],
            "missing": sorted(self._missing_ranks),
            "unnamed": [sum(map(_is_unnamed, events)) for events in self._events],
            "clock_error_us": [_clock_error_us(segment) for segment in group.segments],
        }

    def _check(self, group: "Any") -> None:
        """Boxes elsewhere whose part is missing or malformed."""
        for box, segment in enumerate(group.segments):
            ranks = [rank for rank, place in enumerate(self._places) if place == box]
            why = "" if segment.fd >= 0 else segment.trace_trouble(ranks)
            if why:
                self._missing_ranks += ranks
                self.missing.append(f"box {box} {why}: the part of {ranks_text(ranks)} is missing")

    def text(self) -> "Iterator[str]":
        """Return the file in pieces: as a whole it is several times as large as the records."""
        yield '{"traceEvents": ['
        comma = ""
        for piece in _pieces(self._rows()):
            yield comma + json.dumps(piece)[1:-1]
            comma = ", "
        yield f'], "displayTimeUnit": "ns", "otherData": {json.dumps(self._about)}}}\n'

    def _rows(self) -> "Iterator[dict[str, Any]]":
        yield from _names(self._places)
        counters = Counters(self._about["overwritten"], (self._end_ns - self._begin_ns) / 1e3)
        for rank in range(len(self._places)):
            rows = NodeRows(rank, self._places, self._begin_ns).rows(self._events[rank], self._end_ns)
            self._events[rank] = []  # a long trace is large
            counters.node(rows)
            yield from rows
        yield from counters.rows()


def _times(events: "list[Event]") -> "list[int]":
    return [event.time_ns for event in events]


def _pieces(rows: "Iterator[dict[str, Any]]") -> "Iterator[list[dict[str, Any]]]":
    piece = []
    for row in rows:
        piece.append(row)
        if len(piece) == _PIECE:
            yield piece
            piece = []
    if piece:
        yield piece


def _read(segment: "Any", rank: int) -> "tuple[list[Event], int]":
    """The events of a node, which may be on another machine, and how many older ones were overwritten."""
    if segment.fd >= 0:
        return traces.read(segment.fd, rank)
    return ([], 0) if segment.traces is None else segment.traces.read(rank, segment.clock.ours)


def _is_unnamed(event: "Event") -> bool:
    return traces.NO_ROOM in (event.what, event.line)


def _clock_error_us(segment: "Any") -> float:
    """By how much times of this box may be wrong, compared with those of this machine."""
    if segment.fd >= 0 or segment.traces is None or segment.traces.times is None:
        return 0.0
    return segment.clock.error_ns(*segment.traces.times) / 1e3


def _names(places: "list[int]") -> "Iterator[dict[str, Any]]":
    for box in range(max(places) + 1):
        yield {"ph": "M", "name": "process_name", "pid": box, "args": {"name": f"box {box}"}}
    for rank, box in enumerate(places):
        yield from _track(box, rank, rank, f"node {rank}")


def _track(box: int, number: int, order: int, name: str) -> "Iterator[dict[str, Any]]":
    head = {"ph": "M", "pid": box, "tid": number}
    yield {**head, "name": "thread_name", "args": {"name": name}}
    yield {**head, "name": "thread_sort_index", "args": {"sort_index": order}}


class NodeRows:
    """Turns one node's events into rows of the file, all at once, or as they come."""

    def __init__(self, rank: int, places: "list[int]", begin_ns: int) -> None:
        self._rank = rank
        self._box = places[rank]
        self._nodes = len(places)
        self._begin_ns = begin_ns
        self._open: dict[int, list[Event]] = {}  # by thread: the events that have begun, and not ended yet
        self._tracks: dict[int, int] = {}  # by thread
        self._costs: dict[int, float] = {}  # by thread: the cost that its `work` has declared
        self._rows: list[dict[str, Any]] = []

    def forget(self) -> None:
        """Events between those seen and the next ones are missing: what had begun may have ended."""
        self._open = {thread: [] for thread in self._open}

    def rows(self, events: "list[Event]", end_ns: int) -> "list[dict[str, Any]]":
        """Return the rows of the next events. What has not ended lasts until `end_ns`, and comes again."""
        self._rows = []
        for event in events:
            if event.thread not in self._tracks:
                self._add_thread(event.thread)
            if event.kind in _OPENS:
                self._open[event.thread].append(event)
            elif event.kind in _CLOSES:
                self._close(event)
            elif event.kind == traces.START and event.time_ns > self._begin_ns:
                self._rows.append(self._starting(event))
            elif event.kind == traces.CORE:
                self._rows.append(self._core_wait(event))
            elif event.kind == traces.WORK:
                self._costs[event.thread] = told.cost(event)
            elif event.kind in (traces.SEND, traces.RECEIVE) and self._can_be(event):
                self._message(event)
        for begun in self._open.values():
            for event in begun:
                self._span(event, end_ns, {"open": True})
        return self._rows

    def _starting(self, event: "Event") -> "dict[str, Any]":
        """From the begin of the trace, when the first node was live, until this one was."""
        row = self._head("X", "starting", "starting", event)
        return {**row, "ts": 0.0, "dur": row["ts"], "cname": _COLORS["region"]}

    def _core_wait(self, event: "Event") -> "dict[str, Any]":
        """Until this event. The kernel says how long; that it was the last part of that time is assumed."""
        row = self._head("X", "core", "waiting for a core", event)
        length = min(row["ts"], event.bytes / 1e3)
        return {**row, "ts": row["ts"] - length, "dur": length, "cname": _COLORS["region"]}

    def _can_be(self, message: "Event") -> bool:
        """Else the program has written over its ring."""
        return 0 <= message.peer < self._nodes and message.bytes < MOST

    def _add_thread(self, thread: int) -> None:
        number = len(self._tracks)
        self._tracks[thread] = self._rank + THREADS_APART * number
        self._open[thread] = []
        if number:
            name = f"node {self._rank}, thread {number}"
            self._rows += _track(self._box, self._tracks[thread], self._rank, name)

    def _close(self, event: "Event") -> None:
        """Ends the last of its kind that has begun, of a region the last of its name.

        There may be none: its begin was overwritten.
        """
        begun = self._open[event.thread]
        kind = _CLOSES[event.kind]
        for at in range(len(begun) - 1, -1, -1):
            opened = begun[at]
            if _OPENS[opened.kind] == kind and (kind != "region" or opened.what == event.what):
                self._span(begun.pop(at), event.time_ns, told.ending(event))
                if opened.what == "work":
                    self._costs.pop(event.thread, None)
                return

    def _span(self, event: "Event", end_ns: int, ending: "dict[str, Any]") -> None:
        kind = _OPENS[event.kind]
        row = {
            **self._head("X", kind, event.what or kind, event),
            "dur": max(0, end_ns - event.time_ns) / 1e3,
        }
        about: dict[str, Any] = {"line": event.line} if event.line not in ("", traces.NO_ROOM) else {}
        if kind == "handler":
            about = {"from": event.peer, "tag": event.tag}
        about |= told.beginning(event, self._costs, self._nodes) if kind == "call" else {}
        about |= ending
        if about:
            row["args"] = about
        color = _COLORS.get("work" if "cost" in about else kind)
        if color:
            row["cname"] = color
        self._rows.append(row)

    def _message(self, event: "Event") -> None:
        is_sent = event.kind == traces.SEND
        ends = (self._rank, event.peer) if is_sent else (event.peer, self._rank)
        row = self._head("s" if is_sent else "f", "message", "message", event)
        # A number in hexadecimal: for other texts Perfetto draws no arrow.
        row["id"] = f"0x{ends[0]:03x}{ends[1]:03x}{event.number:08x}"
        row["args"] = {
            "from": ends[0],
            "to": ends[1],
            "tag": event.tag,
            "bytes": event.bytes,
            "context": CONTEXTS[event.context % len(CONTEXTS)],
        }
        if not is_sent:
            row["bp"] = "e"
        self._rows.append(row)

    def _head(self, phase: str, category: str, name: str, event: "Event") -> "dict[str, Any]":
        return {
            "ph": phase,
            "cat": category,
            "name": name,
            "pid": self._box,
            "tid": self._tracks[event.thread],
            "ts": (event.time_ns - self._begin_ns) / 1e3,
        }
