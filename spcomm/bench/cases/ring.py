# SPDX-License-Identifier: MIT
"""A small object round a ring of nodes: one hop, also beside a loop in plain C."""

from spcomm.bench.cases.barrier import CROWDED, with_loop
from spcomm.bench.rows import Goal, Row

ORDER = 2
NODES = (8,)


def rows(nodes: tuple[int, ...]) -> list[Row]:
    alone = [
        Row(f"ring-{n}", f"small object round {n} nodes, per hop", "ring", n, goal=Goal(0.6)) for n in nodes
    ]
    return alone + [found for row in alone if row.nodes == CROWDED for found in with_loop(row)]
