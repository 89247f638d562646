# SPDX-License-Identifier: MIT
"""The nodes of a `Cluster(room=…)`: on the members of a room, where they stay from one call to the next.

They are those of one run at the server of the room, which begins with the cluster and ends with it. A relay for each
member acts as its fork server, as for `spcomm run --room`; the sockets of the nodes, for work and answers, go through
it. Each call has new memory and a gateway in every box, and a job at the server (see `launch.room.remote_box`).
"""

import os
import signal
import tempfile
import time
from typing import TYPE_CHECKING

from spcomm._core import segments
from spcomm._core.errors import ConfigError, ConnectionLostError, SpcommError
from spcomm.launch.base import nothing
from spcomm.launch.base.record import replace
from spcomm.launch.base.usage import UsageError
from spcomm.launch.base.wire import NONSENSE, encoded
from spcomm.launch.cmdline import options, plan
from spcomm.launch.local.run_processes import RunProcesses
from spcomm.launch.remote import hosts
from spcomm.launch.remote.box_proxy import RemoteSegment
from spcomm.launch.remote.framing import FrameError, one_line
from spcomm.launch.room import client, connect, folder, join_code, prompt
from spcomm.notebook.nodes import Nodes, how_ended

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from spcomm.launch.local.node_contract import RemoteStarter, Starter
    from spcomm.launch.remote.hosts import RemoteForkClient

_CALL = "Cluster"
_ANSWER_S = 30.0  # for the boxes to begin a call, or to end it
_keys: dict[tuple[str, int], bytes] = {}  # of rooms whose code this process was given


class _CallSegment(RemoteSegment):
    """The memory of one call in a box: marks of nodes whose answers come here are sent there."""

    def __init__(self, size: int, recorded: int, fork_client: "RemoteForkClient") -> None:
        super().__init__(size, fork_client.far, recorded)
        self._fork_client = fork_client

    def mark_finished(self, rank: int) -> None:
        self._fork_client.mark(rank, 0)

    def mark_failing(self, rank: int, code: int) -> None:
        self._fork_client.mark(rank, code)


