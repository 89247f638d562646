# SPDX-License-Identifier: MIT
"""Feed: the timeline of a run that goes on, in pieces, each with what has been recorded since the last look.

A piece has the form of `page.content`, and its numbers come by the way of a trace file (`writing`, `reader`, `model`),
so a state means the same here, in the file and in the summary. Looks are bounded: of a node that records more than its
share between two looks only the latest events are read, and stand for all; of one that records more than a page could
draw the piece has shares of time in place of spans. Whoever holds the pieces can show all of them again.
"""

import itertools
import time
from collections import deque
from typing import TYPE_CHECKING

from spcomm._core import traces
from spcomm.trace import page, reader
from spcomm.trace.model import FORMAT, Trace, Track, cut
from spcomm.trace.writing import NodeRows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

_EVENTS = 4096  # of all nodes, at a look
_LEAST = 64  # of each node, at a look
_EXACT = 96  # a node with more events between two looks is shown as shares of time
_BINS = 8  # of such a look
_UNMATCHED = 512  # ends of messages that wait for the other end
_KINDS = ("calls", "waits", "regions", "queued")


class Feed:
    """Reads the nodes of one group whose memory is on this machine."""

    def __init__(
        self,
        segments: "dict[int, int]",
        places: "list[int]",
        clock_ns: "Callable[[], int]" = time.monotonic_ns,
        read: "Callable" = traces.read_after,
    ) -> None:
        """`segments`: the descriptor of each node's segment. `places`: the box of each node."""
        self._segments = segments
        self._clock_ns = clock_ns
        self._read = read
        self._places = places
        count = len(places)
        self._about = {
            "spcomm": "",
            "format": FORMAT,
            "nodes": count,
            "boxes": max(places) + 1,
            "map": places,
            "overwritten": [0] * count,
            "clock_error_us": [0.0] * (max(places) + 1),
        }
        self._most = max(_LEAST, _EVENTS // count)
        self._after = dict.fromkeys(segments, 0)
        self._begin_ns: int | None = None  # of the timeline; None: nothing has been recorded yet
        self._until = 0.0  # µs, of the last look
        self._rows: dict[int, NodeRows] = {}
        self._live: dict[int, float] = {}  # µs: when each node's life began,
        self._last: dict[int, float] = {}  # and its latest event
        self._shared_until: dict[int, float] = {}  # by track: up to where it is shown as shares
        self._unmatched: deque[dict[str, Any]] = deque(maxlen=_UNMATCHED)
        self._texts = page.Texts()
        self.shares: dict[int, list[tuple[float, float, list[float]]]] = {}
        """Since the last look, by rank: spans of time in µs, each with the parts of it that the node's first thread was
        transferring, waiting, waiting for a core and computing."""

    def look(self, ended: "Collection[int]" = ()) -> "dict[str, Any] | None":
        """Return the next piece; None: nothing has ever been recorded. `ended`: nodes whose life is over."""
        found = {
            rank: self._read(fd, rank, self._after[rank], self._most) for rank, fd in self._segments.items()
        }
        counts = {rank: count - self._after[rank] for rank, (_events, count) in found.items()}
        self._after = {rank: count for rank, (_events, count) in found.items()}
        times = [events[at].time_ns for events, _count in found.values() if events for at in (0, -1)]
        if self._begin_ns is None:
            if not times:
                return None
            self._begin_ns = min(times)
        now_ns = max([self._clock_ns(), *(moment + 1 for moment in times)])
        rows: list[dict[str, Any]] = []
        # Since when it is known what a node has done, where that is not the last look.
        missed: dict[int, float] = {}
        for rank, (events, _count) in found.items():
            node = self._rows.get(rank)
            if node is None:
                node = self._rows[rank] = NodeRows(rank, self._places, self._begin_ns)
            if counts[rank] > len(events):
                node.forget()
                missed[rank] = self._us(events[0].time_ns) if events else self._until
            self._note_life(rank, events)
            rows += node.rows(events, now_ns)
        rows += self._unmatched
        trace = reader.from_rows(rows, self._about, 0.0)
        trace.begin, trace.end = 0.0, self._us(now_ns)
        self._set_lives(trace, ended)
        known = len(self._texts.known)
        exact = {rank for rank, count in counts.items() if count <= _EXACT and rank not in missed}
        piece = {
            "until": now_ns - self._begin_ns,
            "tracks": [
                {**self._about_track(track), **self._spans(trace, track, track.rank in exact)}
                for track in trace.tracks
                if track.rank in self._live
            ],
            "messages": self._messages(trace, exact),
        }
        piece["running"] = self._add_shares(trace, piece["tracks"], exact, missed)
        piece["texts"] = self._texts.known[known:]
        self._keep_unmatched(rows)
        self._until = trace.end
        return piece

    @property
    def texts(self) -> "list[str]":
        """All names and lines so far; pieces have their numbers."""
        return self._texts.known

    def _us(self, time_ns: int) -> float:
        return max(0, time_ns - (self._begin_ns or 0)) / 1e3

    def _note_life(self, rank: int, events: "list[traces.Event]") -> None:
        if not events:
            return
        if rank not in self._live:
            start = next((event for event in events if event.kind == traces.START), events[0])
            self._live[rank] = self._us(start.time_ns)
        self._last[rank] = self._us(events[-1].time_ns)

    def _set_lives(self, trace: Trace, ended: "Collection[int]") -> None:
        for track in trace.tracks:
            track.begin = self._live.get(track.rank, trace.end)
            track.starting = track.begin if track.thread == 0 else 0.0
            track.end = self._last.get(track.rank, trace.end) if track.rank in ended else trace.end

    def _about_track(self, track: Track) -> "dict[str, Any]":
        return {
            "number": track.number,
            "name": track.name,
            "rank": track.rank,
            "thread": track.thread,
            "box": track.box,
            "begin": round(track.begin * 1000),
            "end": round(track.end * 1000),
            "starting": round(track.starting * 1000),
            "lost": 0,
        }

    def _spans(self, trace: Trace, track: Track, is_exact: bool) -> "dict[str, Any]":
        """Spans that have ended since the last look, and under `open` those that go on, which come again."""
        rows = page.rows_of(trace, track, self._texts) if is_exact else {}
        now, since = round(trace.end * 1000), round(self._until * 1000)
        least = round(self._shared_until.get(track.number, 0.0) * 1000)
        found: dict[str, Any] = {"open": {}}
        for kind in _KINDS:
            mine = [[max(row[0], least), *row[1:]] for row in rows.get(kind, ()) if row[1] > least]
            found[kind] = page.columns([row for row in mine if row[1] < now])
            found["open"][kind] = page.columns([row for row in mine if row[1] >= now])
        handling = [[max(row[0], since), row[1]] for row in rows.get("handling", ()) if row[1] > since]
        found["handling"] = page.columns(handling)
        return found

    def _messages(self, trace: Trace, exact: "set[int]") -> "list[list]":
        """As on the page, with the numbers of tracks in place of their places."""
        known = [
            message
            for message in trace.messages
            if message.sent is not None and message.received is not None
            if message.source in exact and message.dest in exact
        ]
        return page.columns(
            [
                [
                    round(m.sent * 1000), round(m.received * 1000), m.source, m.dest, m.tag, m.bytes,
                    self._texts.number(m.context), m.sender, m.receiver,
                ]
                for m in known
            ]
        )  # fmt: skip

    def _keep_unmatched(self, rows: "list[dict[str, Any]]") -> None:
        ends: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row["ph"] in ("s", "f"):
                ends.setdefault(row["id"], []).append(row)
        self._unmatched.clear()
        self._unmatched.extend(found[0] for found in ends.values() if len(found) == 1)

    def _add_shares(
        self,
        trace: Trace,
        tracks: "list[dict[str, Any]]",
        exact: "set[int]",
        missed: "dict[int, float]",
    ) -> "list[list]":
        """Give tracks that are not exact their shares of time; return how many nodes compute: [from, number]."""
        self.shares = {}
        part = cut(trace, self._until, trace.end)
        width = part.length / _BINS
        if width <= 0:
            return [[], []]
        edges = [self._until + width * at for at in range(_BINS + 1)]
        bins = list(itertools.pairwise(edges))
        numbers = {track["number"]: track for track in tracks}
        computing = [0.0] * _BINS
        for track in part.tracks:
            if track.number not in numbers:
                continue
            states = (track.transferring(), track.waiting(), track.queued(), track.computing())
            if track.rank in missed:  # the part that is known stands for all
                begin = max(missed[track.rank], self._until)
                lives = [_share([(track.begin, track.end)], low, high) for low, high in bins]
                shares = [[_share(spans, begin, track.end) * life for life in lives] for spans in states]
            else:
                shares = [[_share(spans, low, high) for low, high in bins] for spans in states]
            if track.thread == 0:
                self.shares[track.rank] = [
                    (low, high, [share[at] for share in shares]) for at, (low, high) in enumerate(bins)
                ]
                computing = [sum(pair) for pair in zip(computing, shares[3], strict=True)]
            if track.rank not in exact:
                self._shared_until[track.number] = trace.end
                rows = [
                    [round(low * 1000), round(high * 1000), *(round(share[at], 4) for share in shares[:3])]
                    for at, (low, high) in enumerate(bins)
                ]
                numbers[track.number]["shares"] = page.columns(rows)
        if exact >= {track["rank"] for track in tracks}:
            return page.columns([[round(moment * 1000), count] for moment, count in part.running()])
        return [[round(low * 1000) for low, _high in bins], [round(count, 3) for count in computing]]


def _share(found: "list[tuple[float, float]]", low: float, high: float) -> float:
    """The part of the time from `low` to `high` that these spans cover."""
    covered = sum(max(0.0, min(end, high) - max(begin, low)) for begin, end in found)
    return min(1.0, covered / (high - low)) if high > low else 0.0
