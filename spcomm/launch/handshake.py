# SPDX-License-Identifier: MIT
"""Who may in: both ends of a new connection prove to each other that they know the secret of their job.

What is said stands in csrc/net/spc_handshake.h, as a state machine; here are the sockets, the secrets and the clock.
Whoever connects without the secret gets 2 seconds and 128 bytes, and nothing made with it.
"""

import _socket
import errno
import hmac
import os
from collections.abc import Callable

from spcomm._core import net
from spcomm._core.errors import AuthenticationError, VersionError
from spcomm.launch.loop import Loop

_MOST_GUESTS = 64  # whose handshakes are not over; beyond, the one that has taken longest gives way
_NOBODYS = b"\0" * 32  # signs for jobs that do not exist, which then take as long
_HELD_S = 0.5  # before a wrong secret is told so: tries are as slow as that, and there are few at a time
_MORE_S = 0.1  # after the deadline of the handshake
_SHORT_S = 0.2  # without descriptors
_AT_VERDICT = 5  # in a message
_REFUSED = bytes([net.REFUSED])
_ROLE_BYTES = 16  # of what is signed; HELLO and CHALLENGE follow
ROOM = 0  # the job of those who come to the server itself (room.house)


class Talk:
    """The handshake of one connection, as far as it goes without waiting."""

    def __init__(
        self, sock: "_socket.socket", machine: net.Handshake, secret_of: "Callable[[int], bytes | None]"
    ) -> None:
        self._sock = sock
        self.machine = machine
        self._secret_of = secret_of
        self.transcript = b""  # what both ends have signed: no other connection has the same
        self.holds = False  # it is about to refuse: go on later

    def go_on(self) -> bool:
        """True when it is over. `OSError`: the connection is."""
        while (step := self.machine.step()) != net.OVER:
            if step == net.WRITE:
                output = self.machine.output
                if output[_AT_VERDICT : _AT_VERDICT + 1] == _REFUSED and not self.holds:
                    self.holds = True
                    return False
                self.machine.sent(self._sock.send(output, getattr(_socket, "MSG_NOSIGNAL", 0)))
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
        signed = self.machine.to_sign
        self.transcript = signed[_ROLE_BYTES:]
        mac = hmac.digest(secret or _NOBODYS, signed, "sha256")
        self.machine.sign(mac if secret is not None else None)


class Gate:
    """Lets agents in. `admit(job, box, descriptor)` takes each connection that has proved itself.

    `welcome(socket, transcript)` takes those of job `ROOM`, if there is a secret for it. `full()`: whether the next
    one is told that there is no room for it.
    """

    def __init__(
        self,
        loop: Loop,
        listener: "_socket.socket",
        secrets: "dict[int, bytes]",
        admit: "Callable[[int, int, int], None]",
        welcome: "Callable[[_socket.socket, bytes], None] | None" = None,
        full: "Callable[[], bool]" = lambda: False,
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._secrets = secrets  # job → secret
        self._admit = admit
        self._welcome = welcome
        self._full = full
        self._guests: dict[int, tuple[_socket.socket, Talk, str]] = {}  # and from where; the oldest first

    def open(self) -> None:
        self._listener.setblocking(False)
        self._loop.add(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            fd, address = self._listener._accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):  # it goes on knocking, which is no reason to spin
                self._loop.remove(self._listener.fileno())
                self._loop.at("accept", _SHORT_S, self.open)
            return
        if len(self._guests) >= _MOST_GUESTS:
            self._dismiss(self._least_welcome())
        guest = _socket.socket(fileno=fd)
        guest.setblocking(False)
        machine = net.Handshake(True, os.urandom(net.NONCE_BYTES), full=self._full())
        self._guests[fd] = guest, Talk(guest, machine, self._secrets.get), address[0]
        self._loop.add(fd, lambda: self._go_on(fd))
        self._loop.at(f"guest {fd}", net.HANDSHAKE_S, lambda: self._dismiss(fd))

    def _least_welcome(self) -> int:
        """Who gives way: of those from the address that has most, the oldest that has said nothing yet."""
        counts: dict[str, int] = {}
        for _guest, _talk, address in self._guests.values():
            counts[address] = counts.get(address, 0) + 1

        def rank(fd: int) -> "tuple[int, bool]":
            _guest, talk, address = self._guests[fd]
            return counts[address], not talk.machine.peer[0]

        return max(self._guests, key=rank)  # of equals the first, which is the oldest

    def _go_on(self, fd: int) -> None:
        guest, talk, _address = self._guests[fd]
        try:
            if not talk.go_on():
                if talk.holds:
                    self._loop.remove(fd)
                    self._loop.at(f"guest {fd}", _HELD_S, lambda: self._go_on(fd))
                return
        except OSError:
            pass
        accepted = talk.machine.outcome == net.ACCEPTED
        self._forget(fd)
        if accepted:
            _version, job, box = talk.machine.peer
            if job == ROOM and self._welcome is not None:
                self._welcome(guest, talk.transcript)
                return
            guest.detach()
            try:
                self._admit(job, box, fd)
                return
            except Exception:  # no such box, or one that has ended
                os.close(fd)
        guest.close()

    def _dismiss(self, fd: int) -> None:
        guest, _talk, _address = self._guests[fd]
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
    sock, talk = meet(address, secret, job, box)
    try:
        _check(talk.machine, address)
        return sock.detach()
    finally:
        sock.close()


def meet(
    address: "tuple[str, int]", secret: bytes, job: int, box: int, connect_s: float = net.HANDSHAKE_S
) -> "tuple[_socket.socket, Talk]":
    """The same, and the caller looks at the outcome. The socket is the caller's, too."""
    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        os.set_inheritable(sock.fileno(), False)
        sock.settimeout(connect_s)
        sock.connect(address)
        sock.settimeout(net.HANDSHAKE_S + _MORE_S)
        machine = net.Handshake(False, os.urandom(net.NONCE_BYTES), job=job, box=box)
        talk = Talk(sock, machine, lambda _job: secret)
        try:
            while not talk.go_on():  # what it would hold back, it may as well say
                pass
        except TimeoutError:
            machine.step()  # sees that it is late
        return sock, talk
    except BaseException:
        sock.close()
        raise


def own_address(fd: int) -> str:
    """The address of this machine that a connection begins at."""
    sock = _socket.socket(fileno=os.dup(fd))
    try:
        return sock.getsockname()[0]
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
    if outcome == net.FULL:
        raise ConnectionError(f"{where} is full")
    if outcome != net.ACCEPTED:
        raise ConnectionError(f"{where} has ended the handshake")
