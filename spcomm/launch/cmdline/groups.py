# SPDX-License-Identifier: MIT
"""The groups of a run, and the names of its nodes.

A group is isolated from the others: it has ranks 0 to n-1 and its own shared memory; with several boxes (see boxes)
each box has a segment with room for all nodes, which the box's own nodes use. Inside the launcher every node has
an *index*, from 0 to the number of nodes of the run; the nodes of a group have consecutive ones, by rank. With one
group only, which is nearly always, index and rank are the same. Ranks appear in the launcher's messages to nodes, its
marks in shared memory and its output to the user, and nowhere else.

A box of the run may hold nodes of several programs and groups. A group numbers its own boxes from 0, in the order of
the run's boxes, and leaves out those in which it has no node: its nodes cannot tell that there are other groups.
"""

from spcomm.launch.base.record import dataclass, field, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from spcomm.launch.cmdline.options import Options
    from spcomm.launch.cmdline.plan import Plan
    from spcomm.launch.remote.hosts import Host


# With more boxes the server takes less time: in a barrier a box gets one frame from it, and over direct links one from
# each other box.
_DIRECT_BOXES = 8


@dataclass(frozen=True, eq=False)
class Group:
    """The nodes that can see each other."""

    number: int  # the group id
    first: int = 0  # index of its node 0
    size: int = 0
    places: "list[int]" = field(default_factory=list)  # the box of each rank; empty: there is one box
    boxes_of_run: "Sequence[int]" = (0,)  # by box: its number among the boxes of the run
    far: "dict[int, Host]" = field(default_factory=dict)  # boxes on other machines
    segments: "list[Any]" = field(default_factory=list)  # its shared memory, by box, once it is made

    @property
    def boxes(self) -> int:
        return max(self.places, default=0) + 1

    @property
    def indices(self) -> range:
        """Its nodes, by rank."""
        return range(self.first, self.first + self.size)

    def box(self, rank: int) -> int:
        return self.places[rank] if self.places else 0

    def segment(self, rank: int) -> "Any":
        """Return the shared memory that has this node; None: it is not made."""
        return self.segments[self.box(rank)] if self.segments else None

    def ranks(self, box: int) -> "list[int]":
        """Return the nodes of this box."""
        return [rank for rank in range(self.size) if self.box(rank) == box]

    def unmatched(self, where: str, strict: bool) -> "tuple[str, dict[str, list[int]]]":
        """Return the warnings of what its nodes have left, which have ended: see `diagnose.unmatched.report`."""
        if not any(segment.has_left() for segment in self.segments):
            return "", {}
        from spcomm.diagnose import unmatched

        here = [(segment.fd, self.ranks(box)) for box, segment in enumerate(self.segments) if segment.fd >= 0]
        far = [segment.left() for segment in self.segments if segment.fd < 0]
        return unmatched.report(here, where, strict, far)

    def rank(self, index: int) -> int:
        return index - self.first

    def index(self, rank: int) -> int:
        return self.first + rank

    def __contains__(self, index: int) -> bool:
        return index in self.indices


def gather(plans: "list[Plan]") -> "tuple[list[Plan], list[Group]]":
    """Return the programs with the indices of their nodes, and the groups, in the order of the command line.

    `Plan.boxes` has the box of each node; empty: all are in one.
    """
    groups: list[Group] = []
    indices: dict[int, range] = {}  # by program
    for number in dict.fromkeys(plan.group for plan in plans):
        first = begin = groups[-1].indices.stop if groups else 0
        boxes: list[int] = []
        for at, plan in enumerate(plans):
            if plan.group == number:
                indices[at] = range(begin, begin := begin + plan.nodes)
                boxes += plan.boxes or [0] * plan.nodes
        used = sorted(set(boxes))
        places = [used.index(box) for box in boxes] if len(used) > 1 else []
        groups.append(Group(number, first, begin - first, places, used))
    return [replace(plan, indices=indices[at]) for at, plan in enumerate(plans)], groups


def choose_route(groups: "list[Group]", options: "Options | None" = None) -> str:
    """Return the route of messages between boxes: that of --route, or the better one where gateways reach each other.

    `options` are given for a run whose boxes may be on other machines.
    """
    if options is not None and options.link == "mpi":
        return "direct"
    if options is not None and options.route is not None:
        return options.route
    reach = max(group.boxes for group in groups) <= _DIRECT_BOXES
    if options is not None and (options.room is not None or options.server is not None):
        reach = False
    elif options is not None and options.hosts is not None:
        from spcomm.launch.cmdline.machines import tunnels

        reach = reach and not tunnels(options)
    return "direct" if reach else "relay"


def busy(groups: "list[Group]") -> int:
    """Return the number of processes on this machine that use a core: nodes, and with several boxes the transport."""
    carried = [group for group in groups if group.boxes > 1]
    nodes = sum(group.box(rank) not in group.far for group in groups for rank in range(group.size))
    gateways = sum(group.boxes - len(group.far) for group in carried)
    return nodes + gateways + bool(carried)


class Names:
    """Names of nodes: the rank alone where there is one group."""

    def __init__(self, groups: "list[Group] | None" = None) -> None:
        self._groups = groups if groups is not None and len(groups) > 1 else []

    def nodes(self, indices: "list[int]") -> str:
        """Return `node 3`, `nodes 0-2, 5`; with several groups `nodes 0-2 of group 1, node 0 of group 2`."""
        from spcomm.text import ranks_text

        if not self._groups:
            return ranks_text(indices)
        texts = []
        for group in self._groups:
            ranks = [group.rank(index) for index in indices if index in group]
            if ranks:
                texts.append(f"{ranks_text(ranks)} of group {group.number}")
        return ", ".join(texts)

    def label(self, index: int) -> bytes:
        """Return `[3] `, or `[1:3] `: the label before a line of its output."""
        for group in self._groups:
            if index in group:
                return b"[%d:%d] " % (group.number, group.rank(index))
        return b"[%d] " % index


ALONE = Names()


@dataclass(frozen=True, eq=False)
class Placement:
    """The place of each node of a run: its program and its group."""

    machines: "list[list[Plan]]"  # the programs that each fork client starts
    groups: "list[Group]"
    route: str  # of messages between boxes

    @property
    def plans(self) -> "list[Plan]":
        """The programs, those of each machine by themselves."""
        return [plan for plans in self.machines for plan in plans]

    @property
    def in_panes(self) -> "frozenset[int]":
        """The debugged nodes that have a terminal of their own."""
        return frozenset(index for plan in self.plans for index in plan.in_panes)

    @property
    def names(self) -> Names:
        return Names(self.groups)
