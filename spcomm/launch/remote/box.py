# SPDX-License-Identifier: MIT
"""`spcomm box`: one box of a run whose launcher is on another machine. The launcher starts it through ssh.

The box reads its orders and secrets from its standard input and writes its reports to its standard output, as
frames. It has the fork server, the shared memory and the gateway that the launcher has for boxes of its own machine.
Everything here ends with the standard input, or when the launcher has sent nothing for `--link-timeout` seconds.
"""

import _signal
import os
import sys

from spcomm.launch.remote.framing import MOST, FrameError, Frames, Outlet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PIECE = 1 << 16
_TRANSPORT_END_S = 30.0  # for the gateway to end after all nodes
_LATE_S = 1.0  # for frames that the system still holds after this process was stopped
_LOOK_S = 0.06  # between two looks for a deadlock; two of them make a proof


def main(words: "list[str]") -> int:
    """Run until the nodes of this box have ended."""
    if words or os.isatty(0):
        sys.stderr.write("spcomm box: is started by spcomm run --host, on the hosts that it names\n")
        return 125
    if not getattr(sys.flags, "safe_path", False) and sys.path and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]  # the folder where ssh started is irrelevant to the program
    frames = Frames(os.dup(0), os.dup(1), True)
    withdraw()
    Box(frames).run()
    return 0


