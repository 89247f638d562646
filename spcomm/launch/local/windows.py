# SPDX-License-Identifier: MIT
"""`--window RANKS`: the output of a node in a tmux window of its own.

Inside tmux the windows are made in the session that is there, else in a tmux server of this run, to which
another terminal can attach. In each runs `cat`, which reads a pipe of the launcher. The pipe has no name: `cat`
finds it among the launcher's descriptors in /proc. When the launcher ends, in whatever way, the pipe does, too, so
`cat` ends, the window closes, and a server without windows ends. Its socket, which tmux would leave, is removed from
within the windows: nothing is left.
"""

import os
import select

from spcomm.launch.base.usage import UsageError
from spcomm.launch.local.output import Sink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from spcomm.launch.cmdline.groups import Names

_PATIENCE = 20.0  # seconds for tmux to open a window
# The window opens the pipe, says so, and shows what comes. $0: the launcher's descriptors.
_SHOW = 'exec 3<"$0/$1" && echo >"$0/$2" && cat <&3'
_CLEAN = '; rm -f "${TMUX%,*,*}"'  # a path, which may have commas, and two numbers


class WindowSink(Sink):
    """The pipe to one window. If somebody closes the window, the rest is dropped."""

    def __init__(self, fd: int) -> None:
        super().__init__()
        self.fd = fd

    def take(self, data: bytes) -> None:
        self.write(self.fd, data)


class Windows:
    """The windows of a run."""

    def __init__(self, indices: "Iterable[int]", names: "Names") -> None:
        self._sinks: dict[int, WindowSink] = {}
        self._tmux = _find_tmux()
        self._inside = bool(os.environ.get("TMUX"))
        self._process = 0  # of the server of this run
        self._server = [] if self._inside else ["-L", f"spcomm-{os.getpid()}", "-f", os.devnull]
        try:
            for index in sorted(indices):
                self._sinks[index] = WindowSink(self._open(names.nodes([index])))
        except BaseException:
            self.close()
            raise

    @property
    def hint(self) -> str:
        """The command that shows them; empty: they are where the user is."""
        if self._inside or not self._sinks:
            return ""
        return f"to see the windows, in another terminal: tmux -L {self._server[1]} attach"

    def sink(self, index: int) -> "WindowSink | None":
        return self._sinks.get(index)

    def sinks(self) -> "list[WindowSink]":
        return list(self._sinks.values())

    def close(self, impatient: "int | None" = None) -> None:
        """The windows close when they have shown everything, and, at a terminal, when Enter was pressed.

        `impatient` can be read when a signal has come: nobody wants to look at them any more.
        """
        if impatient is not None and self._sinks and _at_terminal():
            os.write(2, b"spcomm: the run is over; Enter closes its windows\n")
            poll = select.poll()
            poll.register(0, select.POLLIN)
            poll.register(impatient, select.POLLIN)
            poll.poll()
        for sink in self._sinks.values():
            os.close(sink.fd)
        self._sinks = {}
        if self._process:
            _wait_for(self._process)

    def _open(self, title: str) -> int:
        """A window with this title; the descriptor to write to it."""
        read, write = os.pipe()
        heard, say = os.pipe()
        try:
            place = f"/proc/{os.getpid()}/fd"
            script = _SHOW if self._inside else _SHOW + _CLEAN
            self._ask_tmux(title, ["sh", "-c", script, place, str(read), str(say)])
            poll = select.poll()
            poll.register(heard, select.POLLIN)
            if not poll.poll(_PATIENCE * 1000):
                raise UsageError("spcomm run: --window: tmux has opened no window; leave --window out")
        except BaseException:
            os.close(write)
            raise
        finally:
            for fd in (read, heard, say):
                os.close(fd)
        return write

    def _ask_tmux(self, title: str, command: "list[str]") -> None:
        import subprocess

        first = not self._inside and not self._sinks
        verb = ["new-session", "-d", "-s", "spcomm", "-P", "-F", "#{pid}"] if first else ["new-window", "-d"]
        words = [self._tmux, *self._server, *verb, "-n", title, "--", *command]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if first and done.returncode == 0 and done.stdout.strip().isdecimal():
            self._process = int(done.stdout)
        if done.returncode:
            said = (done.stderr.strip() or f"it ended with code {done.returncode}").splitlines()[-1]
            raise UsageError(f"spcomm run: --window: tmux cannot open a window ({said})")


def _find_tmux() -> str:
    from spcomm.launch.cmdline.plan import in_path

    found = in_path("tmux")
    if found is None:
        raise UsageError(
            "spcomm run: --window needs tmux, which is not here; install it, or use --output FOLDER to get a file "
            "for each node"
        )
    if not os.path.isdir(f"/proc/{os.getpid()}/fd"):
        raise UsageError(
            "spcomm run: --window needs Linux with /proc; --output FOLDER gives a file for each node"
        )
    return found


def _wait_for(pid: int) -> None:
    """Until a process that is not our child has ended, if that does not take long."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll(_PATIENCE * 1000)
    os.close(fd)


def _at_terminal() -> bool:
    """Whether somebody sits there who can press Enter."""
    try:
        return os.isatty(2) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
