# SPDX-License-Identifier: MIT
"""Meeting: boxes without a launcher that come to a server one by one, until all nodes of their run are there.

It decides which boxes may take part and which node gets which rank; `broker` has the connections.
"""

from typing import TYPE_CHECKING

from spcomm.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spcomm.launch.room.broker import Connection


class Seat:
    """One box."""

    def __init__(self, connection: "Connection", about: dict) -> None:
        self.connection = connection
        self.nodes = int(about["nodes"])
        self.total = int(about["total"])
        self.ranks = [int(rank) for rank in about["ranks"]]  # empty: any that are left
        self.program = str(about["program"])
        self.sizes = {str(name): int(value) for name, value in dict(about["sizes"]).items()}
        self.box = -1
        if (
            not 1 <= self.nodes < self.total <= 1024
            or (self.ranks and len(self.ranks) != self.nodes)
            or any(not 0 <= rank < self.total for rank in self.ranks)
        ):
            raise ValueError(about)

    @property
    def name(self) -> str:
        return self.connection.name


class Meeting:
    """All boxes of a run."""

    def __init__(self, group: int, total: int) -> None:
        self.group = group
        self.total = total
        self.seats: list[Seat] = []  # as they come; once numbered, by box
        self.job = 0
        self.boxes = 0  # once it is complete
        self.is_over = False

    @property
    def there(self) -> int:
        return sum(seat.nodes for seat in self.seats)

    @property
    def is_complete(self) -> bool:
        return self.there == self.total

    def refusal(self, seat: Seat) -> str:
        """Return why this box cannot take part; empty: it can."""
        if seat.total != self.total:
            return (
                f"total_nodes={seat.total}: group {self.group} is to have {counted(self.total, 'node')}, says "
                f"{self.seats[0].name}, which came first; give that, or another group_id"
            )
        if self.there + seat.nodes > self.total:
            return (
                f"{counted(seat.nodes, 'node')} more are too many: {self.there} of the {self.total} nodes of group "
                f"{self.group} are there ({self.who()}); give local_nodes={self.total - self.there}, or another "
                "group_id"
            )
        for other in self.seats:
            twice = sorted({*seat.ranks} & {*other.ranks})
            if twice:
                have = ", ".join(map(str, twice))
                return f"ranks: {other.name} has {have} already; each node has a rank of its own"
        return ""

    def who(self) -> str:
        """The boxes that are there."""
        return ", ".join(f"{seat.nodes} on {seat.name}" for seat in self.seats)

    def number(self) -> "list[int]":
        """Number boxes and nodes: the box of each rank. Box 0 has node 0, and so on.

        Ranks that no box asked for go to the other boxes, first come, first numbered.
        """
        asked = {rank for seat in self.seats for rank in seat.ranks}
        free = iter([rank for rank in range(self.total) if rank not in asked])
        for seat in self.seats:
            seat.ranks = seat.ranks or [next(free) for _node in range(seat.nodes)]
        self.seats.sort(key=lambda seat: min(seat.ranks))
        self.boxes = len(self.seats)
        places = [0] * self.total
        for box, seat in enumerate(self.seats):
            seat.box = box
            for rank in seat.ranks:
                places[rank] = box
        return places

    def sizes(self) -> "dict[str, int]":
        """The sizes of all segments: those of the box with the least memory."""
        return min((seat.sizes for seat in self.seats), key=lambda sizes: sorted(sizes.items()))


def elsewhere(meetings: "Iterable[Meeting]", group: int) -> str:
    """Return a note on the other groups that wait: a wrong group is a common mistake."""
    return ", ".join(
        f"group {one.group} has {one.there} of {one.total}" for one in meetings if one.group != group
    )
