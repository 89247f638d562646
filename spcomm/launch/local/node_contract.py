# SPDX-License-Identifier: MIT
"""The contract of what starts nodes: a fork server of this machine, or what stands in for one of another machine.

Only type checkers import this module. `fork_client.ForkClient` and `hosts.RemoteForkClient` keep the contract, and
`run_processes.RunProcesses` treats all starters of a run as one.
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.cmdline.plan import Plan
    from spcomm.launch.remote.box_proxy import RemoteBox
    from spcomm.launch.remote.hosts import Host


class Starter(Protocol):
    """Starts nodes, which are known by index, and is the only one that signals and ends them.

    The order of calls is `place`, `run`, then `start` for each `batch`, then `end`. Only `place`, `run` and `start`
    repeat, for another run of the same programs. Nothing raises when the other end has gone: `receive` reports that.
    """

    ready: bool  # it has imported the modules of its programs
    gone: bool  # it has ended, or announced its end; set by the caller, who receives that
    ended: bool  # its process is reaped, and `status` its wait status
    signalled: bool  # it has handed a signal on that asks its nodes to end
    unanswered: int  # nodes requested whose start is not reported yet
    status: int

    @property
    def plans(self) -> "list[Plan]":
        """The programs whose nodes it starts."""

    @property
    def indices(self) -> "Sequence[int]":
        """The nodes that it starts."""

    @property
    def host(self) -> "Host | None":
        """The machine of its nodes; None: this one."""

    def fileno(self) -> int:
        """Return a descriptor that can be read when there is something to receive."""

    # Start

    def place(self, plans: "list[Plan]") -> None:
        """Take over the nodes that it is to start next, of the same programs."""

    def run(
        self,
        groups: "list[Group]",
        reports: "list[int]",
        where: int,
        cpus: "list[tuple[int, ...]] | None",
        stats: bool,
    ) -> None:
        """Describe the run that nodes are about to join."""

    def batch(self) -> "Sequence[int]":
        """Return the nodes to request now; empty if all were, or if too many are unanswered."""

    def start(self, indices: "Sequence[int]", streams: "list[int]") -> None:
        """Request these nodes. `streams` holds stdin, stdout and stderr of each, and stays the caller's."""

    # Signal

    def signal(self, number: int, spared: "int | None" = None) -> None:
        """Signal the process groups of all running nodes but one."""

    def poke(self, index: int, number: int) -> None:
        """Signal one node's process only."""

    def stop(self) -> None:
        """Stop this process itself, as Ctrl-Z does, until `go_on`."""

    def go_on(self) -> None:
        """Continue it, in case it was stopped."""

    # End

    def end(self) -> None:
        """Mark the end of requests: it ends when all its nodes have."""

    def kill(self) -> None:
        """End it at once, and its nodes with it."""

    def wait(self) -> None:
        """Wait until it has ended."""

    def close(self) -> None:
        """Hang up: it ends its nodes, and itself."""

    # Ask

    def has_news(self, seconds: float) -> bool:
        """Whether `receive` has a message within that many seconds."""

    def receive(self) -> "tuple | None":
        """Return its next message; None when it has ended."""


class RemoteStarter(Starter, Protocol):
    """One whose nodes have memory that the launcher cannot read: it asks their box."""

    @property
    def far(self) -> "RemoteBox":
        """The answers of the box."""

    def ask(self, question: str, indices: "Sequence[int]" = ()) -> None:
        """Ask the box a question of `box_proxy`. The answer comes as a message, and is then in `far`."""

    def abandon(self) -> None:
        """Give its box up, which has ended."""
