# SPDX-License-Identifier: MIT
"""A small object round a ring of nodes: one hop."""

from spcomm.bench.rows import Goal, Row

ORDER = 2
NODES = (8,)


def rows(nodes: tuple[int, ...]) -> list[Row]:
    return [
        Row(f"ring-{n}", f"small object round {n} nodes, per hop", "ring", n, goal=Goal(0.6)) for n in nodes
    ]
