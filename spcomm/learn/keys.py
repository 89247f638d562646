# SPDX-License-Identifier: MIT
"""The keyboard of a terminal, key by key, and the terminal as it was at every end.

Lines and echo are off while keys are taken: nothing else is changed, no cursor is hidden and no other screen is shown,
so that a killed process leaves nothing else to repair, and a shell repairs that.
"""

import os
import select
import signal
import termios
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_ENDS = (signal.SIGTERM, signal.SIGHUP)
INTERRUPT = "\x03"
_MOST_INTERRUPTS = 3  # of Ctrl-C, unanswered, until it ends whatever goes on
_SLOW_MS = 25  # until the next byte of one key, over a network
_SEQUENCES = {
    b"A": "up",
    b"B": "down",
    b"H": "home",
    b"F": "end",
    b"1~": "home",
    b"4~": "end",
    b"5~": "page up",
    b"6~": "page down",
}


class Keys:
    """A context: within it keys come one by one, Ctrl-C among them. Ctrl-Z works as usual."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._modes: list = []  # as they were; empty: they still are
        self._handlers: dict[int, object] = {}
        self._leaving = False
        self._late = 0  # a signal that has come meanwhile
        self._stopping = False
        self._was_stopped = False
        self._interrupts = 0  # not answered yet
        self._wake = os.pipe()  # can be read after Ctrl-C

    def __enter__(self) -> "Keys":
        try:  # a signal may raise at any line of this, and then __exit__ is not called
            for number in _ENDS:
                self._handlers[number] = signal.signal(number, self._end)
            self._handlers[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, self._stop)
            self._take()
            self._handlers[signal.SIGINT] = signal.signal(signal.SIGINT, self._interrupt)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self._leaving = True
        if signal.SIGINT in self._handlers:
            signal.signal(signal.SIGINT, self._handlers.pop(signal.SIGINT))  # type: ignore[arg-type]
        try:
            self._give_back()
        finally:
            self._give_back()  # should a Ctrl-C have come
            for fd in self._wake:
                os.close(fd)
            for number, handler in self._handlers.items():
                signal.signal(number, handler)  # type: ignore[arg-type]
        if self._late:
            raise SystemExit(128 + self._late)

    def wait(self, other: int, seconds: float) -> str:
        """The next key, `INTERRUPT` for Ctrl-C; "" if `other` (-1: nothing) can be read or the time has passed.

        Raises
        ------
        EOFError
            If the terminal is gone.
        """
        poll = select.poll()
        for fd in (self._fd, self._wake[0], other):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        ready = {fd for fd, _event in poll.poll(seconds * 1000)}
        if self._wake[0] in ready:
            os.read(self._wake[0], 1)
            self._interrupts -= 1
            return INTERRUPT
        if self._fd not in ready:
            return ""
        data = self._byte()
        if not data or data == b"\x04":  # Ctrl-D comes as a key, since there are no lines
            raise EOFError
        return self._sequence() if data == b"\x1b" else data.decode("latin-1")

    def was_stopped(self) -> bool:
        """Whether Ctrl-Z has stopped this process since the last call."""
        was_stopped, self._was_stopped = self._was_stopped, False
        return was_stopped

    def _byte(self) -> bytes:
        try:
            return os.read(self._fd, 1)
        except OSError:
            return b""

    def _sequence(self) -> str:
        """The key whose first byte was Escape; just "\\x1b" for those of no use here."""
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        found = b""
        while poll.poll(_SLOW_MS):
            byte = self._byte()
            if not found and byte in (b"[", b"O"):
                found = byte
                continue
            found += byte
            if not byte or not found.startswith((b"[", b"O")) or b"@" <= byte <= b"~":
                break
        return _SEQUENCES.get(found[1:], "\x1b")

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
        self._was_stopped = True

    def _interrupt(self, _number: int, _frame: "FrameType | None") -> None:
        """Ctrl-C: a key like others, so that it never comes between two lines of an answer to another key."""
        self._interrupts += 1
        if self._interrupts >= _MOST_INTERRUPTS:
            raise KeyboardInterrupt
        os.write(self._wake[1], b"c")
