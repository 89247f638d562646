# SPDX-License-Identifier: MIT
"""The terms of an operation: by what numbers its time grows with nodes, bytes and cores.

The time is a sum of terms, each a coefficient that is fitted, from 0 on, times a number that follows from the
operation. With n nodes on c cores and a message of m bytes:

=============  ======================================================================================================
`call`         1: the calls, and the latency, where each node has a core
`slot`         between two nodes: 1 where the message does not fit into the line that announces it
`byte`         bytes that the operation copies, on each core; between two nodes those up to 32 KiB
`long_byte`    between two nodes: the bytes beyond
`size`         nodes with a core each: the time that m bytes add to a message of two nodes, by LogGP
`turn`         n / c: each node needs a core once, one after the other
`crowd`        (n / c) squared: what a change of the process costs more when there are more of them
`far_byte`     bytes that the operation copies beyond 1 MiB, on each core: they leave the caches
`block`        1 where a message takes the way of long ones (`is_long`)
`turn_block`   the same times n / c
=============  ======================================================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass

from spcomm.model import ModelError
from spcomm.model.loggp import MEMORY, LogGP, size_numbers
from spcomm.model.measured import Case

IN_RING = 8168  # bytes: a longer array lies in a block of its sender's arena (docs/internals/messages.md)
IN_PARTS = 4096  # bytes: longer payloads of data collectives lie in blocks (docs/internals/collectives.md)
SCRATCH = 16384  # bytes that hold the short payloads of all nodes
SLICES_A_NODE, SLICES = 8192, 65536  # bytes from which nodes combine slices (docs/internals/collectives.md)
NEAR = 1 << 20  # bytes that stay in the caches of a core
PAIR = ("call", "slot", "byte", "long_byte")
ALONE = ("call", "size")
WITHOUT_SIZE = ("call", "turn", "crowd")
CROWDED = ("turn", "crowd", "byte", "far_byte", "block", "turn_block")


@dataclass(frozen=True)
class Operation:
    """An operation: the number of messages of m bytes that it moves among n nodes, and whether it is of two nodes."""

    messages: Callable[[int], float]
    is_pair: bool = False
    has_size: bool = True


OPERATIONS = {
    "pingpong": Operation(lambda n: 1, is_pair=True),
    "one_way": Operation(lambda n: 1, is_pair=True),
    "one_to_all": Operation(lambda n: n - 1),
    "all_to_one": Operation(lambda n: n - 1),
    "all_to_all": Operation(lambda n: n * n),
    "broadcast": Operation(lambda n: n),
    "reduce": Operation(lambda n: n),
    "allreduce": Operation(lambda n: n),
    "global_sum": Operation(lambda n: n, has_size=False),
    "barrier": Operation(lambda n: n, has_size=False),
}


def of(name: str) -> Operation:
    """Return the operation of that name; raise `ModelError` if the model has none."""
    if name not in OPERATIONS:
        raise ModelError(f"no model of an operation {name!r}; there are: {', '.join(OPERATIONS)}")
    return OPERATIONS[name]


def key(case: Case, cores: int) -> str:
    """Return the name of a fit in the file: the operation, and whether it has more processes than cores.

    Over TCP each node has a process beside it that carries its messages, so all numbers of nodes are fitted together.
    """
    crowded = not of(case.operation).is_pair and (case.transport != MEMORY or case.nodes > cores)
    return f"{case.operation}, crowded" if crowded else case.operation


def names(case_key: str) -> tuple[str, ...]:
    """Return the names of the terms of a fit."""
    operation, _, crowded = case_key.partition(", ")
    chosen = PAIR if of(operation).is_pair else CROWDED if crowded else ALONE
    return chosen if of(operation).has_size else tuple(name for name in chosen if name in WITHOUT_SIZE)


def numbers(case: Case, cores: int, loggp: LogGP) -> list[float]:
    """Return what the coefficients are multiplied by, in the order of `names`."""
    operation = of(case.operation)
    turns, used = case.nodes / cores, min(case.nodes, cores)
    copied = operation.messages(case.nodes) * case.size
    block = float(is_long(case))
    known = {
        "call": 1.0,
        "size": loggp.size_ns(case.size),
        "turn": turns,
        "crowd": turns * turns,
        "byte": copied / used,
        "far_byte": max(0.0, copied - NEAR) / used,
        "block": block,
        "turn_block": block * turns,
    }
    if operation.is_pair:
        known |= dict(zip(PAIR, (1.0, *size_numbers(case.size)), strict=True))
    return [known[name] for name in names(key(case, cores))]


def is_long(case: Case) -> bool:
    """Whether a message takes the way of long ones: in a block, or, in a reduction in memory, in slices.

    >>> is_long(Case("reduce", 2, 16384, "memory")), is_long(Case("reduce", 2, 16384, "tcp"))
    (True, False)
    """
    if case.operation in ("reduce", "allreduce"):
        return case.transport == MEMORY and case.size >= min(SLICES_A_NODE * case.nodes, SLICES)
    if case.operation in ("all_to_all", "broadcast"):
        return case.size > IN_PARTS or (case.operation == "all_to_all" and case.nodes * case.size > SCRATCH)
    return case.size > IN_RING


def check(case: Case) -> None:
    """Raise `ModelError` for a case that no run can have."""
    operation = of(case.operation)
    if case.nodes < 2 or (operation.is_pair and case.nodes != 2):
        allowed = "2 nodes" if operation.is_pair else "2 nodes or more"
        raise ModelError(f"{case.operation} needs {allowed}; got {case.nodes}")
    if case.size < 0:
        raise ModelError(f"a message of {case.size} bytes; it has 0 or more")
