# SPDX-License-Identifier: MIT
"""`spcomm run --room` and `--server`: a run whose server is another machine's `spcomm serve`, and with `--room` whose
nodes are on the members of a room. To the launcher members are hosts, and the server is a transport like its own.
A `Cluster` of a room has such a run, too: its calls follow each other in the same processes.
"""

import os

from spcomm.launch.base.loop import Loop
from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.values import MOST_NODES
from spcomm.launch.remote.framing import FrameError, one_line
from spcomm.launch.room import prompt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.cmdline.options import Options
    from spcomm.launch.cmdline.plan import Plan
    from spcomm.launch.remote.transport_processes import TransportProcess, TransportProcesses
    from spcomm.launch.room.room_link import ClientLink

_COMMAND = "spcomm run"
_FINISH_S = 2.0  # for the server to receive the end


def enter(options: "Options", plans: "list[Plan]", signals: int) -> "Session":
    """Ask a server, or a room, for what the run needs. Waits for members, if there are too few. `UsageError`."""
    from spcomm.launch.room import connect, join_code

    where = prompt.place(_COMMAND, options.room or options.server or "")
    part, packed = options.parts[0], None
    if options.room is not None:
        from spcomm.launch.room import folder

        path, part.program = folder.choose(part)
        packed = folder.pack(path)
    key = join_code.key(prompt.code(_COMMAND, prompt.spelt(where), signals))
    for plan in plans:
        plan.environment.pop(join_code.VARIABLE, None)
    session = Session(where, key, packed, signals)
    try:
        session.ask(options)
    except connect.EntryError as error:
        session.close()
        raise UsageError(f"{_COMMAND}: {error}") from None
    except BaseException:
        session.close()
        raise
    return session


class Session:
    """One run at a server: for as long as it lasts."""

    def __init__(
        self,
        where: "tuple[str, int]",
        key: bytes,
        packed: "BinaryIO | None",
        signals: int = -1,
        cluster: bool = False,
    ) -> None:
        """`signals`: a descriptor that can be read when there is a signal; -1: signals raise exceptions."""
        self.where = where
        self.key = key
        self.packed = packed
        self.token = ""
        self.job = 0
        self.secrets: list[bytes] = []  # of the boxes
        self.tickets: list[str] = []  # for the ways to the boxes
        self._loop = Loop()  # until the supervisor's takes over
        if signals >= 0:
            self._loop.add(signals, lambda: prompt.interrupted(_COMMAND, signals))
        self._is_cluster = cluster
        self.link: ClientLink | None = None

    def ask(self, options: "Options", say: "Callable[[str], object] | None" = None) -> None:
        """Ask for members. Put the answer into the options. `say` prints that members are missing."""
        from spcomm.launch.room.room_link import ClientLink

        part, is_room = options.parts[0], options.room is not None
        about = {
            "name": os.uname().nodename,
            "group": part.group,
            "program": "a Cluster" if self._is_cluster else os.path.basename(part.name),
            "room": is_room,
            "members": options.members,
            "cluster": self._is_cluster,
        }
        self.link = ClientLink(self._loop, self.where, self.key, "run", about)
        self.link.listen(self._loop, _nothing)
        while (message := self._next())[0] != "members":
            if message[0] == "waiting":
                text = one_line(f"waiting for members: {message[1]} of {message[2]} are there")
                (say or _write)(f"spcomm: {text}\n")
        _members, self.token, there, link_timeout = message
        options.link_timeout = link_timeout
        if is_room:
            options.hosts = _spread(there, part.nodes)
            part.nodes = sum(count for _name, count in options.hosts)

    def spread(self, options: "Options", plan: "Plan") -> "list[Plan]":
        """A plan for each member."""
        from spcomm.launch.remote import hosts

        if options.parts[0].program is not None:
            plan.name = options.parts[0].program
        plans = hosts.spread(options, plan, _member_class())
        for one in plans:
            one.host.session = self
        return plans

    def begin(self, group: "Group", options: "Options") -> "TransportProcesses | ServerTransport | None":
        """Give the server a job, and each member a box. Return the object that the launcher watches, if any."""
        names = [name for name, _count in options.hosts or ()]
        self.link.send(["begin", {"places": group.places, "boxes": names}])
        about = self._next()[1]
        self.job, self.tickets = about["job"], about["tickets"]
        self.secrets = [bytes.fromhex(secret) for secret in about["secrets"]]
        for host in group.far.values():
            host.box.update(job=self.job)
        server = Server(self)
        if options.room is not None:
            return ServerTransport(server)
        from spcomm.launch.remote.transport_processes import TransportProcesses

        return TransportProcesses(group, options.link_timeout, None, server)

    def call(self) -> "list[bytes]":
        """Begin a call of a cluster: the server has a job for it. Return the secrets of the boxes."""
        self.link.send(["call"])
        about = self._next()[1]
        self.job = about["job"]
        return [bytes.fromhex(secret) for secret in about["secrets"]]

    def called(self) -> None:
        """End it, after the boxes have."""
        self.link.send(["called"])

    def _next(self) -> list:
        from spcomm.launch.room import connect

        try:
            message = self.link.next_message(self._loop.turn)
        except connect.EntryError as error:
            raise UsageError(f"{_COMMAND}: {error}") from None
        if message[0] == "over":
            raise UsageError(f"{_COMMAND}: {one_line(message[1])}; nothing was started")
        return message

    def close(self) -> None:
        """The run has ended: have the server forget all of it."""
        if self.link is not None:
            self.link.finish(_FINISH_S)
        self._loop.close()
        if self.packed is not None:
            self.packed.close()


