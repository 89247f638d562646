# SPDX-License-Identifier: MIT
"""`--stats`: the totals of each node, in two tables at the end; `--stats=all`: the traffic between boxes, too.

Times have the meanings that docs/reference/time.md defines, as in a trace. A node counts how long its first thread
waits, and the kernel how long that thread had no core; what is left of its life is `computing`. The line below the
table says what that contains besides, which only a trace can tell apart.
Messages and collectives are read from shared memory, where their running numbers lie anyway; bytes are known only for
received messages that do not fit into a slot. The server counts the frames that it forwards, and each gateway those
of its own links.
"""

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from spcomm.text import aligned

if TYPE_CHECKING:
    from typing import Any

    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.local.run_processes import RunProcesses
    from spcomm.launch.remote.transport_contract import Transports

_TIMES = ("node", "starting", "computing", "waiting for a core", "waiting", "ended")
_COUNTS = ("node", "sent", "received", "MB sent", "MB received", "collectives")
_UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class Spent:
    """The time of a node by state, in nanoseconds, in the order of the table."""

    starting: int = 0
    computing: int = 0
    queued: int = 0  # waiting for a core
    waiting: int = 0
    ended: int = 0  # from its end to that of the last node

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def efficiency(self) -> "float | None":
        """The share of computing in all but starting; None: there is no such time."""
        counted = sum(astuple(self)[1:])
        return self.computing / counted if counted > 0 else None


def spent(
    lives: "list[tuple[int, int, int] | None]", times: "list[dict[str, int] | None]"
) -> "list[Spent | None]":
    """Return how the nodes of a group spent their time; None: not known.

    Parameters
    ----------
    lives
        Of each node its birth, its end, and how long it had no core, as its fork server saw it, by the clock there.
    times
        What each node has counted itself: `Segment.times`.
    """
    found: list[tuple[Spent, int] | None] = []
    for life, own in zip(lives, times, strict=True):
        if life is None or own is None:
            found.append(None)
            continue
        born, end, queued = life
        if not own["started_ns"]:
            found.append((Spent(starting=end - born), end - own["made_ns"]))
            continue
        waiting = own["waited_ns"]
        if own["closed_ns"]:
            end, queued = own["closed_ns"], own["core_closed_ns"]
        elif own["waiting_since_ns"]:  # it was killed in a wait
            waiting += end - own["waiting_since_ns"]
        life_ns = max(0, end - own["started_ns"])
        # The count of the kernel may be ahead of the clock by a tick.
        queued = min(max(0, queued - own["core_started_ns"]), life_ns)
        waiting = min(waiting, life_ns - queued)
        states = Spent(own["started_ns"] - born, life_ns - queued - waiting, queued, waiting)
        found.append((states, end - own["made_ns"]))  # the origin is the same moment on all machines
    last = max((one[1] for one in found if one is not None), default=0)
    return [None if one is None else one[0] + Spent(ended=last - one[1]) for one in found]


def counts_of(group: "Group") -> "list[dict[str, int]]":
    """Counts of each node, by rank."""
    if group.boxes == 1:
        return group.segments[0].counts()
    found = [segment.counts(group.ranks(box)) for box, segment in enumerate(group.segments)]
    return [
        {name: sum(counts[rank][name] for counts in found) for name in found[0][rank]}
        for rank in range(group.size)
    ]


def times_of(group: "Group") -> "list[dict[str, int] | None]":
    """Times of each node, by rank, as it has counted them."""
    if group.boxes == 1:
        return group.segments[0].times()
    found = [segment.times(group.ranks(box)) for box, segment in enumerate(group.segments)]
    return [next((times[rank] for times in found if times[rank]), None) for rank in range(group.size)]


class Stats:
    """Collects the times of the nodes as they end."""

    def __init__(self, run_processes: "RunProcesses", transports: "Transports | None" = None) -> None:
        self._run_processes = run_processes
        self._transports = transports
        self._lives: dict[int, tuple[int, int, int]] = {}

    def ended(self, index: int, life: "tuple[int, int, int]") -> None:
        self._lives[index] = life

    def text(self) -> str:
        """Return the tables, each with a line for all nodes together if there are several."""
        names, times, counts = [], [], []
        for group in self._run_processes.groups:
            names += map(self._name, group.indices)
            times += spent([self._lives.get(index) for index in group.indices], times_of(group))
            counts += counts_of(group)
        known = [one for one in times if one is not None]
        together = sum(known, Spent())
        if len(names) > 1:
            names.append("all")
            times.append(together if known else None)
            counts.append({name: sum(one[name] for one in counts) for name in counts[0]})
        above = [_TIMES, *((name, *_seconds(one)) for name, one in zip(names, times, strict=True))]
        below = [_COUNTS, *((name, *_numbers(one)) for name, one in zip(names, counts, strict=True))]
        return (
            f"spcomm: statistics of the nodes (times in seconds)\n{aligned(above)}{_efficiency(together)}"
            "  computing includes transferring, which only a trace (--trace) tells apart\n\n"
            f"{aligned(below)}  MB: messages of 40 bytes or fewer are not counted\n{self._links()}"
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


def _seconds(times: "Spent | None") -> "list[str]":
    if times is None:
        return [_UNKNOWN] * (len(_TIMES) - 1)
    return [f"{value / 1e9:.3f}" for value in astuple(times)]


def _efficiency(together: Spent) -> str:
    found = together.efficiency
    if found is None:
        return ""
    return f"  parallel efficiency: {100 * found:.1f} %, computing divided by all columns except starting\n"


def _numbers(counts: "dict[str, int]") -> "list[str]":
    sizes = [f"{counts[name] / 1e6:.1f}" for name in ("sent_bytes", "received_bytes")]
    return [str(counts["sent"]), str(counts["received"]), *sizes, str(counts["collectives"])]


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
