# SPDX-License-Identifier: MIT
"""`--window RANKS`: the output of a node in a tmux window of its own; a debugged node has a pane and its keyboard.

Inside tmux the windows are made in the current session, else in a tmux server of this run, to which another terminal
can attach. Each window runs `cat`, which reads a pipe of the launcher. The pipe has no name: `cat` finds it among the
launcher's descriptors in /proc. When the launcher ends, in whatever way, the pipe does, too, so `cat` ends, the window
closes, and a server without windows ends. Its socket, which tmux would leave, is removed from within the windows:
nothing is left.

Nodes that are debugged share a window, in which each has a pane (see keyboard).
"""

import os
import select
from typing import TYPE_CHECKING

from spcomm.launch.base.usage import UsageError
from spcomm.launch.local.output import Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from spcomm.launch.base.loop import Loop
    from spcomm.launch.cmdline.groups import Group, Names
    from spcomm.launch.local.keyboard import ControlPane, Keyboard

_PATIENCE = 20.0  # seconds for tmux to open a window
# The window opens the pipe, reports that, and shows the data. $0: the launcher's descriptors.
_SHOW = 'exec 3<"$0/$1" && echo >"$0/$2" && cat <&3'
_CONTROL_LINES = "5"
_SIZE = ("-x", "200", "-y", "50")  # until a terminal attaches: small ones have no room for panes
_CLEAN = '; rm -f "${TMUX%,*,*}"'  # a path, which may have commas, and two numbers


class WindowSink(Sink):
    """The pipe to one window. If the window is closed, the rest is dropped."""

    def __init__(self, fd: int, is_raw: bool = False) -> None:
        super().__init__()
        self.fd = fd
        self.is_raw = is_raw  # a pane that shows bytes of a terminal as they are

    def take(self, data: bytes) -> None:
        self.write(self.fd, data)

    def say(self, text: bytes) -> None:
        """Add text that did not come from a terminal."""
        self.take(text.replace(b"\n", b"\r\n") if self.is_raw else text)


