# SPDX-License-Identifier: MIT
"""Connections between gateways, for `--route direct`: makes those that the C core requests.

Each gateway listens on the address from which it reached the server, so on 127.0.0.1 if all boxes are on this machine.
Both ends of a connection prove that they know the secret of the two boxes. If none can be made in time, the server
relays the traffic of the two boxes for the whole run. A connection that breaks later is made anew, as often as needed.
"""

import _thread
import os
import socket
import time
from typing import TYPE_CHECKING

from spcomm._core import net
from spcomm._core.errors import SpcommError
from spcomm.launch.base.loop import Loop
from spcomm.launch.remote import handshake

if TYPE_CHECKING:
    from spcomm.launch.remote.tls import Session

# For the first connection, and for each attempt at another; its handshake has its own limits.
_CONNECT_S = 1.0
_AGAIN_S = (0.01, 0.05, 0.2, 1.0, 5.0)  # between attempts to connect; the last one repeats
_NUMBER_BYTES = 8  # sent first over a connection: its number
_BACKLOG = 64


class Peers:
    """Makes and accepts the connections between this gateway and the others."""

    def __init__(self, loop: Loop, gateway: net.Gateway, secrets: bytes, job: int, box: int) -> None:
        """`secrets`: one for each box, shared with this one."""
        self._loop = loop
        self._gateway = gateway
        size = handshake.SECRET_BYTES
        self._secrets = [secrets[at : at + size] for at in range(0, len(secrets), size)]
        self._job, self._box = job, box
        self._listens = False

    def reached(self, host: str) -> None:
        """Listen on this address, from which the server was reached, and announce it to the other gateways."""
        if self._listens:
            return
        self._listens = True
        listener = None
        try:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            os.set_inheritable(listener.fileno(), False)
            listener.bind((host, 0))
            listener.listen(_BACKLOG)
            can_listen = not handshake.prepare(listener)
        except OSError:
            can_listen = False
        if listener is None or not can_listen:
            if listener is not None:
                listener.close()
            self._gateway.listens("")
            return
        by_box = {(self._job, box): secret for box, secret in enumerate(self._secrets)}
        handshake.Gate(self._loop, listener, by_box, self._admit).open()
        self._gateway.listens(f"{host}:{listener.getsockname()[1]}")

    def look(self) -> None:
        """Make the connections needed now, each in a thread, because connecting takes time."""
        for box, number, address in self._gateway.wanted():
            host, _colon, port = address.rpartition(":")
            if not (port.isascii() and port.isdigit() and len(port) < 6):  # input from the other gateway
                self._gateway.relay_peer(box, number)
                continue
            place = self._reach(box, (host, int(port)))
            try:
                _thread.start_new_thread(self._connect, (box, number, place))
            except RuntimeError:  # the thread limit is reached
                self._gateway.relay_peer(box, number)

    def _reach(self, box: int, address: "tuple[str, int]") -> "tuple[str, int]":
        """Return the address to connect to for that box."""
        return address

    def _connect(self, box: int, number: int, address: "tuple[str, int]") -> None:
        attempts = 0
        begun = time.monotonic()
        has_told = False  # the number may have arrived, and then the other gateway has chosen this way
        while self._gateway.is_wanted(box, number):
            try:
                sock, session = handshake.enter(address, self._secrets[box], self._job, self._box, _CONNECT_S)
                data = number.to_bytes(_NUMBER_BYTES, "little")
                has_told = True
                os.write(sock.fileno(), data if session is None else session.encrypt(data))
                self._gateway.attach_peer(box, number, sock.detach(), session)
            except Exception:  # any error: nodes of two boxes wait for the choice
                if not has_told and time.monotonic() - begun >= _CONNECT_S:
                    self._gateway.relay_peer(box, number)
                time.sleep(_AGAIN_S[min(attempts, len(_AGAIN_S) - 1)])
                attempts += 1

    def _admit(self, _job: int, box: int, fd: int, session: "Session | None") -> None:
        sock = socket.socket(fileno=fd)
        self._loop.add(fd, lambda: self._number(box, sock, session))
        self._loop.at(f"number {fd}", handshake.TIMEOUT_S, lambda: self._dismiss(sock))

    def _number(self, box: int, sock: "socket.socket", session: "Session | None") -> None:
        try:
            data = sock.recv(_NUMBER_BYTES) if session is None else session.receive(sock, _NUMBER_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._dismiss(sock)
            return
        if len(data) != _NUMBER_BYTES:
            self._dismiss(sock)
            return
        self._forget(sock)
        try:
            number = int.from_bytes(data, "little") & 0xFFFFFFFF
            self._gateway.attach_peer(box, number, sock.detach(), session)
        except SpcommError:  # no such box
            pass

    def _dismiss(self, sock: "socket.socket") -> None:
        self._forget(sock)
        sock.close()

    def _forget(self, sock: "socket.socket") -> None:
        self._loop.remove(sock.fileno())
        self._loop.forget(f"number {sock.fileno()}")
