# SPDX-License-Identifier: MIT
"""The way into a room: connect, prove that the code is known, send the purpose. All its error sentences are here."""

import select
import socket
import time

from spcomm._core import net
from spcomm.launch.base import loopback
from spcomm.launch.remote import handshake, versions
from spcomm.launch.remote.framing import FrameError, one_line
from spcomm.launch.room.prompt import PORT, spelt
from spcomm.launch.room.room_framing import RoomFrames

EINVAL, ESYSTEM, ETIMEDOUT, EVERSION, EDISCONNECTED = -1, -3, -5, -17, -21  # of csrc/base/spc_error.h
CONNECT_S = 5.0
_AGAIN_S = (0.05, 0.2, 0.5)
_ALIVE = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 30_000))


class EntryError(Exception):
    """The server accepts no connection, or not this one; the text is a sentence without its end.

    `status` is the cause as C programs get it.
    """

    status = EDISCONNECTED


class RefusedError(EntryError):
    """The server does not know that code."""

    status = EINVAL


class OtherVersionError(EntryError):
    """The server speaks another version of the protocol between machines."""

    status = EVERSION


class ClosedError(EntryError):
    """The other end closes the connection, or sends an unexpected message. The next try may succeed."""


class NobodyError(EntryError):
    """The machine is there, but nothing listens at that port."""


class FinalError(EntryError):
    """The server has refused and has sent the reason, or has lost the connection for good."""

    def __init__(self, sentence: str, status: int = EDISCONNECTED) -> None:
        super().__init__(sentence)
        self.status = status


def enter(place: "tuple[str, int]", key: bytes) -> RoomFrames:
    """Connect to a server and prove that we know its code. Waits for some seconds. Raises `EntryError`.

    A server with very many connection attempts closes some of them, so this function tries again.
    """
    for pause in _AGAIN_S:
        try:
            return enter_once(place, key)
        except ClosedError:
            time.sleep(pause)
    return enter_once(place, key)


def enter_once(place: "tuple[str, int]", key: bytes) -> RoomFrames:
    """The same, with one try."""
    try:
        sock, talk = handshake.meet(place, key, handshake.ROOM, 0, CONNECT_S)
    except (OSError, UnicodeError) as error:
        kind = ClosedError if isinstance(error, ConnectionError) else EntryError
        kind = NobodyError if isinstance(error, ConnectionRefusedError) else kind
        raise kind(unreachable(place, error)) from None
    why = refusal(place, talk)
    if why:
        sock.close()
        errors = {
            handshake.CLOSED: ClosedError,
            handshake.NO_TLS: ClosedError,
            handshake.REFUSED: RefusedError,
            handshake.OTHER_VERSION: OtherVersionError,
        }
        raise errors.get(talk.outcome, EntryError)(why)
    try:
        keep_alive(sock)
        return RoomFrames(sock, talk.session, talk.binding)
    except OSError as error:  # it is gone again
        sock.close()
        raise EntryError(unreachable(place, error)) from None


def ask(frames: RoomFrames, message: list, place: "tuple[str, int]") -> list:
    """Send a message and return the server's answer. Waits for some seconds. Raises `EntryError`."""
    frames.send(message)
    poll = select.poll()
    poll.register(frames.reading, select.POLLIN)
    ends = time.monotonic() + CONNECT_S
    while (left := ends - time.monotonic()) > 0:
        poll.poll(left * 1000)
        try:
            found = frames.message()
        except FrameError as error:
            raise ClosedError(f"what listens at {spelt(place)} {error}") from None
        if found is None:
            raise ClosedError(f"the server at {spelt(place)} has ended, or the network between has")
        if found and found[0] == "refused":
            raise FinalError(one_line(found[1]), EVERSION if found[2:] == [EVERSION] else EINVAL)
        if found:
            return found
    raise ClosedError(f"the server at {spelt(place)} does not answer")


def keep_alive(sock: "socket.socket") -> None:
    """Have the system notice when the other end disappears silently, as when a laptop is closed."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in _ALIVE:
        number = getattr(socket, name, None)
        if number is not None:
            sock.setsockopt(socket.IPPROTO_TCP, number, value)


def unreachable(place: "tuple[str, int]", error: Exception) -> str:
    """Return why there is no connection."""
    host, port = place
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return f"no machine is known by the name {host}; try its address, which the machine that serves has printed"
    if isinstance(error, ConnectionRefusedError):
        return (
            f"{host} answers, but nothing listens at its port {port}: is spcomm serve running there, and is that "
            f"its port? (spcomm doctor {_asked(place)})"
        )
    if isinstance(error, TimeoutError):
        return (
            f"{spelt(place)} does not answer: another network, or a firewall that drops packets to port {port} "
            f"(spcomm doctor {_asked(place)})"
        )
    if isinstance(error, ConnectionError):
        return f"{spelt(place)} closed the connection: it is not an spcomm server, or it is overloaded"
    not_reached = loopback.trouble(place)
    if not_reached:
        return not_reached
    return f"{spelt(place)} cannot be reached ({getattr(error, 'strerror', None) or error})"


def _asked(place: "tuple[str, int]") -> str:
    """Return the place as a user types it: with the port, unless it is the usual one."""
    return place[0] if place[1] == PORT else spelt(place)


def refusal(place: "tuple[str, int]", talk: handshake.HandshakeExchange) -> str:
    """The reason why the handshake failed; empty: it succeeded."""
    outcome, where = talk.outcome, spelt(place)
    if outcome == handshake.ACCEPTED:
        return ""
    if outcome == handshake.REFUSED:
        return (
            f"the server at {where} does not know that code; check all six words against those that it shows"
        )
    if outcome == handshake.OTHER_VERSION:
        version = talk.peer[0]
        return (
            f"the server at {where} speaks version {version} of the protocol between machines, and this machine "
            f"version {net.VERSION}; install the same spcomm on both"
        )
    if outcome == handshake.INTERCEPTED:
        return f"the connection to the server at {where} is intercepted; nothing was sent"
    if outcome == handshake.NO_TLS:
        return f"TLS with the server at {where} fails: {talk.trouble}"
    if outcome == handshake.OTHER_BYTE_ORDER:
        return f"the server at {where} has a different byte order from this machine; they cannot share a run"
    if outcome == handshake.FULL:
        return f"the server at {where} is full: it has as many connections as it allows; try again later"
    if outcome == handshake.STRANGER:
        return f"{where} is not an spcomm server; its port is {PORT} unless --listen says otherwise"
    if outcome == handshake.LATE:
        return f"{where} does not answer: it is not an spcomm server, or it is overloaded"
    return f"{where} closed the connection: it is not an spcomm server, or it is overloaded"


def differ(theirs: dict) -> str:
    """Return the sentence that refuses a machine with these versions; empty: it can take part."""
    ours = versions.mine()
    if str(theirs.get("spcomm", "")) != ours["spcomm"]:
        return (
            f"the server has spcomm {ours['spcomm']}, and this machine has {theirs.get('spcomm', '')}; install the "
            "same version on both"
        )
    if str(theirs.get("order", "")) != ours["order"]:
        return f"the server is {ours['order']}-endian, and this machine is not; they cannot share a run"
    return ""