class Windows:
    """The windows of a run."""

    def __init__(
        self,
        indices: "Iterable[int]",
        names: "Names",
        debugged: "frozenset[int]" = frozenset(),
        groups: "list[Group] | None" = None,
    ) -> None:
        self._sinks: dict[int, WindowSink] = {}
        self.keyboards: dict[int, Keyboard] = {}  # of the nodes that are debugged
        self._control: ControlPane | None = None  # types to all of them
        self._pipes: list[int] = []  # their ends keep panes open
        self._window = self._last_pane = ""  # of the debugged nodes
        self._tmux = _find_tmux()
        self._inside = bool(os.environ.get("TMUX"))
        self._process = 0  # of the server of this run
        self._server = [] if self._inside else ["-L", f"spcomm-{os.getpid()}", "-f", os.devnull]
        try:
            for index in sorted(debugged):
                self._open_pane(index, names)
            if len(debugged) > 1:
                self._open_control(names, groups or [])
            for index in sorted(set(indices) - debugged):
                self._sinks[index] = WindowSink(self._open(["-n", names.nodes([index])])[0])
        except BaseException:
            self.close()
            raise

    @property
    def hint(self) -> str:
        """Return the command that shows them; empty: the user sees them already."""
        if self._inside or not self._sinks:
            return ""
        return f"to see the windows, in another terminal: tmux -L {self._server[1]} attach"

    def sink(self, index: int) -> "WindowSink | None":
        return self._sinks.get(index)

    def sinks(self) -> "list[WindowSink]":
        return list(self._sinks.values())

    def start(self, loop: "Loop", closed: "Callable[[int], None]") -> None:
        """Begin to carry the input of panes. `closed` is called with a node whose pane is closed."""
        for index, keyboard in self.keyboards.items():
            keyboard.start(loop, lambda index=index: closed(index))
        if self._control is not None:
            self._control.start(loop)

    def close(self, impatient: "int | None" = None) -> None:
        """Close the windows when they have shown everything, and, at a terminal, when Enter was pressed.

        `impatient` can be read when a signal has come: then the windows close at once.
        """
        if impatient is not None and self._sinks and _at_terminal():
            os.write(2, b"spcomm: the run is over; Enter closes its windows\n")
            poll = select.poll()
            poll.register(0, select.POLLIN)
            poll.register(impatient, select.POLLIN)
            poll.poll()
        for keyboard in self.keyboards.values():
            keyboard.close()
        if self._control is not None:
            self._control.close()
        for fd in [*(sink.fd for sink in self._sinks.values()), *self._pipes]:
            os.close(fd)
        self._sinks, self.keyboards, self._control, self._pipes = {}, {}, None, []
        if self._process:
            _wait_for(self._process)

    def _open_pane(self, index: int, names: "Names") -> None:
        """Open a pane for a debugged node, beside the existing ones."""
        from spcomm.launch.local.keyboard import Keyboard

        fd, pane, terminal = self._open_in_window()
        self._sinks[index] = WindowSink(fd, is_raw=True)
        self.keyboards[index] = Keyboard(terminal)
        self._ask_tmux("select-pane", "-t", pane, "-T", names.nodes([index]))
        self._ask_tmux("select-layout", "-t", self._window, "tiled")

    def _open_control(self, names: "Names", groups: "list[Group]") -> None:
        """Open the pane below them, selected when a terminal attaches."""
        from spcomm.launch.local.keyboard import ControlPane

        fd, pane, terminal = self._open_in_window("-f", "-l", _CONTROL_LINES)
        self._pipes.append(fd)
        self._control = ControlPane(terminal, self.keyboards, groups, names)
        self._ask_tmux("select-pane", "-t", pane, "-T", "to several nodes")
        self._ask_tmux("select-pane", "-t", pane)  # -T only gives it a title

    def _open_in_window(self, *options: str) -> "tuple[int, str, str]":
        """Open a pane in the window of the debugged nodes, which the first one makes; return the result of `_open`."""
        if self._window:
            found = self._open(["-t", self._last_pane, *options], "split-window")
            self._last_pane = found[1]
            return found
        found = self._open(["-n", "debug"])
        self._last_pane = found[1]
        self._window = self._ask_tmux("display-message", "-p", "-t", found[1], "#{window_id}").strip()
        for option, value in (("pane-border-status", "top"), ("pane-border-format", " #{pane_title} ")):
            self._ask_tmux("set-option", "-w", "-t", self._window, option, value)
        if not self._inside:
            self._ask_tmux("set-option", "-g", "mouse", "on")  # a click selects the pane
        return found

    def _open(self, words: "list[str]", verb: str = "new-window") -> "tuple[int, str, str]":
        """Open a window or a pane: return the descriptor to write to it, its id, and the path of its terminal."""
        read, write = os.pipe()
        heard, say = os.pipe()
        try:
            place = f"/proc/{os.getpid()}/fd"
            script = _SHOW if self._inside else _SHOW + _CLEAN
            first = not self._inside and not self._process
            begin = ["new-session", "-d", "-s", "spcomm", *_SIZE] if first else [verb, "-d"]
            found = self._ask_tmux(
                *begin, *words, "-P", "-F", "#{pid} #{pane_id} #{pane_tty}",
                "--", "sh", "-c", script, place, str(read), str(say),
            )  # fmt: skip
            process, pane, terminal = ([*found.split(), "0", "", ""])[:3]
            if first and process.isdecimal():
                self._process = int(process)
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
        return write, pane, terminal

    def _ask_tmux(self, *words: str) -> str:
        """Run a command of tmux; return its output."""
        import subprocess

        done = subprocess.run(
            [self._tmux, *self._server, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode:
            said = (done.stderr.strip() or f"it ended with code {done.returncode}").splitlines()[-1]
            raise UsageError(f"spcomm run: --window: tmux cannot open a window ({said})")
        return done.stdout


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
    """Wait until a process that is not our child has ended, if that does not take long."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll(_PATIENCE * 1000)
    os.close(fd)


def _at_terminal() -> bool:
    """Whether a user is there who can press Enter."""
    try:
        return os.isatty(2) and os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
