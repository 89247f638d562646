# SPDX-License-Identifier: MIT
"""The nodes' output: whole lines, in the order they arrive, with or without labels.

A `Stream` is one pipe of one node; a `Sink` is its destination. Bytes pass through unchanged. A sink never blocks the
launcher: it writes what its reader takes, keeps the rest, and reports when it is full, so that nothing more is read
from the nodes. Memory is bounded: a line that is longer than LONG goes out in pieces. While it does it has the
*floor*: lines of other nodes wait behind it until it ends, no bytes are added to it for a while, or too much has
gathered.
"""

import errno
import os
import select
from collections import deque
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm.launch.local.screen import Screen

LONG = 256 * 1024  # bytes of an unfinished line that are kept
FULL = 256 * 1024  # bytes a sink keeps for a slow reader before it is full
BEHIND = 1024 * 1024  # bytes that may wait behind a long line
_PIECE = select.PIPE_BUF  # the amount that a ready pipe takes without blocking
_READ = 65536


class Sink:
    """One or two descriptors of the launcher that lead to the same place, and the bytes waiting to go there."""

    shows_bars = True  # unfinished lines that overwrite themselves

    def __init__(self) -> None:
        self._queue: deque[tuple[int, memoryview]] = deque()
        self._size = 0
        self._behind: list[tuple[int, bytes]] = []
        self._behind_size = 0
        self.floor: Stream | None = None
        self.error: OSError | None = None  # why writing is impossible
        self._poll = select.poll()
        self._polled: dict[int, bool] = {}

    @property
    def full(self) -> bool:
        return self._size > FULL

    @property
    def empty(self) -> bool:
        return not self._queue

    @property
    def someone_waits(self) -> bool:
        """Whether lines wait behind a long one."""
        return bool(self._behind)

    def head(self) -> int:
        """The descriptor to wait for."""
        return self._queue[0][0]

    def write(self, fd: int, data: bytes, owner: "Stream | None" = None) -> None:
        """Queue whole lines, or a piece of a long line of the stream that has the floor."""
        if self.error is not None:
            return
        if self.floor is None or self.floor is owner:
            self._append(fd, data)
            return
        self._behind.append((fd, data))
        self._behind_size += len(data)
        if self._behind_size > BEHIND or self.floor.shown:
            self.take_floor()

    def take_floor(self) -> None:
        """End the long line where it is; its stream starts a new line when it continues."""
        if self.floor is not None:
            self._append(self.floor.target, b"\n")
            self.give_back()

    def give_back(self) -> None:
        """Write the lines that waited behind the long line, which has ended."""
        self.floor = None
        behind, self._behind, self._behind_size = self._behind, [], 0
        for fd, data in behind:
            self._append(fd, data)

    def flush(self) -> bool:
        """Write as much as the reader takes now. True when nothing is left."""
        while self._queue:
            fd, data = self._queue[0]
            try:
                if self._can_wait(fd):
                    if not self._writable(fd):
                        return False
                    data = data[:_PIECE]
                count = os.write(fd, data)
            except BlockingIOError:
                return False
            except OSError as error:
                self._break(error)
                return True
            self._size -= count
            rest = self._queue[0][1][count:]
            if rest:
                self._queue[0] = (fd, rest)
            else:
                self._queue.popleft()
        return True

    def give_up(self) -> None:
        """Discard the rest: no reader will take it."""
        self._break(OSError(errno.EPIPE, os.strerror(errno.EPIPE)))

    def _append(self, fd: int, data: bytes) -> None:
        self._queue.append((fd, memoryview(data)))
        self._size += len(data)

    def _break(self, error: OSError) -> None:
        self.error = error
        self._queue.clear()
        self._behind.clear()
        self._size = self._behind_size = 0

    def _can_wait(self, fd: int) -> bool:
        """Whether the descriptor is a pipe, socket or terminal; a file is always ready."""
        found = self._polled.get(fd)
        if found is None:
            import stat

            mode = os.fstat(fd).st_mode
            found = self._polled[fd] = not stat.S_ISREG(mode) and not stat.S_ISBLK(mode)
        return found

    def _writable(self, fd: int) -> bool:
        self._poll.register(fd, select.POLLOUT)
        ready = self._poll.poll(0)
        self._poll.unregister(fd)
        return bool(ready)


