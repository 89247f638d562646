# SPDX-License-Identifier: MIT
"""Details of a call beside its name, its line and its times: from events to `args` of the file."""

import math
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from spcomm._core.traces import Event

ROOTED = ("bcast", "gather", "reduce", "scatter")
ENDED = {1: "left", 2: "raised"}  # regions.pyx


def cost(event: "Event") -> float:
    """The declaration in a WORK event; empty, where the program has written over its ring."""
    found = struct.unpack("<d", struct.pack("<Q", event.bytes))[0]
    return found if 0 <= found < math.inf else 0.0


def beginning(event: "Event", costs: "dict[int, float]", nodes: int) -> "dict[str, Any]":
    """Details of a CALL; `costs` has what its thread has declared since, and the run has so many nodes."""
    found: dict[str, Any] = {}
    if event.context and 0 <= event.peer < nodes and 0 <= event.tag < event.bytes <= nodes:
        found["part"] = [event.context, event.peer, event.bytes, event.tag]
    if event.number:
        found["root" if event.what in ROOTED else "barrier"] = event.number
    if event.what == "work" and event.thread in costs:
        found["cost"] = costs[event.thread]
    return found


def ending(event: "Event") -> "dict[str, Any]":
    """Details of its RETURN."""
    return {"ended": ENDED[event.tag]} if event.tag in ENDED else {}


def is_work(row: "dict[str, Any]") -> bool:
    """Whether a row of the file is declared work: the node computes."""
    return "cost" in row.get("args", ())
