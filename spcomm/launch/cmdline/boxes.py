# SPDX-License-Identifier: MIT
"""`--boxes` and `--map`: the box of each node.

A box is a machine, or simulates one: its nodes share memory only with each other. Imported only if one of the options
is given, or for hosts.
"""

import itertools
from typing import TYPE_CHECKING

from spcomm.launch.base.record import replace
from spcomm.launch.base.usage import UsageError
from spcomm.text import counted

if TYPE_CHECKING:
    from spcomm.launch.cmdline.options import Options
    from spcomm.launch.cmdline.plan import Plan


def number(options: "Options") -> int:
    """Return the number of boxes. Check the options together, as far as that does not need the number of nodes."""
    boxes, placing = options.boxes, options.placing
    if isinstance(placing, tuple):
        found = max(placing) + 1
        if boxes is not None and found != boxes:
            raise UsageError(
                f"spcomm run: --boxes {boxes} and --map {spelt(placing)}: that map has "
                f"{counted(found, 'box', 'boxes')}; leave --boxes out, or give the same number"
            )
        return found
    if boxes is None:
        raise UsageError(
            f"spcomm run: --map {placing} divides nodes among boxes; it needs their number, as in --boxes 2"
        )
    return boxes


def place(options: "Options", plans: "list[Plan]") -> "list[Plan]":
    """Return the programs with the boxes of their nodes, which are numbered in the order of the command line.

    Raises `UsageError`.
    """
    boxes, placing = options.boxes or 1, options.placing
    counts = [plan.nodes for plan in plans]
    size = sum(counts)
    if isinstance(placing, tuple):
        check_length(placing, size)
    if boxes > size:
        raise UsageError(
            f"spcomm run: --boxes {boxes}: each box needs a node, and this run has {counted(size, 'node')} (-n {size})"
        )
    of_each = dealt(places(placing or "block", boxes, size), counts)
    return [replace(plan, boxes=some) for plan, some in zip(plans, of_each, strict=True)]


def dealt(boxes: "list[int]", counts: "list[int]") -> "list[list[int]]":
    """Divide the boxes of all nodes, in the order of the command line, among the programs with so many nodes."""
    ends = list(itertools.accumulate(counts))
    return [boxes[end - count : end] for end, count in zip(ends, counts, strict=True)]


def check_length(placing: "tuple[int, ...]", size: int) -> None:
    if len(placing) != size:
        raise UsageError(
            f"spcomm run: --map {spelt(placing)}: names the boxes of {counted(len(placing), 'node')}, and this run has "
            f"{counted(size, 'node')} (-n {size})"
        )


def places(placing: "str | tuple[int, ...]", boxes: int, size: int) -> "list[int]":
    """Return the box of each rank."""
    if isinstance(placing, tuple):
        return list(placing)
    if placing == "cyclic":
        return [rank % boxes for rank in range(size)]
    each, more = divmod(size, boxes)
    return [box for box in range(boxes) for _node in range(each + (box < more))]


def spelt(placing: "tuple[int, ...]") -> str:
    """Return the text for a command line; a long one is cut."""
    shown = ",".join(map(str, placing[:16]))
    return shown + (",…" if len(placing) > 16 else "")
