# SPDX-License-Identifier: MIT
"""Barriers: nodes alone, and beside two processes that compute all the time.

Beside computing processes the sleeping variant of spcomm (SPCOMM_WAIT=sleep: it never polls and never yields)
is measured too: waiting politely must not cost more than sleeping at once.
"""

from spcomm.bench.rows import Goal, Row

ORDER = 3
NODES = (2, 8, 32)
RATIOS = {2: 0.65, 8: 0.4, 32: 0.2}
CROWDED = 8


def rows(nodes: tuple[int, ...]) -> list[Row]:
    alone = [
        Row(
            f"barrier-{n}", f"barrier, {n} nodes", "barrier", n, goal=Goal(RATIOS[n]) if n in RATIOS else None
        )
        for n in nodes
    ]
    return alone + (crowded() if CROWDED in nodes else [])


def crowded() -> list[Row]:
    n = CROWDED
    polite, sleeping = f"barrier-{n}-beside-2", f"barrier-{n}-beside-2-sleeping"
    return [
        Row(
            polite,
            f"barrier, {n} nodes beside 2 computing",
            "barrier",
            n,
            goal=Goal(1.0, against=sleeping, seconds=150e-6),
            computing=2,
        ),
        Row(
            sleeping,
            "… spcomm sleeping at once",
            "barrier",
            n,
            computing=2,
            environment={"SPCOMM_WAIT": "sleep"},
            peers=False,
        ),
    ]
