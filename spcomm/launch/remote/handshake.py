# SPDX-License-Identifier: MIT
"""Admission to a run: both ends of a new connection prove to each other that they know the secret of their box.

A connection that crosses a network, as either end sees it, begins with TLS (tls.py); one from 127.0.0.1 to 127.0.0.1
has none. Then, inside TLS or not, and before anything else::

    client                                            server
      HELLO      version, byte order, job, box, mark, nonce         ->
      <-   CHALLENGE  version, byte order, job, box, mark, nonce
      PROOF      MAC("client", HELLO, CHALLENGE, fingerprint)       ->
      <-   PROOF      MAC("server", HELLO, CHALLENGE, fingerprint)     or, in place of any answer, VERDICT: why not

Each message is 64 bytes in one layout, which stays the same in all versions, so that different versions can recognise
each other. Both MACs (HMAC-SHA-256, under the secret) are of all bytes of the first two messages, of the fingerprint of
the server's certificate (SHA-256; without TLS nothing), and of the role of the signer:

- Man in the middle: it has a certificate of its own, so the two ends sign different fingerprints, and neither proof
  fits. The mark, the beginning of the fingerprint as the sender sees it, tells the client that this is the reason; an
  interceptor that changes it only looks like a server with another secret.
- Replay: each end signs a fresh random nonce, so a proof of another connection never fits this one.
- Reflection: the roles are signed, so no end can be made to prove for the other; and only a client signs as a client.
  A nonce that is our own is refused besides.
- Change on the way: if one bit of HELLO or CHALLENGE changes, neither proof fits; in a PROOF, nothing may differ.
- Downgrade: a client that sees a network says nothing without TLS. A server that sees one, where the client sees none
  (a port that is forwarded), answers a HELLO without TLS by a VERDICT, and the client comes back with TLS.
- The client proves first. A stranger that connects gets 2 seconds, 128 bytes (in TLS, if there is any), and no bytes
  made with the secret. A job that does not exist is refused at the same point, in the same words, as a wrong secret.
- A VERDICT is not signed, and never means ACCEPTED. A stranger on the way can end a handshake, or cut a wire.
"""

import errno
import hmac
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from spcomm._core import net
from spcomm._core.errors import AuthenticationError, SpcommError, VersionError
from spcomm.launch.base.loop import Loop
from spcomm.launch.base.loopback import LOOPBACK
from spcomm.launch.base.usage import UsageError

if TYPE_CHECKING:
    from collections.abc import Generator

    from spcomm.launch.remote.tls import Session

# Outcomes. A VERDICT can carry REFUSED to FULL, whose numbers stay the same in all versions, and NEEDS_TLS. STRANGER:
# the other end does not speak this protocol. The last two: an intermediary was found; TLS failed.
OPEN, ACCEPTED, REFUSED, OTHER_VERSION, OTHER_BYTE_ORDER, FULL, STRANGER, LATE, CLOSED, NEEDS_TLS = range(10)
INTERCEPTED, NO_TLS = -1, -2

MESSAGE_BYTES = 64
NONCE_BYTES = SECRET_BYTES = 32
TIMEOUT_S = 2.0
ROOM = 0  # the job of clients of the server itself (room.broker); their box is 0, too

_TLS = b"\x16"  # how a client of TLS begins

# Magic, kind, verdict, byte order, zero, version, job, box, mark; then a nonce, a MAC, or zeros.
_LAYOUT = struct.Struct("<4sBBBBIIH14s32s")
_MARK_BYTES = 14
_MAGIC = b"spch"
_HELLO, _CHALLENGE, _CLIENT_PROOF, _SERVER_PROOF, _VERDICT = range(1, 6)
_DECLARED = slice(5, 32)  # the fields that a PROOF repeats
_BYTE_ORDER = 1 if sys.byteorder == "little" else 2
_NOBODYS = b"\0" * SECRET_BYTES  # signs for jobs that do not exist, which then take as long

_MOST_GUESTS = 64  # handshakes in progress; beyond that, the slowest one gives way
_HELD_S = 0.5  # before a wrong secret is refused: this slows down guesses, and few run at a time
_MORE_S = 0.1  # after the deadline of the handshake
_SHORT_S = 0.2  # without descriptors


