# SPDX-License-Identifier: MIT
"""Admission to a run: both ends of a new connection prove to each other that they know the secret of their box.

spc_handshake.h has the protocol, as a state machine; this module has the sockets, the secrets and the clock.
A client without the secret gets 2 seconds and 128 bytes, and nothing made with the secret. TLS follows unless the
connection runs from 127.0.0.1 to 127.0.0.1.
"""

import _socket
import errno
import hmac
import os
import select
import time
from collections.abc import Callable

from spcomm._core import net
from spcomm._core.errors import AuthenticationError, SpcommError, VersionError
from spcomm.launch.base.loop import Loop
from spcomm.launch.base.loopback import LOOPBACK
from spcomm.launch.base.usage import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from spcomm.launch.remote.tls import Session

_MOST_GUESTS = 64  # handshakes in progress; beyond that, the slowest one gives way
_NOBODYS = b"\0" * 32  # signs for jobs that do not exist, which then take as long
_HELD_S = 0.5  # before a wrong secret is refused: this slows down guesses, and few run at a time
_MORE_S = 0.1  # after the deadline of the handshake
_SHORT_S = 0.2  # without descriptors
_AT_VERDICT = 5  # in a message
_REFUSED = bytes([net.REFUSED])
_ROLE_BYTES = 16  # of the signed bytes; HELLO and CHALLENGE follow
SECRET_BYTES = 32
ROOM = 0  # the job of clients of the server itself (room.broker); their box is 0, too
INTERCEPTED, NO_TLS = -1, -2  # outcomes beside those of `net`: an intermediary was found; TLS failed


def prepare(listener: "_socket.socket") -> str:
    """Set a listening socket up for encrypted connections. Return why that is impossible, or ""."""
    if listener.getsockname()[0] == LOOPBACK:
        return ""
    try:
        from spcomm.launch.remote import tls

        tls.server_identity()
    except ImportError as error:
        return f"this machine lacks the package {error.name or 'cryptography'}; pip install 'spcomm[network]'"
    except OSError as error:
        return f"no certificate can be made ({error})"
    return ""


def require(command: str, listener: "_socket.socket") -> None:
    """Raise `UsageError` if connections to a listening socket must be encrypted and cannot be."""
    why = prepare(listener)
    if why:
        listener.close()
        raise UsageError(f"{command}: connections across a network are encrypted, and {why}")


def crosses_network(sock: "_socket.socket") -> bool:
    """Whether a connection leaves this machine, or looks so from this end."""
    return {sock.getsockname()[0], sock.getpeername()[0]} != {LOOPBACK}


class HandshakeExchange:
    """The handshake of one connection, as far as it goes without waiting."""

    def __init__(
        self,
        sock: "_socket.socket",
        server: bool,
        secret_of: "Callable[[tuple[int, int]], bytes | None]",
        **options: int,
    ) -> None:
        """`secret_of((job, box))`; None: there is no such box. `options`: of `net.Handshake`."""
        self._sock = sock
        self._server = server
        self._secret_of = secret_of
        self._secret = _NOBODYS
        self._transcript = b""  # the bytes that both ends signed, unique to this connection
        self._establishing: Iterator[None] | None = None
        self._failure: tuple[int, str] | None = None  # of TLS: the outcome and the reason
        self.machine = net.Handshake(
            server, os.urandom(net.NONCE_BYTES), encrypted=crosses_network(sock), **options
        )
        self.session: Session | None = None  # of TLS, if the connection needs it
        self.holds = False  # it is about to refuse: continue later

    @property
    def outcome(self) -> int:
        """The outcome: one of `net`, `INTERCEPTED` or `NO_TLS`."""
        return self.machine.outcome if self._failure is None else self._failure[0]

    @property
    def trouble(self) -> str:
        """The reason of `NO_TLS`."""
        return self._failure[1] if self._failure is not None else ""

    @property
    def binding(self) -> bytes:
        """Bytes that both ends have for this connection only: both nonces and, with TLS, the certificate."""
        return self._transcript + (self.session.certificate if self.session is not None else b"")

    def go_on(self) -> bool:
        """Continue; return True when it is over. `OSError`: the connection is."""
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
        return self.machine.outcome != net.ACCEPTED or not self.machine.encrypted or self._encrypt()

    def _sign(self) -> None:
        _version, job, box = self.machine.peer
        secret = self._secret_of((job, box))
        signed = self.machine.to_sign
        self._secret, self._transcript = secret or _NOBODYS, signed[_ROLE_BYTES:]
        mac = hmac.digest(self._secret, signed, "sha256")
        self.machine.sign(mac if secret is not None else None)

    def _encrypt(self) -> bool:
        try:
            from spcomm.launch.remote import tls
        except ImportError as error:
            self._failure = NO_TLS, f"this Python has no module {error.name}"
            return True
        try:
            if self._establishing is None:
                self.session = tls.Session(self._server, self._mac)
                self._establishing = self.session.establish(self._sock)
            return next(self._establishing, self) is self
        except tls.InterceptedError:
            self._failure = INTERCEPTED, ""
        except tls.TlsError as error:
            self._failure = NO_TLS, str(error)
        except ImportError as error:
            self._failure = NO_TLS, f"this Python has no module {error.name}"
        return True

    def _mac(self, role: str, certificate: bytes) -> bytes:
        return hmac.digest(
            self._secret, f"spcomm tls {role}".encode() + self._transcript + certificate, "sha256"
        )


