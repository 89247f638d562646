# SPDX-License-Identifier: MIT
"""Traces: what an event costs, and messages and sums that are traced; the imbalance that a balanced program shows."""

from spcomm.bench.rows import PER_CENT, Goal, Row

ORDER = 12
NODES = (2,)
LEAST = 2
NANOSECONDS = ("ns", 1e9)
EVENT_S = 40e-9
MOST = 2
IMBALANCE = 0.03  # nodes with equal work compute equally long
WORKS = (
    ("array_pingpong", "8-byte array, there and back"),
    ("float_sum", "sum of one float"),
)


def rows(nodes: tuple[int, ...]) -> list[Row]:
    """An event is measured on one node alone, whatever their number."""
    return [row for n in nodes for row in rows_at(n)]


def rows_at(n: int) -> list[Row]:
    found = [event(f"event-{kind}-{n}", title, f"{kind}_events", n) for kind, title in EVENTS.items()]
    for work, title in WORKS:
        plain = f"trace-{work}-off-{n}"
        found.append(Row(plain, f"{title}, {n} nodes", work, n, peers=False))
        against = Goal(MOST, against=plain)
        found.append(Row(f"trace-{work}-on-{n}", "… traced", work, n, goal=against, peers=False, traced=True))
    return [*found, balance(n)]


EVENTS = {"call": "an event: a call of spcomm begins or ends", "region": "an event: a region begins or ends"}


def event(key: str, title: str, work: str, n: int) -> Row:
    goal = Goal(None, seconds=EVENT_S)
    return Row(key, title, work, n, goal=goal, peers=False, unit=NANOSECONDS, program="events", traced=True)


def balance(n: int) -> Row:
    title = f"load imbalance of equal work, {n} nodes"
    goal = Goal(None, share=IMBALANCE)
    return Row(f"trace-balance-{n}", title, "balance", n, goal=goal, peers=False, unit=PER_CENT)
