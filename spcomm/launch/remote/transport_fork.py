# SPDX-License-Identifier: MIT
"""Fork server of transport processes, for callers that cannot fork them: a notebook's kernel has threads.

It serves one run after the other: forks a server and the gateways, forwards their messages, and ends them on request.
It ends with the caller, and the kernel ends its transport processes with it.

Messages in:  ("segments",) + segments of the boxes, in order  ("begin", box of each rank, link timeout)  ("end",)
Messages out: ("begun",)  ("refused", text)  ("deadlock", rows, in vain)  ("lost", sentence, box)  ("over",)  ("ended",)
"""

import os
import signal
import sys
from typing import TYPE_CHECKING

from spcomm.launch.base import process
from spcomm.launch.base.loop import Loop
from spcomm.launch.base.usage import UsageError
from spcomm.launch.base.wire import MOST_DESCRIPTORS, Wire
from spcomm.launch.local.fork_client import spawn

if TYPE_CHECKING:
    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.remote.transport_processes import TransportProcess, TransportProcesses

GONE = "the process that starts the gateways has ended; try again"


class TransportForkClient:
    """The caller's end."""

    def __init__(self) -> None:
        self._wire, self.process = spawn(
            "remote.transport_fork", process.interpreter_flags(), None, dict(os.environ)
        )

    def fileno(self) -> int:
        return self._wire.fileno()

    def begin(self, group: "Group", link_timeout: float) -> str:
        """Start the transport processes of a run; return why that is impossible, or nothing."""
        descriptors = [segment.fd for segment in group.segments]
        try:
            for at in range(0, len(descriptors), MOST_DESCRIPTORS):
                self._wire.send(("segments",), tuple(descriptors[at : at + MOST_DESCRIPTORS]))
            self._wire.send(("begin", group.places, link_timeout))
        except OSError:
            return GONE
        message = self.receive()
        if message is None:
            return GONE
        return message[1] if message[0] == "refused" else ""

    def receive(self) -> "tuple | None":
        """Return the next message; None when the process has ended."""
        message = self._wire.receive()
        return message[0] if message is not None else None  # type: ignore[return-value]

    def end(self) -> bool:
        """End the transport processes of the run. False: the process itself has ended, and they with it."""
        try:
            self._wire.send(("end",))
        except OSError:
            return False
        while (message := self.receive()) is not None:
            if message[0] == "ended":
                return True
        return False

    def abandon(self) -> None:
        """End it, and all that it has started; the thread that waits for it reaps it."""
        process.tell(self.process, signal.SIGKILL)  # our child and not reaped: the number is its own

    def kill(self) -> None:
        """End it, and all that it has started."""
        self.abandon()
        process.reap(self.process)
        self._wire.close()


class _Segment:
    """Shared memory of a box, as far as transport processes need it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        os.close(self.fd)


class _Server:
    """Runs the loop of the process."""

    def __init__(self, wire: Wire, caller: int) -> None:
        self._wire = wire
        self._loop = Loop()
        self._segments: list[_Segment] = []
        self._transports: TransportProcesses | None = None
        self._loop.add(wire.fileno(), self._obey)
        if hasattr(os, "pidfd_open"):  # a fork of the caller may keep the other end of the wire open
            self._caller = os.pidfd_open(caller)
            self._loop.add(self._caller, lambda: os._exit(0))

    def serve(self) -> None:
        while True:
            self._loop.turn()

    def _obey(self) -> None:
        found = self._wire.receive()
        if found is None:
            os._exit(0)
        message, descriptors = found
        if message[0] == "segments":  # type: ignore[index]
            self._segments += [_Segment(fd) for fd in descriptors]
        elif message[0] == "begin":  # type: ignore[index]
            self._begin(*message[1:])  # type: ignore[index]
        else:
            self._end()
            self._wire.send(("ended",))

    def _begin(self, places: "list[int]", link_timeout: float) -> None:
        from spcomm.launch.cmdline.groups import Group, choose_route
        from spcomm.launch.remote.transport_processes import TransportProcesses

        groups = [Group(0, size=len(places), places=places, segments=self._segments)]
        try:
            self._transports = TransportProcesses(groups, link_timeout, route=choose_route(groups))
        except (OSError, UsageError) as error:
            self._end()
            self._wire.send(
                ("refused", f"boxes cannot be connected: {str(error).removeprefix('spcomm run: ')}")
            )
            return
        for transport in self._transports:
            self._loop.add(transport.fileno(), lambda transport=transport: self._hear(transport))
        self._wire.send(("begun",))

    def _hear(self, transport: "TransportProcess") -> None:
        fd = transport.fileno()
        message = transport.receive()
        if message is None:
            self._loop.remove(fd)
            if transport.status:
                self._wire.send(("lost", f"{transport.name} {transport.how()}", transport.box))
            elif self._transports.over:  # type: ignore[union-attr]
                self._wire.send(("over",))
        elif message[0] == "deadlock":
            self._wire.send(message)
        elif message[0] == "failed":
            from spcomm.launch.remote.framing import one_line

            self._wire.send(("lost", one_line(message[1]), message[2]))
        else:
            self._wire.send(("lost", f"{transport.name} has failed: {message[1]}", transport.box))

    def _end(self) -> None:
        if self._transports is not None:
            for transport in self._transports:
                self._loop.remove(transport.fileno())
            self._transports.close()
        for segment in self._segments:
            segment.close()
        self._transports, self._segments = None, []


def main() -> None:
    """Run the process from its top level."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller
    _Server(Wire.adopt(int(sys.argv[1])), int(sys.argv[2])).serve()
