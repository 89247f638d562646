# SPDX-License-Identifier: MIT
"""The keyboard of a terminal, key by key, and the terminal as it was at every end.

Lines and echo are off while keys are taken: nothing else is changed, no cursor is hidden and no other screen is shown,
so that a killed process leaves nothing else to repair, and a shell repairs that.
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
    """A context: within it keys come one by one. Ctrl-C and Ctrl-Z work as usual."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._modes: list = []  # as they were; empty: they still are
        self._handlers: dict[int, object] = {}
        self._leaving = False
        self._late = 0  # a signal that has come meanwhile
        self._stopping = False

    def __enter__(self) -> "Keys":
        try:  # a signal may raise at any line of this, and then __exit__ is not called
            for number in _ENDS:
                self._handlers[number] = signal.signal(number, self._end)
            self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._stop)
            self._take()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self._leaving = True
        try:
            self._give_back()
        finally:
            self._give_back()  # should a Ctrl-C have come
            for number, handler in self._handlers.items():
                signal.signal(number, handler)  # type: ignore[arg-type]
        if self._late:
            raise SystemExit(128 + self._late)

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
        """The rest of one key's bytes."""
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
        if self._modes and not self._is_in_background():  # else a shell has it, with modes of its own
            try:
                termios.tcsetattr(self._fd, termios.TCSANOW, self._modes)
            except termios.error:
                pass  # it is gone
        self._modes = []  # at last: a signal may have this begin anew

    def _is_in_background(self) -> bool:
        try:
            return os.tcgetpgrp(self._fd) != os.getpgrp()
        except OSError:
            return False  # not the terminal that controls this process

    def _end(self, number: int, _frame: "FrameType | None") -> None:
        if self._leaving:
            self._late = number
        else:
            raise SystemExit(128 + number)

    def _stop(self, _number: int, _frame: "FrameType | None") -> None:
        """Ctrl-Z: the terminal is the shell's, until `fg`."""
        if self._stopping:
            return
        self._stopping, had_it = True, bool(self._modes)
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        if had_it and not self._leaving:
            self._take()
        self._stopping = False


class Interrupts:
    """A context for one check: the first Ctrl-C ends it, a second one also ends the work that follows it.

    The second one is only noted, so that the check can still clean up; a third does not wait for that.
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