class RoomNodes(Nodes):
    """Nodes on the members of a room."""

    is_plain = True

    def __init__(self, wanted: "int | None", room: str) -> None:
        self.room = room
        try:
            self._where = prompt.place(_CALL, room)
        except UsageError as error:
            raise ConfigError(str(error)) from None
        self._wanted = wanted
        self._session: client.Session | None = None
        self._lost: dict[int, str] = {}  # nodes that have gone with their box, and why
        self._awaited: set[int] = set()  # boxes whose answer to a call is outstanding
        self._job = 0  # the call's job at the server; one box needs none
        self._grant: list[bytes] | None = None  # the secrets of its boxes
        self._tell_transport: Callable[[tuple | None], None] = nothing
        self._is_in_call = False
        super().__init__(wanted or 1)

    @property
    def _has_begun(self) -> bool:
        return self._session is not None

    # Start and end

    def _begin(self) -> None:
        self.ended, self._lost, self._error, self._signals = {}, {}, "", 0
        try:
            found = self._enter()
        except UsageError as error:
            raise _room_error(error) from None
        placement = hosts.spread(self.options, [found], self._session)
        (self.group,) = placement.groups
        self.size, self.boxes = self.group.size, len(placement.machines)
        self._describe()
        try:
            self._session.begin([self.group], self.options)  # type: ignore[union-attr]
        except UsageError as error:
            raise _room_error(error) from None
        self._fork_clients = [hosts.RemoteForkClient(plans) for plans in placement.machines]
        self._session.link.listen(self.loop, self._hear_server)  # type: ignore[union-attr]
        self.run_processes = RunProcesses(self._fork_clients, [self.group])  # type: ignore[arg-type]
        self._start_nodes()

    def _enter(self) -> "plan.Plan":
        """Ask the server for members, and wait until there is one. Return the nodes' program."""
        said = options.parse(["--room", self.room, "-m", "spcomm.notebook", "room"])
        preload = ["numpy", "spcomm.notebook.node_main"]
        said = replace(said, parts=[replace(said.parts[0], nodes=self._wanted, preload=preload)])
        (found,) = plan.resolve_all(said)
        with tempfile.TemporaryDirectory() as empty:
            packed = folder.pack(empty)
        self._session = client.Session(self._where, _key(self._where), packed, cluster=True)
        try:
            self.options = self._session.ask(said, lambda line: self.screen.say(f"{line}\n"))
        except connect.RefusedError as error:
            _keys.pop(self._where, None)
            raise ConfigError(f"{_CALL}: {error}") from None
        except connect.EntryError as error:
            raise ConnectionLostError(f"{_CALL}: {error}") from None
        return client.of_part(found, self.options.parts[0])

    def _describe(self) -> None:
        """The memory of each box, for its first start and for each call."""
        mask, settings = segments.disable_mask(), self.options.segment_settings(None)
        for box, host in self.group.far.items():
            buffers = hosts.same_sizes(segments, self.size, mask, {})
            if self.boxes > 1:
                buffers.update(boxes=self.boxes, box=box, places=self.group.places)
            self.group.segments.append(hosts.far_segment(self.group, box, mask, settings, buffers))
            (program,) = host.box["programs"]
            host.box["cluster"] = program["cluster"] = True
            program["environment"]["MPLBACKEND"] = "module://spcomm.notebook.figures"

    def _failure(self) -> str:
        return self._error or next(iter(self._lost.values()), "")

    def restart(self, size: "int | None", _boxes: int = 1) -> None:
        """End all nodes at once, and start new ones, on the members that are there now."""
        self._wanted = size
        self._leave()
        self._tidy()
        self._guarded(self._begin)

    def _leave(self) -> None:
        """End the run in the room: the server has its boxes end, and the nodes with them."""
        session, self._session = self._session, None
        for fork_client in self._fork_clients:
            self.loop.remove(fork_client.fileno())
            fork_client.close()
        if session is not None:
            session.close()
        for fork_client in self._fork_clients:
            fork_client.wait()
        self._fork_clients = []

    # One call

    def renew(self, trace_events: int) -> None:
        self.drop()
        for fork_client in self._fork_clients:
            (about,) = fork_client.host.box["groups"]
            about["segment"]["trace_events"], about["begun_ns"] = trace_events, time.time_ns()
            segment = _CallSegment(self.size, trace_events, fork_client)
            fork_client.far.segments[self.group.number] = segment
            self.group.segments.append(segment)

    def parts(self, about: dict, work: tuple) -> "list[tuple[int, bytes]]":
        return [(-1, encoded(("call", about, work)))] * self.boxes

    def begin_transport(self, hear: "Callable[[tuple | None], None]") -> None:
        self._tell_transport = hear
        self._is_in_call = True
        self._grant = None if self.boxes > 1 else [b""]
        if self.boxes > 1:
            self._session.link.send(["call"])  # type: ignore[union-attr]
        self._await(lambda: self._grant is not None)
        if self._lost:
            return
        for box, fork_client in enumerate(self._fork_clients):
            secret: bytes = self._grant[box]  # type: ignore[index]
            fork_client.host.box["groups"][0].update(job=self._job, secret_bytes=len(secret))
            fork_client.call(secret)
        self._awaited = set(range(self.boxes))
        self._await(lambda: not self._awaited)

    def end_transport(self) -> None:
        if not self._is_in_call:
            return
        self._is_in_call = False
        self._tell_transport = nothing
        self._awaited = {box for box, one in enumerate(self._fork_clients) if not one.gone}
        for box in self._awaited:
            self._fork_clients[box].uncall()
        self._await(lambda: not self._awaited)
        if self.boxes > 1 and self._session is not None and not self._session.link.is_gone:
            self._session.link.send(["called"])

    def _await(self, is_there: "Callable[[], bool]") -> None:
        """Wait for the server, or the boxes. One that does not answer is lost."""
        self.loop.at("answer", _ANSWER_S, lambda: self._lose(self._awaited, "does not answer"))
        while not is_there() and self.loop.waits("answer") and not self._lost:
            self.loop.turn()
        self.loop.forget("answer")

    # Receiving

    def _hear_server(self) -> None:
        link = self._session.link  # type: ignore[union-attr]
        try:
            found = link.receive()
            for message, _data in found or ():
                self._heard_server(*message)
        except (FrameError, *NONSENSE):
            found = None
        if found is None:
            self._lose(range(self.boxes), link.why)

    def _heard_server(self, verb: str, *rest: object) -> None:
        if verb == "granted":
            about: dict = rest[0]  # type: ignore[assignment]
            ((number, *secrets),) = about["jobs"]
            self._job, self._grant = int(number), [bytes.fromhex(secret) for secret in secrets]
        elif verb == "over" and rest[0]:
            self._lose(range(self.boxes), one_line(rest[0]))
        elif verb == "over" and rest[-1] == self._job:
            self._tell_transport(("over",))

    # Messages of the boxes

    def on_nonsense(self, fork_client: "RemoteStarter") -> None:
        self._lose_box(fork_client, f"member {fork_client.host.name} sent a malformed message")

    def on_gone(self, fork_client: "Starter", _is_lost: bool) -> None:
        self._lose_box(fork_client, f"member {fork_client.host.name} has ended its box")

    def on_failed(self, fork_client: "RemoteStarter", sentence: str, _code: int) -> None:
        self._lose_box(fork_client, str(sentence))

    def on_deadlock(self, _fork_client: "RemoteStarter", _group: int, *proof: "Any") -> None:
        self._tell_transport(("deadlock", *proof))

    def on_report(self, _fork_client: "RemoteStarter", *report: "Any") -> None:
        self._reported(*report)

    def on_called(self, fork_client: "RemoteStarter") -> None:
        self._awaited.discard(self._fork_clients.index(fork_client))

    on_uncalled = on_called

    def on_warning(self, _fork_client: "RemoteStarter", text: str) -> None:
        self.screen.say(f"spcomm: warning: {text}\n")

    def on_text(self, _fork_client: "RemoteStarter", text: str) -> None:
        self.screen.say(text)

    def _lose_box(self, fork_client: "Starter", why: str) -> None:
        self._lose([self._fork_clients.index(fork_client)], why)

    def _lose(self, boxes: "range | list[int] | set[int]", why: str) -> None:
        """Nodes have gone with their boxes."""
        self.loop.forget("answer")
        nodes = [rank for rank in range(self.size) if self.group.box(rank) in boxes]
        for node in nodes:
            if node not in self.ended:
                self._lost[node] = why
                self.on_exited(self.run_processes.of(node), node, signal.SIGKILL)
        self._awaited -= set(boxes)

    def how(self, node: int, status: int) -> str:
        if node in self._lost:
            return f"was lost: {self._lost[node]}"
        member = self.group.far[self.group.box(node)].name
        return f"{how_ended(status)}{self._crash_lines.get(node, '')} on {member}"

    # Sending

    @property
    def signals_under_way(self) -> bool:
        return self._signals > 0 and not self._lost


def _key(where: "tuple[str, int]") -> bytes:
    """The key of a room: of the code in the environment, or of one that is asked for."""
    given = os.environ.pop(join_code.VARIABLE, None) or None
    if given is None and where in _keys:
        return _keys[where]
    try:
        if given is None:
            import getpass

            given = getpass.getpass(f"The code of {prompt.spelt(where)}, six words: ")
        _keys[where] = join_code.key(join_code.read(given))
    except join_code.CodeError as error:
        raise ConfigError(f"{_CALL}: {error}") from None
    except EOFError:
        raise ConfigError(
            f"{_CALL}: needs the code of {prompt.spelt(where)}: set {join_code.VARIABLE}, or type it when asked"
        ) from None
    return _keys[where]


def _room_error(error: UsageError) -> SpcommError:
    return ConnectionLostError(str(error).replace("spcomm run: ", f"{_CALL}: ", 1))
