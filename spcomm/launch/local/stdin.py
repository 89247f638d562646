# SPDX-License-Identifier: MIT
"""Standard input: the chosen nodes have the launcher's, all others are at the end of a file.

A single node gets a file or a pipe as it is. Several nodes each get all of it: a file is opened again for each, the
data of a pipe are relayed to all. A terminal is always relayed: nodes are in process groups of their own, and one that
reads from the terminal would be stopped.

Input that a slow node has not read is kept, up to MOST bytes; then the others wait for it. A node that has ended, or
closed its standard input, delays no other node.
"""

import os
import stat
from collections import deque
from collections.abc import Callable, Sequence

from spcomm.launch.base.loop import Loop

MOST = 64 << 20  # bytes that are kept for the slowest node
_PIECE = 65536
_RETRY = 0.5  # seconds until a launcher in the background checks again whether it is in the foreground


class _Copy:
    """The way to one node: a pipe, and the bytes it has not taken yet."""

    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        os.set_blocking(self.write, False)
        self.queue: deque[bytes] = deque()
        self.size = 0

    def add(self, data: bytes) -> None:
        self.queue.append(data)
        self.size += len(data)

    def flush(self) -> bool:
        """Write as much as the node takes. False: it reads no more."""
        while self.queue:
            try:
                count = os.write(self.write, self.queue[0])
            except BlockingIOError:
                return True
            except OSError:
                return False
            self.size -= count
            rest = self.queue[0][count:]
            if rest:
                self.queue[0] = rest
            else:
                self.queue.popleft()
        return True


class Stdin:
    """Sources of standard input; `chosen` are indices."""

    def __init__(self, chosen: "frozenset[int]" = frozenset((0,))) -> None:
        self.chosen = chosen
        self._null = os.open(os.devnull, os.O_RDONLY)
        self._way = _way(len(chosen))
        self._copies: dict[int, _Copy] = {}
        self._opened: dict[int, int] = {}  # a file, again
        self._left = len(chosen)  # nodes that have not been sent their input descriptor
        self._ended = False
        self.typed: Callable[[bytes], None] = _nothing  # called with input from a terminal

    def use(self, loop: Loop) -> None:
        """Prepare before any node is started."""
        self._loop = loop

    def descriptor(self, index: int) -> int:
        """Return the descriptor that becomes the node's standard input."""
        if index not in self.chosen:
            return self._null
        if self._way == "relay":
            self._copies[index] = copy = _Copy()
            return copy.read
        if self._way == "again":
            self._opened[index] = _open_again()
            return self._opened[index]
        return 0

    def sent(self, batch: "Sequence[int]") -> None:
        """Note that these nodes have their descriptors. The relay starts when all nodes have them."""
        for index in batch:
            if index in self._copies:
                os.close(self._copies[index].read)
            if index in self._opened:
                os.close(self._opened.pop(index))
            self._left -= index in self.chosen
        if self._left == 0 and self._copies and not self._ended:
            self._left = -1
            self._loop.add(0, self._relay)

    def _relay(self) -> None:
        if os.isatty(0) and not _in_foreground():  # reading would stop us
            self._loop.remove(0)
            self._loop.at("stdin", _RETRY, lambda: self._loop.add(0, self._relay))
            return
        try:
            data = os.read(0, _PIECE)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            self._ended = True
            self._loop.remove(0)
        self.typed(data)
        for index, copy in list(self._copies.items()):
            if data:
                copy.add(data)
            self._go_on(index)
        if not self._ended and any(copy.size > MOST for copy in self._copies.values()):
            self._loop.remove(0)

    def _go_on(self, index: int) -> None:
        """Write as much as the node takes now, and the rest when it takes more."""
        copy = self._copies[index]
        full = copy.size > MOST
        if not copy.flush() or (self._ended and not copy.queue):
            self._loop.remove(copy.write)
            os.close(copy.write)
            del self._copies[index]
        elif copy.queue:
            self._loop.add(copy.write, lambda: self._go_on(index), write=True)
        else:
            self._loop.remove(copy.write)
        if self._ended:
            return
        if not self._copies:  # no node reads any more
            self._ended = True
            self._loop.remove(0)
        elif full and all(other.size <= MOST for other in self._copies.values()):
            self._loop.add(0, self._relay)


def _way(nodes: int) -> str:
    """Return how standard input reaches that many nodes: as it is, opened again, or relayed."""
    if os.isatty(0):
        return "relay"
    mode = os.fstat(0).st_mode
    if nodes < 2 or stat.S_ISCHR(mode):  # such as /dev/null: it has no position to be shared
        return "as it is"
    return "again" if stat.S_ISREG(mode) or stat.S_ISBLK(mode) else "relay"


def _open_again() -> int:
    """Open standard input's file again with its own position, which begins at the current one."""
    for path in ("/proc/self/fd/0", "/dev/fd/0"):
        try:
            fd = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        os.lseek(fd, os.lseek(0, 0, os.SEEK_CUR), os.SEEK_SET)
        return fd
    return os.dup(0)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _nothing(_data: bytes) -> None:
    pass
