# SPDX-License-Identifier: MIT
"""The contracts between what starts nodes and what supervises them.

Only type checkers import this module. A `Starter` is a fork server of this machine, or what stands in for one of
another machine: `fork_client.ForkClient` and `hosts.RemoteForkClient`. `run_processes.RunProcesses` treats those of a
run as one, and hands their messages to a `Listener`: a `Supervisor`, a `Box`, or the `Nodes` of a `Cluster`.
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

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


class Listener(Protocol):
    """Takes the messages of a `Starter`, each in a method of its name; one without a method is dropped.

    Fork servers also send "ready" (with the number of their threads), and "signalled" when a signal that they were to
    hand on has reached their nodes.
    """

    def on_gone(self, fork_client: "Starter", is_lost: bool) -> None:
        """Handle its end. `is_lost`: it has not announced that."""

    def on_started(self, fork_client: "Starter", nodes: "list[int]", processes: "list[int]") -> None:
        """Handle the start of nodes, which `RunProcesses.started` has now."""

    def on_unstarted(self, fork_client: "Starter", nodes: "list[int]", number: int) -> None:
        """Handle that nodes cannot start. `number`: the errno."""

    def on_missing(self, fork_client: "Starter", name: str, text: str) -> None:
        """Handle that a module cannot be imported. `text`: the traceback; empty if there is no such module."""

    def on_exited(self, fork_client: "Starter", node: int, status: int, *times: "Any") -> None:
        """Handle the end of a node. `status` is its wait status, `times` its times if the run wants them."""


class RemoteListener(Listener, Protocol):
    """One that also supervises nodes whose box is elsewhere. Boxes of a room have more messages, about its files."""

    def on_nonsense(self, fork_client: "RemoteStarter") -> None:
        """Handle a malformed message, which the user of that box may have made it send."""

    def on_failed(self, fork_client: "RemoteStarter", sentence: str, code: int) -> None:
        """Handle the end of a box. `sentence` says why; `code` is the exit code of a run that it ends."""

    def on_deadlock(self, fork_client: "RemoteStarter", group: int, rows: list, in_vain: bool) -> None:
        """Handle a proof by the gateways of a group, as in `Watchdog.proven`."""

    def on_report(self, fork_client: "RemoteStarter", node: int, kind: bytes, payload: bytes) -> None:
        """Handle what a node reports about its end, as in `base.report`."""

    def on_warning(self, fork_client: "RemoteStarter", text: str) -> None:
        """Show a warning."""

    def on_text(self, fork_client: "RemoteStarter", text: str) -> None:
        """Show a text as it is."""
