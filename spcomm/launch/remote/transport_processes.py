# SPDX-License-Identifier: MIT
"""Processes between the boxes of a run, seen from the launcher: a server, and a gateway in each box.

They are forked from the launcher, which has no threads, and run the loops of `transport_main`. Each has one wire to the
launcher: it reports there why it ends, and ends when the launcher does. A gateway ends by itself when all nodes of the
run have ended and all their messages have been carried; the server, when all gateways have.
"""

import _signal
import _socket
import os
import select

from spcomm.launch.base.process import signal_name
from spcomm.launch.base.usage import UsageError
from spcomm.launch.base.wire import Wire, opened
from spcomm.launch.remote import handshake, transport_main

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from spcomm.launch.base.loop import Loop
    from spcomm.launch.cmdline.groups import Group

_BACKLOG = 128


class TransportProcess:
    """One of these processes."""

    def __init__(
        self,
        name: str,
        box: int,
        label: str,
        work: "Callable[[Wire], None]",
        kept: int,
        forgotten: "list[Any]",
        reports: bool = False,
    ) -> None:
        """Fork it. It runs `work`, and needs the descriptor `kept`; it gives up segments of other boxes.

        `label` is its name in the system: 15 letters. `box`: of a gateway; -1: the server. `reports`: when this process
        is killed, `work` reports it.
        """
        self.name = name
        self.box = box
        self.gone = False
        self.status = 0
        self.counted: dict = {}  # the counts of its links, once reported
        self._wire, theirs = Wire.pair()
        launcher = os.getpid()
        mask = _signal.pthread_sigmask(_signal.SIG_SETMASK, _signal.valid_signals())
        try:
            self.pid = os.fork()
            if self.pid == 0:
                for segment in forgotten:
                    segment.close()
                parent = 0 if reports else launcher
                transport_main.become(label, lambda: work(theirs), theirs, [theirs.fileno(), kept], parent)
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
            theirs.close()

    def fileno(self) -> int:
        return self._wire.fileno()

    def listen(self, loop: "Loop", call: "Callable[[], None]") -> None:
        """Call when there is something to receive."""
        loop.add(self.fileno(), call)

    def leave(self, loop: "Loop") -> None:
        """Stop calling."""
        loop.remove(self.fileno())

    def receive(self) -> "tuple | None":
        """Return its next message; None when it has ended, and `status` is its wait status then."""
        message = None if self.gone else self._wire.receive()
        if message is not None and message[0][0] == "counted":  # its last message
            self.counted = message[0][1]
            message = self._wire.receive()
        if message is None:
            self.wait()
            return None
        return message[0]

    def hear_out(self, patience: float) -> None:
        """Wait at most that many seconds for its messages."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        if not self.gone and poll.poll(patience * 1000):
            self.receive()

    def how(self) -> str:
        """Describe how it ended."""
        if self.status & 0x7F:
            return f"was killed by {signal_name(self.status & 0x7F)}"
        return f"ended with code {self.status >> 8}"

    def kill(self) -> None:
        if not self.gone:
            os.kill(self.pid, _signal.SIGKILL)  # our child and not reaped: the number is its own

    def wait(self) -> None:
        """Wait until it has ended."""
        if not self.gone:
            self.gone = True
            self.status = os.waitpid(self.pid, 0)[1]

    def close(self) -> None:
        """Remove the rest of it."""
        self.kill()
        self.wait()
        self._wire.close()


class TransportProcesses:
    """All transport processes. Their creator ends them with `close`."""

    def __init__(
        self,
        group: "Group",
        link_timeout: float,
        listen: "str | None" = None,
        server: "Any | None" = None,
        route: str = "relay",
    ) -> None:
        """`listen`: the address of this machine on which boxes elsewhere connect. `server`: one that runs already."""
        self._link_timeout = link_timeout
        self._places = group.places if route == "direct" else None
        self._killed: Callable[[], None] | None = None
        self._all: list[TransportProcess] = []
        if server is not None:
            self.secrets, self.job, self.address = server.session.secrets, server.session.job, server.address
            self._killed = server.session.link.report_gone
            self._all.append(server)
            try:
                self._start_gateways(group)
            except BaseException:
                self.close()
                raise
            return
        # By box; the fork hands them over, so they are in no file, and on no command line.
        self.secrets = transport_main.make_secrets(group.boxes)
        self.job = int.from_bytes(os.urandom(4), "little") or 1
        listener = _listen(listen or "127.0.0.1")
        try:
            self._start(group, listener)
        except BaseException:
            self.close()
            raise
        finally:
            listener.close()

    def _start(self, group: "Group", listener: "_socket.socket") -> None:
        self.address = listener.getsockname()
        here = [segment for segment in group.segments if segment.fd >= 0]

        def serve(wire: Wire) -> None:
            transport_main.serve(wire, listener, self.secrets, self.job, group.places, self._link_timeout)

        self._all.append(TransportProcess("the server", -1, "spcomm server", serve, listener.fileno(), here))
        self._start_gateways(group)

    def _start_gateways(self, group: "Group") -> None:
        here = [segment for segment in group.segments if segment.fd >= 0]
        for box, segment in enumerate(group.segments):
            if segment.fd < 0:  # the box is elsewhere, and so is its gateway
                continue
            reached = self._reach(box, self.address)

            def carry(
                wire: Wire,
                box: int = box,
                segment: "Any" = segment,
                reached: "tuple[str, int]" = reached,
            ) -> None:
                secrets = self.secrets[box]
                transport_main.carry(
                    wire,
                    reached,
                    secrets,
                    self.job,
                    box,
                    segment.fd,
                    self._link_timeout,
                    self._places,
                    self._killed,
                )

            others = [other for other in here if other is not segment]
            self._all.append(
                TransportProcess(
                    f"the gateway of box {box}",
                    box,
                    f"spcomm gw {box}",
                    carry,
                    segment.fd,
                    others,
                    self._killed is not None,
                )
            )

    def _reach(self, box: int, address: "tuple[str, int]") -> "tuple[str, int]":
        """Return the address of the server for the gateway of this box."""
        return address

    def __iter__(self) -> "Iterator[TransportProcess]":
        return iter(self._all)

    @property
    def over(self) -> bool:
        """Whether all messages have been carried.

        The server ends well once all boxes have finished and each has received the messages of the others. A gateway
        may not have learned of that if the connection broke just then.
        """
        server = self._all[0]
        return (server.gone and server.status == 0) or all(transport.gone for transport in self._all)

    def counted(self) -> "list[dict[str, Any]]":
        """Return the counts of the server's link to each box (see `net.counted`); none, if it did not end well."""
        found = self._all[0].counted
        return [found[box] for box in sorted(found)]

    def between(self) -> "dict[str, dict[str, Any] | None]":
        """Return the counts of links between gateways, from the first of the two: `0-1` for boxes 0 and 1.

        None: the server relays for them.
        """
        found = {}
        for transport in self._all[1:]:
            for other, counts in sorted(transport.counted.items()):
                if transport.box < other:
                    found[f"{transport.box}-{other}"] = counts
        return found

    def left(self) -> str:
        """Return the names of those that have not ended."""
        return ", ".join(transport.name for transport in self._all if not transport.gone)

    def close(self, patience: float = 0.0) -> None:
        """End them all. `patience`: for gateways whose last messages are worth waiting for."""
        for transport in self._all:
            if patience and self._places is not None:
                transport.hear_out(patience)
            transport.kill()
        for transport in self._all:
            transport.close()


def _listen(address: str) -> "_socket.socket":
    """Listen at this address. Strangers may connect, and get no further than the handshake."""
    listener = opened(_socket.socket, _socket.AF_INET, _socket.SOCK_STREAM)
    os.set_inheritable(listener.fileno(), False)
    try:
        listener.bind((address, 0))
    except OSError as error:
        listener.close()
        without = "; give it without a port, which the system chooses" if ":" in address else ""
        raise UsageError(
            f"spcomm run: --listen {address} is not an address of this machine ({error}){without}"
        ) from None
    handshake.require("spcomm run", listener)
    listener.listen(_BACKLOG)
    return listener
