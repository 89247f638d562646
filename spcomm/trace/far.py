# SPDX-License-Identifier: MIT
"""Traces of nodes on other machines: packed by the box there, unpacked by the launcher here.

A node's events travel in pieces, each compressed by itself, so that none is larger than a frame may be.
"""

import json
import zlib

from spcomm._core import traces
from spcomm._core.traces import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PIECE = 4096  # events
_MOST_BYTES = 64 << 20  # of a piece, before it was compressed


def packed(fd: int, ranks: "list[int]") -> "Iterator[tuple[int, int, bytes]]":
    """Of each node, in pieces: its rank, how many of its events were overwritten, events."""
    for rank in ranks:
        events, lost = traces.read(fd, rank)
        for at in range(0, len(events) or 1, _PIECE):
            text = json.dumps(events[at : at + _PIECE], separators=(",", ":"))
            yield rank, lost, zlib.compress(text.encode("ascii"), 1)


class FarTraces:
    """Those of one box."""

    def __init__(self) -> None:
        self._events: dict[int, list[Event]] = {}
        self._lost: dict[int, int] = {}

    def add(self, rank: int, lost: int, piece: bytes) -> None:
        """What `packed` has made. `ValueError`: it makes no sense."""
        try:
            text = zlib.decompressobj().decompress(piece, _MOST_BYTES)
            found = [Event(*row) for row in json.loads(text)]
        except (zlib.error, TypeError) as error:
            raise ValueError(f"sends a trace that makes no sense ({error})") from None
        self._lost[rank] = lost
        self._events.setdefault(rank, []).extend(found)

    def read(self, rank: int, ours: "Callable[[int], int]") -> "tuple[list[Event], int]":
        """As `traces.read`; `ours` turns their time into ours."""
        events = self._events.get(rank, [])
        return [event._replace(time_ns=ours(event.time_ns)) for event in events], self._lost.get(rank, 0)
