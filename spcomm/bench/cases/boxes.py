# SPDX-License-Identifier: MIT
"""Nodes in boxes, between them the server or none.

The boxes are on this machine, and so are the peers: they use TCP, without shared memory. A relay in plain C shows the
minimum cost of a server between two ends.
"""

from dataclasses import replace
from typing import Any

from spcomm.bench.cases.arrays import KIB, MIB, label
from spcomm.bench.rows import MEBIBYTES, MICROSECONDS, Goal, Row, each

SIZES = (KIB, 64 * KIB, MIB)
PINGPONG, STREAM = 1.5, 1 / 0.7  # at most this multiple of the relay
ENCRYPTED = 1.5  # at most this multiple of the same without encryption
# At most this multiple of the peers: 8 bytes, 1 MiB, a sum of 2 nodes.
DIRECT_SMALL, DIRECT_LARGE, DIRECT_PAIR = 1.6, 3.0, 2.0
MANY = 8  # nodes from which there are also more boxes
BUSY_S = 10
UNFAIR = 2.0  # times as long as on average
MEMORY = 64 << 20
STALLED = 1 / 0.9  # at most this multiple of the same without a stopped node
STALL_SIZES = (8, 64 * KIB)


def boxes(nodes: tuple[int, ...]) -> list[Row]:
    """Two nodes exchange messages, whatever their number: the smallest one. All of them meet."""
    n = min(nodes)
    return [
        *pingpongs(n),
        *streams(n),
        *(row for n in nodes for count in box_counts(n) for row in meetings(n, count)),
        *encrypted(n),
        *directs(nodes),
    ]


def box_counts(n: int) -> tuple[int, ...]:
    return (2, n // 2) if n >= MANY else (2,)


def relays(n: int, way: str, size: int) -> list[Row]:
    """The goal concerns the first one."""
    return [
        Row(
            f"relay-{way}-{'spins' if spins else 'sleeps'}-{n}",
            f"… plain C, ends and relay {'spin' if spins else 'sleep'}",
            "plain_c",
            n,
            {"waits": "spin" if spins else "sleep", "way": way, "size": size},
            peers=False,
            program="relay",
        )
        for spins in (False, True)
    ]


def message(key: str, title: str, work: str, n: int, parameters: dict[str, Any], goal: Goal | None) -> Row:
    program = "arrays" if parameters else "works"
    return Row(f"boxes-{key}-{n}", title, work, n, parameters, goal, program=program, boxes=2)


def pingpongs(n: int) -> list[Row]:
    floor = relays(n, "pingpong", 8)
    goal = Goal(PINGPONG, against=floor[0].key)
    found = [message("array-8", "8 bytes between 2 boxes, ping-pong", "array_pingpong", n, {}, goal), *floor]
    for size in SIZES:
        title = f"{label(size)} between 2 boxes, ping-pong"
        parameters = {"size": size, "into": False, "fresh": True, "read": False}
        found.append(message(f"fresh-{label(size, '')}", title, "pingpong_arrays", n, parameters, None))
    return found


def streams(n: int) -> list[Row]:
    floor = relays(n, "stream", MIB)
    goals = {MIB: Goal(round(STREAM, 2), against=floor[0].key)}
    found = []
    for size in SIZES:
        title = f"{label(size)} between 2 boxes, one way"
        parameters = {"size": size, "read": False}
        found.append(message(f"stream-{label(size, '')}", title, "stream", n, parameters, goals.get(size)))
    return found + floor


def meetings(n: int, boxes: int) -> list[Row]:
    where = f"{n} nodes in {boxes} boxes"
    return [
        Row(f"boxes-{key}-{n}-{boxes}", f"{title}, {where}", work, n, boxes=boxes)
        for key, title, work in (("barrier", "barrier", "barrier"), ("sum", "sum of one float", "float_sum"))
    ]


def encrypted(n: int) -> list[Row]:
    """The same as over a network: of the smallest and the largest message, beside their times above."""
    return [
        replace(
            row,
            key=f"encrypted-{row.key}",
            title=f"{row.title}, encrypted",
            goal=Goal(ENCRYPTED, against=row.key),
            peers=False,
            encrypted=True,
        )
        for row in (pingpongs(n)[0], pingpongs(n)[-1])
    ]


def directs(nodes: tuple[int, ...]) -> list[Row]:
    """The same without the server between them, as a run has it by default; with a box for each node they meet, too."""
    n = min(nodes)
    relayed: list[tuple[Row, Goal | None]] = [
        (pingpongs(n)[0], Goal(DIRECT_SMALL)),
        (pingpongs(n)[-1], Goal(DIRECT_LARGE)),
        (streams(n)[SIZES.index(MIB)], None),
    ]
    for n in nodes:
        barrier, total = meetings(n, n)
        relayed += [(barrier, None), (total, Goal(DIRECT_PAIR if n == 2 else 1.0))]
    return [
        replace(row, key=f"direct-{row.key}", title=f"{row.title}, --route direct", goal=goal, direct=True)
        for row, goal in relayed
    ]


@each
def boxes_many(n: int) -> list[Row]:
    """Neighbours exchange small messages, eight at a time. An odd node at the end only meets the others.

    Not among `all`: a round takes half a minute.
    """
    whole = f"boxes-many-message-{n}"
    kinds = (
        (whole, f"{n} busy boxes, a message of one", "message", None, MICROSECONDS),
        (
            f"boxes-many-slowest-{n}",
            "… of the slowest",
            "slowest_message",
            Goal(UNFAIR, against=whole),
            MICROSECONDS,
        ),
        (
            f"boxes-many-memory-{n}",
            "… memory of the server, at most",
            "server_memory",
            Goal(None, bytes=MEMORY),
            MEBIBYTES,
        ),
    )
    parameters = {"seconds": BUSY_S}
    return [
        Row(key, title, work, n, parameters, goal, peers=False, unit=unit, program="many", boxes=n)
        for key, title, work, goal, unit in kinds
    ]


@each
def stall(n: int) -> list[Row]:
    """Each node has a box of its own. Nodes 0 and 1 exchange messages, the last one is stopped.

    It has been sent more than its buffers take.
    """
    found = []
    for size in STALL_SIZES:
        name = label(size) if size >= KIB else f"{size} bytes"
        key = f"stall-{name.replace(' ', '')}"
        waiting, title = f"{key}-waiting-{n}", f"{name} there and back, {n} boxes, one waits"
        goal = Goal(round(STALLED, 2), against=waiting)
        found += [
            stalled(waiting, title, n, size, False, None),
            stalled(f"{key}-stopped-{n}", "… its node is stopped", n, size, True, goal),
        ]
    return found


def stalled(key: str, title: str, n: int, size: int, stops: bool, goal: Goal | None) -> Row:
    parameters = {"size": size, "stops": stops}
    return Row(key, title, "exchange", n, parameters, goal, peers=False, program="stall", boxes=n)
