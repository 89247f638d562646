# SPDX-License-Identifier: MIT
"""Messages there and back between two nodes: half a round trip.

Node 0 sends a payload that is new each time and checks what comes back. An array of 8 bytes and a small dict go
back as they came. The array of 1 MiB is written anew by both nodes before each send; the writing counts.
"""

from spcomm.bench.rows import Goal, Row

ORDER = 1
NODES = (2,)


def rows(nodes: tuple[int, ...]) -> list[Row]:
    """Only two nodes take part, whatever their number."""
    return [row for n in nodes for row in rows_at(n)]


def rows_at(n: int) -> list[Row]:
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
