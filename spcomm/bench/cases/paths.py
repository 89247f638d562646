# SPDX-License-Identifier: MIT
"""Paths of a message. They differ in one stage each, so that differences of their times are the
times of the stages: a node more that forwards; the server between two boxes.
"""

from spcomm.bench.cases import sweep
from spcomm.bench.cases.arrays import KIB
from spcomm.bench.rows import HOT, MEMORY, TCP, Row

SIZES = (8, 64, 512, 4 * KIB, 32 * KIB, 256 * KIB)
OVERHEADS = {"send_overhead": "call of a send", "receive_overhead": "call of a receive"}


def rows(nodes: tuple[int, ...]) -> list[Row]:
    """A chain has all nodes; calls are timed with the smallest number of nodes alone."""
    n = min(nodes)
    calls = [
        row(name, call, n, size, transport)
        for transport in (MEMORY, TCP)
        for name, call in OVERHEADS.items()
        for size in SIZES
    ]
    return calls + [
        row("chain", title(n, transport, direct), n, size, transport, direct)
        for transport, direct in ((MEMORY, False), (TCP, True), (TCP, False))
        for n in nodes
        for size in SIZES
    ]


def title(n: int, transport: str, direct: bool) -> str:
    where = "in memory" if transport == MEMORY else "direct" if direct else "through the server"
    return f"{n - 1} hop{'s' if n > 2 else ''} {where}"


def row(name: str, title: str, n: int, size: int, transport: str, direct: bool = False) -> Row:
    words = [name, str(n), "direct" if direct else transport, str(size)]
    return Row(
        "-".join(words),
        f"{title}, {sweep.size_text(size)}{', TCP' if transport == TCP else ''}",
        name,
        n,
        {"size": size},
        peers=False,
        program="overheads",
        boxes=1 if transport == MEMORY else n,
        direct=direct,
        operation=name,
        size_bytes=size,
        buffers=HOT,
        is_sweep=True,
    )