def _spread(there: "list[list]", nodes: "int | None") -> "list[tuple[str, int]]":
    """Spread the nodes evenly; without a number, each member gets as many as it offers."""
    if nodes is None:
        found = [(str(name), int(slots)) for name, slots in there]
        if sum(slots for _name, slots in found) > MOST_NODES:
            return _spread(there, MOST_NODES)
        return found
    each, more = divmod(nodes, len(there))
    counts = [each + (at < more) for at in range(len(there))]
    return [(str(name), count) for (name, _slots), count in zip(there, counts, strict=True) if count]


def _member_class() -> "Any":
    from spcomm.launch.remote.hosts import Host

    class Member(Host):
        """A member of the room, where a box is."""

        relay = "room.room_relay"
        session: Session

        def about(self) -> "dict[str, Any]":
            session = self.session
            room = {"place": list(session.where), "key": session.key, "run": session.token}
            number = self.box["number"]
            room["ticket"] = session.tickets[number]
            self.descriptors = (session.packed.fileno(),)
            secrets = session.secrets[number]
            return {"host": self.name, "room": room, "secrets": secrets, "box": self.box, "tunnel": False}

    return Member


class Server:
    """The server, as the launcher sees it: quacks like a `TransportProcess`."""

    box = -1

    def __init__(self, session: Session) -> None:
        self.session = session
        self.name = f"the server at {prompt.spelt(session.where)}"
        self.address = session.link.peer
        self.gone = False
        self.status = 0
        self.counted: dict[int, dict[str, Any]] = {}  # as a transport has it

    def listen(self, loop: Loop, call: "Callable[[], None]") -> None:
        """Over the link, which is made anew when it breaks."""
        self.session.link.listen(loop, call)

    def leave(self, loop: Loop) -> None:
        """Stop listening to it; it is still there, for its end."""
        self.session.link.listen(loop, _nothing)

    def receive(self) -> "tuple | None":
        """Return why the run cannot go on; None when all has been carried, or the server is gone."""
        try:
            found = self.session.link.receive()
        except FrameError:
            found = None
        self.gone = True
        if found is None:
            self.status = 1 << 8
            return None
        _over, sentence, *counts = found[0][0]
        if sentence:
            return "failed", one_line(sentence), -1
        self.counted = {
            box: {name: tuple(one) if isinstance(one, list) else one for name, one in counts.items()}
            for box, counts in enumerate(counts[0])
        }
        return None

    def how(self) -> str:
        return "has ended, or the network to it has"

    def kill(self) -> None:
        self.gone = True

    def wait(self) -> None:
        pass

    def close(self) -> None:
        self.gone = True


class ServerTransport:
    """The transport between the boxes of a room, as far as this machine knows: the server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def __iter__(self) -> "Iterator[TransportProcess]":
        return iter((self._server,))  # type: ignore[arg-type]

    @property
    def over(self) -> bool:
        """Whether all has been carried. One box has nothing to carry."""
        return self._server.gone or not self._server.session.job

    def counted(self) -> "list[dict[str, Any]]":
        """As of `TransportProcesses`."""
        return list(self._server.counted.values())

    def left(self) -> str:
        return self._server.name

    def between(self) -> "dict[str, dict[str, Any]]":
        """There are no links between gateways."""
        return {}

    def close(self, _patience: float = 0.0) -> None:
        self._server.close()


def _write(text: str) -> None:
    os.write(2, text.encode())


def _nothing() -> None:
    pass
