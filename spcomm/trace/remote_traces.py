# SPDX-License-Identifier: MIT
"""Traces of nodes on other machines: packed by the box there, unpacked by the launcher here.

A node's events travel in pieces, each compressed by itself, so that none is larger than a frame may be.
"""

import json
import reprlib
import zlib
from typing import TYPE_CHECKING

from spcomm._core import traces
from spcomm._core.traces import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PIECE = 4096  # events
_MOST_BYTES = 64 << 20  # of a piece, before it was compressed


def packed(fd: int, ranks: "list[int]") -> "Iterator[tuple[int, int, bytes]]":
    """Parts of each node: its rank, how many of its events were overwritten, events."""
    for rank in ranks:
        events, lost = traces.read(fd, rank)
        for at in range(0, len(events) or 1, _PIECE):
            text = json.dumps(events[at : at + _PIECE], separators=(",", ":"))
            yield rank, lost, zlib.compress(text.encode("ascii"), 1)


class RemoteTraces:
    """Those of one box. Nothing of it is believed before it was looked at: that machine may be broken, or not ours."""

    def __init__(self, nodes: int, most: int) -> None:
        """`nodes`: of the run. `most`: events that each of them keeps."""
        self._nodes = nodes
        self._most = most
        self._events: dict[int, list[Event]] = {}
        self._lost: dict[int, int] = {}
        self.wrong = ""  # why nothing of it is used
        self.times: tuple[int, int] | None = None  # the first and the last, by the clock there

    def add(self, rank: object, lost: object, piece: object) -> None:
        """Unpack the result of `packed`. If it is malformed, nothing of this box is used."""
        if self.wrong:
            return
        try:
            self._add(rank, lost, piece)
        except (zlib.error, TypeError, ValueError, RecursionError, KeyError) as error:
            self.forget(f"sent a malformed trace ({error})")

    def _add(self, rank: object, lost: object, piece: object) -> None:
        if (
            not _is_whole(rank, 0, self._nodes)
            or not _is_whole(lost, 0, 2**63)
            or not isinstance(piece, bytes)
        ):
            raise ValueError("of no node")
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(piece, _MOST_BYTES)
        if not unpacker.eof:
            raise ValueError("a piece is cut off, or too large")
        rows = json.loads(text)
        if not isinstance(rows, list):
            raise ValueError("events are no list")
        found = [_event(row, self._nodes) for row in rows]
        known = self._events.setdefault(rank, [])
        if len(known) + len(found) > self._most:
            raise ValueError(f"node {rank} has more than {self._most} events")
        known += found
        self._lost[rank] = lost
        times = [event.time_ns for event in found] + list(self.times or ())
        self.times = (min(times), max(times)) if times else None

    def forget(self, why: str) -> None:
        """Nothing of it is used, and nothing more is taken."""
        self.wrong = why
        self._events.clear()
        self._lost.clear()
        self.times = None

    def missing(self, ranks: "list[int]") -> "list[int]":
        """Return those ranks that have sent nothing."""
        return [rank for rank in ranks if rank not in self._lost]

    def read(self, rank: int, ours: "Callable[[int], int]") -> "tuple[list[Event], int]":
        """As `traces.read`; `ours` turns their time into ours."""
        events = self._events.get(rank, [])
        return [event._replace(time_ns=ours(event.time_ns)) for event in events], self._lost.get(rank, 0)


# The limits of an event's fields: csrc/segment/spc_trace.h.
_LIMITS = {
    "time_ns": (0, 2**63),
    "kind": (1, 2**8),
    "context": (0, 2**16),
    "peer": (-(2**31), 2**31),
    "tag": (-(2**31), 2**31),
    "thread": (0, 2**64),
    "bytes": (0, 2**63),
    "number": (0, 2**64),
}


def _event(row: object, nodes: int) -> Event:
    """`ValueError`: it is none."""
    if not isinstance(row, list) or len(row) != len(Event._fields):
        raise ValueError("an event has other fields")
    event = Event(*row)
    for name, (least, end) in _LIMITS.items():
        if not _is_whole(getattr(event, name), least, end):
            raise ValueError(f"an event whose {name} is {reprlib.repr(getattr(event, name))}")
    if event.kind in (traces.SEND, traces.RECEIVE) and not 0 <= event.peer < nodes:
        raise ValueError(f"a message from or to node {event.peer} of {nodes}")
    if not isinstance(event.what, str) or not isinstance(event.line, str):
        raise ValueError("an event whose name is not text")
    return event


def _is_whole(value: object, least: int, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < end
