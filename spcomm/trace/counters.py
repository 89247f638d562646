# SPDX-License-Identifier: MIT
"""Two curves for viewers that draw counters: how many nodes compute, and how many messages are under way."""

from spcomm.trace import spans

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
    """When nodes go into calls and out of them; a handler that runs within a call computes."""
    found: dict[str, list[list[tuple[float, float]]]] = {
        kind: [[] for _rank in range(nodes)] for kind in ("call", "handler")
    }
    for row in rows:
        if row.get("cat") in found and row["tid"] < nodes:
            found[row["cat"]][row["tid"]].append((row["ts"], row["ts"] + row["dur"]))
    changes = []
    for calls, handlers in zip(found["call"], found["handler"], strict=True):
        for begin, end in spans.innermost(calls, handlers):
            changes += [(begin, -1), (end, 1)]
    return changes


def _messages(rows: "Rows") -> "list[tuple[float, int]]":
    """Only of those whose sending is in the trace."""
    sent = {row["id"] for row in rows if row["ph"] == "s"}
    changes = [(row["ts"], 1) for row in rows if row["ph"] == "s"]
    return changes + [(row["ts"], -1) for row in rows if row["ph"] == "f" and row["id"] in sent]
