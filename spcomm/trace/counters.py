# SPDX-License-Identifier: MIT
"""Two curves for viewers that draw counters: how many nodes compute, and how many messages are under way."""

from typing import TYPE_CHECKING

from spcomm.trace import spans
from spcomm.trace.told import is_work

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Counters:
    """Looks at the rows of the file as they go by. Of a node only its first thread counts, whose track has its rank."""

    def __init__(self, lost: "list[int]", end: float) -> None:
        """`lost`: how many events of each node were overwritten. `end`: of the trace, which begins at 0."""
        self._lost = lost
        self._end = end
        self._computing: list[list[tuple[float, float]]] = []  # of each node
        self._sent: dict[str, tuple[float, int]] = {}  # not received yet: when, to whom
        self._received: dict[str, float] = {}  # its sending has not been seen yet
        self._under_way: list[tuple[float, float]] = []
        self._begins: list[float] = []  # of the known part of each node

    def node(self, rows: "list[dict[str, Any]]") -> None:
        """All rows of the next node."""
        rank = len(self._begins)
        calls, computing, queued, times = [], [], [], []
        live = 0.0
        for row in rows:
            if row["ph"] == "X":
                times += [row["ts"], row["ts"] + row["dur"]]
                if row["cat"] == "starting":
                    live = row["ts"] + row["dur"]
                elif row["cat"] == "core":
                    queued += [(row["ts"], row["ts"] + row["dur"])] if row["tid"] == rank else []
                elif row["tid"] == rank and row["cat"] != "region":
                    found = computing if row["cat"] == "handler" or is_work(row) else calls
                    found.append((row["ts"], row["ts"] + row["dur"]))
            elif row["ph"] in ("s", "f"):
                times.append(row["ts"])
                self._message(row)
        self._begins.append(min(times, default=self._end))
        # As in the reader: between its start and its first call it computes, unless that is unknown. It ends with its
        # last event.
        begin = self._begins[rank] if self._lost[rank] else live
        life = spans.union([(begin, max(times, default=0.0))])
        busy = spans.union((*spans.innermost(calls, computing), *queued))
        self._computing.append(spans.without(life, busy))

    def _message(self, row: "dict[str, Any]") -> None:
        key, moment = row["id"], row["ts"]
        if row["ph"] == "s":
            if key in self._received:
                self._under_way.append((moment, self._received.pop(key)))
            else:
                self._sent[key] = moment, row["args"]["to"]
        elif key in self._sent:
            self._under_way.append((self._sent.pop(key)[0], moment))
        else:
            self._received[key] = moment

    def rows(self) -> "Iterator[dict[str, Any]]":
        """A row for each change of one of the curves."""
        computing = spans.steps(self._computing)
        if not computing or computing[0][0] > 0:
            computing.insert(0, (0.0, 0))
        yield from _curve("nodes computing", computing)
        for moment, dest in self._sent.values():
            # The event of its receipt may have been overwritten; a message sent after that was never received.
            if not self._lost[dest] or moment >= self._begins[dest]:
                self._under_way.append((moment, self._end))
        yield from _curve("messages under way", spans.steps([self._under_way]))


def _curve(name: str, steps: "list[tuple[float, int]]") -> "Iterator[dict[str, Any]]":
    for moment, value in steps:
        yield {"ph": "C", "pid": 0, "name": name, "ts": moment, "args": {"number": value}}
