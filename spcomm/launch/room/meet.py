# SPDX-License-Identifier: MIT
"""`spcomm meet`: the box process of a run without a launcher. `startup` starts it; users do not type it.

It meets the other boxes at a server (`broker`), which the infile names, or which the first box of a step of Slurm runs
(`step`). It makes the segment, runs the gateway, and stands between the supervisor, which watches over the nodes here,
and the other boxes. csrc/fork/spc_meet.h describes the messages between it and the program; it ends when no process of
the program holds that socket.
"""

import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING

from spcomm.launch.base import nothing
from spcomm.launch.base.usage import complain
from spcomm.launch.base.wire import rights
from spcomm.launch.remote.box import withdraw
from spcomm.launch.remote.framing import one_line
from spcomm.launch.room import connect

if TYPE_CHECKING:
    from typing import Any

    from spcomm.launch.room.room_link import ClientLink
    from spcomm.launch.room.step import Step

_DEADLOCK_CODE = 99
_TIMEOUT_S = 300.0
_FINISH_S = 1.0  # for the server to receive the end
_DUE_S = 1.0  # for a node that has closed to end
_HEADER_BYTES = 8
_MOST_TEXT = 65536
_SIZES = ("slots", "ring", "arena", "scratch", "queue_limit")


class MeetError(Exception):
    """There is no run: `status` as of spc_error.h, and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def main(words: "list[str]") -> int:
    """Run until the nodes of this box have ended."""
    if len(words) != 6:
        sys.stderr.write("spcomm meet: is started by startup(), where the infile names a server\n")
        return 125
    from spcomm._core import net

    sock = socket.socket(fileno=int(words[0]))
    os.set_inheritable(sock.fileno(), False)
    withdraw()
    net.rename("spcomm box")
    box = BoxProcess(sock, *map(int, words[1:4]), *words[4:])
    try:
        box.meet()
    except MeetError as error:
        box.tell(error.status, str(error))
        box.close()
        return 1
    box.run()
    return 0


class BoxProcess:
    """One box."""

    def __init__(
        self, sock: "socket.socket", local: int, total: int, group: int, infile: str, program: str
    ) -> None:
        from spcomm.launch.base.loop import Loop

        self._sock = sock
        self._local, self._total, self._group = local, total, group
        self._infile, self._program = infile, program
        self._loop = Loop()
        self._link: ClientLink | None = None
        self._granted: dict = {}
        self._waiting: tuple = ()  # as in the server's last message
        self._step: Step | None = None  # of Slurm, whose processes are the nodes
        self._server: Any = None  # of the step, in its first box
        self._segment: Any = None
        self._gateway: Any = None
        self._came = b""  # from the supervisor
        self._has_said = False  # the supervisor has sent why the run fails
        self._is_over = False  # the supervisor knows how the run ends

    def tell(self, code: int, text: "str | bytes") -> None:
        """Send to the program, or the supervisor. The receiver reads nothing else, or is gone."""
        data = (text if isinstance(text, bytes) else text.encode("utf-8", "replace"))[:_MOST_TEXT]
        try:
            self._sock.sendall(_header(code, data) + data)
        except OSError:
            pass

    # The meeting

    def meet(self) -> None:
        """Wait until all boxes are there, and the nodes of this one can begin. Raises `MeetError`."""
        from spcomm._core.errors import SpcommError

        try:
            self._enter()
            self._wait()
            self._make()
        except connect.EntryError as error:
            raise MeetError(error.status, str(error)) from None
        except MemoryError:
            raise MeetError(connect.ESYSTEM, "there is not enough memory for the message buffers") from None
        except (OSError, SpcommError) as error:
            raise MeetError(connect.ESYSTEM, str(error)) from None

    def _enter(self) -> None:
        from spcomm._core import segments
        from spcomm.launch.room import join_code
        from spcomm.launch.room.room_link import ClientLink

        where, code, ranks = self._places_of_infile() if self._infile else self._places_of_step()
        key = join_code.key(code)
        plan = segments.plan(self._total, disable=segments.disable_mask())
        about = {
            "name": self._step.machine if self._step is not None else os.uname().nodename,
            "group": self._group,
            "nodes": self._local,
            "total": self._total,
            "ranks": ranks,
            "program": self._program,
            "sizes": {name: plan[name] for name in _SIZES},
        }
        self._link = ClientLink(self._loop, where, key, "meet", about)
        for number in (signal.SIGTERM, signal.SIGQUIT):  # the server gets the end that they cause
            signal.signal(number, signal.SIG_IGN)

    def _places_of_infile(self) -> "tuple[tuple[str, int], str, list[int]]":
        """Return the server, its code, and the ranks of this box."""
        from spcomm._core.forking import read_infile
        from spcomm.launch.base.usage import UsageError
        from spcomm.launch.room import prompt

        infile = read_infile(self._infile)
        try:
            where = prompt.place(self._infile, infile["server"])
        except UsageError as error:
            raise MeetError(connect.EINVAL, f"{error}: server") from None
        self._check_ranks(infile["ranks"])
        self._timeout_s = float(infile["timeout"]) or _TIMEOUT_S
        return where, self._code(infile["code"]), infile["ranks"]

    def _places_of_step(self) -> "tuple[tuple[str, int], str, list[int]]":
        """Do the same for the nodes of a step of Slurm, whose first box has the server."""
        from spcomm.launch.room import step

        end = time.monotonic() + step.MEET_S
        try:
            self._step = step.Step()
            where, code = self._serve() if self._step.box == 0 else self._step.ask(end)
        except step.StepError as error:
            raise MeetError(connect.EINVAL, str(error)) from None
        self._timeout_s = end - time.monotonic()
        return where, code, self._step.ranks

    def _serve(self) -> "tuple[tuple[str, int], str]":
        """Start the server of the step; return its place and code."""
        from spcomm.launch.remote import handshake
        from spcomm.launch.remote.transport_processes import TransportProcess
        from spcomm.launch.room import join_code, step

        code = join_code.new()
        desk, listener = self._step.listen()
        if why := handshake.prepare(listener):
            raise step.StepError(f"connections across a network are encrypted, and {why}")
        host, port = listener.getsockname()

        def serve(wire: "Any") -> None:
            _serve_step(wire, self._step, desk, listener, code)

        kept = [desk.fileno(), listener.fileno()]
        self._server = TransportProcess("the server", -1, "spcomm server", serve, kept, [], reports=True)
        desk.close()
        listener.close()
        return (self._step.first if host != "127.0.0.1" else host, port), code

    def _check_ranks(self, ranks: "list[int]") -> None:
        if ranks and len(ranks) != self._local:
            found = f"{self._infile} gives ranks to {len(ranks)} nodes, and this box has {self._local}"
            raise MeetError(connect.EINVAL, f"{found}; give as many")
        if ranks and max(ranks) >= self._total:
            found = f"{self._infile}: ranks has {max(ranks)}, and a run of {self._total} nodes"
            raise MeetError(connect.EINVAL, f"{found} has ranks 0 to {self._total - 1}")

    def _code(self, name: str) -> str:
        """Return the server's code: from the environment, else from a file beside the infile."""
        from spcomm.launch.room import join_code

        text, where = os.environ.pop(join_code.VARIABLE, ""), f"${join_code.VARIABLE}"
        if not text and not name:
            raise MeetError(
                connect.EINVAL,
                f'needs the code that spcomm serve has shown: set {where}, or write it to a file and code = "FILE" '
                f"into {self._infile}",
            )
        try:
            if not text:
                where = os.path.join(os.path.dirname(self._infile), name)
                with open(where, encoding="utf-8", errors="replace") as file:
                    text = file.read(4096)
            return join_code.read(text)
        except OSError as error:
            raise MeetError(connect.EINVAL, f"code: {where} cannot be read ({error.strerror})") from None
        except join_code.CodeError as error:
            raise MeetError(connect.EINVAL, f"{error} (in {where})") from None

    def _wait(self) -> None:
        self._link.listen(self._loop, nothing)
        self._loop.add(self._sock.fileno(), self._leave)  # the program is gone
        self._loop.at("timeout", self._timeout_s, self._too_late)
        while not self._granted:
            message = self._link.next_message(self._loop.turn)
            if message[0] == "waiting":
                self._say_who(*message[1:])
            elif message[0] == "granted":
                self._granted = message[1]
            elif message[0] == "ended":
                raise MeetError(connect.EDISCONNECTED, one_line(message[2]))
        self._loop.forget("timeout")
        self._loop.remove(self._sock.fileno())

    def _say_who(self, there: int, who: str, others: str) -> None:
        is_news = self._waiting[:2] != (there, who)
        self._waiting = there, who, others
        if is_news and self._step is None:
            self._say(f"waiting for nodes: {int(there)} of {self._total} are there ({one_line(who)})")

    def _say(self, text: str) -> None:
        complain(f"spcomm: {text}")

    def _too_late(self) -> None:
        there, who, others = self._waiting or (self._local, "", "")
        if self._step is not None:
            raise MeetError(
                connect.ETIMEDOUT,
                f"after {_step_s():g} s {self._step.missing(who)} of the step's machines have not come: "
                f"{int(there)} of {self._total} nodes are there ({one_line(who)}); every process that srun starts "
                "has to call startup()",
            )
        hint = f"; {one_line(others)}" if others else ""
        raise MeetError(
            connect.ETIMEDOUT,
            f"after {self._timeout_s:g} s {int(there)} of the {self._total} nodes of group {self._group} are there "
            f"({one_line(who)}), and {self._total - int(there)} are missing{hint}",
        )

    def _make(self) -> None:
        """Make the segment and the gateway; then tell the program."""
        from spcomm._core import segments
        from spcomm.launch.remote import transport_main
        from spcomm.launch.remote.transport_processes import TransportProcess

        about = self._granted
        places, box = about["places"], about["box"]
        self._segment = segments.Segment(
            self._total,
            oversubscribed=self._local + 2 > segments.cores(),
            disable=segments.disable_mask(),
            begun_ns=time.monotonic_ns(),
            boxes=max(places) + 1,
            box=box,
            places=places,
            **about["sizes"],
        )

        def carry(wire: "Any") -> None:
            secret, descriptor = bytes.fromhex(about["secret"]), self._segment.fd
            transport_main.carry(
                wire,
                self._link.peer,
                secret,
                about["job"],
                box,
                descriptor,
                about["link_timeout"],
                killed=self._link.report_gone,
            )

        name, label = f"the gateway of box {box}", f"spcomm gw {box}"
        self._gateway = TransportProcess(name, box, label, carry, self._segment.fd, [], reports=True)
        ranks = b"".join(rank.to_bytes(4, sys.byteorder) for rank in about["ranks"])
        try:
            self._sock.sendmsg([_header(0, ranks) + ranks], rights(self._segment.fd))
        except OSError:  # the program is gone
            self._leave()

    # The run

    def run(self) -> None:
        """Serve the run until the supervisor has ended."""
        self._loop.add(self._sock.fileno(), self._hear_supervisor)
        self._loop.add(self._gateway.fileno(), self._hear_gateway)
        self._link.listen(self._loop, self._hear_server)
        while True:
            self._loop.turn()

    def _hear_supervisor(self) -> None:
        try:
            data = self._sock.recv(_MOST_TEXT)
        except OSError:
            data = b""
        if not data:
            self._leave()
        self._came += data
        while len(self._came) >= _HEADER_BYTES:
            code = int.from_bytes(self._came[:4], sys.byteorder, signed=True)
            end = _HEADER_BYTES + int.from_bytes(self._came[4:_HEADER_BYTES], sys.byteorder)
            if len(self._came) < end:
                return
            record, self._came = self._came[_HEADER_BYTES:end], self._came[end:]
            if code:  # else the gateway tells the others
                from spcomm.launch.supervise.conclude import Ending

                self._has_said = True
                self._fail(code, Ending(record, self._granted["ranks"]).cause())

    def _fail(self, code: int, text: str) -> None:
        """Report a failure; the server decides which box was the first."""
        self._link.send(["failed", code, text])

    def _hear_server(self) -> None:
        found = self._link.receive()
        for message, _data in found or ():
            if message[0] == "ended":
                self._ended(*message[1:])
        if found is None:
            self._end(125, f"spcomm: {self._link.why}; the nodes were stopped (exit code 125)\n")

    def _ended(self, code: int, sentence: str, where: str, is_ours: bool) -> None:
        """The run is over. All boxes print a report of a deadlock unchanged."""
        if int(code) == 0 or (is_ours and self._has_said and int(code) != _DEADLOCK_CODE):
            self._end(int(code), "")
        elif self._step is not None and not self._speaks(int(code), is_ours):
            self._end(int(code), "\0")
        elif int(code) == _DEADLOCK_CODE and "\n" in sentence:
            self._end(int(code), "".join(f"{one_line(line)}\n" for line in sentence.splitlines()))
        else:
            cause = f"{one_line(where)}: " if where else ""
            self._end(int(code), f"spcomm: {cause}{one_line(sentence)}; the nodes were stopped\n")

    def _speaks(self, code: int, is_ours: bool) -> bool:
        """Whether this box of a step prints why the run ends: all boxes have the same stderr."""
        is_lost = code == 125  # the box to blame may be gone
        return self._step.box == 0 if code == _DEADLOCK_CODE or (is_lost and not is_ours) else is_ours

    def _end(self, code: int, text: str) -> None:
        """Tell the supervisor how the run ends, once. Empty: as the supervisor itself has reported."""
        if self._is_over:
            return
        self._is_over = True
        self.tell(code, text)

    def _hear_gateway(self) -> None:
        fd = self._gateway.fileno()
        message = self._gateway.receive()
        if message is None:
            self._loop.remove(fd)
            if self._gateway.status and not self._is_over:
                self._fail(125, f"its gateway {self._gateway.how()}")
        elif message[0] == "deadlock" and message[2]:
            pass  # a warning, and none of these processes is the one to give it
        elif message[0] == "deadlock":
            from spcomm._core import diagnose

            # Others may wait because of a node that is about to end with a code, which shows when its process ends.
            report = diagnose.report(diagnose.unpacked(message[1]), self._total)
            self._loop.at("deadlock", _DUE_S, lambda: self._fail(_DEADLOCK_CODE, report))
        elif not self._is_over:
            text = message[1] if message[0] == "failed" else "its gateway has failed, an error of spcomm"
            self._fail(125, one_line(text))

    def close(self) -> None:
        """Tell the server that this box has left. If the supervisor was killed, node 0 still waits."""
        if self._gateway is not None:
            self._segment.mark_disconnected(-1)
            self._gateway.close()
        if self._link is not None:
            self._link.finish(_FINISH_S)
        if self._server is not None:
            self._server.release()  # it ends when the other boxes have heard how the run ends

    def _leave(self) -> None:
        """End the process; nothing of this box is left."""
        self.close()
        os._exit(0)


