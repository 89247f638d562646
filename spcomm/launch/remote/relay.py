# SPDX-License-Identifier: MIT
"""Relay between the launcher and a box on another host: acts as a fork server, and does its work over ssh.

It uses the protocol of `fork_server` with the launcher, so no other module there deals with hosts; it forwards messages
to `box`, at the other end of ssh, and the output of nodes comes back through the pipes that the launcher reads. It
never outlives the launcher, and ssh never outlives it; the end of ssh's input ends the box.

It knows nodes by index. Messages of its own, to the launcher: ("failed", sentence, code)  ("warning", text)
("text", text)  ("report", node, kind, payload: see `report`)  ("noted", final state of the box's memory, by group)
("deadlock", group, proof of its gateway, in vain)  ("trace", data packed by `remote_traces`)
("answer", number of the question, answer of the box: see `box_proxy`)
"""

import os
import re
import signal
import stat
import subprocess
import sys

from spcomm.launch.base import nothing, process
from spcomm.launch.base.loop import Loop
from spcomm.launch.base.report import EXITING, KINDS
from spcomm.launch.base.wire import NONSENSE, Wire
from spcomm.launch.remote import LOOK, versions
from spcomm.launch.remote.framing import MOST, FrameError, Frames, Outlet, one_line

_PATIENCE_S = 5.0  # for killed nodes to disappear; then the connection itself is given up
_ALLOCATED = re.compile(rb"Allocated port ([0-9]+) for remote forward")
_PIECE = 1 << 16
_PASSED_ON = (
    "ready",
    "started",
    "unstarted",
    "exited",
    "signalled",
    "noted",
    "deadlock",
    "called",
    "uncalled",
)
_WINDOW = 1 << 18  # bytes of a standard input under way
_KEPT_ERRORS = 4096
_SAID = 8  # lines


def main() -> None:
    """Run the process from its top level."""
    process.end_by_interrupt()
    process.die_with(int(sys.argv[2]), signal.SIGKILL)
    Relay(Wire.adopt(int(sys.argv[1]))).run()


