# SPDX-License-Identifier: MIT
"""Output of each node: shown with or without a label, kept in a file, in a window, or nowhere."""

import os

from spcomm.launch.local.output import Sink, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from spcomm.launch.base.loop import Loop
    from spcomm.launch.cmdline.groups import Names
    from spcomm.launch.cmdline.options import Options
    from spcomm.launch.local.files import Files
    from spcomm.launch.local.keyboard import Keyboard
    from spcomm.launch.local.screen import Screen
    from spcomm.launch.local.stdin import Stdin
    from spcomm.launch.local.windows import Windows, WindowSink
    from spcomm.launch.supervise.watch import Watch
    from spcomm.launch.supervise.watch_page import WatchPage

_COLORS = (
    36,
    33,
    32,
    35,
    34,
    31,
    96,
    93,
    92,
    95,
    94,
    91,
)  # cyan, yellow, green, magenta, blue, red; then brighter


class Display:
    """Decides once for each node and stream where output goes. Nodes are known by index."""

    def __init__(
        self,
        names: "Names",
        labels: bool,
        colors: "tuple[bool, bool]" = (False, False),
        shown: "frozenset[int] | None" = None,
        files: "Files | None" = None,
        watch: "Watch | None" = None,
        windows: "Windows | None" = None,
    ) -> None:
        self._names = names
        self._labels = labels
        self._colors = colors  # of labels on stdout and on stderr
        self._shown = shown  # None: all nodes without a window
        self._files = files
        self._watch = watch
        self._windows = windows

    @property
    def screen(self) -> "Screen | None":
        """The terminal that has a table below the output."""
        return self._watch.screen if self._watch is not None else None

    @property
    def page(self) -> "WatchPage | None":
        """The page of --watch=browser."""
        return self._watch.page if self._watch is not None else None

    @property
    def keyboards(self) -> "dict[int, Keyboard]":
        """The keyboards of nodes whose debuggers have panes."""
        return self._windows.keyboards if self._windows is not None else {}

    def start(
        self, loop: "Loop", ended: "dict[int, int]", stdin: "Stdin", closed: "Callable[[int], None]"
    ) -> None:
        """Start the run. `ended` has the nodes that have ended, and stays the caller's.

        `closed` is called with a debugged node whose pane is closed.
        """
        if self._watch is not None:
            self._watch.start(loop, ended, stdin)
        if self._windows is not None:
            self._windows.start(loop, closed)

    def clear(self) -> None:
        """Restore the terminal, as if it only had output, when the launcher stops or ends."""
        if self._watch is not None:
            self._watch.clear()

    def stop(self) -> str:
        """End the run: only text follows. Returns what to write after the last output of nodes."""
        return self._watch.stop() if self._watch is not None else ""

    def label(self, index: int, target: int) -> bytes:
        """Return the label before each line of a node on stdout (1) or stderr (2); may be empty."""
        if not self._labels:
            return b""
        label = self._names.label(index)
        if not self._colors[target - 1]:
            return label
        return b"\033[%dm%s\033[0m " % (_COLORS[index % len(_COLORS)], label.rstrip())

    def stream(self, index: int, target: int, fd: int, sink: Sink, alone: bool) -> Stream:
        """Return the path of a node's output to `target`, which arrives at `fd`."""
        window = self._windows.sink(index) if self._windows is not None else None
        shown = window is None if self._shown is None else index in self._shown
        if window is not None and window.is_raw:
            stream = TerminalStream(fd, target, sink, self.label(index, target), window, shown)
        elif shown:
            stream = Stream(fd, target, sink, self.label(index, target), alone)
        else:
            stream = DiscardedStream(fd, target, sink, b"", alone)
        takers = [self._files.taker(index)] if self._files is not None else []
        takers += [window.take] if window is not None and not window.is_raw else []
        stream.takers = tuple(takers)
        return stream

    def traceback(self, index: int, text: bytes) -> None:
        """Keep a node's traceback, which arrives by another path, as part of its output."""
        if self._files is not None:
            self._files.taker(index)(text)
        window = self._windows.sink(index) if self._windows is not None else None
        if window is not None:
            window.say(text)

    @property
    def error(self) -> "OSError | None":
        """Return why output can no longer be kept."""
        return self._files.error if self._files is not None else None

    def sinks(self) -> "list[WindowSink]":
        """Return the sinks of the windows."""
        return self._windows.sinks() if self._windows is not None else []

    def close(self, impatient: int) -> None:
        """Finish after all output. At a terminal windows stay until Enter, or until `impatient` can be read."""
        if self._watch is not None:
            self._watch.close()
        if self._files is not None:
            self._files.close()
        if self._windows is not None:
            self._windows.close(impatient)


class TerminalStream(Stream):
    """Pass the output of a debugged node to its terminal: its pane gets it unchanged, all others as lines."""

    def __init__(
        self, fd: int, target: int, sink: Sink, label: bytes, window: "WindowSink", shown: bool
    ) -> None:
        super().__init__(fd, target, sink, label, False)
        self._window = window
        self._is_shown = shown

    def _arrived(self, data: bytes) -> None:
        self._window.take(data)
        super()._arrived(data.replace(b"\r\n", b"\n"))

    def _take(self, data: bytes) -> None:
        if self._is_shown:
            super()._take(data)


class DiscardedStream(Stream):
    """Read the output, so that its node goes on, and do not show it."""

    def _take(self, data: bytes) -> None:
        pass


def want_labels(options: "Options") -> bool:
    if options.label is not None:
        return options.label
    return bool(options.color) or os.isatty(1)


def want_colors(options: "Options") -> "tuple[bool, bool]":
    """Decide for stdout and for stderr. NO_COLOR: https://no-color.org."""
    if options.color is not None:
        return options.color, options.color
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return False, False
    return os.isatty(1), os.isatty(2)
