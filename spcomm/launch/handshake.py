# SPDX-License-Identifier: MIT
"""Who may in: both ends of a new connection prove to each other that they know the secret of their job.

What is said stands in csrc/net/spc_handshake.h, as a state machine; here are the sockets, the secrets and the clock.
Whoever connects without the secret gets 2 seconds and 128 bytes, and nothing made with it.
"""

import _socket
import hmac
import os
import time
from collections.abc import Callable

from spcomm._core import net
from spcomm._core.errors import AuthenticationError, VersionError
from spcomm.launch.loop import Loop

_MOST_GUESTS = 64  # whose handshakes are not over; beyond, the one that has taken longest gives way
_NOBODYS = b"\0" * 32  # signs for jobs that do not exist, which then take as long


class Talk:
    """The handshake of one connection, as far as it goes without waiting."""

    def __init__(
        self, sock: "_socket.socket", machine: net.Handshake, secret_of: "Callable[[int], bytes | None]"
    ) -> None:
        self._sock = sock
        self.machine = machine
        self._secret_of = secret_of

    def go_on(self) -> bool:
        """True when it is over. `OSError`: the connection is."""
        while (step := self.machine.step()) != net.OVER:
            if step == net.WRITE:
                self.machine.sent(self._sock.send(self.machine.output, getattr(_socket, "MSG_NOSIGNAL", 0)))
            elif step == net.SIGN:
                self._sign()
            else:
                try:
                    self.machine.feed(self._sock.recv(self.machine.wants))
                except BlockingIOError:
                    return False
        return True

    def _sign(self) -> None:
        secret = self._secret_of(self.machine.peer[1])
        mac = hmac.digest(secret or _NOBODYS, self.machine.to_sign, "sha256")
        self.machine.sign(mac if secret is not None else None)


class Gate:
    """Lets agents in. `admit(job, box, descriptor)` takes each connection that has proved itself."""

    def __init__(
        self,
        loop: Loop,
        listener: "_socket.socket",
        secrets: "dict[int, bytes]",
        admit: "Callable[[int, int, int], None]",
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._secrets = secrets  # job → secret
        self._admit = admit
        self._guests: dict[int, tuple[_socket.socket, Talk]] = {}

    def open(self) -> None:
        self._listener.setblocking(False)
        self._loop.add(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            fd, _address = self._listener._accept()
        except OSError:  # it is gone again, or there are no descriptors left: the next one may have more luck
            return
        if len(self._guests) >= _MOST_GUESTS:
            self._dismiss(next(iter(self._guests)))
        guest = _socket.socket(fileno=fd)
        guest.setblocking(False)
        machine = net.Handshake(True, os.urandom(net.NONCE_BYTES))
        self._guests[fd] = guest, Talk(guest, machine, self._secrets.get)
        self._loop.add(fd, lambda: self._go_on(fd))
        self._loop.at(f"guest {fd}", net.HANDSHAKE_S, lambda: self._dismiss(fd))

    def _go_on(self, fd: int) -> None:
        guest, talk = self._guests[fd]
        try:
            if not talk.go_on():
                return
        except OSError:
            pass
        accepted = talk.machine.outcome == net.ACCEPTED
        self._forget(fd)
        if accepted:
            _version, job, box = talk.machine.peer
            guest.detach()
            try:
                self._admit(job, box, fd)
                return
            except Exception:  # no such box, or one that has ended
                os.close(fd)
        guest.close()

    def _dismiss(self, fd: int) -> None:
        guest, _talk = self._guests[fd]
        self._forget(fd)
        guest.close()

    def _forget(self, fd: int) -> None:
        del self._guests[fd]
        self._loop.remove(fd)
        self._loop.forget(f"guest {fd}")


def enter(address: "tuple[str, int]", secret: bytes, job: int, box: int) -> int:
    """Connect to a server and go through the handshake; waits for some seconds at most.

    Returns the descriptor, which is the caller's. `OSError`: it does not work now, and may later.
    `AuthenticationError`, `VersionError`: it never will.
    """
    deadline = time.monotonic() + net.HANDSHAKE_S
    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        os.set_inheritable(sock.fileno(), False)
        sock.settimeout(net.HANDSHAKE_S)
        sock.connect(address)
        sock.settimeout(max(0.01, deadline - time.monotonic()))
        machine = net.Handshake(False, os.urandom(net.NONCE_BYTES), job=job, box=box)
        Talk(sock, machine, lambda _job: secret).go_on()
        _check(machine, address)
        return sock.detach()
    finally:
        sock.close()


def _check(machine: net.Handshake, address: "tuple[str, int]") -> None:
    where = f"the server at {address[0]}:{address[1]}"
    outcome = machine.outcome
    if outcome == net.REFUSED:
        raise AuthenticationError(f"{where} and this box do not know the same secret: it is another job's")
    if outcome in (net.OTHER_VERSION, net.OTHER_BYTE_ORDER):
        what = "is of another version of spcomm" if outcome == net.OTHER_VERSION else "has another byte order"
        raise VersionError(f"{where} {what}; install the same one on all machines")
    if outcome != net.ACCEPTED:
        raise ConnectionError(f"{where} has ended the handshake")
