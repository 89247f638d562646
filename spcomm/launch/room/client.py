# SPDX-License-Identifier: MIT
"""`spcomm run --room` and `--server`: a run whose server is another machine's `spcomm serve`, and with `--room` whose
nodes are on the members of a room. To the launcher members are hosts, and the server is a transport like its own.
A `Cluster` of a room has such a run, too: its calls follow each other in the same processes.
"""

import os
from typing import TYPE_CHECKING

from spcomm.launch.base import nothing
from spcomm.launch.base.loop import Loop
from spcomm.launch.base.record import replace
from spcomm.launch.base.usage import UsageError, complain
from spcomm.launch.cmdline.values import MOST_NODES
from spcomm.launch.remote.framing import FrameError, one_line
from spcomm.launch.remote.transport_main import Job
from spcomm.launch.room import join_code, prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from spcomm.launch.cmdline.groups import Group
    from spcomm.launch.cmdline.options import Options, Part
    from spcomm.launch.cmdline.plan import Plan
    from spcomm.launch.remote.hosts import Host
    from spcomm.launch.remote.transport_contract import Transport, Transports
    from spcomm.launch.room.fetch import RoomFiles
    from spcomm.launch.room.room_link import ClientLink

_COMMAND = "spcomm run"
_FINISH_S = 2.0  # for the server to receive the end


def enter(options: "Options", plans: "list[Plan]", signals: int) -> "tuple[Session, Options, list[Plan]]":
    """Ask a server, or a room, for what the run needs. Waits for members, if there are too few. `UsageError`.

    Return the run there, the options with its members, and the programs as these find them in the folder that is sent.
    """
    from spcomm.launch.room import connect

    where = prompt.place(_COMMAND, options.room or options.server or "")
    packed = files = sent_from = None
    if options.room is not None:
        from spcomm.launch.room import folder
        from spcomm.launch.room.fetch import RoomFiles

        files = RoomFiles(options.fetch, options.fetch_limit)
        path, inside = folder.choose_for_all(options.parts)
        pairs = zip(options.parts, inside, strict=True)
        options = replace(
            options, parts=[replace(part, folder=place, program=name) for part, (place, name) in pairs]
        )
        packed, sent_from = folder.pack(path), path
    key = join_code.key(prompt.code(_COMMAND, prompt.spelt(where), signals))
    session = Session(where, key, packed, signals, files=files, sent_from=sent_from)
    try:
        options = session.ask(options)
        if files is not None:
            files.expect(options.hosts or [])
    except connect.EntryError as error:
        session.close()
        raise UsageError(f"{_COMMAND}: {error}") from None
    except BaseException:
        session.close()
        raise
    plans = [of_part(plan, part) for plan, part in zip(plans, options.parts, strict=True)]
    return session, options, plans


def of_part(plan: "Plan", part: "Part") -> "Plan":
    """Return the program as its part describes it now; its nodes do not get the code."""
    kept = {name: value for name, value in plan.environment.items() if name != join_code.VARIABLE}
    return replace(plan, name=part.name, nodes=part.nodes or 0, boxes=part.boxes, environment=kept)


