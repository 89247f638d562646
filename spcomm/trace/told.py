# SPDX-License-Identifier: MIT
"""What a call in a trace tells beside its name, its line and its times: from events to `args` of the file."""

import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from spcomm._core.traces import Event

ROOTED = ("bcast", "gather", "reduce", "scatter")
ENDED = {1: "left", 2: "raised"}  # recorded.pyx


def cost(event: "Event") -> float:
    """What a WORK event declares."""
    return struct.unpack("<d", struct.pack("<Q", event.number))[0]


def beginning(event: "Event", costs: "dict[int, float]") -> "dict[str, Any]":
    """What a CALL tells; `costs` has what its thread has declared since."""
    found: dict[str, Any] = {}
    if event.context:
        found["part"] = [event.context, event.peer, event.bytes, event.tag]
    if event.number:
        found["root" if event.what in ROOTED else "barrier"] = event.number
    if event.what == "work" and event.thread in costs:
        found["cost"] = costs.pop(event.thread)
    return found


def ending(event: "Event") -> "dict[str, Any]":
    """What its RETURN tells."""
    return {"ended": ENDED[event.tag]} if event.tag in ENDED else {}


def is_work(row: "dict[str, Any]") -> bool:
    """Whether a row of the file is declared work: the node computes."""
    return "cost" in row.get("args", ())