class _RefusalError(Exception):
    """Ends a handshake. `is_told`: the other end waits for an answer, and gets a VERDICT."""

    def __init__(self, outcome: int, *, is_told: bool = False) -> None:
        super().__init__(outcome)
        self.outcome = outcome
        self.is_told = is_told


class Handshake:
    """One end of a handshake, without a socket or a clock.

    Its driver sends `output`, or else reads `wants` bytes at most, until there is an `outcome`. It sends the output
    of a refusal, too: that is how the other end learns the reason. As it never reads more than `wants`, the first byte
    of the first frame is still in the socket, or in the session of TLS, at the end.
    """

    def __init__(
        self,
        server: bool,
        nonce: bytes,
        secret_of: "Callable[[tuple[int, int]], bytes | None]",
        *,
        job: int = 0,
        box: int = 0,
        full: bool = False,
        fingerprint: bytes = b"",
        needs_tls: bool = False,
        version: int = net.VERSION,
        byte_order: int = _BYTE_ORDER,
    ) -> None:
        """`nonce`: random, for this connection alone. `secret_of((job, box))`; None: there is no such box.

        A server has `job` and `box` from the client; `full` and `needs_tls`: it answers each HELLO by that.
        `fingerprint`: of the certificate, as this end sees it; none without TLS.
        """
        self.outcome = OPEN
        self.output = b""
        self.wants = 0
        # The other end's version, job and box, to be trusted once it is accepted; version 0: not known yet.
        self.peer = 0, job, box
        self.secret = _NOBODYS
        self.transcript = b""  # the bytes that both ends sign, unique to this connection
        self._server = server
        self._nonce = nonce
        self._secret_of = secret_of
        self._refusal = FULL if full else NEEDS_TLS if needs_tls else OPEN
        self._fingerprint = fingerprint
        self._mark = fingerprint[:_MARK_BYTES].ljust(_MARK_BYTES, b"\0")
        self._version = version
        self._byte_order = byte_order
        self._incoming = b""
        self._verdict = OPEN  # the outcome, once it is known, while a VERDICT is yet to be sent
        self._steps = self._talk()
        self._advance(None)

    def feed(self, received: bytes) -> None:
        """Take bytes that were read; none: the other end has closed the connection."""
        if not received:
            self.end(CLOSED)
            return
        if len(received) > self.wants:
            self.end(STRANGER)
            return
        self._incoming += received
        self.wants -= len(received)
        if not self._incoming.startswith(_MAGIC[: len(self._incoming)]):
            self.end(STRANGER)
        elif not self.wants:
            message, self._incoming = self._incoming, b""
            self._advance(message)

    def sent(self, length: int) -> None:
        """Note that this many bytes of `output` have been sent."""
        self.output = self.output[length:]
        if not self.output:
            self._advance(None)

    def end(self, outcome: int) -> None:
        """End it from outside, unless its outcome is known."""
        if self.outcome == OPEN:
            self.outcome = self._verdict or outcome
        self.output, self.wants = b"", 0

    @property
    def refuses(self) -> bool:
        """Whether `output` is the refusal of a wrong secret."""
        return self._verdict == REFUSED

    def _advance(self, message: "bytes | None") -> None:
        try:
            self.output = self._steps.send(message)
        except StopIteration as over:
            self.end(over.value)
        else:
            self.wants = 0 if self.output else MESSAGE_BYTES

    def _talk(self) -> "Generator[bytes, bytes | None, int]":
        """Yield the bytes to send, or none to be given the next message; return the outcome."""
        try:
            yield from self._as_server() if self._server else self._as_client()
        except _RefusalError as refusal:
            if refusal.is_told:
                self._verdict = refusal.outcome
                yield self._message(_VERDICT, verdict=refusal.outcome)
            return refusal.outcome
        return ACCEPTED

    def _as_client(self) -> "Generator[bytes, bytes | None, None]":
        hello = self._message(_HELLO, self._nonce)
        yield hello
        challenge = yield b""
        self._check_first(challenge, _CHALLENGE)
        self._find_secret(hello + challenge)
        yield self._message(_CLIENT_PROOF, self._mac("client"))
        proof = yield b""
        self._check_kind(proof, _SERVER_PROOF)
        if not self._is_proof(proof, "server", challenge):
            raise _RefusalError(REFUSED)  # the server awaits no more bytes

    def _as_server(self) -> "Generator[bytes, bytes | None, None]":
        hello = yield b""
        self._check_first(hello, _HELLO)
        challenge = self._message(_CHALLENGE, self._nonce)
        yield challenge
        proof = yield b""
        self._check_kind(proof, _CLIENT_PROOF)
        is_known = self._find_secret(hello + challenge)
        if not self._is_proof(proof, "client", hello) or not is_known:
            raise _RefusalError(REFUSED, is_told=True)
        yield self._message(_SERVER_PROOF, self._mac("server"))

    def _message(self, kind: int, random: bytes = b"", verdict: int = 0) -> bytes:
        _version, job, box = self.peer
        return _LAYOUT.pack(
            _MAGIC, kind, verdict, self._byte_order, 0, self._version, job, box, self._mark, random
        )

    def _find_secret(self, transcript: bytes) -> bool:
        """Find the secret that signs these bytes and the fingerprint; return whether there is one."""
        secret = self._secret_of(self.peer[1:])
        self.transcript = transcript + self._fingerprint
        self.secret = _NOBODYS if secret is None else secret
        return secret is not None

    def _mac(self, role: str) -> bytes:
        return hmac.digest(
            self.secret, f"spcomm {role}".encode().ljust(16, b"\0") + self.transcript, "sha256"
        )

    def _is_proof(self, proof: bytes, role: str, before: bytes) -> bool:
        """Whether the other end repeats what it declared before, and knows the secret."""
        if proof[_DECLARED] != before[_DECLARED]:
            raise _RefusalError(STRANGER)
        return hmac.compare_digest(proof[-NONCE_BYTES:], self._mac(role))

    def _check_kind(self, message: bytes, kind: int) -> None:
        found, verdict = message[4], message[5]
        if found == _VERDICT and kind != _HELLO:
            self._check_verdict(message, verdict)
        if found != kind:
            raise _RefusalError(STRANGER)

    def _check_verdict(self, message: bytes, verdict: int) -> None:
        """Raise the reason in the other end's words.

        A peer that claims a difference in version or byte order, but shows none, is not to be believed.
        """
        _magic, _kind, _verdict, byte_order, _zero, version, *_others = _LAYOUT.unpack(message)
        self.peer = version, *self.peer[1:]
        is_credible = {
            REFUSED: True,
            FULL: not self._server,
            NEEDS_TLS: not self._server and not self._fingerprint,
            OTHER_VERSION: version != self._version,
            OTHER_BYTE_ORDER: byte_order != self._byte_order,
        }
        raise _RefusalError(verdict if is_credible.get(verdict) else STRANGER)

    def _check_first(self, message: bytes, kind: int) -> None:
        """Check HELLO or CHALLENGE. In a message of another version, only the version is looked at."""
        self._check_kind(message, kind)
        _magic, _kind, verdict, byte_order, zero, version, job, box, mark, nonce = _LAYOUT.unpack(message)
        self.peer = version, *self.peer[1:]
        if version != self._version:
            raise _RefusalError(OTHER_VERSION, is_told=True)
        if verdict or zero or (any(mark) and not self._fingerprint):
            raise _RefusalError(STRANGER)
        if byte_order != self._byte_order:
            raise _RefusalError(OTHER_BYTE_ORDER, is_told=True)
        if self._server:  # it goes on whatever the mark is: its own shows the client why
            self.peer = version, job, box
        elif self.peer[1:] != (job, box):
            raise _RefusalError(STRANGER)
        elif mark != self._mark:
            raise _RefusalError(INTERCEPTED)
        if self._refusal:
            raise _RefusalError(self._refusal, is_told=True)
        if nonce == self._nonce:
            raise _RefusalError(REFUSED, is_told=True)


