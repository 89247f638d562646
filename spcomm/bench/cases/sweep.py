# SPDX-License-Identifier: MIT
"""One operation at many sizes and node counts. "One way" and "ping-pong" are the two tests of the latency thesis
(Gonzalez 2000, figures 6 and 7); the six cases of ACLMPL are one to all, all to one, all to all, reduce, broadcast
and the latency, which is a ping-pong.
"""

from dataclasses import dataclass

from spcomm.bench.cases.arrays import KIB, MIB, label
from spcomm.bench.rows import COLD, HOT, MEMORY, TCP, Row, Sweep

SIZES = (8, 64, 512, 4 * KIB, 32 * KIB, 256 * KIB)
LARGEST = 64 * MIB
TRANSPORTS = (MEMORY, TCP)
BUFFERS = (HOT, COLD)
DOUBLE = 8  # bytes


@dataclass(frozen=True)
class Operation:
    """An operation of the sweep.

    Attributes
    ----------
    title : the text that the reader sees.
    is_pair : two nodes take part, whatever their number.
    unit_bytes : a message is a multiple of that many bytes; 0: there is no size to choose.
    size_bytes : the size, where there is none to choose.
    """

    title: str
    is_pair: bool = False
    unit_bytes: int = 1
    size_bytes: int = 0


OPERATIONS = {
    "one_way": Operation("one way", is_pair=True),
    "pingpong": Operation("ping-pong", is_pair=True),
    "one_to_all": Operation("one to all"),
    "all_to_one": Operation("all to one"),
    "all_to_all": Operation("all to all"),
    "broadcast": Operation("broadcast"),
    "reduce": Operation("reduce", unit_bytes=DOUBLE),
    "allreduce": Operation("allreduce", unit_bytes=DOUBLE),
    "global_sum": Operation("sum of one float", unit_bytes=0, size_bytes=DOUBLE),
    "barrier": Operation("barrier", unit_bytes=0),
}


def rows(nodes: tuple[int, ...], chosen: Sweep | None = None) -> list[Row]:
    """Return the product of what was chosen, in the order: transport, operation, nodes, buffers, size."""
    chosen = chosen or Sweep()
    found = [
        row(name, n, size, transport, buffers)
        for transport in chosen.transports or (MEMORY,)
        for name in chosen.operations or OPERATIONS
        for n in ((min(nodes),) if OPERATIONS[name].is_pair else nodes)
        for buffers in chosen.buffers or (HOT,)
        for size in sizes_of(OPERATIONS[name], chosen.sizes or SIZES)
    ]
    return list({row.key: row for row in found}.values())


def sizes_of(operation: Operation, sizes: tuple[int, ...]) -> list[int]:
    """Return the sizes that this operation can have, each once."""
    unit = operation.unit_bytes
    if not unit:
        return [operation.size_bytes]
    return list(dict.fromkeys(size // unit * unit for size in sizes if size >= unit))


def row(name: str, n: int, size: int, transport: str, buffers: str) -> Row:
    operation = OPERATIONS[name]
    sized = operation.unit_bytes > 0
    boxes = 1 if transport == MEMORY else n
    words = [operation.title, *([size_text(size)] if sized else []), f"{n} nodes"]
    words += ["TCP"] if transport == TCP else []
    words += ["cold"] if sized and buffers == COLD else []
    return Row(
        "-".join([name, str(n), transport, *([str(size), buffers] if sized else [])]),
        ", ".join(words),
        name,
        n,
        {"size": size, "cold": buffers == COLD} if sized else {},
        program="sweep",
        boxes=boxes,
        operation=name,
        size_bytes=size,
        buffers=buffers if sized else "",
        is_sweep=True,
    )


def size_text(size: int) -> str:
    """
    >>> size_text(8), size_text(1000), size_text(4096), size_text(3 << 20)
    ('8 bytes', '1000 bytes', '4 KiB', '3 MiB')
    """
    whole = MIB if size >= MIB else KIB
    return label(size) if size >= KIB and size % whole == 0 else f"{size} byte{'s' if size != 1 else ''}"
