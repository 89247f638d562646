# SPDX-License-Identifier: MIT
"""What the nodes of a run have recorded, as a file: `spcomm run --trace`. docs/reference/trace.md describes it.

Events are points in time (csrc/segment/spc_trace.h); the file has spans. Of a ring that was full the oldest events are
missing: a return without its call is left out, and a call without its return lasts to the end of the trace.
"""

import json
import os

from spcomm._core import traces
from spcomm.trace import told
from spcomm.trace.counters import counters
from spcomm.trace.model import THREADS_APART

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from spcomm._core.traces import Event

FORMAT = 1
_OPENS = {traces.CALL: "call", traces.WAIT: "wait", traces.ENTER: "region"}
_CLOSES = {traces.RETURN: "call", traces.GO_ON: "wait", traces.LEAVE: "region"}
_CONTEXTS = ("user", "collective", "coordinated", "handled")  # by what is left of a context's number
_COLORS = {"wait": "terrible", "region": "grey", "work": "good"}


def write(path: str, group: "Any", program: str, version: str, code: int = 0) -> "str | None":
    """Write the file, after all nodes of a group (`spcomm.launch.groups`) have ended. Returns why it could not be.

    `code` is the exit code of the run.
    """
    places = list(group.places) or [0] * group.size
    found = [_read(group.segments[places[rank]], rank) for rank in range(group.size)]
    times = [event.time_ns for events, _lost in found for event in events]
    begin, end = min(times, default=0), max(times, default=0)
    rows: list[dict[str, Any]] = list(_names(places))
    for rank, (events, _lost) in enumerate(found):
        rows += _Node(rank, places[rank], begin, end).rows(events)
    rows += counters(rows, group.size)
    about = {
        "spcomm": version,
        "format": FORMAT,
        "nodes": group.size,
        "boxes": group.boxes,
        "map": places,
        "program": os.path.basename(program),
        "cores": os.cpu_count(),
        "exit_code": code,
        "overwritten": [lost for _events, lost in found],
        "clock_error_us": [_clock_error_us(segment) for segment in group.segments],
    }
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": rows, "displayTimeUnit": "ns", "otherData": about}, file)
    except OSError as error:
        return f"the trace cannot be written to {path} ({error.strerror})"
    return None


def _read(segment: "Any", rank: int) -> "tuple[list[Event], int]":
    """The events of a node, which may be on another machine, and how many older ones were overwritten."""
    if segment.fd >= 0:
        return traces.read(segment.fd, rank)
    return ([], 0) if segment.traces is None else segment.traces.read(rank, segment.clock.ours)


def _clock_error_us(segment: "Any") -> float:
    """By how much times of this box may be wrong, compared with those of this machine."""
    return 0.0 if segment.fd >= 0 else segment.clock.error_ns / 1e3


def _names(places: "list[int]") -> "Iterator[dict[str, Any]]":
    for box in range(max(places) + 1):
        yield {"ph": "M", "name": "process_name", "pid": box, "args": {"name": f"box {box}"}}
    for rank, box in enumerate(places):
        yield from _track(box, rank, rank, f"node {rank}")


def _track(box: int, number: int, order: int, name: str) -> "Iterator[dict[str, Any]]":
    head = {"ph": "M", "pid": box, "tid": number}
    yield {**head, "name": "thread_name", "args": {"name": name}}
    yield {**head, "name": "thread_sort_index", "args": {"sort_index": order}}


class _Node:
    """Turns one node's events into rows of the file."""

    def __init__(self, rank: int, box: int, begin_ns: int, end_ns: int) -> None:
        self._rank = rank
        self._box = box
        self._begin_ns = begin_ns
        self._end_ns = end_ns
        self._open: dict[int, list[Event]] = {}  # by thread: what has begun, and not ended yet
        self._tracks: dict[int, int] = {}  # by thread
        self._costs: dict[int, float] = {}  # by thread: what its `work` has declared
        self._rows: list[dict[str, Any]] = []

    def rows(self, events: "list[Event]") -> "list[dict[str, Any]]":
        for event in events:
            if event.thread not in self._tracks:
                self._add_thread(event.thread)
            if event.kind in _OPENS:
                self._open[event.thread].append(event)
            elif event.kind in _CLOSES:
                self._close(event)
            elif event.kind == traces.WORK:
                self._costs[event.thread] = told.cost(event)
            else:
                self._message(event)
        for begun in self._open.values():
            for event in begun:
                self._span(event, self._end_ns, {"open": True})
        return self._rows

    def _add_thread(self, thread: int) -> None:
        number = len(self._tracks)
        self._tracks[thread] = self._rank + THREADS_APART * number
        self._open[thread] = []
        if number:
            name = f"node {self._rank}, thread {number}"
            self._rows += _track(self._box, self._tracks[thread], self._rank, name)

    def _close(self, event: "Event") -> None:
        """Ends the last of its kind that has begun; what began after that and has not ended never will: it was lost."""
        begun = self._open[event.thread]
        kind = _CLOSES[event.kind]
        for at in range(len(begun) - 1, -1, -1):
            if _OPENS[begun[at].kind] == kind:
                self._span(begun.pop(at), event.time_ns, told.ending(event))
                return

    def _span(self, event: "Event", end_ns: int, ending: "dict[str, Any]") -> None:
        kind = _OPENS[event.kind]
        row = {
            **self._head("X", kind, event.what or kind, event),
            "dur": (end_ns - event.time_ns) / 1e3,
        }
        about: dict[str, Any] = {"line": event.line} if event.line else {}
        about |= told.beginning(event, self._costs) if kind == "call" else {}
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
        row["id"] = f"{ends[0]}>{ends[1]}#{event.number}"
        row["args"] = {
            "from": ends[0],
            "to": ends[1],
            "tag": event.tag,
            "bytes": event.bytes,
            "context": _CONTEXTS[event.context % len(_CONTEXTS)],
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
