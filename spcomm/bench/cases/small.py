# SPDX-License-Identifier: MIT
"""Small messages and meetings; whole runs."""

from dataclasses import replace

from spcomm.bench.rows import MILLISECONDS, Goal, Row, each

BARRIERS = {2: 0.65, 8: 0.4, 32: 0.2}
LAUNCHES = {8: 0.5, 32: 0.2}
CROWDED = 8
LOOP = 1.5  # at most this multiple of plain C, where nodes share cores
RUNS = 5  # of a deadlock, in each round


@each
def pingpong(n: int) -> list[Row]:
    """Only two nodes take part, whatever their number.

    Node 0 sends a payload that is new each time and checks what comes back. An array of 8 bytes and a small dict go
    back as they came. The array of 1 MiB is written anew by both nodes before each send; the writing counts.
    """
    return [
        Row(f"array-8-{n}", f"8-byte array, ping-pong, {n} nodes", "array_pingpong", n, goal=Goal(0.5)),
        Row(f"dict-{n}", f"small dict, ping-pong, {n} nodes", "object_pingpong", n, goal=Goal(0.7)),
        Row(
            f"array-1m-{n}",
            f"1 MiB written anew, ping-pong, {n} nodes",
            "written_pingpong",
            n,
            {"size": 1 << 20},
            goal=Goal(0.75),
        ),
    ]


def ring(nodes: tuple[int, ...]) -> list[Row]:
    alone = [
        Row(f"ring-{n}", f"small object round {n} nodes, per hop", "ring", n, goal=Goal(0.6)) for n in nodes
    ]
    return alone + [found for row in alone if row.nodes == CROWDED for found in with_loop(row)]


def barrier(nodes: tuple[int, ...]) -> list[Row]:
    """Beside computing processes a variant that sleeps (SPCOMM_WAIT=sleep: it never polls and never yields) is measured
    too: waiting politely must not cost more than sleeping at once.
    """
    alone = [
        Row(
            f"barrier-{n}",
            f"barrier, {n} nodes",
            "barrier",
            n,
            goal=Goal(BARRIERS[n]) if n in BARRIERS else None,
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


@each
def reduce(n: int) -> list[Row]:
    return [Row(f"sum-{n}", f"sum of one float, {n} nodes", "float_sum", n)]


def launch(nodes: tuple[int, ...]) -> list[Row]:
    """Peers take seconds from 64 nodes on; spcomm is compared with itself at 8. Each start is cold: no process outlives
    a run.
    """
    found = []
    for n in nodes:
        many = n >= 64
        goal = Goal(LAUNCHES[n]) if n in LAUNCHES else None
        if many and 8 in nodes:
            goal = Goal(2.0, against="launch-8")
        title = f"start to finish, {n} nodes" + (" (against 8)" if many and goal else "")
        found.append(Row(f"launch-{n}", title, "launch", n, goal=goal, peers=not many, unit=MILLISECONDS))
    return found


@each
def diagnose(n: int) -> list[Row]:
    """Nodes receive from each other, all at once. Each run is one measurement; the rounds give a percentile."""
    title, parameters = f"deadlock to report, {n} nodes", {"runs": RUNS}
    return [
        Row(f"diagnose-{n}", title, "diagnose", n, parameters, peers=False, unit=MILLISECONDS, percentile=99)
    ]
