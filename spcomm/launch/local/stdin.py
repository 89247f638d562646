# SPDX-License-Identifier: MIT
"""Standard input: the chosen nodes have the launcher's, all others are at the end of a file.

A single node gets a file, a pipe or a terminal as it is. Several nodes each get all of it: a file is opened again for
each, the data of a pipe or a terminal are relayed to all.

A node that has the terminal can turn its echo off, so a typed password stays hidden. The kernel's job control does not
concern nodes, whose session has no terminal: the launcher does its work here. After `bg` it stops a node that reads,
and lets it go on after `fg`. A launcher that starts in the background relays, and reads in the foreground only.

Input that a slow node has not read is kept, up to MOST bytes; then the others wait for it. A node that has ended, or
closed its standard input, delays no other node.
"""

import _signal
import os
import stat
import time
from collections import deque
from collections.abc import Callable, Sequence

from spcomm.launch.base import nothing, process
from spcomm.launch.base.loop import Loop

MOST = 64 << 20  # bytes that are kept for the slowest node
_PIECE = 65536
_READ_CALL = (
    b"0" if os.uname().machine == "x86_64" else b"63"
)  # the number of read(), as in most newer systems
_RETRY = 0.1  # seconds until a launcher in the background checks again whether it is in the foreground
_STOPPING_S = 1.0  # at most, until the node that reads the terminal has stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm.launch.local.run_processes import RunProcesses


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
    """Sources of standard input; `chosen` are indices. `relays`: a terminal is read here in any case."""

    def __init__(self, chosen: "frozenset[int]" = frozenset((0,)), relays: bool = False) -> None:
        self.chosen = chosen
        self._null = os.open(os.devnull, os.O_RDONLY)
        self._way = _way(len(chosen), relays)
        self._modes = _terminal_modes() if self._way == "as it is" else None  # None: it is no terminal
        self._set_in_use = self._modes  # when Ctrl-Z came
        self._is_held = False  # the node that reads the terminal itself: it is stopped in the background
        self._copies: dict[int, _Copy] = {}
        self._opened: dict[int, int] = {}  # a file, again
        self._left = len(chosen)  # nodes that have not been sent their input descriptor
        self._ended = False
        self.typed: Callable[[bytes], None] = nothing  # called with input from a terminal

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

    def stopping(self, run_processes: "RunProcesses") -> None:
        """Note how the terminal is set before Ctrl-Z stops this process, and a shell sets it anew.

        The signal reaches the node through the fork server. Until the node that reads the terminal has stopped, it
        would take the line that the user types for the shell.
        """
        if self._modes is not None and _in_foreground():
            self._set_in_use = _terminal_modes()
            reader = run_processes.started.get(min(self.chosen), 0)
            end = time.monotonic() + _STOPPING_S
            while process.state_of(reader) in ("R", "S", "D") and time.monotonic() < end:
                time.sleep(0.001)  # a stop of somebody else's child makes no descriptor ready

    def go_on(self, run_processes: "RunProcesses") -> None:
        """Continue the nodes after Ctrl-Z, but in the background not one that reads the terminal itself."""
        spared = None
        if self._modes is not None:
            if _in_foreground():
                _set_terminal(self._set_in_use)
            else:
                self._is_held = self._reads(run_processes)
                spared = min(self.chosen) if self._is_held else None
                self._guard_later(run_processes)
        run_processes.go_on(spared)

    def _guard_later(self, run_processes: "RunProcesses") -> None:
        self._loop.at("stdin", _RETRY, lambda: self._guard(run_processes))

    def _guard(self, run_processes: "RunProcesses") -> None:
        """Act as job control: stop the node that reads the terminal while this process is in the background."""
        if _in_foreground():
            self.release(run_processes)
            return
        if not self._is_held and self._reads(run_processes):
            self._is_held = True
            run_processes.poke(min(self.chosen), _signal.SIGSTOP)
        self._guard_later(run_processes)

    def release(self, run_processes: "RunProcesses") -> None:
        """Continue the node that was stopped because it reads."""
        if self._is_held:
            self._is_held = False
            run_processes.poke(min(self.chosen), _signal.SIGCONT)

    def _reads(self, run_processes: "RunProcesses") -> bool:
        """Whether the node that has the terminal waits in a read of its standard input."""
        reader = run_processes.started.get(min(self.chosen), 0)
        try:
            with open(f"/proc/{reader}/syscall", "rb") as file:
                return file.read().split()[:2] == [_READ_CALL, b"0x0"]
        except OSError:
            return False

    def finish(self, code: int) -> None:
        """Set the terminal as it was, which a node could not that was ended while it read a password."""
        if self._modes is not None and code and _in_foreground():
            _set_terminal(self._modes)

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


def _way(nodes: int, relays: bool) -> str:
    """Return how standard input reaches that many nodes: as it is, opened again, or relayed."""
    if os.isatty(0):
        return "as it is" if nodes == 1 and not relays and _in_foreground() else "relay"
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
    """Whether this process may read the terminal."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return True  # it is not the terminal of this session, or gone: no shell has it, and a read ends


def _terminal_modes() -> "list | None":
    """Return how the terminal is set; None: it is none, or gone."""
    if not os.isatty(0):
        return None
    import termios

    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None


def _set_terminal(modes: "list | None") -> None:
    import termios

    try:
        if modes is not None and modes != termios.tcgetattr(0):
            termios.tcsetattr(0, termios.TCSADRAIN, modes)
    except termios.error:
        pass  # the terminal is gone