# ---- with a socket


def prepare(listener: "socket.socket") -> str:
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


def require(command: str, listener: "socket.socket") -> None:
    """Raise `UsageError` if connections to a listening socket must be encrypted and cannot be."""
    why = prepare(listener)
    if why:
        listener.close()
        raise UsageError(f"{command}: connections across a network are encrypted, and {why}")


def crosses_network(sock: "socket.socket") -> bool:
    """Whether a connection leaves this machine, or looks so from this end."""
    return {sock.getsockname()[0], sock.getpeername()[0]} != {LOOPBACK}


class HandshakeExchange:
    """The beginning of one connection, as far as it goes without waiting: TLS, if it has it, and the handshake."""

    def __init__(
        self,
        sock: "socket.socket",
        server: bool,
        secret_of: "Callable[[tuple[int, int]], bytes | None]",
        *,
        encrypted: bool = False,
        **options: int,
    ) -> None:
        """`secret_of` and `options`: those of `Handshake`. `encrypted`: with TLS, even if it stays on this machine."""
        # Otherwise HELLO, sent right behind the end of TLS's own handshake, waits for an acknowledgement of that.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._server = server
        self._new = lambda **more: Handshake(server, os.urandom(NONCE_BYTES), secret_of, **options, **more)
        self._ends = time.monotonic() + TIMEOUT_S
        self._crosses = crosses_network(sock)
        self._has_tls = not server and (encrypted or self._crosses)  # a server looks how the client begins
        self._failure = OPEN  # the outcome, if there is no handshake
        self.handshake: Handshake | None = None
        self.session: Session | None = None  # of TLS
        self.trouble = ""  # the reason of NO_TLS
        self.holds = False  # it is about to refuse: continue later

    @property
    def outcome(self) -> int:
        return self._failure if self.handshake is None else self.handshake.outcome

    @property
    def peer(self) -> "tuple[int, int, int]":
        """The other end's version, job and box, as `Handshake` has them."""
        return (0, 0, 0) if self.handshake is None else self.handshake.peer

    @property
    def binding(self) -> bytes:
        """Bytes that both ends have for this connection only: both nonces and, with TLS, the certificate."""
        return b"" if self.handshake is None else self.handshake.transcript

    def go_on(self) -> bool:
        """Continue; return True when it is over. `OSError`: the connection is."""
        try:
            if self.handshake is None:
                self._begin()
            while self.outcome == OPEN and self.handshake is not None:
                if self.handshake.refuses and not self.holds:
                    self.holds = True
                    return False
                self._move(self.handshake)
        except BlockingIOError:
            if time.monotonic() >= self._ends:
                self._end_late()
        return self.outcome != OPEN

    def _end_late(self) -> None:
        if self.handshake is None:
            self._failure = LATE
        else:
            self.handshake.end(LATE)

    def _move(self, handshake: Handshake) -> None:
        flags = getattr(socket, "MSG_NOSIGNAL", 0)
        if not handshake.output:
            receive = self._sock.recv if self.session is None else partial(self.session.receive, self._sock)
            handshake.feed(receive(handshake.wants))
        elif self.session is None:
            handshake.sent(self._sock.send(handshake.output, flags))
        else:
            self.session.send(self._sock, handshake.output)
            handshake.sent(len(handshake.output))

    def _begin(self) -> None:
        """Begin the handshake, after TLS, if the connection has it. `BlockingIOError`: not yet."""
        if self._server and not self._has_tls:
            self._has_tls = self._sock.recv(1, socket.MSG_PEEK) == _TLS
        if self._has_tls and not self._open_tls():
            return
        fingerprint = b"" if self.session is None else self.session.fingerprint
        needs_tls = self._server and self._crosses and self.session is None
        self.handshake = self._new(fingerprint=fingerprint, needs_tls=needs_tls)

    def _open_tls(self) -> bool:
        try:
            from spcomm.launch.remote import tls

            self.session = self.session or tls.Session(self._server)
            self.session.begin(self._sock)
        except ImportError as error:
            return self._fail(NO_TLS, f"this Python has no module {error.name}")
        except tls.StrangerError as error:
            return self._fail(STRANGER, str(error))
        except tls.TlsError as error:
            return self._fail(NO_TLS, str(error))
        return True

    def _fail(self, outcome: int, trouble: str) -> bool:
        self._failure, self.trouble = outcome, trouble
        return False


