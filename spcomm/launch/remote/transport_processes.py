# SPDX-License-Identifier: MIT
"""Processes between the boxes of a run, seen from the launcher: a server, and a gateway in each box of each group.

They are forked from the launcher, which has no threads, and run the loops of `transport_main`. Each has one wire to the
launcher: it reports there why it ends, and ends when the launcher does. A gateway ends by itself when all nodes of the
run have ended and all their messages have been carried; the server, when all gateways have.
"""

import os
import select
import signal
import socket
from typing import TYPE_CHECKING

from spcomm.launch.base import loopback
from spcomm.launch.base.process import how_ended
from spcomm.launch.base.usage import UsageError
from spcomm.launch.base.wire import Wire, opened
from spcomm.launch.remote import handshake, transport_main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from spcomm.launch.base.loop import Loop
    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.remote.mpi_link import MpiLink

_BACKLOG = 128
_PROGRAM_S = 3.0  # for mpiexec to end after its processes


class TransportProcess:
    """One of these processes."""

    def __init__(
        self,
        name: str,
        box: int,
        label: str,
        work: "Callable[[Wire], None]",
        kept: "int | list[int]",
        forgotten: "list[Any]",
        group: "int | None" = None,
        reports: bool = False,
    ) -> None:
        """Fork it. It runs `work`, and needs the descriptors `kept`; it gives up segments of other boxes.

        `label` is its name in the system: 15 letters. `box`, `group`: of a gateway; -1 and None: the server. `reports`:
        when this process is killed, `work` reports it.
        """
        self.name = name
        self.box = box
        self.group = group
        self.gone = False
        self.status = 0
        self.counted: dict = {}  # the counts of its links, once reported
        self._wire, theirs = Wire.pair()
        launcher = os.getpid()
        mask = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        try:
            self.pid = os.fork()
            if self.pid == 0:
                for segment in forgotten:
                    segment.close()
                parent = 0 if reports else launcher
                transport_main.become(
                    label,
                    lambda: work(theirs),
                    theirs,
                    [theirs.fileno(), *([kept] if isinstance(kept, int) else kept)],
                    parent,
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
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
        if self.gone:
            return
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        if poll.poll(patience * 1000):
            self.receive()

    def how(self) -> str:
        """Describe how it ended."""
        return how_ended(self.status)

    def kill(self) -> None:
        if not self.gone:
            os.kill(self.pid, signal.SIGKILL)  # our child and not reaped: the number is its own

    def wait(self) -> None:
        """Wait until it has ended."""
        if not self.gone:
            self.gone = True
            self.status = os.waitpid(self.pid, 0)[1]

    def release(self) -> None:
        """Let it end by itself, and wait for that."""
        self._wire.close()
        self.wait()

    def close(self) -> None:
        """Remove the rest of it."""
        self.kill()
        self.wait()
        self._wire.close()


class TransportProcesses:
    """All transport processes. Their creator ends them with `close`."""

    def __init__(
        self,
        groups: "list[Group]",
        link_timeout: float,
        listen: "str | None" = None,
        server: "Any | None" = None,
        route: "str | None" = "relay",
        link: "MpiLink | None" = None,
    ) -> None:
        """`listen`: the address of this machine on which boxes elsewhere connect. `server`: one that runs already.

        `link`: gateways are a program of MPI.
        """
        self._link_timeout = link_timeout
        self._is_direct = route == "direct"
        self._link = link
        self._programs: list[TransportProcess] = []
        self._several = len(groups) > 1
        self._groups = [group for group in groups if group.boxes > 1]
        self._here = [segment for group in groups for segment in group.segments if segment.fd >= 0]
        self._killed: Callable[[], None] | None = None
        self._all: list[TransportProcess] = []
        if server is not None:
            self.jobs, self.address = server.session.jobs, server.address
            self._killed = server.session.link.report_gone
            self._all.append(server)
            try:
                self._start_gateways()
            except BaseException:
                self.close()
                raise
            return
        # By group; the fork hands them over, so they are in no file, and on no command line.
        self.jobs = {group.number: _job(group) for group in self._groups}
        listener = _listen(listen or "127.0.0.1")
        try:
            self._start(listener)
        except BaseException:
            self.close()
            raise
        finally:
            listener.close()

    def _start(self, listener: "socket.socket") -> None:
        self.address = listener.getsockname()
        places = {group.number: group.places for group in self._groups}

        def serve(wire: Wire) -> None:
            transport_main.serve(wire, listener, self.jobs, places, self._link_timeout)

        self._all.append(
            TransportProcess("the server", -1, "spcomm server", serve, listener.fileno(), self._here)
        )
        self._start_gateways()

    def _start_gateways(self) -> None:
        for group in self._groups:
            if self._link is not None:
                run = self._link.program(group)
                self._programs.append(
                    TransportProcess("mpiexec", -1, "spcomm mpiexec", run, 2, self._here, group.number)
                )
                self._all.append(self._programs[-1])
            for box, segment in enumerate(group.segments):
                if segment.fd >= 0:  # otherwise the box is elsewhere, and so is its gateway
                    self._start_gateway(group, box, segment)

    def _start_gateway(self, group: "Group", box: int, segment: "Any") -> None:
        reached, job = self._reach(box, self.address), self.jobs[group.number]
        places, killed = group.places if self._is_direct else None, self._killed
        where = f" of group {group.number}" if self._several else ""
        label = f"spcomm gw {group.number}:{box}" if self._several else f"spcomm gw {box}"
        name = self._link.names[group.number] if self._link is not None else None

        def carry(wire: Wire) -> None:
            secrets, timeout = job.secrets[box], self._link_timeout
            if name is None:
                transport_main.carry(
                    wire, reached, secrets, job.number, box, segment.fd, timeout, places, killed
                )
                return
            from spcomm.launch.remote import mpi_link

            orders = (reached, secrets, job.number, box, timeout, places, label)
            mpi_link.stand_in(wire, segment.fd, name, box, orders)

        others = [other for other in self._here if other is not segment]
        self._all.append(
            TransportProcess(
                f"the gateway of box {box}{where}",
                box,
                label if name is None else label.replace("gw", "mpi", 1),
                carry,
                segment.fd,
                others,
                group.number,
                killed is not None,
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

    def counted(self) -> "dict[tuple[int, int], dict[str, Any]]":
        """Return the counts of the server's link to each (group, box): see `net.counted`.

        None, if it did not end well.
        """
        return self._all[0].counted

    def between(self) -> "dict[tuple[int, str], dict[str, Any] | None]":
        """Return the counts of links between gateways of a group, from the first of the two: `0-1` for boxes 0 and 1.

        None: the server relays for them.
        """
        found = {}
        for transport in self._all[1:]:
            for other, counts in sorted(transport.counted.items()):
                if transport.box < other:
                    found[transport.group or 0, f"{transport.box}-{other}"] = counts
        return found

    def left(self) -> str:
        """Return the names of those that have not ended."""
        return ", ".join(transport.name for transport in self._all if not transport.gone)

    def close(self, patience: float = 0.0) -> None:
        """End them all. `patience`: for gateways whose last messages are worth waiting for."""
        for transport in self._all:
            if patience and self._is_direct:
                transport.hear_out(patience)
            if transport not in self._programs:
                transport.kill()
        for program in self._programs:  # it ends by itself now, and removes what it has made
            program.hear_out(_PROGRAM_S)
        for transport in self._all:
            transport.close()


def _job(group: "Group") -> transport_main.Job:
    number = int.from_bytes(os.urandom(4), "little") or 1
    return transport_main.Job(number, transport_main.make_secrets(group.boxes))


def _listen(address: str) -> "socket.socket":
    """Listen at this address. Strangers may connect, and get no further than the handshake."""
    listener = opened(socket.socket, socket.AF_INET, socket.SOCK_STREAM)
    os.set_inheritable(listener.fileno(), False)
    try:
        listener.bind((address, 0))
    except OSError as error:
        listener.close()
        without = "; give it without a port, which the system chooses" if ":" in address else ""
        raise UsageError(
            f"spcomm run: --listen {address} is not an address of this machine ({error}){without}"
        ) from None
    if not_reached := loopback.trouble(listener.getsockname()):
        listener.close()
        raise UsageError(f"spcomm run: {not_reached}")
    handshake.require("spcomm run", listener)
    listener.listen(_BACKLOG)
    return listener
