# SPDX-License-Identifier: MIT
"""Connections between agents: `--route direct`. The C core says which it wants, and what goes over them.

Each agent listens where it reached the server from, so at 127.0.0.1 where all boxes are on this machine. Who connects
proves to know the secret of the run, as at the server, and so does who accepts. What cannot be made is tried
again now and then; until it is there, the server relays.
"""

import _socket
import _thread
import os
import time

from spcomm._core import net
from spcomm._core.errors import SpcommError
from spcomm.launch import handshake
from spcomm.launch.loop import Loop

_AGAIN_S = (0.01, 0.05, 0.2, 1.0, 5.0)  # between attempts to connect; the last one repeats
_NUMBER_BYTES = 8  # first of all over a connection: which one it is
_BACKLOG = 64


class Peers:
    """The other agents, as those see to it who make connections."""

    def __init__(self, loop: Loop, agent: net.Agent, secret: bytes, job: int, box: int) -> None:
        self._loop = loop
        self._agent = agent
        self._place = secret, job, box
        self._listens = False

    def reached(self, host: str) -> None:
        """The server is reached from this address of this machine: others reach us there, or not at all."""
        if self._listens:
            return
        self._listens = True
        secret, job, _box = self._place
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        os.set_inheritable(listener.fileno(), False)
        try:
            listener.bind((host, 0))
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            return
        handshake.Gate(self._loop, listener, {job: secret}, self._admit).open()
        self._agent.listens(f"{host}:{listener.getsockname()[1]}")

    def look(self) -> None:
        """Make connections that are wanted now, each in a thread: connecting takes its time."""
        for box, number, address in self._agent.wanted():
            host, _colon, port = address.rpartition(":")
            _thread.start_new_thread(self._connect, (box, number, self._reach(box, (host, int(port)))))

    def _reach(self, box: int, address: "tuple[str, int]") -> "tuple[str, int]":
        """Where the agent of this box is found, which listens at that address."""
        return address

    def _connect(self, box: int, number: int, address: "tuple[str, int]") -> None:
        attempts = 0
        while self._agent.is_wanted(box, number):
            try:
                fd = handshake.enter(address, *self._place)
                try:
                    os.write(fd, number.to_bytes(_NUMBER_BYTES, "little"))
                    self._agent.attach_peer(box, number, fd)
                except BaseException:
                    os.close(fd)
                    raise
            except (OSError, SpcommError):
                time.sleep(_AGAIN_S[min(attempts, len(_AGAIN_S) - 1)])
                attempts += 1

    def _admit(self, _job: int, box: int, fd: int) -> None:
        self._loop.add(fd, lambda: self._number(box, fd))
        self._loop.at(f"number {fd}", net.HANDSHAKE_S, lambda: self._dismiss(fd))

    def _number(self, box: int, fd: int) -> None:
        try:
            data = os.read(fd, _NUMBER_BYTES)
        except OSError:
            data = b""
        if len(data) < _NUMBER_BYTES:
            self._dismiss(fd)
            return
        self._forget(fd)
        try:
            self._agent.attach_peer(box, int.from_bytes(data, "little") & 0xFFFFFFFF, fd)
        except SpcommError:  # no such box
            os.close(fd)

    def _dismiss(self, fd: int) -> None:
        self._forget(fd)
        os.close(fd)

    def _forget(self, fd: int) -> None:
        self._loop.remove(fd)
        self._loop.forget(f"number {fd}")
