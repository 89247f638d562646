# SPDX-License-Identifier: MIT
"""Arrays between two nodes, and among all.

The source of a ping-pong is written anew before each send, and the writing counts; but if a title says "into an array
that is there", only its first and last byte change. "Read whole" rows are the same work, but the receiver also reads
all of it: an array that arrives without a copy has yet to come into the reader's cache.
"""

from typing import Any

from spcomm.bench.rows import Goal, Row, each

KIB, MIB = 1 << 10, 1 << 20
TEN_MB = 10_000_000
SUMS = {(MIB, 2): 0.8, (8 * MIB, 2): 0.85, (MIB, 4): 0.65, (8 * MIB, 4): 0.65}
BROADCASTS = {2: 1.05, 4: 0.85}
SHARED = {2: 0.8, 4: 0.5}
EXCHANGES = {4: 0.8}


@each
def arrays(n: int) -> list[Row]:
    """Only two nodes take part, whatever their number."""
    return [*pingpongs(n), *moves(n), *streams(n), *dicts(n)]


@each
def collectives(n: int) -> list[Row]:
    return [*sums(n), *broadcasts(n), *exchanges(n)]


def both(key: str, title: str, work: str, n: int, parameters: dict[str, Any], goal: Goal | None) -> list[Row]:
    """The row that has a goal, and the same with a receiver that reads everything it received."""
    return [
        Row(f"{key}-{n}", title, work, n, {**parameters, "read": False}, goal, program="arrays"),
        Row(f"{key}-read-{n}", "… read whole", work, n, {**parameters, "read": True}, program="arrays"),
    ]


def pingpongs(n: int) -> list[Row]:
    found = []
    for size, into, ratio in ((64 * KIB, False, 0.65), (64 * KIB, True, 0.85), (16 * MIB, False, 0.9)):
        way = "recv(out=)" if into else "recv()"
        title = f"{label(size)} written anew, {way}, {n} nodes"
        key = f"fresh-{label(size, '')}{'-into' if into else ''}"
        found += both(
            key, title, "pingpong_arrays", n, {"size": size, "into": into, "fresh": True}, Goal(ratio)
        )
    title = f"16 MiB into an array that is there, {n} nodes"
    there = {"size": 16 * MIB, "into": True, "fresh": False}
    return [*found, *both("there-16MiB", title, "pingpong_arrays", n, there, Goal(0.9))]


def moves(n: int) -> list[Row]:
    found = []
    for rewrite, ratio in ((False, 0.05), (True, 0.5)):
        title = f"16 MiB by move, {'all' if rewrite else 'a byte a page'} written, {n} nodes"
        key = f"move-{'all' if rewrite else 'touch'}"
        found += both(key, title, "moved_pingpong", n, {"size": 16 * MIB, "rewrite": rewrite}, Goal(ratio))
    return found


def streams(n: int) -> list[Row]:
    found = []
    for size, faster in ((KIB, 1.5), (64 * KIB, 1.2), (MIB, 1.2)):
        title = f"{label(size)} one way, 64 in flight, {n} nodes"
        found += both(
            f"stream-{label(size, '')}", title, "stream", n, {"size": size}, Goal(round(1 / faster, 2))
        )
    return found


def dicts(n: int) -> list[Row]:
    copy = Row(
        f"copy-10m-{n}", "10 MB written anew, one memcpy", "one_copy", n, {"size": TEN_MB}, program="arrays"
    )
    title = f"dict with 10 MB written anew, ping-pong, {n} nodes"
    against = Goal(1.3, against=copy.key)
    return [copy, *both("dict-10m", title, "dict_pingpong", n, {"size": TEN_MB}, against)]


def label(size: int, space: str = " ") -> str:
    """
    >>> label(65536), label(1 << 24, "")
    ('64 KiB', '16MiB')
    """
    return f"{size // MIB}{space}MiB" if size >= MIB else f"{size // KIB}{space}KiB"


def goal(ratio: float | None) -> Goal | None:
    return None if ratio is None else Goal(ratio)


def sums(n: int) -> list[Row]:
    found = []
    for size in (MIB, 8 * MIB):
        title, wanted = f"sum of {label(size)}, {n} nodes", goal(SUMS.get((size, n)))
        found += both(f"sum-{label(size, '')}", title, "array_sum", n, {"size": size}, wanted)
    return found


def broadcasts(n: int) -> list[Row]:
    found = []
    for size in (MIB, 8 * MIB):
        for copy, ratios in ((True, BROADCASTS), (False, SHARED)):
            title = f"{label(size)} to all{'' if copy else ', copy=False'}, {n} nodes"
            key = f"bcast-{label(size, '')}{'' if copy else '-shared'}"
            found += both(key, title, "broadcast", n, {"size": size, "copy": copy}, goal(ratios.get(n)))
    return found


def exchanges(n: int) -> list[Row]:
    size = 64 * KIB
    title, wanted = f"{label(size)} from each to each, {n} nodes", goal(EXCHANGES.get(n))
    return both(f"alltoall-{label(size, '')}", title, "all_to_all", n, {"size": size}, wanted)