class Stream:
    """One output pipe of one node."""

    def __init__(self, fd: int, target: int, sink: Sink, label: bytes, alone: bool) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.target = target  # 1 or 2
        self.sink = sink
        self.label = label  # before each line; may be empty
        self.takers: tuple[Callable[[bytes], None], ...] = ()  # other receivers of all bytes, as they come
        self._alone = alone and not label  # the only node: its bytes stay exactly as they are
        self.shown = False  # its unfinished line was shown because nothing followed; any stream may end it
        self._pending: list[bytes] = []
        self._length = 0

    @property
    def unfinished(self) -> bool:
        return self._length > 0

    @property
    def blocked(self) -> bool:
        """Whether another node's long line has the floor, and this stream has kept as much as it may."""
        return self._length > LONG and self.sink.floor is not None

    def read(self) -> bool:
        """Forward the bytes that have arrived. False at the end of the pipe."""
        try:
            data = os.read(self.fd, _READ)
        except BlockingIOError:
            return True
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""
        if data:
            self._arrived(data)
        return bool(data)

    def read_rest(self) -> bool:
        """Forward a piece of the rest, without waiting for more. False when there is none."""
        try:
            data = os.read(self.fd, _READ)
        except OSError:
            return False
        if data:
            self._arrived(data)
        return bool(data)

    def close(self) -> None:
        """Handle the end of the pipe: the rest is a line without its end."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        if self._length:
            self._line(b"" if self._alone else b"\n")
        if self.sink.floor is self:
            if self._alone:
                self.sink.give_back()
            else:
                self.sink.take_floor()

    def end_line(self) -> None:
        """Forward an unfinished line as a whole one: nothing follows soon."""
        if self._length and self.sink.floor is not self:
            self._line(b"\n")

    def show(self) -> None:
        """Show an unfinished line (a prompt, a progress bar); the next line of another node ends it."""
        is_bar = any(b"\r" in piece for piece in self._pending)
        if self._length and self.sink.floor is None and (self.sink.shows_bars or not is_bar):
            self.shown = True
            self._open()

    def _arrived(self, data: bytes) -> None:
        for taker in self.takers:
            taker(data)
        self._take(data)

    def _take(self, data: bytes) -> None:
        if self.sink.floor is self:
            end = data.find(b"\n") + 1
            self.sink.write(self.target, data[: end or len(data)], self)
            if not end:
                return
            self.shown = False
            self.sink.give_back()
            data = data[end:]
            if not data:
                return
        end = data.rfind(b"\n") + 1
        if end:
            self._line(data[:end])
            data = data[end:]
        if data:
            self._pending.append(data)
            self._length += len(data)
            if self._length > LONG and self.sink.floor is None:
                self.shown = False
                self._open()

    def _line(self, data: bytes) -> None:
        """Forward the pending bytes and `data`, which ends them."""
        if self._pending:
            data = b"".join(self._pending) + data
            self._pending, self._length = [], 0
        if self.label and data:
            data = self.label + data[:-1].replace(b"\n", b"\n" + self.label) + data[-1:]
        self.sink.write(self.target, data)

    def _open(self) -> None:
        """Take the floor with an unfinished line."""
        data = self.label + b"".join(self._pending)
        self._pending, self._length = [], 0
        self.sink.floor = self
        self.sink.write(self.target, data, self)


def sinks(screen: "Screen | None" = None) -> "tuple[Sink, Sink]":
    """Return the sinks for stdout and stderr: a single one if both lead to the same place, so that lines keep order.

    One of them is `screen`, if there is one: the sink of its descriptor.
    """
    stdout, stderr = (screen if screen is not None and screen.fd == fd else Sink() for fd in (1, 2))
    try:
        one, two = os.fstat(1), os.fstat(2)
    except OSError:
        return stdout, stderr
    if (one.st_dev, one.st_ino, one.st_rdev) == (two.st_dev, two.st_ino, two.st_rdev):
        stdout = stderr = stderr if stderr is screen else stdout
    return stdout, stderr