def _step_s() -> float:
    from spcomm.launch.room.step import MEET_S

    return MEET_S


def _serve_step(
    wire: "Any", step: "Step", desk: "socket.socket", listener: "socket.socket", code: str
) -> None:
    """Serve the boxes of a step, until the last one has left. The end of `wire` is that of the first."""
    from spcomm.launch.base.loop import Loop
    from spcomm.launch.cmdline import values
    from spcomm.launch.room.server import serve
    from spcomm.launch.room.step import Desk

    loop, left = Loop(), []

    def leave() -> None:
        loop.remove(wire.fileno())
        left.append(True)

    loop.add(wire.fileno(), leave)
    Desk(loop, desk, step, listener.getsockname()[1], code)
    about = {
        "room": False,
        "expires": time.time() + 8 * 3600.0,
        "most": 64,
        "link_timeout": values.LINK_TIMEOUT_S,
    }
    had: list[int] = []

    def is_over(count: int) -> bool:
        had.extend([count] if count and not had else [])
        return not count and bool(had or left)

    serve(loop, listener, code, about, lambda _text: None, 1024, is_over)


def _header(code: int, data: bytes) -> bytes:
    return code.to_bytes(4, sys.byteorder, signed=True) + len(data).to_bytes(4, sys.byteorder)
