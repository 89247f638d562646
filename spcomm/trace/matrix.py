# SPDX-License-Identifier: MIT
"""Traffic from each node to each."""

from spcomm.text import aligned, counted
from spcomm.trace import table
from spcomm.trace.model import Trace
from spcomm.trace.summary import headline

_WIDEST = 32  # nodes; of a larger matrix the busiest pairs are shown


def matrix(trace: Trace) -> "tuple[list[list[int]], list[list[int]]]":
    """Count messages and bytes from each node to each.

    Parameters
    ----------
    trace
        A message counts if it was sent within the part that is looked at, or, where the sending is not known, received.

    Returns
    -------
    messages, bytes : list of list of int
        `messages[a][b]` went from node `a` to node `b`.
    """
    counts = [[0] * trace.nodes for _rank in range(trace.nodes)]
    sizes = [[0] * trace.nodes for _rank in range(trace.nodes)]
    for message in trace.messages:
        if trace.within(message.received if message.sent is None else message.sent):
            counts[message.source][message.dest] += 1
            sizes[message.source][message.dest] += message.bytes
    return counts, sizes


def text(trace: Trace) -> str:
    """The matrix as text: messages, then bytes; of many nodes only the busiest pairs.

    Parameters
    ----------
    trace
        See `matrix`.

    Returns
    -------
    str
        Lines, the last one with its end.
    """
    counts, sizes = matrix(trace)
    if not any(map(any, counts)):
        return f"{headline(trace)}\n\nno messages\n"
    if trace.nodes > _WIDEST:
        return f"{headline(trace)}\n\n{_busiest(counts, sizes)}"
    head = ("from\\to", *map(str, range(trace.nodes)), "all")
    parts = []
    for name, numbers, shown in (("messages", counts, str), ("bytes", sizes, table.size)):
        rows: list[tuple[str, ...]] = [head]
        for rank, row in enumerate(numbers):
            rows.append((str(rank), *(shown(n) if n else "." for n in row), shown(sum(row))))
        sums = [sum(column) for column in zip(*numbers, strict=True)]
        rows.append(("all", *map(shown, sums), shown(sum(sums))))
        parts.append(f"{name}\n{aligned(rows)}")
    return f"{headline(trace)}\n\n" + "\n".join(parts)


def _busiest(counts: "list[list[int]]", sizes: "list[list[int]]") -> str:
    size = len(counts)
    pairs = [(sizes[a][b], counts[a][b], a, b) for a in range(size) for b in range(size) if counts[a][b]]
    pairs.sort(key=lambda pair: (-pair[0], -pair[1], pair[2], pair[3]))
    rows = [("from", "to", "messages", "bytes")]
    rows += [(str(a), str(b), str(count), table.size(bytes_)) for bytes_, count, a, b in pairs[:_WIDEST]]
    note = (
        f"the {min(_WIDEST, len(pairs))} busiest of {counted(len(pairs), 'pair')}; --matrix --png draws all\n"
    )
    if len(pairs) <= _WIDEST:
        note = f"the only {counted(len(pairs), 'pair')} with messages\n"
    return note + aligned(rows)
