# SPDX-License-Identifier: MIT
"""All fork servers of a run, one for each program and one for each box elsewhere, as one: starts nodes, signals them.

Whoever supervises the nodes (the launcher, `spcomm box`, a `Cluster`) gets the messages of the fork servers, each in a
method of its name: "exited" in `on_exited`. Nodes start when *every* fork server has finished its imports, so that a
program which cannot start keeps the others from starting; a single program does not wait for that. Nodes are known by
index.
"""

import _signal
import os

from spcomm.launch.base import nothing
from spcomm.launch.base.wire import NONSENSE
from spcomm.launch.cmdline.groups import Group, Names
from spcomm.launch.local.forward import Forwarder
from spcomm.launch.local.stdin import Stdin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from spcomm.launch.base.loop import Loop
    from spcomm.launch.cmdline.plan import Plan
    from spcomm.launch.local.keyboard import Keyboard
    from spcomm.launch.local.node_contract import Listener, Starter


class RunProcesses:
    """The fork servers and the nodes that they have started."""

    def __init__(self, fork_clients: "Sequence[Starter]", groups: "list[Group]") -> None:
        self._fork_clients = fork_clients
        self.groups = groups
        self.size = sum(group.size for group in groups)
        self.names = Names(groups)
        self.started: dict[int, int] = {}  # node → process

    def __iter__(self) -> "Iterator[Starter]":
        return iter(self._fork_clients)

    @property
    def alone(self) -> bool:
        """Whether there is one fork server only."""
        return len(self._fork_clients) == 1

    @property
    def ready(self) -> bool:
        """Whether all have finished their imports."""
        return all(fork_client.ready for fork_client in self._fork_clients)

    @property
    def gone(self) -> bool:
        """Whether all have ended, and their nodes with them."""
        return all(fork_client.gone for fork_client in self._fork_clients)

    @property
    def signalled(self) -> bool:
        """Whether all nodes that run have got a signal to end."""
        return all(client.signalled or client.gone or not client.ready for client in self._fork_clients)

    def of(self, index: int) -> "Starter":
        """The fork client that starts this node."""
        return next(fork_client for fork_client in self._fork_clients if index in fork_client.indices)

    def plan(self, index: int) -> "Plan":
        """The program of this node."""
        return next(plan for plan in self.of(index).plans if index in plan.indices)

    def group(self, index: int) -> Group:
        """The group of this node."""
        return next(group for group in self.groups if index in group)

    def group_numbered(self, number: int) -> Group:
        """The group with this id. Raises `ValueError`."""
        for group in self.groups:
            if group.number == number:
                return group
        raise ValueError(f"no group {number}")

    def memory(self, index: int) -> "tuple[Any, int]":
        """The shared memory that has this node, and its rank there."""
        group = self.group(index)
        rank = group.rank(index)
        return group.segment(rank), rank

    def run(
        self,
        reports: "list[int]",
        where: int,
        cpus: "list[tuple[int, ...]] | None" = None,
        stats: bool = False,
    ) -> None:
        """Describe the run to all. `reports` holds the pipe of each group, `cpus` the processors of nodes, in turn.

        `stats`: fork servers report the times of nodes that have ended.
        """
        for fork_client in self._fork_clients:
            fork_client.run(self.groups, reports, where, cpus, stats)

    def start(
        self, forwarder: Forwarder, stdin: Stdin, keyboards: "Mapping[int, Keyboard] | None" = None
    ) -> None:
        """Request as many nodes as the limits allow now. `OSError` when this process has no descriptors left.

        `keyboards`: of nodes whose debuggers have panes.
        """
        if not self.alone and not self.ready:
            return
        for fork_client in self._fork_clients:
            while batch := fork_client.batch():
                self._start(fork_client, batch, forwarder, stdin, keyboards or {})
                stdin.sent(batch)

    def _start(
        self,
        fork_client: "Starter",
        batch: "Sequence[int]",
        forwarder: Forwarder,
        stdin: Stdin,
        keyboards: "Mapping[int, Keyboard]",
    ) -> None:
        """Make two pipes and the standard input of each node, or a terminal; the fork server gets its ends."""
        ours: dict[int, list[int]] = {}
        theirs: list[int] = []
        streams: list[int] = []
        try:
            for index in batch:
                keyboard = keyboards.get(index)
                if keyboard is not None:
                    ours[index] = [keyboard.master]
                    theirs.append(keyboard.slave)
                    streams += keyboard.descriptors()
                    continue
                streams.append(stdin.descriptor(index))
                ours[index] = []
                for _target in (1, 2):
                    read, write = os.pipe()
                    ours[index].append(read)
                    theirs.append(write)
                    streams.append(write)
            fork_client.start(batch, streams)
        except OSError:
            for fd in [fd for descriptors in ours.values() for fd in descriptors]:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        for index, descriptors in ours.items():
            forwarder.add(index, *descriptors)

    def listen(self, loop: "Loop", listener: "Listener") -> None:
        """Hand the messages of the fork servers to the listener whenever the loop turns."""
        self._loop, self._listener = loop, listener
        for fork_client in self._fork_clients:
            loop.add(fork_client.fileno(), lambda fork_client=fork_client: self.hear(fork_client))

    def hear(self, fork_client: "Starter") -> None:
        """Receive a message of this fork server, record the state that it reports, and hand it to the listener."""
        try:
            message = fork_client.receive()
            verb, *rest = message if message is not None else ("gone",)
            if verb == "gone":
                self._loop.remove(fork_client.fileno())
                rest = [message is None and not fork_client.gone]  # it did not announce its end
                fork_client.gone = True
            elif verb == "ready":
                fork_client.ready = True
            elif verb == "started":
                self.started.update(zip(*rest, strict=True))
            getattr(self._listener, f"on_{verb}", nothing)(fork_client, *rest)
        except NONSENSE:
            if fork_client.host is None:
                raise
            self._listener.on_nonsense(fork_client)  # type: ignore[attr-defined]  # a RemoteListener

    def poke(self, index: int, number: int) -> None:
        """Signal one node's process only."""
        self.of(index).poke(index, number)

    def signal(self, number: int, spared: "int | None" = None) -> None:
        """Signal the process groups of all running nodes but one."""
        for fork_client in self._fork_clients:
            fork_client.signal(number, spared)

    def stop(self) -> None:
        """Stop all nodes, and the fork servers that import for them, until `go_on`."""
        self.signal(_signal.SIGSTOP)
        for fork_client in self._fork_clients:
            if not fork_client.ready:
                fork_client.stop()

    def go_on(self, spared: "int | None" = None) -> None:
        """Continue those, all nodes but one."""
        for fork_client in self._fork_clients:
            fork_client.go_on()
        self.signal(_signal.SIGCONT, spared)

    def end(self, number: int, spared: "int | None" = None) -> None:
        """Start no more nodes; signal all running ones but one. A fork server still at its imports is killed."""
        for fork_client in self._fork_clients:
            if fork_client.ready:
                fork_client.go_on()
                fork_client.signal(number, spared)
                fork_client.end()
            else:
                fork_client.kill()

    def kill(self) -> None:
        """End all nodes at once. Fork servers that imported when `end` was called are gone already."""
        for fork_client in self._fork_clients:
            if fork_client.ready:
                fork_client.go_on()
                fork_client.signal(9)
            else:
                fork_client.kill()

    def wait(self) -> None:
        """Wait until all fork servers have ended."""
        for fork_client in self._fork_clients:
            fork_client.wait()
