# SPDX-License-Identifier: MIT
"""The numbers of a trace: how each node spent its time, its messages, and how well the nodes were used."""

from dataclasses import dataclass

from spcomm.text import aligned, counted, ranks_text
from spcomm.trace import table
from spcomm.trace.model import CONTEXTS, Trace, Track
from spcomm.trace.spans import length, union, without


@dataclass(frozen=True, slots=True)
class Times:
    """Time of one thread by state, in microseconds."""

    name: str  # "3", "3, thread 1"
    life: float
    computing: float
    queued: float  # waiting for a core
    waiting: float
    transferring: float
    starting: float = 0.0  # before its life


@dataclass(frozen=True, slots=True)
class Traffic:
    """Traffic of one node."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """All numbers of a trace; times are microseconds.

    `imbalance` is the longest computing time of a node over the mean, minus 1: 0.25 means that with the same work for
    all, the slowest would have been done a fifth earlier. `efficiency` is the share of the time of all nodes in which
    they compute; the time in which a node was starting counts in neither. None: no node computes, or the trace has no
    length.
    """

    elapsed: float
    nodes: "tuple[Times, ...]"  # first threads, by rank
    threads: "tuple[Times, ...]"  # others
    traffic: "tuple[Traffic, ...]"  # by rank
    imbalance: "float | None"
    efficiency: "float | None"
    present: float  # time of all nodes, each from its start to the end of the trace
    slowest: "int | None"  # rank of the node that computes longest
    lines: "tuple[tuple[str, float], ...]"  # where nodes wait: (line, all its waits), the longest first
    contexts: "tuple[tuple[str, int], ...]"  # messages that are not the program's own: whose, how many
    unreceived: int


def summarize(trace: Trace) -> Summary:
    """Compute the numbers of a trace, or of a part of it.

    Parameters
    ----------
    trace
        As `reader.read` or `model.cut` gives it. A message counts where its end lies within the part.

    Returns
    -------
    Summary
    """
    nodes = tuple(_times(track) for track in trace.firsts())
    threads = tuple(_times(track) for track in trace.tracks if track.thread)
    work = {rank: node.computing for rank, node in enumerate(nodes) if rank not in trace.missing}
    most, mean = max(work.values(), default=0.0), sum(work.values()) / max(1, len(work))
    present = sum(trace.length - nodes[rank].starting for rank in work)
    return Summary(
        elapsed=trace.length,
        nodes=nodes,
        threads=threads,
        traffic=_traffic(trace),
        imbalance=most / mean - 1 if mean > 0 else None,
        efficiency=sum(work.values()) / present if present > 0 else None,
        present=present,
        slowest=next(rank for rank, spent in work.items() if spent == most) if mean > 0 else None,
        lines=_lines(trace),
        contexts=_contexts(trace),
        unreceived=sum(message.received is None for message in trace.messages),
    )


def _times(track: Track) -> Times:
    life = max(0.0, track.end - track.begin)
    states = (track.computing(), track.queued(), track.waiting(), track.transferring())
    return Times(track.name, life, *map(length, states), track.starting)


def _traffic(trace: Trace) -> "tuple[Traffic, ...]":
    counts = [[0, 0, 0, 0] for _rank in range(trace.nodes)]
    for message in trace.messages:
        if trace.within(message.sent):
            counts[message.source][0] += 1
            counts[message.source][1] += message.bytes
        if trace.within(message.received):
            counts[message.dest][2] += 1
            counts[message.dest][3] += message.bytes
    return tuple(Traffic(*count) for count in counts)


def _contexts(trace: Trace) -> "tuple[tuple[str, int], ...]":
    found: dict[str, int] = {}
    for message in trace.messages:
        if message.context != "user":
            found[message.context] = found.get(message.context, 0) + 1
    known = {context: place for place, context in enumerate(CONTEXTS)}
    return tuple(sorted(found.items(), key=lambda item: (known.get(item[0], len(known)), item[0])))


def _lines(trace: Trace) -> "tuple[tuple[str, float], ...]":
    found: dict[str, float] = {}
    for track in trace.tracks:
        waits: dict[str, list[tuple[float, float]]] = {}
        for wait in track.waits:
            if wait.line is not None:
                waits.setdefault(wait.line, []).append((wait.begin, wait.end))
        queued = track.queued()
        for line, pairs in waits.items():
            waited = length(without(union(pairs), queued))  # as in the column: without waiting for a core
            if waited:
                found[line] = found.get(line, 0.0) + waited
    return tuple(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def text(trace: Trace) -> str:
    """The summary as text.

    Parameters
    ----------
    trace
        The trace to summarize.

    Returns
    -------
    str
        Lines, the last one with its end.
    """
    found = summarize(trace)
    times = [_HEAD, *map(_cells, (*found.nodes, *found.threads))]
    messages = [("node", "sent", "bytes", "received", "bytes")]
    for node, traffic in zip(found.nodes, found.traffic, strict=True):
        messages.append((node.name, str(traffic.sent), table.size(traffic.sent_bytes),
                         str(traffic.received), table.size(traffic.received_bytes)))  # fmt: skip
    lines = [f"  {name:<19}  {value} {words}\n" for name, value, words in facts(trace, found)]
    return f"{headline(trace)}\n\n{aligned(times)}\n{aligned(messages)}\n{''.join(lines)}"


_HEAD = ("node", "computing", "waiting for a core", "waiting", "transferring")


def _cells(times: Times) -> "tuple[str, ...]":
    parts = (times.computing, times.queued, times.waiting, times.transferring)
    shares = table.shares(parts, times.life)
    cells = zip(parts, shares, strict=True)
    return times.name, *(f"{table.seconds(part)} {share:>7}" for part, share in cells)


def headline(trace: Trace, with_program: bool = True) -> str:
    """The traced run, in one line."""
    program = f"{trace.program}: " if with_program else ""
    boxes = f" in {trace.boxes} boxes" if trace.boxes > 1 else ""
    part = f", from {trace.begin / 1e6:g} s to {trace.end / 1e6:g} s" if trace.is_part else ""
    least = f", messages from {table.size(trace.min_bytes)} on" if trace.min_bytes else ""
    nodes = counted(trace.nodes, "node")
    return f"{program}{nodes}{boxes}, {table.seconds(trace.length)}{part}{least}"


_SLOWER = 0.05  # an imbalance from which on there is a slowest node worth naming

# Messages that are not the program's own, by context: the name of their row, and whose they are.
_OTHERS = {
    "collective": ("messages within", "of collective operations"),
    "coordinated": ("coordinated", "of coordinated cycles"),
    "handled": ("for handlers", "for handlers"),
}


def facts(trace: Trace, found: Summary) -> "list[tuple[str, str, str]]":
    """Return (name, value, meaning) of the numbers for all nodes together; the page shows the same."""
    everything = f"of {counted(len(trace.messages), 'message')}"
    said = [
        ("parallel efficiency", _percent(found.efficiency), _of_present(trace, found)),
        ("load imbalance", _excess(found.imbalance), _of_slowest(found)),
    ]
    late = max((node.starting for node in found.nodes), default=0.0)
    if late:
        said.append(
            (
                "starting",
                table.seconds(late),
                "until the last node was there; not counted in the other figures",
            )
        )
    if found.slowest is not None and (found.imbalance or 0.0) >= _SLOWER:
        work = table.seconds(found.nodes[found.slowest].computing)
        said.append(("slowest node", f"node {found.slowest}", f"computes for {work}"))
    if found.lines:
        line, waited = found.lines[0]
        said.append(
            ("hottest line", line, f"has the most waiting: {table.seconds(waited)} on all nodes together")
        )
    for context, count in found.contexts:
        are = "is" if count == 1 else "are"
        name, whose = _OTHERS.get(context, ("other messages", f"of another kind, {context!r}"))
        said.append((name, str(count), f"{everything} {are} {whose}"))
    crossing = trace.crossing()
    if crossing:
        size = table.size(sum(message.bytes for message in crossing))
        said.append(("between boxes", str(len(crossing)), f"{everything}, {size}, by way of gateways"))
    if found.unreceived:
        said.append(("never received", str(found.unreceived), f"{everything}, as far as the trace goes"))
    return [*said, *gaps(trace)]


def _of_slowest(found: Summary) -> str:
    """Return what the imbalance compares. Nodes that take turns in being slow are not unequal over the whole run."""
    words = "the slowest node computes this much more than the average"
    if found.imbalance is None or found.imbalance >= _SLOWER or len(found.nodes) == 1:
        return words
    return f"{words}; it may be more within a step"


def _of_present(trace: Trace, found: Summary) -> str:
    """Return how the efficiency follows from the other numbers."""
    if found.efficiency is None:
        return "computing: the trace has no length"
    ranks = [rank for rank in range(trace.nodes) if rank not in trace.missing]
    work = table.seconds(sum(found.nodes[rank].computing for rank in ranks))
    starting = sum(found.nodes[rank].starting for rank in ranks)
    less = f" less {table.seconds(starting)} starting" if starting else ""
    whole = f"{counted(len(ranks), 'node')} \N{MULTIPLICATION SIGN} {table.seconds(trace.length)}{less}"
    return f"computing: {work} of {table.seconds(found.present)} ({whole})"


def gaps(trace: Trace) -> "list[tuple[str, str, str]]":
    """Gaps of the trace: lost events, and how well clocks agree."""
    lost = [rank for rank, count in enumerate(trace.overwritten) if count]
    count = sum(trace.overwritten)
    said = []
    if 0 < trace.cores < trace.nodes and not any(trace.clock_error):  # all of them on one machine
        said.append(
            (
                "cores",
                str(trace.cores),
                f"for {counted(trace.nodes, 'node')}: some of them may be waiting for a core",
            )
        )
    if lost:
        words = f"event{'s' * (count > 1)}, the oldest of {ranks_text(lost)}: the rest begins after that"
        said.append(("overwritten", str(count), words))
    if trace.missing:
        words = "of which nothing came from another machine: imbalance and efficiency leave them out"
        said.append(("missing", ranks_text(trace.missing), words))
    if trace.unnamed:
        words = "events: a node had no room for more names and lines"
        said.append(("without a name", str(trace.unnamed), words))
    if any(trace.clock_error):  # else all boxes are on one machine
        apart = sum(sorted(trace.clock_error)[-2:])  # each is compared with the launcher's
        error = f"\N{PLUS-MINUS SIGN}{table.seconds(apart)}"
        said.append(("clocks of boxes", error, "between them: shorter times from box to box mean nothing"))
    return said


def _excess(value: "float | None") -> str:
    """Return `12.5 %`, `250.0 %`: no share of a whole, so nothing is special about 100."""
    return _percent(value) if value is None or value < 0.5 else f"{100 * value:.1f} %"


def _percent(value: "float | None") -> str:
    return table.percent(value, value) if value is not None else "?"
