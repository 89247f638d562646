# SPDX-License-Identifier: MIT
"""Two boxes exchange messages while a node of a third one is stopped: as fast as when it waits like others.

The stopped node has been sent more than its buffers take.
"""

from spcomm.bench.cases.arrays import KIB, label
from spcomm.bench.rows import Goal, Row

ORDER = 11
NODES = (3,)
LEAST = 3
SLOWER = 1 / 0.9
SIZES = (8, 64 * KIB)


def rows(nodes: tuple[int, ...]) -> list[Row]:
    """Each node has a box of its own. Nodes 0 and 1 exchange messages, the last one is stopped."""
    return [row for n in nodes for size in SIZES for row in pair(n, size)]


def pair(n: int, size: int) -> list[Row]:
    name = label(size) if size >= KIB else f"{size} bytes"
    key = f"stall-{name.replace(' ', '')}"
    waiting = row(f"{key}-waiting-{n}", f"{name} there and back, {n} boxes, one waits", n, size, False, None)
    goal = Goal(round(SLOWER, 2), against=waiting.key)
    return [waiting, row(f"{key}-stopped-{n}", "… its node is stopped", n, size, True, goal)]


def row(key: str, title: str, n: int, size: int, stops: bool, goal: Goal | None) -> Row:
    parameters = {"size": size, "stops": stops}
    return Row(key, title, "exchange", n, parameters, goal, peers=False, program="stall", boxes=n)