class Session:
    """One run at a server: for as long as it lasts."""

    def __init__(
        self,
        where: "tuple[str, int]",
        key: bytes,
        packed: "BinaryIO | None",
        signals: int = -1,
        cluster: bool = False,
        files: "RoomFiles | None" = None,
        sent_from: "str | None" = None,
    ) -> None:
        """`signals`: a descriptor that can be read when there is a signal; -1: signals raise exceptions.

        `files`: that nodes will have written. `sent_from`: the folder in `packed`.
        """
        self.where = where
        self.key = key
        self.packed = packed
        self.token = ""
        self.jobs: dict[int, Job] = {}  # of the groups with several boxes
        self.tickets: list[str] = []  # for the ways to the boxes
        self._loop = Loop()  # until the supervisor's takes over
        if signals >= 0:
            self._loop.add(signals, lambda: prompt.interrupted(_COMMAND, signals))
        self._is_cluster = cluster
        self.files = files
        self.sent_from = sent_from
        self.link: ClientLink | None = None

    def ask(self, options: "Options", say: "Callable[[str], object]" = complain) -> "Options":
        """Ask for members. Return the options with the answer. `say` prints that members are missing."""
        from spcomm.launch.room.room_link import ClientLink

        parts, is_room = options.parts, options.room is not None
        placing = options.placing if isinstance(options.placing, tuple) else ()
        about = {
            "name": os.uname().nodename,
            "groups": list(dict.fromkeys(part.group for part in parts)),
            "program": "a Cluster" if self._is_cluster else options.programs,
            "room": is_room,
            "members": max(options.members or 1, max(placing, default=0) + 1),
            "cluster": self._is_cluster,
        }
        self.link = ClientLink(self._loop, self.where, self.key, "run", about)
        self.link.listen(self._loop, nothing)
        while (message := self._next())[0] != "members":
            if message[0] == "waiting":
                text = one_line(f"waiting for members: {message[1]} of {message[2]} are there")
                say(f"spcomm: {text}")
        _members, self.token, there, link_timeout = message
        options = replace(options, link_timeout=link_timeout)
        if not is_room:
            return options
        from spcomm.launch.cmdline.boxes import dealt
        from spcomm.launch.cmdline.machines import in_boxes, in_turn

        if placing:
            members, boxes = there[: max(placing) + 1], list(placing)
        else:
            members = _spread(there, parts[0].nodes and sum(part.nodes or 0 for part in parts))
            counts = [(box, count) for box, (_name, count) in enumerate(members)]
            boxes = in_turn(counts, options.placing == "cyclic")
        of_each = dealt(boxes, [len(boxes)] if len(parts) == 1 else [part.nodes or 0 for part in parts])
        names = [str(name) for name, _count in members]
        return replace(options, hosts=names, parts=in_boxes(parts, of_each))

    def host(self, number: int, name: str, options: "Options") -> "Host":
        """The host of a box: the member with this name."""
        member = _member_class()(number, name, options)
        member.session = self
        return member

    def begin(self, groups: "list[Group]", options: "Options") -> "Transports":
        """Give the server a job for each group, and each member a box. Return the object that the launcher watches."""
        told = [{"places": group.places, "boxes": group.boxes_of_run} for group in groups]
        self.link.send(["begin", {"groups": told, "boxes": options.hosts or []}])
        about = self._next()[1]
        self.tickets = about["tickets"]
        for group, (number, *secrets) in zip(groups, about["jobs"], strict=True):
            if number:
                self.jobs[group.number] = Job(number, [bytes.fromhex(secret) for secret in secrets])
        for group in groups:
            for host in group.far.values():
                host.take_jobs(self.jobs)
        server = Server(self, [group.number for group in groups])
        if options.room is not None:
            return ServerTransport(server)
        from spcomm.launch.remote.transport_processes import TransportProcesses

        return TransportProcesses(groups, options.link_timeout, None, server)

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
        if self.files is not None:
            self.files.close()


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
        what = "member"
        session: Session

        def folder(self, part: "Part") -> str:
            return part.folder or os.curdir  # in the folder that is sent

        def about(self) -> "dict[str, Any]":
            session = self.session
            room = {"place": list(session.where), "key": session.key, "run": session.token}
            room["ticket"] = session.tickets[self.box["number"]]
            files = session.files
            if files is not None and files.top is not None:
                room["fetch"] = [files.top, files.places[self.name]]
            self.box.update(fetch="fetch" in room, sent_from=session.sent_from)
            self.descriptors = (session.packed.fileno(),)
            return {
                "host": self.name,
                "room": room,
                "secrets": self.secrets,
                "box": self.box,
                "tunnel": False,
            }

    return Member


class Server:
    """The server, as the launcher sees it: keeps the contract of `Transport`."""

    box, group = -1, None

    def __init__(self, session: Session, groups: "list[int]") -> None:
        self.session = session
        self._groups = groups
        self.name = f"the server at {prompt.spelt(session.where)}"
        self.address = session.link.peer
        self.gone = False
        self.status = 0
        self.counted: dict[tuple[int, int], dict[str, Any]] = {}  # as a transport has it

    def listen(self, loop: Loop, call: "Callable[[], None]") -> None:
        """Over the link, which is made anew when it breaks."""
        self.session.link.listen(loop, call)

    def leave(self, loop: Loop) -> None:
        """Stop listening to it; it is still there, for its end."""
        self.session.link.listen(loop, nothing)

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
            (group, box): {name: tuple(one) if isinstance(one, list) else one for name, one in about.items()}
            for group, by_box in zip(self._groups, counts[0], strict=True)
            for box, about in enumerate(by_box)
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

    def __iter__(self) -> "Iterator[Transport]":
        return iter((self._server,))

    @property
    def over(self) -> bool:
        """Whether all has been carried. One box has nothing to carry."""
        return self._server.gone or not self._server.session.jobs

    def counted(self) -> "dict[tuple[int, int], dict[str, Any]]":
        """As of `TransportProcesses`."""
        return self._server.counted

    def left(self) -> str:
        return self._server.name

    def between(self) -> "dict[tuple[int, str], dict[str, Any] | None]":
        """There are no links between gateways."""
        return {}

    def close(self, patience: float = 0.0) -> None:
        self._server.close()
