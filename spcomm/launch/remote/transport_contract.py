# SPDX-License-Identifier: MIT
"""The contract of the processes that carry messages between boxes, as whoever supervises a run sees them.

Only type checkers import this module. The server that a run starts, or one that runs already on another machine
(`room.client.Server`), and the gateways keep it.
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from spcomm.launch.base.loop import Loop


class Transport(Protocol):
    """A server or a gateway."""

    name: str  # for sentences
    gone: bool  # it has ended, and `status` is its wait status
    status: int

    @property
    def box(self) -> int:
        """The box of a gateway; -1: it is a server."""

    @property
    def group(self) -> "int | None":
        """The group of a gateway."""

    def listen(self, loop: "Loop", call: "Callable[[], None]") -> None:
        """Call when there is something to receive."""

    def leave(self, loop: "Loop") -> None:
        """Stop calling."""

    def receive(self) -> "tuple | None":
        """Return its next message; None when it has ended."""

    def how(self) -> str:
        """Describe how it ended."""

    def close(self) -> None:
        """End it."""


class Transports(Protocol):
    """All those of a run."""

    def __iter__(self) -> "Iterator[Transport]":
        """Return those that can be received from."""

    @property
    def over(self) -> bool:
        """Whether all messages have been carried."""

    def counted(self) -> "dict[tuple[int, int], dict[str, Any]]":
        """Return the counts of the server's link to each (group, box), if it ended well."""

    def between(self) -> "dict[tuple[int, str], dict[str, Any] | None]":
        """Return the counts of links between gateways; None: the server relays for them."""

    def left(self) -> str:
        """Return the names of those that have not ended."""

    def close(self, patience: float = 0.0) -> None:
        """End them all."""
