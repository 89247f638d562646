# SPDX-License-Identifier: MIT
"""The keyboard of a terminal, key by key, and the terminal as it was at every end.

Lines and echo are off while keys are taken: nothing else is changed, no cursor is hidden and no other screen is shown,
so that whoever is killed leaves nothing to repair but that, and a shell does so.
"""

import os
import select
import signal
import termios
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_ENDS = (signal.SIGTERM, signal.SIGHUP)


class Keys:
    """A context: within it keys come one by one. Ctrl-C and Ctrl-Z do what they always do."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._modes: list = []  # as they were; empty: they still are
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> "Keys":
        for number in _ENDS:
            self._handlers[number] = signal.signal(number, self._end)
        self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._stop)
        self._take()
        return self

    def __exit__(self, *_error: object) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def wait(self, other: int, seconds: float) -> str:
        """The next key; "" if there is none, but `other` can be read or the time has passed.

        Raises
        ------
        EOFError
            If the terminal is gone.
        """
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if other >= 0:
            poll.register(other, select.POLLIN)
        ready = {fd for fd, _event in poll.poll(seconds * 1000)}
        if self._fd not in ready:
            return ""
        try:
            data = os.read(self._fd, 1)
        except OSError:
            data = b""
        if not data or data == b"\x04":  # Ctrl-D comes as a key, since there are no lines
            raise EOFError
        if data == b"\x1b":  # an arrow, or the like: none of ours
            self._drain()
            return "\x1b"
        return data.decode("latin-1")

    def _drain(self) -> None:
        """The rest of what one key sends."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        while poll.poll(0):
            if not os.read(self._fd, 64):
                break

    def _take(self) -> None:
        modes = termios.tcgetattr(self._fd)
        self._modes = [*modes[:6], list(modes[6])]
        modes[3] &= ~(termios.ECHO | termios.ICANON)
        modes[6][termios.VMIN], modes[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._fd, termios.TCSADRAIN, modes)

    def _give_back(self) -> None:
        modes, self._modes = self._modes, []
        if not modes:
            return
        try:
            if os.tcgetpgrp(self._fd) != os.getpgrp():
                return  # a shell has it, with modes of its own
        except OSError:
            pass  # not the terminal that controls this process
        try:
            termios.tcsetattr(self._fd, termios.TCSANOW, modes)
        except termios.error:
            pass  # it is gone

    def _end(self, number: int, _frame: "FrameType | None") -> None:
        raise SystemExit(128 + number)

    def _stop(self, _number: int, _frame: "FrameType | None") -> None:
        """Ctrl-Z: the terminal is the shell's, until `fg`."""
        had_it = bool(self._modes)
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        if had_it:
            self._take()


class Interrupts:
    """A context for one check: the first Ctrl-C ends it, a second one what comes after it, too.

    The second one is noted only, so that the check can still put its house in order; a third does not wait for that.
    """

    def __init__(self) -> None:
        self.count = 0
        self._before: Callable | int | None = None

    def __enter__(self) -> "Interrupts":
        self._before = signal.signal(signal.SIGINT, self._take)
        return self

    def __exit__(self, *_error: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _take(self, _number: int, _frame: "FrameType | None") -> None:
        self.count += 1
        if self.count != 2:
            raise KeyboardInterrupt
