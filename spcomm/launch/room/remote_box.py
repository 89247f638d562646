# SPDX-License-Identifier: MIT
"""One box of a run, on a member of a room: as `box`, but it connects outwards, and the folder comes over the wire.

`spcomm join` starts it, and sends its arguments over its standard input; the end of that input ends it.

The box of a `Cluster` runs one call after the other. Each has shared memory and a gateway of its own, as a run has, and
the nodes stay: their standard input is a socket, over which work comes and answers go. More messages:

==========  ==============================================================================================
`call`      the description of the memory, job, secret: a call begins; the box answers `called`
`mark`      rank, exit code: a node of this box has finished its work (0), or failed in it
`uncall`    the call is over; the box answers with traces, with what is `noted`, and `uncalled`
==========  ==============================================================================================
"""

import json
import os
import socket
import tempfile
from typing import TYPE_CHECKING

from spcomm._core import net
from spcomm.launch.base import report
from spcomm.launch.base.loop import Loop
from spcomm.launch.base.usage import complain
from spcomm.launch.base.wire import NOSIGNAL, encoded, rights
from spcomm.launch.remote.box import Box, withdraw
from spcomm.launch.remote.framing import MOST, Outlet
from spcomm.launch.room import connect, fetch, folder
from spcomm.launch.room.room_link import ClientLink

if TYPE_CHECKING:
    from typing import Any

_ABANDONED_S = 1.0  # for the run to receive the message
_PIECES = 2  # that empty a pipe, of which a writer may fill as much again meanwhile