def withdraw() -> None:
    """Detach this process from the standard streams, and from a terminal's signals."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    for number in (_signal.SIGINT, _signal.SIGHUP):  # the end of the input replaces them
        _signal.signal(number, _signal.SIG_IGN)


class Box:
    """The launcher's work for its own boxes, without its decisions, which the launcher itself takes."""

    def __init__(self, frames: "Any") -> None:
        """`frames`: `Frames`, or an object with the same methods."""
        from spcomm.launch.base.loop import Loop

        self._loop = Loop()
        self._frames = frames
        self._about: dict = {}
        self._fork_client: Any = None
        self._segment: Any = None
        self._gateway: Any = None
        self._reader: Any = None
        self._ranks: list[int] = []
        self._reported: set[int] = set()
        self._started: dict[int, int] = {}  # rank → process, of running nodes
        self._answers: Any = None  # where nodes report their lines
        self._pipes: dict[int, tuple[int, int]] = {}  # descriptor → rank, 1 or 2
        self._inputs: dict[int, Outlet] = {}
        self._paused = False
        self._ending = False  # the launcher has a reason to end the run
        self._nodes_gone = False
        self._patience_s: float | None = None  # for the last frames to arrive; None: no limit

    def run(self) -> None:
        from spcomm.launch.remote import versions

        self._greet()
        self._frames.send(["hello", versions.mine()])
        self._frames.listen(self._loop, self._hear)
        while True:
            self._loop.turn()
            self._flush()

    def _greet(self) -> None:
        self._frames.greet()

    def _hear(self) -> None:
        try:
            frames = self._frames.receive()
        except FrameError:
            frames = None
        if frames is None:
            self._leave()
            return
        for message, data in frames:
            self._heard(message, data)

    def _heard(self, message: list, data: bytes) -> None:
        verb, *rest = message
        if verb == "begin":
            self._begin(rest[0], data)
        elif verb == "nodes":
            self._nodes(*rest)
        elif verb == "stdin":
            self._stdin(rest[0], data)
        elif verb in ("signal", "poke", "end", "ask"):
            self._told(verb, *rest)
        elif verb == "here":
            self._loop.at("silence", self._about["link_timeout"], self._silence)

    def _silence(self) -> None:
        """Handle a launcher that sent nothing for `--link-timeout` seconds."""
        self._loop.at("silence", _LATE_S, self._cut_off)

    def _cut_off(self) -> None:
        self._frames.broken = True  # nor can it receive anything
        self._leave()

    # The start

    def _begin(self, about: dict, secrets: bytes) -> None:
        from spcomm._core.errors import SpcommError
        from spcomm.launch.base.process import adopt_orphans
        from spcomm.launch.base.usage import UsageError

        self._about = about
        adopt_orphans()
        try:
            self._start(secrets)
        except UsageError as error:
            self._fail(str(error).removeprefix("spcomm run: "), error.code)
        except MemoryError:
            self._fail("not enough memory for the message buffers; try smaller --ring, --arena")
        except (OSError, SpcommError) as error:
            self._fail(str(error))

    def _start(self, secrets: bytes) -> None:
        from spcomm.launch.base import report
        from spcomm.launch.base.process import WHERE_SIGNAL
        from spcomm.launch.cmdline.groups import Group
        from spcomm.launch.local import stack_probe
        from spcomm.launch.local.fork_client import ForkClient
        from spcomm.launch.remote import boxparts

        about = self._about
        plan = boxparts.plan(about)
        self._ranks = list(plan.indices)
        fork_client = self._fork_client = ForkClient(plan, WHERE_SIGNAL, boxparts.raise_limit())
        group = Group(about["group"])
        group.size, group.places = about["size"], about["places"]
        group.segments = [None] * group.boxes
        self._segment = group.segments[plan.box] = boxparts.segment(about, len(self._ranks))
        self._connect(secrets, group.boxes)
        self._reader = report.Reader()
        self._answers = stack_probe.ProbeReplies()
        fork_client.run(
            group, self._reader.write, self._answers.fileno(), boxparts.cpus(about), about["stats"]
        )
        self._answers.close_theirs()
        os.close(self._reader.write)
        self._loop.add(fork_client.fileno(), self._hear_starter)
        self._loop.add(self._reader.fd, self._read_reports)

    def _connect(self, secrets: bytes, boxes: int) -> None:
        """Start the gateway, or where there is one box the search for deadlocks: no other process has the memory."""
        from spcomm.launch.remote import boxparts

        if boxes > 1:
            self._gateway = boxparts.gateway(self._about, self._segment, secrets)
            self._loop.add(self._gateway.fileno(), self._hear_gateway)
        else:
            self._loop.at("look", _LOOK_S, self._look)

    def _nodes(self, ranks: "list[int]", reading: "list[int]") -> None:
        """Start these nodes; `reading`: those that have a standard input."""
        if not ranks:  # the answer confirms that earlier requests were obeyed
            self._fork_client.nodes(range(0), [])
            return
        streams, theirs, inputs = [], [], set(reading)
        for rank in ranks:
            streams.append(self._input(rank) if rank in inputs else os.open(os.devnull, os.O_RDONLY))
            for target in (1, 2):
                read, write = os.pipe()
                os.set_blocking(read, False)
                self._pipes[read] = rank, target
                if not self._paused:
                    self._loop.add(read, lambda read=read: self._read(read))
                streams.append(write)
        theirs += streams
        self._fork_client.nodes(range(ranks[0], ranks[-1] + 1), streams)
        for fd in theirs:
            os.close(fd)

    def _input(self, rank: int) -> int:
        """Make the standard input of a node. Return the node's end."""
        stdin, write = os.pipe()
        self._inputs[rank] = Outlet(write)
        return stdin

    def _close_input(self, outlet: Outlet) -> None:
        os.close(outlet.fd)

    # While it runs

    def _told(self, verb: str, *rest: "Any") -> None:
        fork_client = self._fork_client
        if fork_client is None:
            return
        if verb in ("poke", "ask"):
            fork_client.poke(*rest) if verb == "poke" else self._asked(*rest)
            return
        self._ending = self._ending or verb == "end" or rest[0] == _signal.SIGKILL
        if verb == "end":
            fork_client.no_more()
            if not fork_client.ready:
                fork_client.kill()
        else:
            fork_client.go_on()
            fork_client.signal(*rest)
        self._consider()

    def _asked(self, number: int, question: str, ranks: "list[int]") -> None:
        from spcomm.launch.remote import box_proxy

        if question == box_proxy.CLOCK:
            about = box_proxy.clock()
        elif question == box_proxy.LINES:
            running = {rank: self._started[rank] for rank in ranks if rank in self._started}
            about = box_proxy.lines(self._answers, self._fork_client.poke, running)
        else:
            about = box_proxy.look(self._segment, self._ranks)
        self._frames.send(["answer", number, about])

    def _hear_starter(self) -> None:
        message = self._fork_client.receive()
        if message is None or message[0] == "gone":
            self._loop.remove(self._fork_client.fileno())
            if message is None and not self._ending:
                self._fail("the process that starts the nodes there was killed")
                return
            self._fork_client.wait()
            self._nodes_gone = True
            self._loop.at("carrying", _TRANSPORT_END_S, self._carried_too_long)
            self._consider()
            return
        if message[0] == "ready":
            self._fork_client.ready = True
        elif message[0] == "started":
            self._started.update(zip(message[1], message[2], strict=True))
        elif message[0] == "exited":
            self._exited(message[1], message[2], self._started.pop(message[1], 0))
        self._frames.send(list(message))

    def _exited(self, rank: int, status: int, process: int) -> None:
        from spcomm.launch.base import report

        self._read_reports()
        line = self._answers.crash_line(process) if status & 0x7F else ""
        if line:
            self._frames.send(["report", rank, report.CRASHED.decode()], line.encode())
        if status == 0 and rank not in self._reported:
            self._segment.mark_finished(rank)
        else:
            self._segment.mark_died(rank, -(status & 0x7F) if status & 0x7F else status >> 8)

    def _read_reports(self) -> None:
        from spcomm.launch.base import report

        if self._reader.ended:
            return
        for rank, kind, payload in self._reader.read():
            self._frames.send(["report", rank, kind.decode("ascii", "replace")], payload)
            if kind != report.TEXT and rank in self._ranks:
                self._reported.add(rank)
                self._segment.mark_failing(rank, int(payload) if kind == report.EXITING else 1)
        if self._reader.ended:
            self._loop.remove(self._reader.fd)

    def _hear_gateway(self) -> None:
        fd = self._gateway.fileno()
        message = self._gateway.receive()
        if message is None:
            self._loop.remove(fd)
            if self._gateway.status and not self._ending:
                self._segment.mark_disconnected(self._gateway.box)
                self._fail(f"the gateway there {self._gateway.how()}; the nodes were stopped (exit code 125)")
            self._consider()
        elif message[0] == "deadlock":
            self._frames.send(list(message))
        elif not self._ending:
            if message[0] != "failed":
                sys.stderr.write(message[1])
            text = (
                message[1]
                if message[0] == "failed"
                else "its gateway has failed, an error of spcomm; report it"
            )
            self._fail(f"{text}; the nodes were stopped (exit code 125)")

    def _look(self) -> None:
        blocked = self._segment.look()
        if not blocked:
            self._loop.at("look", _LOOK_S, self._look)
            return
        from spcomm._core import diagnose

        waits = {rank: self._segment.wait(rank) for rank in blocked}
        self._frames.send(["deadlock", diagnose.packed({rank: wait for rank, wait in waits.items() if wait})])

    def _carried_too_long(self) -> None:
        self._fail("all nodes there have ended, and its gateway has not")

    # What passes through

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, _PIECE)
        except BlockingIOError:
            return
        except OSError:  # a socket whose other end was killed
            data = b""
        rank, target = self._pipes[fd]
        if data:
            self._frames.send(["out", rank, target], data)
            return
        self._loop.remove(fd)
        os.close(fd)
        del self._pipes[fd]
        self._frames.send(["closed", rank, target])

    def _stdin(self, rank: int, data: bytes) -> None:
        outlet = self._inputs.get(rank)
        if outlet is not None:
            outlet.add(data)
            outlet.ending = not data

    def _flush(self) -> None:
        if self._frames.flush():
            self._loop.remove(self._frames.writing)
        else:
            self._loop.add(self._frames.writing, _nothing, write=True)
        if self._frames.broken:
            self._leave()
        if (self._frames.kept > MOST) != self._paused:
            self._paused = not self._paused
            for fd in self._pipes:
                if self._paused:
                    self._loop.remove(fd)
                else:
                    self._loop.add(fd, lambda fd=fd: self._read(fd))
        for rank, outlet in list(self._inputs.items()):
            taken = outlet.flush()
            if taken:
                self._frames.send(["taken", rank, taken])
            if outlet.kept:
                self._loop.add(outlet.fd, _nothing, write=True)
                continue
            self._loop.remove(outlet.fd)
            if taken is None or outlet.ending:
                self._close_input(outlet)
                del self._inputs[rank]
            if taken is None:
                self._frames.send(["taken", rank, -1])

    # The end

    def _consider(self) -> None:
        """Send all final reports and end, after nodes and gateway are gone."""
        if not self._nodes_gone or (
            self._gateway is not None and not self._gateway.gone and not self._ending
        ):
            return
        self._read_reports()
        self._send_rest()
        self._send_trace()
        self._frames.send(["noted", self._known()])
        self._frames.send(["gone"])
        self._leave()

    def _send_rest(self) -> None:
        for fd in list(self._pipes):
            while fd in self._pipes and self._rest(fd):
                pass

    def _send_trace(self) -> None:
        if self._about["segment"].get("trace_events"):
            from spcomm.trace import remote_traces

            for rank, lost, piece in remote_traces.packed(self._segment.fd, self._ranks):
                self._frames.send(["trace", rank, lost], piece)

    def _rest(self, fd: int) -> bool:
        """Forward the rest of a pipe. A process that a node left behind may keep it open."""
        rank, target = self._pipes[fd]
        try:
            data = os.read(fd, _PIECE)
        except OSError:  # it is empty, or its other end was killed
            return False
        if data:
            self._frames.send(["out", rank, target], data)
        return bool(data)

    def _known(self) -> dict:
        known: dict = {}
        if self._about["stats"]:
            known["counts"] = self._segment.counts(self._ranks)
        known["has_left"] = not self._ending and self._segment.has_left()
        if known["has_left"] or (self._about["strict"] and not self._ending):  # else lines are unused
            from spcomm.diagnose import unmatched

            known["left"] = unmatched.packed([(self._segment.fd, self._ranks)])
        return known

    def _fail(self, sentence: str, code: int = 125) -> None:
        self._frames.send(["failed", sentence, code])
        self._leave()

    def _leave(self) -> None:
        """End everything here. No process is left."""
        if self._gateway is not None:
            self._gateway.close()
        if self._fork_client is not None and not self._fork_client.ended:
            self._fork_client.kill()
            self._fork_client.wait()
        from spcomm.launch.base.process import end_children

        end_children(set())
        self._tidy()
        self._frames.finish(self._patience_s)
        os._exit(0)

    def _tidy(self) -> None:
        """Clean up after all processes are gone; a subclass may have more to remove."""


def _nothing() -> None:
    pass