class Gate:
    """Lets gateways in. `admit(job, box, descriptor, session)` takes each connection that has proved itself.

    `welcome(socket, session, binding)` takes those of job `ROOM`, if there is a secret for it. Sessions are of TLS, or
    None.
    `full()`: whether the next connection is refused for lack of room.
    """

    def __init__(
        self,
        loop: Loop,
        listener: "_socket.socket",
        secrets: "dict[tuple[int, int], bytes]",
        admit: "Callable[[int, int, int, Session | None], None]",
        welcome: "Callable[[_socket.socket, Session | None, bytes], None] | None" = None,
        full: "Callable[[], bool]" = lambda: False,
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._secrets = secrets  # by job and box
        self._admit = admit
        self._welcome = welcome
        self._full = full
        self._guests: dict[
            int, tuple[_socket.socket, HandshakeExchange, str]
        ] = {}  # and its origin; the oldest first

    def open(self) -> None:
        self._listener.setblocking(False)
        self._loop.add(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            fd, address = self._listener._accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):  # the client retries, so there is no need to spin
                self._loop.remove(self._listener.fileno())
                self._loop.at("accept", _SHORT_S, self.open)
            return
        if len(self._guests) >= _MOST_GUESTS:
            self._dismiss(self._least_welcome())
        guest = _socket.socket(fileno=fd)
        guest.setblocking(False)
        try:
            talk = HandshakeExchange(guest, True, self._secrets.get, full=self._full())
        except OSError:  # it is gone again
            guest.close()
            return
        self._guests[fd] = guest, talk, address[0]
        self._loop.add(fd, lambda: self._go_on(fd))
        self._loop.at(f"guest {fd}", net.HANDSHAKE_S, lambda: self._dismiss(fd))

    def _least_welcome(self) -> int:
        """The connection that gives way: of the address with most connections, the oldest silent one."""
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
            accepted = talk.outcome == net.ACCEPTED
        except OSError:
            accepted = False
        self._forget(fd)
        if not accepted:
            guest.close()
            return
        _version, job, box = talk.machine.peer
        if job == ROOM and self._welcome is not None:
            self._welcome(guest, talk.session, talk.binding)
            return
        try:
            self._admit(job, box, guest.detach(), talk.session)
        except (OSError, SpcommError):  # no such box, or one that has ended
            pass

    def _dismiss(self, fd: int) -> None:
        guest, _talk, _address = self._guests[fd]
        self._forget(fd)
        guest.close()

    def _forget(self, fd: int) -> None:
        del self._guests[fd]
        self._loop.remove(fd)
        self._loop.forget(f"guest {fd}")


def enter(
    address: "tuple[str, int]", secret: bytes, job: int, box: int, connect_s: float = net.HANDSHAKE_S
) -> "tuple[_socket.socket, Session | None]":
    """Connect to a server and go through the handshake; waits for some seconds at most.

    Returns the socket, which the caller owns, and the session of TLS, or None if it is not encrypted. `OSError`: it
    fails now, and may work later. `AuthenticationError`, `VersionError`: it never will.
    """
    sock, talk = meet(address, secret, job, box, connect_s)
    try:
        _check(talk, address)
    except BaseException:
        sock.close()
        raise
    return sock, talk.session


def meet(
    address: "tuple[str, int]", secret: bytes, job: int, box: int, connect_s: float = net.HANDSHAKE_S
) -> "tuple[_socket.socket, HandshakeExchange]":
    """Connect in the same way, and leave the outcome to the caller, which also owns the socket."""
    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        os.set_inheritable(sock.fileno(), False)
        sock.settimeout(connect_s)
        sock.connect(address)
        sock.setblocking(False)
        ends = time.monotonic() + net.HANDSHAKE_S + _MORE_S
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        talk = HandshakeExchange(sock, False, lambda _box: secret, job=job, box=box)
        while not talk.go_on():
            left = max(0.0, ends - time.monotonic())
            # There is no reason to delay a refusal here.
            if talk.holds or poll.poll(left * 1000):
                continue
            if talk.session is not None:
                raise TimeoutError("TLS takes too long")
            talk.machine.step()  # detects that it is late
        return sock, talk
    except BaseException:
        sock.close()
        raise


def _check(talk: HandshakeExchange, address: "tuple[str, int]") -> None:
    where = f"the server at {address[0]}:{address[1]}"
    outcome = talk.outcome
    if outcome == INTERCEPTED:
        raise AuthenticationError(f"the connection to {where} is intercepted")
    if outcome == NO_TLS:
        raise ConnectionError(f"TLS with {where} fails: {talk.trouble}")
    if outcome == net.REFUSED:
        raise AuthenticationError(f"{where} and this box do not know the same secret: it is another job's")
    if outcome in (net.OTHER_VERSION, net.OTHER_BYTE_ORDER):
        what = "is of another version of spcomm" if outcome == net.OTHER_VERSION else "has another byte order"
        raise VersionError(f"{where} {what}; install the same one on all machines")
    if outcome == net.FULL:
        raise ConnectionError(f"{where} is full")
    if outcome != net.ACCEPTED:
        raise ConnectionError(f"{where} has ended the handshake")
