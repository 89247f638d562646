# SPDX-License-Identifier: MIT
"""A sink whose terminal has a table as its last lines: the output of nodes goes above it.

The table is drawn below whole lines only. Output waits for some hundredths of a second, so that the table is removed,
the new output is written, and the table is drawn again in one piece. While an unfinished line is shown (a prompt), and
while the launcher is in the background, there is no table.

The cursor stands at the start of the line below the table, and is never hidden: a killed launcher leaves nothing to
repair but the echo. That is off while there is a table, since typed text would be shown in it; a shell turns it on
again. Lines that a smaller terminal breaks in two are counted as two, as nearly all terminals do it.
"""

import os
from collections.abc import Callable

from spcomm.launch.base import nothing
from spcomm.launch.local.output import Sink

_HELD = 32 * 1024  # bytes that wait for the next drawing at most
_ERASE_BELOW = b"\033[J"


class Screen(Sink):
    """The sink of a terminal. `draw` shows a table; until then, and after `close`, it is like any other."""

    shows_bars = False  # there would be no table for as long as one is shown

    def __init__(self, fd: int) -> None:
        super().__init__()
        self.fd = fd
        self.later: Callable[[], None] = nothing  # called when output begins to wait for `renew`
        self._echo = Echo(fd)
        self._widths: list[int] = []  # of the table's lines on the terminal
        self._table: list[tuple[bytes, int]] = []  # the lines to be shown; each with its width
        self._held: list[bytes] = []
        self._held_size = 0
        self._is_at_start = True  # of a line

    @property
    def size(self) -> "tuple[int, int]":
        """Return the columns and lines of the terminal."""
        try:
            size = os.get_terminal_size(self.fd)
        except OSError:
            return 80, 24
        return size.columns or 80, size.lines or 24

    def draw(self, lines: "list[tuple[bytes, int]]") -> None:
        """Show these lines, each with its width in columns, in place of the current ones."""
        if self.empty:  # otherwise the reader has not taken the earlier output
            self._table = lines if self._echo.is_in_foreground() else []
            self.renew()

    def renew(self) -> None:
        """Show the output that has come meanwhile, and the table below it: in one piece, so that nothing flickers."""
        was_empty = self.empty
        piece = self._erasing() + b"".join(self._held)
        if self._held:
            self._is_at_start = piece.endswith(b"\n")
        self._held, self._held_size = [], 0
        if self._table and self._is_at_start and was_empty:
            self._widths = [width for _line, width in self._table]
            piece += b"".join(line + b"\n" for line, _width in self._table)
        if piece:
            super()._append(self.fd, piece)
        self._echo.set(not self._widths)

    def close(self) -> None:
        """Remove the table, as soon as the terminal accepts output. `draw` shows one again."""
        self._table = []
        self.renew()
        self.flush()

    def typed(self, data: bytes) -> None:
        """Handle keyboard input, perhaps after a prompt: the terminal shows it, so a line ends there."""
        if not self._widths and data.endswith(b"\n"):
            self._is_at_start = True

    def _append(self, fd: int, data: bytes) -> None:
        if not self._table:
            self._is_at_start = data.endswith(b"\n")
            super()._append(fd, data)
            return
        if not self._held:
            self.later()
        self._held.append(data)
        self._held_size += len(data)
        if self._held_size > _HELD:
            self.renew()

    def _erasing(self) -> bytes:
        """The bytes that remove the table."""
        columns = self.size[0]
        lines = sum(max(1, -(-width // columns)) for width in self._widths)
        self._widths = []
        return b"\r\033[%dA%s" % (lines, _ERASE_BELOW) if lines else b""


class Echo:
    """The echo of a terminal. Unchanged unless it is turned off."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._is_ours = False  # turned off by this process

    def is_in_foreground(self) -> bool:
        """Whether the terminal belongs to this process, not to a shell or another program."""
        try:
            return os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return True  # not the terminal that controls this process

    def set(self, on: bool) -> None:
        """Turn it off, or on again if it was on."""
        if on == (not self._is_ours) or not self.is_in_foreground():
            return
        import termios

        try:
            modes = termios.tcgetattr(self._fd)
            was_on = bool(modes[3] & termios.ECHO)
            if on != was_on:
                modes[3] ^= termios.ECHO
                termios.tcsetattr(self._fd, termios.TCSANOW, modes)
            self._is_ours = not on and was_on
        except termios.error:
            pass  # the terminal is gone
