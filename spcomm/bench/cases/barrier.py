# SPDX-License-Identifier: MIT
"""Barriers: nodes alone, beside a loop in plain C, and beside two processes that compute all the time.

Beside computing processes the sleeping variant of spcomm (SPCOMM_WAIT=sleep: it never polls and never yields)
is measured too: waiting politely must not cost more than sleeping at once.
"""

from dataclasses import replace

from spcomm.bench.rows import Goal, Row

ORDER = 3
NODES = (2, 8, 32)
RATIOS = {2: 0.65, 8: 0.4, 32: 0.2}
CROWDED = 8
LOOP = 1.5  # at most this multiple of plain C, where nodes share cores


def rows(nodes: tuple[int, ...]) -> list[Row]:
    alone = [
        Row(
            f"barrier-{n}", f"barrier, {n} nodes", "barrier", n, goal=Goal(RATIOS[n]) if n in RATIOS else None
        )
        for n in nodes
    ]
    beside = [row for row in alone if row.nodes == CROWDED]
    return alone + [found for row in beside for found in [*with_loop(row), *crowded()]]


def with_loop(row: Row) -> list[Row]:
    """Return the row again, and the same in plain C processes that only share memory."""
    parameters = {"work": row.work, "processes": row.nodes}
    title = f"… plain C, {row.nodes} processes"
    loop = Row(
        f"loop-{row.work}-{row.nodes}", title, "plain_c", row.nodes, parameters, peers=False, program="loop"
    )
    goal = Goal(LOOP, against=loop.key)
    title = f"{row.title}, beside plain C"
    return [replace(row, key=f"{row.key}-beside-loop", title=title, goal=goal, peers=False), loop]


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
