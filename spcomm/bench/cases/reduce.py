# SPDX-License-Identifier: MIT
"""The sum of one float over all nodes, which every node gets."""

from spcomm.bench.rows import Row

ORDER = 4
NODES = (2, 8, 32)


def rows(nodes: tuple[int, ...]) -> list[Row]:
    return [Row(f"sum-{n}", f"sum of one float, {n} nodes", "float_sum", n) for n in nodes]
