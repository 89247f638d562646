# SPDX-License-Identifier: MIT
"""Many boxes with a node each keep the server busy for ten seconds: how the slowest fares, and the server's memory.

Not among `all`: a round takes half a minute.
"""

from spcomm.bench.rows import MEBIBYTES, MICROSECONDS, Goal, Row

ORDER = 12
NODES = (64,)
ALONE = True
SECONDS = 10
UNFAIR = 2.0  # times as long as on average
MEMORY = 64 << 20


def rows(nodes: tuple[int, ...]) -> list[Row]:
    """Neighbours exchange small messages, eight at a time. An odd node at the end only meets the others."""
    return [row for n in nodes for row in rows_at(n)]


def rows_at(n: int) -> list[Row]:
    whole = f"boxes-many-message-{n}"
    return [
        row(whole, f"{n} busy boxes, a message of one", "message", n, None, MICROSECONDS),
        row(
            f"boxes-many-slowest-{n}",
            "… of the slowest",
            "slowest_message",
            n,
            Goal(UNFAIR, against=whole),
            MICROSECONDS,
        ),
        row(
            f"boxes-many-memory-{n}",
            "… memory of the server, at most",
            "server_memory",
            n,
            Goal(None, bytes=MEMORY),
            MEBIBYTES,
        ),
    ]


def row(key: str, title: str, work: str, n: int, goal: Goal | None, unit: tuple[str, float]) -> Row:
    parameters = {"seconds": SECONDS}
    return Row(key, title, work, n, parameters, goal, peers=False, unit=unit, program="many", boxes=n)
