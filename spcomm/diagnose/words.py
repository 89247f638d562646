# SPDX-License-Identifier: MIT
"""The words for a wait: the call, and the line."""

import os

from spcomm._core.errors import ranks_text
from spcomm._core.waits import ANY, CYCLE, PHASE, RECEIPT, RECEIVE, SEND, Wait

_SOURCES_SHOWN = 4  # more rows than these would hide what they have in common


def number(value: int) -> str:
    """`7`, or `ANY`."""
    return "ANY" if value == ANY else str(value)


def call(wait: Wait, peer: str = "") -> str:
    """`recv(source=1, tag=7)`. `peer`: what to say instead of the rank."""
    peer = peer or number(wait.source)
    tag = f", tag={number(wait.tag)}"
    if wait.kind == RECEIVE:
        return f"recv(source={peer}{tag})"
    if wait.kind == RECEIPT:
        return f"{'send' if wait.by_rendezvous else 'ssend'}(dest={peer}{tag})"
    if wait.kind == SEND and wait.size and wait.tag == ANY:
        return "the end of the program, with messages still queued"
    if wait.kind == SEND:
        return f"send(dest={'several nodes' if wait.source == ANY and not peer.isdigit() else peer}{tag})"
    if wait.kind == CYCLE:
        return "coordinated_recv()"
    if wait.kind == PHASE:
        from spcomm._core.mismatch import worded  # imports NumPy

        return worded(wait.call)
    return "a call"


_IN_C = {"fuzzy_barrier": "fuzzy_enter"}  # the others have their Python names
_TYPES_IN_C = {"an int": "_int64", "a float": "_double", "a SimTime": "_simtime"}


def function(call: str, in_c: bool) -> str:
    """Of a collective operation as `call` words it, or a bare name: `barrier()`, or `spcomm_barrier()`."""
    name, _, values = call.partition("(")
    if not in_c:
        return f"{name}()"
    suffix = _TYPES_IN_C.get(values.removeprefix(") of "), "")
    return f"spcomm_{_IN_C.get(name, name)}{suffix}()"


def place(wait: Wait) -> str:
    """`ring.py:12 in step`; empty where it is not known."""
    if not wait.file:
        return ""
    inside = f" in {wait.function}" if wait.function[:1] not in ("", "<") else ""
    return f"{os.path.basename(wait.file)}:{wait.line}{inside}"


def of_part(wait: Wait) -> str:
    """Which communicator, if it is not that of the whole run."""
    return f", as node {wait.rank} of a part of {wait.size}" if wait.communicator else ""


def _relation(waits: "dict[int, Wait]", group: "list[int]") -> str:
    """How the sources of several nodes, which differ, follow from their ranks: `rank+1`; empty if they do not."""
    first = waits[group[0]]
    offsets = {(waits[node].source - waits[node].rank) % waits[node].size for node in group}
    if len(offsets) != 1:
        return ""
    offset = offsets.pop()
    if offset == 0:
        return "rank"
    return f"rank+{offset}" if offset <= first.size // 2 else f"rank-{first.size - offset}"


def _by_source(waits: "dict[int, Wait]", group: "list[int]") -> "list[tuple[list[int], str]]":
    """Nodes whose waits differ in the source at most: those that share a row, and its words for the source."""
    sources: dict[int, list[int]] = {}
    for node in group:
        sources.setdefault(waits[node].source, []).append(node)
    if len(sources) == 1:
        return [(group, "")]
    relation = _relation(waits, group) if len(group) > 2 else ""
    if relation or len(sources) > _SOURCES_SHOWN:
        return [(group, relation or "…")]
    return [(nodes, "") for nodes in sources.values()]


def grouped(waits: "dict[int, Wait]") -> "list[tuple[list[int], str, str]]":
    """Nodes that do the same, the call, and the place; by the first node."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for node, wait in sorted(waits.items()):
        several = ANY if wait.source == ANY else 0
        what = wait.call if wait.kind == PHASE else ()
        key = (wait.kind, wait.by_rendezvous, several, wait.tag, what, place(wait), wait.communicator)
        groups.setdefault(key, []).append(node)
    found = []
    for group in groups.values():
        for ranks, peer in _by_source(waits, group):
            wait = waits[ranks[0]]
            part = of_part(wait) if len(ranks) == 1 else ", in a part" if wait.communicator else ""
            found.append((ranks, call(wait, peer) + part, place(wait)))
    return sorted(found)


def wait_rows(waits: "dict[int, Wait]") -> "list[tuple[str, ...]]":
    """Nodes that do the same share a row."""
    return [(nodes(ranks), what, where) for ranks, what, where in grouped(waits)]


def table(rows: "list[tuple[str, ...]]") -> str:
    """Lines of columns, two blanks in front and between them."""
    columns = max((len(row) for row in rows), default=0)
    widths = [max((len(row[i]) for row in rows if i < len(row)), default=0) for i in range(columns)]
    lines = [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) for row in rows
    ]
    return "".join(line.rstrip() + "\n" for line in lines)


def nodes(ranks: "list[int]") -> str:
    return ranks_text(sorted(ranks))
