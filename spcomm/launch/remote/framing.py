# SPDX-License-Identifier: MIT
"""Messages over two pipes, such as the standard streams of ssh.

A frame is two lengths of 4 bytes, a message in JSON (the ends may be different versions of Python, and need not trust
each other) and bytes that belong to it. Nothing here blocks: bytes that the reader does not take are kept.
The first bytes are a greeting, since a login shell may print its own text before.
"""

import json
import os
from typing import TYPE_CHECKING

from spcomm.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from spcomm.launch.base.loop import Loop

GREETING = b"\0spcomm-box-1\n"
MOST = 1 << 20  # bytes kept, beyond which callers should add nothing
_MOST_MESSAGE = 16 << 20
_MOST_DATA = 4 << 20
_MOST_NOISE = 1 << 20  # before the greeting
_MOST_DEPTH = 32  # nested lists: Python's own limit would end the reader, not the sender
_PIECE = 1 << 16


class FrameError(Exception):
    """The other end is not an spcomm process."""


class Frames:
    """One end; `reading` and `writing` are descriptors."""

    def __init__(self, reading: int, writing: int, greeted: bool) -> None:
        """`greeted`: the other end sends nothing before its first frame."""
        self.reading, self.writing = reading, writing
        for fd in (reading, writing):
            os.set_blocking(fd, False)
        self._came = bytearray()
        self._goes = bytearray()
        self._greeted = greeted
        self.broken = False  # the reader is gone
        self.was_closed = False  # by the system of the other end: it said so, and was not merely silent

    @property
    def kept(self) -> int:
        """The number of bytes not yet taken."""
        return len(self._goes)

    def greet(self) -> None:
        self._goes += GREETING

    def send(self, message: list, data: "bytes | memoryview" = b"") -> None:
        self.write(encode(message, data))

    def write(self, data: bytes) -> None:
        """Queue bytes, which must not be empty."""
        self._goes += self.wrap(data)
        self.flush()

    def wrap(self, frame: bytes) -> bytes:
        """Return the bytes written for a frame."""
        return frame

    def unwrap(self, data: bytes) -> bytes:
        """Return the sent bytes from the bytes read. `FrameError`: they were altered."""
        return data

    def flush(self) -> bool:
        """Write the bytes that are taken now. True when nothing is left."""
        try:
            while self._goes and not self.broken:
                del self._goes[: os.write(self.writing, memoryview(self._goes)[:_PIECE].tobytes())]
        except BlockingIOError:
            return False
        except OSError as error:
            self.broken, self.was_closed = True, isinstance(error, ConnectionError)
        if self.broken:
            self._goes.clear()
        return True

    def receive(self) -> "list[tuple[list, bytes]] | None":
        """Return the messages that have come; None at the end. `FrameError`: a malformed frame."""
        data = self.read()
        if data is None:
            return None
        self._came += data
        if not self._greeted and not self._find_greeting():
            return []
        found = []
        while (frame := take_frame(self._came)) is not None:
            found.append(frame)
        return found

    def read(self) -> "bytes | None":
        """Return the bytes that have come, without waiting; None at the end. `FrameError`: they were altered."""
        try:
            data = os.read(self.reading, _PIECE)
        except BlockingIOError:
            return b""
        except OSError as error:
            self.was_closed = isinstance(error, ConnectionError)
            return None
        self.was_closed = not data
        return self.unwrap(data) if data else None

    def listen(self, loop: "Loop", call: "Callable[[], None]") -> None:
        """Have the loop call when bytes have come, from now on, or again after `pause`."""
        loop.add(self.reading, call)

    def pause(self, loop: "Loop") -> None:
        """Read no further bytes until `listen`."""
        loop.remove(self.reading)

    def finish(self, _patience_s: "float | None" = None) -> None:
        """Wait until everything sent has been written."""
        os.set_blocking(self.writing, True)
        self.flush()

    def _find_greeting(self) -> bool:
        at = self._came.find(GREETING)
        if at < 0:
            if len(self._came) > _MOST_NOISE:
                raise FrameError("prints without end, and does not start a box")
            return False
        del self._came[: at + len(GREETING)]
        self._greeted = True
        return True


def encode(message: list, data: "bytes | memoryview" = b"") -> bytes:
    """Return a frame."""
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    return b"".join((len(body).to_bytes(4, "little"), len(data).to_bytes(4, "little"), body, data))


def take_frame(came: bytearray) -> "tuple[list, bytes] | None":
    """Take the first frame out of the received bytes; None: it is incomplete. `FrameError`: it is malformed."""
    if len(came) < 8:
        return None
    length = int.from_bytes(came[:4], "little")
    size = int.from_bytes(came[4:8], "little")
    if length > _MOST_MESSAGE or size > _MOST_DATA:
        raise FrameError("sent a malformed message")
    end = 8 + length + size
    if len(came) < end:
        return None
    try:
        message = json.loads(came[8 : 8 + length], parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise FrameError("sent a malformed message") from None
    data = bytes(came[8 + length : end])
    del came[:end]
    if not isinstance(message, list) or not message or not _is_shallow(message):
        raise FrameError("sent a malformed message")
    return message, data


def one_line(value: object, most: int = 1000) -> str:
    """Return text from another machine, at most that many letters, as one line that is safe on a terminal."""
    return printable(str(value)[:most], "")


def _is_shallow(message: list) -> bool:
    inner: list = [message]
    for _depth in range(_MOST_DEPTH):
        items = (item for one in inner for item in (one.values() if isinstance(one, dict) else one))
        inner = [item for item in items if isinstance(item, (list, dict))]
        if not inner:
            return True
    return False


def _no_number(text: str) -> float:
    """Reject Infinity and NaN, which Python's JSON accepts and no code here can use."""
    raise ValueError(text)


class Outlet:
    """A pipe that is written without waiting: bytes that it does not take are kept."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.ending = False  # nothing more will be added
        self._kept = bytearray()

    @property
    def kept(self) -> int:
        return len(self._kept)

    def add(self, data: bytes) -> None:
        self._kept += data

    def flush(self) -> "int | None":
        """Return the number of bytes taken now; None: the reader is gone."""
        before = len(self._kept)
        try:
            while self._kept:
                del self._kept[: os.write(self.fd, memoryview(self._kept)[:_PIECE].tobytes())]
        except BlockingIOError:
            pass
        except OSError:
            self._kept.clear()
            return None
        return before - len(self._kept)
