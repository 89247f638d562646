# SPDX-License-Identifier: MIT
"""Two curves for viewers that draw counters: how many nodes compute, and how many messages are under way."""

from spcomm.trace.told import is_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Rows = list[dict[str, Any]]


def counters(rows: "Rows", nodes: int) -> "Iterator[dict[str, Any]]":
    """A row for each change of one of them. Of a node only its first thread counts, whose track has its rank."""
    yield from _curve("nodes computing", _calls(rows, nodes), nodes)
    yield from _curve("messages under way", _messages(rows), 0)


def _curve(name: str, changes: "list[tuple[float, int]]", value: int) -> "Iterator[dict[str, Any]]":
    changes.sort()
    for at, (time, change) in enumerate(changes):
        value += change
        if at + 1 == len(changes) or changes[at + 1][0] != time:
            yield {"ph": "C", "pid": 0, "name": name, "ts": time, "args": {"number": value}}


def _calls(rows: "Rows", nodes: int) -> "list[tuple[float, int]]":
    """When nodes go into calls and out of them; what is called within a call is none of its own."""
    ends = [-1.0] * nodes  # of the last call of each node
    changes = []
    calls = (row for row in rows if row.get("cat") == "call" and row["tid"] < nodes and not is_work(row))
    for row in sorted(calls, key=_begin):
        if row["ts"] >= ends[row["tid"]]:
            ends[row["tid"]] = row["ts"] + row["dur"]
            changes += [(row["ts"], -1), (ends[row["tid"]], 1)]
    return changes


def _messages(rows: "Rows") -> "list[tuple[float, int]]":
    """Only of those whose sending is in the trace."""
    sent = {row["id"] for row in rows if row["ph"] == "s"}
    changes = [(row["ts"], 1) for row in rows if row["ph"] == "s"]
    return changes + [(row["ts"], -1) for row in rows if row["ph"] == "f" and row["id"] in sent]


def _begin(row: "dict[str, Any]") -> "tuple[float, float]":
    return row["ts"], -row["dur"]