class Relay:
    """Serves one host."""

    what = "host"  # the noun for its target in messages

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._loop = Loop()
        self._about: dict = {}
        self._more: list[int] = []  # descriptors
        self._frames: Frames | None = None
        self._waiting: list[list] = []  # for the box, which has not started
        self._begun = False
        self._port = 0  # the tunnel's port at the other end
        self._hello: dict | None = None
        self._errors = b""  # error output of ssh
        self._said: list[str] = []  # its last lines that were shown
        self._indices: set[int] = set()  # of the nodes there
        # (index, 1 or 2) → the launcher's pipe; (index, 0) → a standard input that is a socket, for a node's answers
        self._outlets: dict[tuple[int, int], Outlet] = {}
        self._inputs: dict[int, list[int]] = {}  # index → descriptor, bytes under way
        self._leaving = False
        self._paused = False
        self._asked = 0  # the last question sent to the box
        self._answered = 0

    def run(self) -> None:
        self._loop.add(self._wire.fileno(), self._obey)
        while True:
            self._loop.turn()
            self._flush()

    # From the launcher

    def _obey(self) -> None:
        received = self._wire.receive()
        if received is None:
            self._abandoned()
        else:
            self._order(*received)

    def _order(self, message: tuple, descriptors: "list[int]") -> None:
        verb = message[0]
        if verb == "run":
            self._about, self._more = message[1], descriptors
            self._start()
        elif verb == "nodes":
            self._nodes(message[1], descriptors)
        elif verb == "abandon":
            os.killpg(self._ssh.pid, signal.SIGKILL)  # it leads its session, and is not reaped
            self._leave()
        elif verb == "call":  # of a cluster, whose nodes run already
            self._frames.send(["call", message[1]], message[2])
        elif verb == "ask" and message[2] == LOOK and self._paused:  # it would answer after its output
            self._wire.send(("answer", message[1], {"held": True}))
        else:
            self._asked = message[1] if verb == "ask" else self._asked
            self._tell(list(message))
            if verb == "signal" and message[1] == signal.SIGKILL:
                self._loop.at("patience", _PATIENCE_S, self._lose_patience)

    def _lose_patience(self) -> None:
        os._exit(1)

    def _abandoned(self) -> None:
        """Handle the end of the launcher."""
        os._exit(0)

    def _start(self) -> None:
        command = self._about["command"]
        try:
            self._ssh = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # with all that it starts it is killed as one group
                preexec_fn=_die_together,
            )
        except OSError as error:
            self._fail(
                f"host {self._about['host']}: {command[0]} cannot be started ({error.strerror}), which is to reach it"
            )
            return
        self._frames = Frames(self._ssh.stdout.fileno(), self._ssh.stdin.fileno(), False)
        self._error_fd = self._ssh.stderr.fileno()
        os.set_blocking(self._error_fd, False)
        self._frames.listen(self._loop, self._hear)
        self._loop.add(self._error_fd, self._hear_errors)

    def _nodes(self, indices: "list[int]", descriptors: "list[int]") -> None:
        self._indices.update(indices)
        reading = []
        null = os.stat(os.devnull)
        for at, index in enumerate(indices):
            stdin, stdout, stderr = descriptors[3 * at : 3 * at + 3]
            self._outlets[index, 1], self._outlets[index, 2] = Outlet(stdout), Outlet(stderr)
            found = os.fstat(stdin)
            if found.st_rdev == null.st_rdev and stat.S_ISCHR(found.st_mode):
                os.close(stdin)
            else:
                if stat.S_ISSOCK(found.st_mode):
                    self._outlets[index, 0] = Outlet(os.dup(stdin))
                reading.append(index)
                self._inputs[index] = [stdin, 0]
                if self._begun:
                    self._listen(index)
        self._tell(["nodes", indices, reading])

    def _tell(self, message: list) -> None:
        if self._begun:
            self._frames.send(message)
        else:
            self._waiting.append(message)

    # From the host

    def _hear(self) -> None:
        try:
            frames = self._frames.receive()
            if frames is None:
                self._ended()
                return
            for message, data in frames:
                self._heard(message, data)
        except (FrameError, *NONSENSE) as error:
            how = error if isinstance(error, FrameError) else "sent a malformed message"
            self._fail(f"{self.what} {self._about['host']}: it {how}")

    def _heard(self, message: list, data: bytes) -> None:
        verb, *rest = message
        if verb == "hello":
            self._hello = rest[0]
            self._begin()
        elif verb == "out":
            self._outlets[rest[0], rest[1]].add(data)
        elif verb == "closed":
            self._outlets[rest[0], rest[1]].ending = True
            if rest[1] == 0:  # nor does the node read any more
                self._taken(rest[0], -1)
        elif verb == "report":
            self._check_report(*rest, data)
            self._wire.send((verb, rest[0], rest[1].encode(), data))
        elif verb == "taken":
            self._taken(*rest)
        elif verb == "trace":
            self._wire.send((verb, *rest, data))
        elif verb == "answer":
            self._answered = rest[0]
            self._wire.send((verb, *rest))
        elif verb == "failed":
            code = int(rest[1])
            self._fail(f"{self.what} {self._about['host']}: {rest[0]}", code if 0 < code < 256 else 125)
        elif verb == "gone":
            self._leaving = True
        elif verb == "warning":
            self._wire.send((verb, one_line(rest[0])))
        elif verb == "missing":
            lines = [f"{one_line(line)}\n" for line in str(rest[1]).splitlines()]
            self._wire.send((verb, one_line(rest[0]), "".join(lines)))
        elif verb == "told":
            self._wire.send((verb,))
        elif verb in _PASSED_ON:
            self._wire.send((verb, *rest))

    def _check_report(self, index: int, kind: str, payload: bytes) -> None:
        """Raise `ValueError` unless a box reports about its own node, in a form the launcher can read."""
        if (
            index not in self._indices
            or kind.encode() not in KINDS
            or (kind.encode() == EXITING and not payload.isdigit())
        ):
            raise ValueError(f"report: {index} {kind}")

    def _begin(self) -> None:
        """Start when both the box and, where there is one, its way back to the server are there."""
        if self._hello is None or self._begun or (self._about["tunnel"] and not self._port):
            return
        error, warning = versions.compare(self._about["host"], self._hello)
        if error:
            self._fail(error)
            return
        if warning:
            self._wire.send(("warning", warning))
        about = dict(self._about["box"])
        if self._port:
            about["address"] = ["127.0.0.1", self._port]
        self._frames.send(["begin", about], self._about["secrets"])
        self._begun = True
        for index in self._inputs:
            self._listen(index)
        for waiting in self._waiting:
            self._frames.send(waiting)
        self._waiting.clear()
        self._say_here()

    def _say_here(self) -> None:
        """Send the box a sign of life of the launcher: until TCP gives up, it cannot notice a cut network otherwise."""
        self._frames.send(["here"])
        self._loop.at("here", self._about["box"]["link_timeout"] / 6, self._say_here)

    def _hear_errors(self) -> None:
        try:
            data = os.read(self._error_fd, _PIECE)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove(self._error_fd)
            return
        self._errors += data
        found = _ALLOCATED.search(self._errors)
        if found is not None and not self._port:
            self._port = int(found.group(1))
            self._begin()
        *lines, self._errors = self._errors.split(b"\n")
        shown = [line for line in lines if not _ALLOCATED.search(line)]
        if self._begun and shown:
            lines = [one_line(line.decode("utf-8", "replace")) for line in shown]
            self._said = [*self._said, *lines][-_SAID:]
            text = "\n".join(lines)
            self._wire.send(("text", f"spcomm: {self.what} {self._about['host']}: {text}\n"))
        elif not self._begun:
            self._errors = b"\n".join([*shown, self._errors])[-_KEPT_ERRORS:]

    def _ended(self) -> None:
        """Handle the end of ssh."""
        self._frames.pause(self._loop)
        if self._leaving:
            return
        host = self._about["host"]
        try:
            self._hear_errors()
            code = self._ssh.wait(2)
        except subprocess.TimeoutExpired:
            code = None
        errors = [*self._said, *self._errors.decode("utf-8", "replace").splitlines()]
        said = [line.strip() for line in errors if line.strip()]
        # Slurm's own sentence about a step comes before that of the command about its end.
        cause = next((line for line in said if line.startswith("slurmstepd")), said[-1] if said else "")
        if not cause and code is not None and code < 0:
            cause = f"{self._about['command'][0]} was killed by {process.signal_name(-code)}"
        why = f" ({cause})" if cause else ""
        if self._begun:
            self._fail(f"{self.what} {host}: the connection to it has ended, with its nodes{why}")
        else:
            how = "has ended" if code is None else f"ended with code {code}"
            command = self._about["command"][0]
            self._fail(f"{self.what} {host}: {command} {how} before a box was started there{why}")

    def _fail(self, sentence: str, code: int = 125) -> None:
        self._wire.send(("failed", one_line(sentence), code))
        self._leave()

    def _leave(self) -> None:
        self._wire.send(("gone",))
        os._exit(0)

    # Standard input of nodes there

    def _listen(self, index: int) -> None:
        self._loop.add(self._inputs[index][0], lambda: self._read(index))

    def _read(self, index: int) -> None:
        entry = self._inputs[index]
        try:
            data = os.read(entry[0], _PIECE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._frames.send(["stdin", index], data)
        entry[1] += len(data)
        if not data or entry[1] >= _WINDOW:
            self._loop.remove(entry[0])
        if not data:
            os.close(self._inputs.pop(index)[0])

    def _taken(self, index: int, count: int) -> None:
        """Note that the node has read that much. A negative number: it reads no more."""
        entry = self._inputs.get(index)
        if entry is None:
            return
        if count < 0:
            self._loop.remove(entry[0])
            os.close(self._inputs.pop(index)[0])
            return
        entry[1] -= count
        if entry[1] < _WINDOW:
            self._listen(index)

    # Data that wait

    def _flush(self) -> None:
        for key, outlet in list(self._outlets.items()):
            if key[1] == 0 and self._has_output(key[0]):  # a node's answer does not overtake its output
                continue
            outlet.flush()
            if outlet.kept:
                self._loop.add(outlet.fd, nothing, write=True)
                continue
            self._loop.remove(outlet.fd)
            if outlet.ending:
                os.close(outlet.fd)
                del self._outlets[key]
        kept = sum(outlet.kept for outlet in self._outlets.values())
        if self._leaving and not kept:
            self._leave()
        if self._frames is None:
            return
        full = kept > MOST and self._asked == self._answered
        if full != self._paused and not self._leaving:
            self._paused = not self._paused
            if self._paused:
                self._frames.pause(self._loop)
            else:
                self._frames.listen(self._loop, self._hear)
        if self._frames.flush():
            self._loop.remove(self._frames.writing)
        else:
            self._loop.add(self._frames.writing, nothing, write=True)

    def _has_output(self, index: int) -> bool:
        return any(
            (index, target) in self._outlets and self._outlets[index, target].kept for target in (1, 2)
        )


def _die_together() -> None:
    from spcomm._core import net

    net.die_with_parent(signal.SIGTERM)
