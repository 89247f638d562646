# SPDX-License-Identifier: MIT
"""All warm processes of a run, one for each program, as one: who starts nodes, who signals them.

Nodes start when *every* warm process has imported what it had to, so that a program which cannot start keeps
the others from starting; a program by itself does not wait for that. Nodes are known by index.
"""

import _signal
import os

from spcomm.launch.cmdline.groups import Group, Names
from spcomm.launch.local.fork_client import Starter
from spcomm.launch.local.forward import Forwarder
from spcomm.launch.local.stdin import Stdin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Crew:
    """The warm processes and the nodes that they have started."""

    def __init__(self, starters: "list[Starter]", groups: "list[Group]") -> None:
        self._starters = starters
        self.groups = groups
        self.size = sum(group.size for group in groups)
        self.names = Names(groups)
        self.started: dict[int, int] = {}  # and as which process
        self.cpus: list[int] | None = None  # what nodes are bound to, in turn
        self.stats = False  # whether warm processes tell the times of nodes that have ended
        self.at_prompt: int | None = None  # the node whose debugger has the standard input

    def __iter__(self) -> "Iterator[Starter]":
        return iter(self._starters)

    @property
    def boxes(self) -> int:
        """How many there are; several groups share one."""
        return max(group.boxes for group in self.groups)

    @property
    def alone(self) -> bool:
        """Whether there is one program only."""
        return len(self._starters) == 1

    @property
    def ready(self) -> bool:
        """Whether all have imported what they had to."""
        return all(starter.ready for starter in self._starters)

    @property
    def gone(self) -> bool:
        """Whether all have ended, and their nodes with them."""
        return all(starter.gone for starter in self._starters)

    def of(self, index: int) -> Starter:
        """Who starts this node."""
        return next(starter for starter in self._starters if index in starter.plan.indices)

    def group(self, index: int) -> Group:
        """The group of this node."""
        return next(group for group in self.groups if index in group)

    def run(self, reports: "list[int]", where: int) -> None:
        """Describe the run to all; `reports` holds the pipe of each group."""
        numbers = [group.number for group in self.groups]
        for starter in self._starters:
            at = numbers.index(starter.plan.group)
            starter.run(self.groups[at], reports[at], where, self.cpus, self.stats)

    def start(self, forwarder: Forwarder, stdin: Stdin) -> None:
        """Ask for as many nodes as may be asked for now. `OSError` when this process has no descriptors left."""
        if not self.alone and not self.ready:
            return
        for starter in self._starters:
            while batch := starter.batch():
                self._start(starter, batch, forwarder, stdin)
                stdin.sent(batch)

    def _start(self, starter: Starter, batch: range, forwarder: Forwarder, stdin: Stdin) -> None:
        """Two pipes and the standard input of each node. The warm process gets its ends; ours are read."""
        ours: list[int] = []
        theirs: list[int] = []
        streams: list[int] = []
        try:
            for index in batch:
                streams.append(stdin.descriptor(index))
                for _target in (1, 2):
                    read, write = os.pipe()
                    ours.append(read)
                    theirs.append(write)
                    streams.append(write)
            starter.nodes(batch, streams)
        except OSError:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        for at, index in enumerate(batch):
            forwarder.add(index, ours[2 * at], ours[2 * at + 1])

    def poke(self, index: int, number: int) -> None:
        """Signal one node's process only."""
        self.of(index).poke(index, number)

    def signal(self, number: int, spared: "int | None" = None) -> None:
        """Signal the process groups of all running nodes but one."""
        for starter in self._starters:
            starter.signal(number, spared)

    def stop(self) -> None:
        """Stop all nodes, and who imports for them, until `go_on`."""
        self.signal(_signal.SIGSTOP)
        for starter in self._starters:
            if not starter.ready:
                starter.stop()

    def go_on(self) -> None:
        """Continue those."""
        for starter in self._starters:
            starter.go_on()
        self.signal(_signal.SIGCONT)

    def end(self, number: int, spared: "int | None" = None) -> None:
        """No more nodes; signal those that run, but one. Who still imports has none, and is killed."""
        for starter in self._starters:
            if starter.ready:
                starter.go_on()
                starter.signal(number, spared)
                starter.no_more()
            else:
                starter.kill()

    def kill(self) -> None:
        """End all nodes at once. Those that imported when `end` was called are gone already."""
        for starter in self._starters:
            if starter.ready:
                starter.go_on()
                starter.signal(9)
            else:
                starter.kill()

    def wait(self) -> None:
        """Until all warm processes have ended."""
        for starter in self._starters:
            starter.wait()
