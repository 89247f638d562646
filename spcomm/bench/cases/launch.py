# SPDX-License-Identifier: MIT
"""Start to finish of a program that imports NumPy and meets once in a barrier.

Each start is cold: no process outlives a run.
"""

from spcomm.bench.rows import MILLISECONDS, Goal, Row

ORDER = 5
NODES = (8, 32, 64)
RATIOS = {8: 0.5, 32: 0.2}


def rows(nodes: tuple[int, ...]) -> list[Row]:
    return [row(n, nodes) for n in nodes]


def row(n: int, nodes: tuple[int, ...]) -> Row:
    """Peers take seconds from 64 nodes on; spcomm is compared with itself at 8."""
    many = n >= 64
    goal = Goal(RATIOS[n]) if n in RATIOS else None
    if many and 8 in nodes:
        goal = Goal(2.0, against="launch-8")
    title = f"start to finish, {n} nodes" + (" (against 8)" if many and goal else "")
    return Row(f"launch-{n}", title, "launch", n, goal=goal, peers=not many, unit=MILLISECONDS)