def main() -> None:
    """The top level of the process."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            os._exit(0)
        line += byte
    about = json.loads(line)
    watch = os.dup(0)
    withdraw()
    net.rename("spcomm box")
    key = bytes.fromhex(about["key"])
    ticket = {name: about[name] for name in ("run", "box", "ticket")}
    try:
        link = ClientLink(Loop(), (about["place"][0], about["place"][1]), key, "box", ticket)
    except connect.EntryError as error:
        complain(f"spcomm join: {error}")
        os._exit(125)
    box = (ClusterBox if about["cluster"] else RoomBox)(link, watch, about)
    if not about["cluster"]:
        box.heed_signals()  # SIGTERM to the box of a Cluster ends it: the call hears that its connection has ended
    box.run()


class RoomBox(Box):
    """Ends with the run, with `spcomm join`, or when the server is gone."""

    def __init__(self, link: ClientLink, watch: int, about: dict) -> None:
        super().__init__(link)
        self._of = about
        self._server = link.peer
        self._packed = tempfile.TemporaryFile()
        self._unpacked: fetch.Unpacked | None = None
        self._outgoing: fetch.Outgoing | None = None  # its nodes have ended, and files are wanted
        self._loop.add(watch, self._abandoned)

    def _greet(self) -> None:
        """The link was opened by that."""

    def _abandoned(self) -> None:
        """`spcomm join` has ended, or was killed."""
        self._patience_s = _ABANDONED_S
        self._leave()

    def _heard(self, message: list, data: bytes) -> None:
        if message[0] == "piece":
            try:
                self._packed.write(data)
            except OSError as error:
                self._fail(f"the program's folder cannot be stored there ({error.strerror})")
            if self._packed.tell() > folder.MOST_PACKED:
                self._fail("the folder that came is larger than allowed")
        elif message[0] == "begin":
            self._unpack(message[1], data)
        elif message[0] == "fetch" and self._outgoing is not None:
            self._outgoing.choose(message[1])
        else:
            super()._heard(message, data)

    def _unpack(self, about: dict, secrets: bytes) -> None:
        """The folder is there: the run begins in it."""
        try:
            folder.unpack(self._packed, self._of["folder"])
            if not self._of["cluster"]:
                self._unpacked = fetch.Unpacked(self._of["folder"])
        except (OSError, ValueError) as error:
            self._fail(f"the program's folder cannot be unpacked there ({error})")
        self._packed.close()
        for program in about["programs"]:
            program["folder"] = os.path.normpath(os.path.join(self._of["folder"], program["folder"]))
            program["environment"]["PWD"] = program["folder"]
            if about["sent_from"]:
                program["environment"].update(report.moved(self._of["folder"], about["sent_from"]))
        about["address"] = list(self._server)
        self._begin(about, secrets)

    def _consider(self) -> None:
        if self._outgoing is None:
            super()._consider()

    def _part(self) -> None:
        """List the files that nodes wrote; if they are wanted, end after they are sent."""
        for gateway in self._gateways:
            if not gateway.gone:
                self._loop.remove(gateway.fileno())
        self._end_processes()  # nobody writes any more
        entries, *counts = self._unpacked.changed()
        self._frames.send(["files", entries, *counts])
        if self._about["fetch"] and counts[0]:
            self._outgoing = fetch.Outgoing(self._of["folder"], entries)
        else:
            super()._part()

    def _flush(self) -> None:
        super()._flush()
        if self._outgoing is None:
            return
        while self._frames.kept < MOST and (message := self._outgoing.next()) is not None:
            self._frames.send(*message)
        if self._outgoing.is_over:
            super()._part()

    def _tidy(self) -> None:
        folder.remove(self._of["folder"])


class ClusterBox(RoomBox):
    """Its nodes stay from one call to the next."""

    def __init__(self, link: ClientLink, watch: int, about: dict) -> None:
        super().__init__(link, watch, about)
        self._sockets: dict[int, socket.socket] = {}  # the nodes', by descriptor

    def _connect(self, _groups: list, _secrets: bytes) -> None:
        """A call has a gateway; the nodes start without one."""
        self._gateways = []

    def _nodes(self, indices: "list[int]", reading: "list[int]") -> None:
        if indices:
            super()._nodes(indices, reading)
        else:  # the answer confirms that earlier requests were obeyed
            next(iter(self._run)).start([], [])

    @property
    def _memory(self) -> "tuple[Any, list[int]]":
        """The memory of its only group here, and its nodes here."""
        ((_group, segment, ranks),) = self._here()
        return segment, ranks

    def _heard(self, message: list, data: bytes) -> None:
        if message[0] == "call":
            self._call(message[1], data)
        elif message[0] == "uncall":
            self._uncall()
        elif message[0] == "mark":
            self._mark(int(message[1]), int(message[2]))
        else:
            super()._heard(message, data)

    def _call(self, about: dict, secrets: bytes) -> None:
        from spcomm._core.errors import SpcommError
        from spcomm.launch.remote import boxparts

        (group,), (described,) = self._run.groups, self._about["groups"]
        self._about["is_traced"] = about["is_traced"]
        described.update(about["group"])
        self._memory[0].close()
        try:
            group.segments[:] = boxparts.group(described, boxparts.is_busy(self._about)).segments
            super()._connect([group], secrets)
            for sock in self._sockets.values():
                self._give_memory(sock)
        except (MemoryError, OSError, SpcommError) as error:
            self._fail(f"no call can begin there ({error or 'there is not enough memory'})")
        self._frames.send(["called"])

    def _give_memory(self, sock: "socket.socket") -> None:
        """Send the memory's descriptor to a node, which has read everything that was sent to it before."""
        segment, _ranks = self._memory
        message = encoded(("memory", segment.device, segment.inode))
        sock.sendmsg([message], rights(segment.fd), NOSIGNAL)

    def _mark(self, rank: int, code: int) -> None:
        segment, ranks = self._memory
        if rank not in ranks:
            raise ValueError(rank)
        if code:
            segment.mark_failing(rank, code)
        else:
            segment.mark_finished(rank)

    def _uncall(self) -> None:
        for gateway in self._gateways:
            if not gateway.gone:
                self._loop.remove(gateway.fileno())
            gateway.close()
        self._gateways = []
        self._loop.forget("look")
        self._send_findings()
        self._frames.send(["uncalled"])

    def _input(self, index: int) -> int:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        fd, answers = ours.fileno(), os.dup(ours.fileno())
        self._sockets[fd], self._inputs[index] = ours, Outlet(fd)
        self._pipes[answers] = index, 0
        self._loop.add(answers, lambda: self._read(answers))
        return theirs.detach()

    def _close_input(self, outlet: Outlet) -> None:
        """The node reads its end; what it answers is still read here, through another descriptor."""
        sock = self._sockets.pop(outlet.fd)
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:  # the node is gone
            pass
        sock.close()

    def _read(self, fd: int) -> None:
        index, target = self._pipes[fd]
        if target == 0:  # it has flushed its output before it answers
            outputs = [one for one, (whose, its) in self._pipes.items() if whose == index and its]
            for output in outputs:
                for _piece in range(_PIECES):
                    self._rest(output)
        super()._read(fd)

    def _consider(self) -> None:
        """Between calls, too, the box ends when its nodes have."""
        if self._run is not None and self._run.gone:
            self._send_rest()
            self._frames.send(["gone"])
            self._leave()
