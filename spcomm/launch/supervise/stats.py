# SPDX-License-Identifier: MIT
"""`--stats`: the totals of each node, in a table at the end; `--stats=all`: the traffic between boxes, too.

Times are the kernel's, from the node's end, under the names that docs/reference/time.md defines: `computing` is time on
a core, `waiting for a core` time ready without one, and `waiting` the rest. The line below the table says what they
contain besides, which only a trace can tell apart.
Messages and collectives are read from shared memory, where their running numbers lie anyway; bytes are known only for
received messages that do not fit into a slot. The server counts the frames that it forwards, and each gateway those
of its own links.
"""

from spcomm.text import aligned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.local.run_processes import RunProcesses
    from spcomm.launch.remote.transport_processes import TransportProcesses

_HEAD = (
    "node",
    "time",
    "computing",
    "waiting for a core",
    "waiting",
    "sent",
    "received",
    "MB sent",
    "MB received",
    "collectives",
)
_UNKNOWN = "?"
_NOTES = (
    "times in seconds; MB: without messages of 40 bytes or fewer",
    "computing includes starting and transferring; a sleep is waiting here, and computing in a trace (--trace)",
)


def counts_of(group: "Group") -> "list[dict[str, int]]":
    """Counts of each node, by rank."""
    if group.boxes == 1:
        return group.segments[0].counts()
    found = [segment.counts(group.ranks(box)) for box, segment in enumerate(group.segments)]
    return [
        {name: sum(counts[rank][name] for counts in found) for name in found[0][rank]}
        for rank in range(group.size)
    ]


class Stats:
    """Collects the times of the nodes as they end."""

    def __init__(self, run_processes: "RunProcesses", transports: "TransportProcesses | None" = None) -> None:
        run_processes.stats = True
        self._run_processes = run_processes
        self._transports = transports
        self._times: dict[int, tuple[float, float, float]] = {}

    def ended(self, index: int, times: "tuple[float, float, float]") -> None:
        self._times[index] = times

    def text(self) -> str:
        """Return the table, with a line for all nodes together if there are several."""
        rows = []
        for group in self._run_processes.groups:
            for rank, counts in enumerate(counts_of(group)):
                rows.append((group.first + rank, self._times.get(group.first + rank), counts))
        lines = [_HEAD, *(self._line(self._name(index), times, counts) for index, times, counts in rows)]
        if len(rows) > 1:
            lines.append(self._total(rows))
        return (
            f"spcomm: statistics of the nodes ({_NOTES[0]})\n{aligned(lines)}  {_NOTES[1]}\n{self._links()}"
        )

    def _links(self) -> str:
        """Return the counts of the links of the boxes; empty, if there are none, or the run did not end well."""
        links = self._transports.counted() if self._transports is not None else {}
        if not links:
            return ""
        kinds = _used(list(links.values()))
        lines: list[tuple[str, ...]] = [("box", "", *map(str.lower, kinds), "MB")]
        for (group, box), link in sorted(links.items()):  # the server received the frames that the box sent
            name = self._prefix(group) + str(box)
            lines += [(name, "out", *_moved(link, kinds, 2)), (name, "in", *_moved(link, kinds, 0))]
        note = "out: from the box, in: to it; retransmissions are not counted"
        return f"spcomm: frames between boxes ({note})\n{aligned(lines)}{self._between()}"

    def _between(self) -> str:
        """Return the counts of links between gateways."""
        found = self._transports.between() if self._transports is not None else {}
        names = {key: self._prefix(key[0]) + key[1] for key in found}
        links = {names[key]: link for key, link in found.items() if link is not None}
        relayed = [name for name in names.values() if name not in links]
        kinds = _used(list(links.values()))
        lines: list[tuple[str, ...]] = [("boxes", "", *map(str.lower, kinds), "MB")]
        for name, link in links.items():
            lines += [(name, "out", *_moved(link, kinds, 0)), (name, "in", *_moved(link, kinds, 2))]
        text = ""
        if links:
            note = "out: from the first box, in: to it; the table above does not count them"
            text = f"spcomm: frames between gateways ({note})\n{aligned(lines)}"
        if relayed:
            text += f"spcomm: no direct connection between boxes {', '.join(relayed)}: the server relayed\n"
        return text

    def _prefix(self, group: int) -> str:
        return f"{group}:" if len(self._run_processes.groups) > 1 else ""

    def _name(self, index: int) -> str:
        return self._run_processes.names.label(index).decode().strip("[] ")

    def _line(
        self, name: str, times: "tuple[float, float, float] | None", counts: "dict[str, int]"
    ) -> "tuple[str, ...]":
        cells = [_UNKNOWN] * 4
        if times is not None:
            life, computing, queued = times
            cells = [
                f"{value:.2f}" for value in (life, computing, queued, max(0.0, life - computing - queued))
            ]
        numbers = [str(counts["sent"]), str(counts["received"])]
        numbers += [f"{counts[name] / 1e6:.1f}" for name in ("sent_bytes", "received_bytes")]
        return (name, *cells, *numbers, str(counts["collectives"]))

    def _total(self, rows: "list[tuple]") -> "tuple[str, ...]":
        known = [times for _index, times, _counts in rows if times is not None]
        times = (
            (max(time[0] for time in known), sum(time[1] for time in known), sum(time[2] for time in known))
            if known
            else None
        )
        counts = {name: sum(row[2][name] for row in rows) for name in rows[0][2]}
        line = self._line("all", times, counts)
        waiting = sum(max(0.0, life - computing - queued) for life, computing, queued in known)
        return (*line[:4], f"{waiting:.2f}", *line[5:])


def _used(links: "list[dict[str, Any]]") -> "list[str]":
    """Return the kinds of frames that have occurred."""
    kinds = [name for name, counts in links[0].items() if isinstance(counts, tuple)] if links else []
    return [kind for kind in kinds if any(link[kind][0] + link[kind][2] for link in links)]


def _moved(link: "dict[str, Any]", kinds: "list[str]", at: int) -> "list[str]":
    """Return the frames of each kind, and the MB of all, one way."""
    return [
        *(str(link[kind][at]) for kind in kinds),
        f"{sum(link[kind][at + 1] for kind in kinds) / 1e6:.1f}",
    ]
