# SPDX-License-Identifier: MIT
"""The boxes of a step of Slurm find each other, where srun has started the nodes of a run on several machines.

The box process of the step's first machine runs a server, as `spcomm serve` does, with a random code. The others ask
for its port and code at a *desk* beside it, whose port follows from job and step. A question and its answer are
credentials of MUNGE, restricted to the user, with job and step in them and a number that was never used before: so
whoever else listens there, or asks, is found out, and the next port is tried. No file, environment or command line has
the code.
"""

import json
import os
import socket
import time
import zlib
from functools import partial
from typing import TYPE_CHECKING

from spcomm.launch.base.loopback import ANYWHERE, LOOPBACK
from spcomm.launch.room.munge import Munge, MungeError

if TYPE_CHECKING:
    from spcomm.launch.base.loop import Loop

MEET_S = 30.0
_FIRST_PORT, _PORTS = 20000, 12000  # below those that systems give to connections
_TRIES = 16  # ports, where others have taken some
_ANSWER_S = 1.0  # for a desk to answer, or for a process to ask
_AGAIN_S = 0.02
_MOST_BYTES = 4096
_MOST_ASKING = 64
_VARIABLES = (
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
    "SLURM_NODEID",
    "SLURM_STEP_NUM_NODES",
    "SLURM_GTIDS",
    "SLURM_STEP_NODELIST",
)


class StepError(Exception):
    """The boxes cannot meet; the text is a sentence without its end."""


class Step:
    """The step that this process belongs to."""

    def __init__(self) -> None:
        missing = [name for name in _VARIABLES if not os.environ.get(name)]
        try:
            job, step, box, boxes, ranks, nodes = (os.environ.get(name, "") for name in _VARIABLES)
            self.job = f"{job}.{step}"
            self.box, self.boxes = int(box), int(boxes)
            self.ranks = [int(rank) for rank in ranks.split(",")]
        except ValueError:
            raise StepError(
                f"this Slurm sets no {missing[0] if missing else 'usable SLURM_GTIDS'}; "
                "spcomm run in the job needs no srun, and runs on all of its machines"
            ) from None
        self.machines = _expanded(nodes)
        self.machine = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
        try:
            self._munge = Munge()
            self._munge.encode(b"")
        except MungeError as error:
            raise StepError(
                f"srun on several machines takes MUNGE ({error}); spcomm run in the job needs none"
            ) from None

    @property
    def first(self) -> str:
        """The machine of box 0."""
        return self.machines[0]

    def missing(self, there: str) -> str:
        """The machines that have not come: all but those in a list such as "4 on n1, 2 on n2"."""
        come = {item.rpartition(" on ")[2] for item in there.split(", ")}
        return ", ".join(name for name in self.machines if name not in come) or "some processes"

    def listen(self) -> "tuple[socket.socket, socket.socket]":
        """Return a listener for the desk, and one for the server beside it."""
        try:
            here = socket.gethostbyname(self.first)
        except OSError:
            here = ""
        host = here if here == LOOPBACK else ANYWHERE
        desk = next(filter(None, (_listener(host, port) for port in self._ports())), None)
        server = _listener(host, 0)
        if desk is None or server is None:
            raise StepError(f"no port of {self.first} is free for the step's machines to meet")
        return desk, server

    def _ports(self) -> "list[int]":
        start = zlib.crc32(self.job.encode())
        return [_FIRST_PORT + (start + at * 691) % _PORTS for at in range(_TRIES)]

    def ask(self, until: float) -> "tuple[tuple[str, int], str]":
        """Ask the first machine's desk: where is the server, and what is its code? Waits until then."""
        while True:
            for port in self._ports():
                try:
                    found = self._ask_at(port)
                except (OSError, ValueError, KeyError, TypeError, MungeError):
                    continue
                return (self.first, found[0]), found[1]
            if time.monotonic() >= until:
                raise StepError(
                    f"{self.first}, the first machine of the step, has not called startup() within {MEET_S:g} s, "
                    "or its ports cannot be reached; every process that srun starts has to call it"
                )
            time.sleep(_AGAIN_S)

    def _ask_at(self, port: int) -> "tuple[int, str]":
        nonce = os.urandom(16).hex()
        with socket.create_connection((self.first, port), timeout=_ANSWER_S) as sock:
            sock.sendall(self._sealed({"ask": nonce}))
            end = time.monotonic() + _ANSWER_S
            data = b""
            while not data.endswith(b"\n"):
                sock.settimeout(max(0.001, end - time.monotonic()))
                piece = sock.recv(_MOST_BYTES)
                data += piece
                if not piece or len(data) > _MOST_BYTES:
                    raise ValueError("this is no desk")
        found = self._opened(data)
        if found["answer"] != nonce:
            raise ValueError("this answers another question")
        return int(found["port"]), str(found["code"])

    def _sealed(self, message: dict) -> bytes:
        return self._munge.encode(json.dumps({**message, "job": self.job}).encode()).strip(b"\0\n") + b"\n"

    def _opened(self, data: bytes) -> dict:
        """Return the message of a credential. Raises `MungeError`, `ValueError`, `KeyError` or `TypeError`."""
        found = json.loads(self._munge.decode(data.strip()))
        if found["job"] != self.job:
            raise ValueError("this is for another step")
        return dict(found)

    def answer(self, data: bytes, port: int, code: str) -> bytes:
        """Return the answer to a question; empty: it is none of this step's."""
        try:
            return self._sealed({"answer": str(self._opened(data)["ask"]), "port": port, "code": code})
        except (ValueError, KeyError, TypeError, MungeError):
            return b""


class Desk:
    """Answers those who ask, in a loop."""

    def __init__(self, loop: "Loop", listener: socket.socket, step: Step, port: int, code: str) -> None:
        self._loop, self._listener = loop, listener
        self._answer = partial(step.answer, port=port, code=code)
        self._asking: dict[socket.socket, bytes] = {}  # the oldest first
        listener.setblocking(False)
        loop.add(listener.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            sock = self._listener.accept()[0]
        except OSError:
            return
        if len(self._asking) == _MOST_ASKING:
            self._close(next(iter(self._asking)))
        sock.setblocking(False)
        self._asking[sock] = b""
        self._loop.add(sock.fileno(), partial(self._read, sock))
        self._loop.at(f"desk {sock.fileno()}", _ANSWER_S, partial(self._close, sock))

    def _read(self, sock: socket.socket) -> None:
        try:
            piece = sock.recv(_MOST_BYTES)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        self._asking[sock] += piece
        data = self._asking[sock]
        if not piece or len(data) > _MOST_BYTES:
            self._close(sock)
        elif data.endswith(b"\n"):
            try:
                sock.send(self._answer(data))  # a new connection has room for it
            except OSError:
                pass
            self._close(sock)

    def _close(self, sock: socket.socket) -> None:
        del self._asking[sock]
        self._loop.forget(f"desk {sock.fileno()}")
        self._loop.remove(sock.fileno())
        sock.close()


def _listener(host: str, port: int) -> "socket.socket | None":
    try:
        return socket.create_server((host, port), backlog=1024)
    except OSError:
        return None


def _expanded(nodes: str) -> "list[str]":
    from spcomm.launch.base.usage import UsageError
    from spcomm.launch.cmdline.allocation import expanded

    try:
        return expanded("SLURM_STEP_NODELIST", nodes)
    except UsageError as error:
        raise StepError(str(error).removeprefix("spcomm run: ")) from None
