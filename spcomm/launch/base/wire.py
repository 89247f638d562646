# SPDX-License-Identifier: MIT
"""Messages between the launcher and the fork server, over one stream socket.

A message is a 4-byte length and a `marshal` value (both ends are the same interpreter). Descriptors travel
with the first byte of a message (SCM_RIGHTS), so the receiver gets them together with the message they belong
to. `_socket` is used directly: importing `socket` would cost the launcher several milliseconds.
"""

import _socket
import errno
import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FORBIDDEN = (errno.EPERM, errno.EACCES, errno.ENOSYS)  # where a sandbox refuses a system call
MOST_DESCRIPTORS = 48  # with one message
_INT = 4  # sizeof(int): a descriptor in an SCM_RIGHTS message
LENGTH_BYTES = 4
NOSIGNAL = getattr(_socket, "MSG_NOSIGNAL", 0)

# Exceptions raised while a message of a foreign shape is taken apart.
NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def encoded(message: object) -> bytes:
    """A message as it travels."""
    body = marshal.dumps(message)
    return len(body).to_bytes(LENGTH_BYTES, "little") + body


def rights(*descriptors: int) -> "list[tuple[int, int, bytes]]":
    """Descriptors as they travel, beside the bytes of a `sendmsg`."""
    data = b"".join(descriptor.to_bytes(_INT, sys.byteorder) for descriptor in descriptors)
    return [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, data)] if data else []


def opened(call: "Callable", *arguments: object) -> "tuple | _socket.socket":
    """Return the result of a system call that every run needs. UsageError: a sandbox refuses it."""
    try:
        return call(*arguments)
    except OSError as error:
        if error.errno not in FORBIDDEN:
            raise
        from spcomm.launch.base.usage import UsageError

        raise UsageError(
            f"spcomm run: this system refuses {call.__name__}() ({error.strerror}), which the processes of a run "
            "need to reach each other; in a container, allow it in the seccomp profile"
        ) from None


class Wire:
    """One end of the socket pair; `receive` returns None when the other end is gone."""

    def __init__(self, sock: "_socket.socket") -> None:
        self._sock = sock
        self._sock.settimeout(None)

    @classmethod
    def pair(cls) -> "tuple[Wire, Wire]":
        """Return two connected ends, both close-on-exec."""
        ours, theirs = opened(_socket.socketpair, _socket.AF_UNIX, _socket.SOCK_STREAM)
        for sock in (ours, theirs):
            os.set_inheritable(sock.fileno(), False)
        return cls(ours), cls(theirs)

    @classmethod
    def adopt(cls, fd: int) -> "Wire":
        """Return the end whose descriptor this process inherited."""
        os.set_inheritable(fd, False)
        return cls(_socket.socket(fileno=fd))

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    def detach(self) -> None:
        """Forget the descriptor without closing it: another owner does."""
        self._sock.detach()

    def send(self, message: object, descriptors: "tuple[int, ...]" = ()) -> None:
        """Send one message. Blocks while the socket is full; `OSError` when the other end is gone."""
        data = memoryview(encoded(message))
        sent = self._sock.sendmsg([data], rights(*descriptors), NOSIGNAL)
        if sent < len(data):
            self._sock.sendall(data[sent:], NOSIGNAL)

    def receive(self) -> "tuple[object, list[int]] | None":
        """Return the next message and its descriptors (close-on-exec), or None at the end. Blocks."""
        try:
            head, extra, _flags, _address = self._sock.recvmsg(
                LENGTH_BYTES,
                _socket.CMSG_SPACE(MOST_DESCRIPTORS * _INT),
                getattr(_socket, "MSG_CMSG_CLOEXEC", 0),
            )
        except ConnectionError:
            return None
        descriptors = [
            int.from_bytes(data[at : at + _INT], sys.byteorder)
            for level, kind, data in extra
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS
            for at in range(0, len(data) - len(data) % _INT, _INT)
        ]
        head += self._exactly(LENGTH_BYTES - len(head)) if head else b""
        if len(head) < LENGTH_BYTES:
            return None
        length = int.from_bytes(head, "little")
        body = self._exactly(length)
        return (marshal.loads(body), descriptors) if len(body) == length else None

    def _exactly(self, length: int) -> bytes:
        parts: list[bytes] = []
        while length > 0:
            try:
                part = self._sock.recv(min(length, 1 << 20))
            except ConnectionError:
                break
            if not part:
                break
            parts.append(part)
            length -= len(part)
        return b"".join(parts)
