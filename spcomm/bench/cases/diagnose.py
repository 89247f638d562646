# SPDX-License-Identifier: MIT
"""From the moment when the last node of a circle begins to wait until the launcher's report arrives.

Nodes receive from each other, all at once. Each run is one measurement; the rounds together give a percentile.
"""

from spcomm.bench.rows import MILLISECONDS, Row

ORDER = 6
NODES = (2, 8, 32)
RUNS = 5  # in each round


def rows(nodes: tuple[int, ...]) -> list[Row]:
    return [row(n) for n in nodes]


def row(n: int) -> Row:
    title = f"deadlock to report, {n} nodes"
    return Row(
        f"diagnose-{n}", title, "diagnose", n, {"runs": RUNS}, peers=False, unit=MILLISECONDS, percentile=99
    )
