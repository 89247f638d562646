# SPDX-License-Identifier: MIT
"""A run at a terminal of its own: what stands there now (by pyte), and what is left of it at the end."""

import contextlib
import fcntl
import os
import select
import struct
import termios
import time

import pytest

from processes import WATCHDOG_S
from test_output import terminals

pyte = pytest.importorskip("pyte", reason="pyte, which reads what a terminal is told, is not installed")


def resize(fd, columns, lines):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


class Terminal:
    """Its keyboard and its screen, and the run that it controls."""

    def __init__(self, columns=120, lines=40):
        self.keys, self.end = terminals().openpty()
        resize(self.end, columns, lines)
        self.modes = termios.tcgetattr(self.end)
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.process = None

    def run(self, launch, *arguments, env=None, **streams):
        """Start a run whose standard streams are this terminal, but for those that are given."""
        self.process = launch.start(
            *arguments,
            env={"TERM": "xterm", "NO_COLOR": "1", **(env or {})},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(self.end, termios.TIOCSCTTY, 0),
            **{"stdin": self.end, "stdout": self.end, "stderr": self.end, **streams},
        )
        return self

    def type(self, data):
        os.write(self.keys, data)

    @property
    def lines(self):
        """The lines on the screen, without the empty ones below."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip().split("\n")

    def resize(self, columns, lines):
        resize(self.end, columns, lines)
        self.screen.resize(lines, columns)

    def read(self, milliseconds=0):
        """Show what has been written. False: nothing."""
        poll = select.poll()
        poll.register(self.keys, select.POLLIN)
        if not poll.poll(milliseconds):
            return False
        self._stream.feed(os.read(self.keys, 65536))
        return True

    def until(self, what):
        """Wait until `what(terminal)` is true of the screen, and return that."""
        deadline = time.monotonic() + WATCHDOG_S
        while not (found := what(self)):
            if time.monotonic() > deadline:
                pytest.fail("it is not on the screen:\n" + "\n".join(self.lines))
            self.read(100)
        return found

    def until_shows(self, *texts):
        """Wait for a line that has all of them; return it."""

        def line(_self):
            return next((line for line in self.lines if all(text in line for text in texts)), None)

        return self.until(line)

    def wait(self):
        """Until the run has ended; its exit code."""
        deadline = time.monotonic() + WATCHDOG_S
        while self.process.poll() is None:
            if time.monotonic() > deadline:
                pytest.fail("the run did not end:\n" + "\n".join(self.lines))
            self.read(20)
        while self.read():
            pass
        return self.process.returncode

    def is_echoing(self):
        return bool(termios.tcgetattr(self.end)[3] & termios.ECHO)

    def check(self):
        """The terminal is as it was, and nothing is left of a table."""
        assert termios.tcgetattr(self.end) == self.modes
        assert not self.screen.cursor.hidden and self.screen.cursor.x == 0
        assert not self.has_table(), self.lines
        assert pyte.modes.DECAWM in self.screen.mode

    def has_table(self):
        return any(line.startswith("spcomm, ") or "operation" in line for line in self.lines)

    def close(self):
        for fd in (self.keys, self.end):
            with contextlib.suppress(OSError):
                os.close(fd)