class Gate:
    """Lets gateways in. `admit(job, box, descriptor, session)` takes each connection that has proved itself.

    `welcome(socket, session, binding)` takes those of job `ROOM`, if there is a secret for it. Sessions are of TLS, or
    None.
    `full()`: whether the next connection is refused for lack of room.
    """

    def __init__(
        self,
        loop: Loop,
        listener: "socket.socket",
        secrets: "dict[tuple[int, int], bytes]",
        admit: "Callable[[int, int, int, Session | None], None]",
        welcome: "Callable[[socket.socket, Session | None, bytes], None] | None" = None,
        full: "Callable[[], bool]" = lambda: False,
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._secrets = secrets  # by job and box
        self._admit = admit
        self._welcome = welcome
        self._full = full
        # By descriptor: the socket, its handshake, and the address it comes from; the oldest first.
        self._guests: dict[int, tuple[socket.socket, HandshakeExchange, str]] = {}

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
        guest = socket.socket(fileno=fd)
        guest.setblocking(False)
        try:
            talk = HandshakeExchange(guest, True, self._secrets.get, full=self._full())
        except OSError:  # it is gone again
            guest.close()
            return
        self._guests[fd] = guest, talk, address[0]
        self._loop.add(fd, lambda: self._go_on(fd))
        self._loop.at(f"guest {fd}", TIMEOUT_S, lambda: self._dismiss(fd))

    def _least_welcome(self) -> int:
        """The connection that gives way: of the address with most connections, the oldest silent one."""
        counts: dict[str, int] = {}
        for _guest, _talk, address in self._guests.values():
            counts[address] = counts.get(address, 0) + 1

        def rank(fd: int) -> "tuple[int, bool]":
            _guest, talk, address = self._guests[fd]
            return counts[address], not talk.peer[0]

        return max(self._guests, key=rank)  # of equals the first, which is the oldest

    def _go_on(self, fd: int) -> None:
        guest, talk, _address = self._guests[fd]
        try:
            if not talk.go_on():
                if talk.holds:
                    self._loop.remove(fd)
                    self._loop.at(f"guest {fd}", _HELD_S, lambda: self._go_on(fd))
                return
            accepted = talk.outcome == ACCEPTED
        except OSError:
            accepted = False
        self._forget(fd)
        if not accepted:
            guest.close()
            return
        _version, job, box = talk.peer
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
    address: "tuple[str, int]", secret: bytes, job: int, box: int, connect_s: float = TIMEOUT_S
) -> "tuple[socket.socket, Session | None]":
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
    address: "tuple[str, int]", secret: bytes, job: int, box: int, connect_s: float = TIMEOUT_S
) -> "tuple[socket.socket, HandshakeExchange]":
    """Connect in the same way, and leave the outcome to the caller, which also owns the socket."""
    call = partial(_meet, address, lambda _box: secret, connect_s, job=job, box=box)
    sock, talk = call()
    if talk.outcome == NEEDS_TLS:
        sock.close()
        sock, talk = call(encrypted=True)
    return sock, talk


def _meet(
    address: "tuple[str, int]", secret_of: "Callable[..., bytes]", connect_s: float, **options: int
) -> "tuple[socket.socket, HandshakeExchange]":
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        os.set_inheritable(sock.fileno(), False)
        sock.settimeout(connect_s)
        sock.connect(address)
        sock.setblocking(False)
        ends = time.monotonic() + TIMEOUT_S + _MORE_S
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        talk = HandshakeExchange(sock, False, secret_of, **options)
        while not talk.go_on():
            if not talk.holds:  # there is no reason to delay a refusal here
                poll.poll(max(0.0, ends - time.monotonic()) * 1000)
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
    if outcome == REFUSED:
        raise AuthenticationError(f"{where} and this box do not know the same secret: it is another job's")
    if outcome in (OTHER_VERSION, OTHER_BYTE_ORDER):
        what = "is of another version of spcomm" if outcome == OTHER_VERSION else "has another byte order"
        raise VersionError(f"{where} {what}; install the same one on all machines")
    if outcome == FULL:
        raise ConnectionError(f"{where} is full")
    if outcome != ACCEPTED:
        raise ConnectionError(f"{where} has ended the handshake")
