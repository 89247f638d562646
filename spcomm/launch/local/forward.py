# SPDX-License-Identifier: MIT
"""Moves the nodes' output through the event loop: reads from the pipes, writes as readers accept."""

import os
import select
from collections.abc import Callable

from spcomm.launch.base import nothing
from spcomm.launch.base.loop import Loop
from spcomm.launch.local.display import Display
from spcomm.launch.local.output import Stream, sinks

_SHOW = 0.1  # seconds after which an unfinished line is shown at a terminal
_LONG_LINE = 1.0  # seconds of silence that end a long line that others wait for


class Forwarder:
    """All streams and sinks of a run. `broken` is called once if output cannot be written any more."""

    def __init__(
        self, loop: Loop, alone: bool, display: Display, broken: "Callable[[OSError], None]"
    ) -> None:
        self._loop = loop
        self._alone = alone
        self._display = display
        self._broken = broken
        self._sinks = sinks(display.screen)
        self._windows = display.sinks()
        self._streams: dict[int, Stream] = {}
        self._blocked: list[Stream] = []  # not read until another node's long line has ended
        self._paused = False
        self._told = False

    def add(self, index: int, *descriptors: int) -> None:
        """Forward a node's stdout and stderr, from the read ends of the pipes, or from its terminal."""
        for target, fd in enumerate(descriptors, 1):
            stream = self._display.stream(index, target, fd, self._sinks[target - 1], self._alone)
            self._streams[fd] = stream
            if not self._paused:
                self._listen(stream)

    def write_error(self, data: bytes) -> None:
        """Put a text of the launcher on stderr, after the output already there."""
        self._sinks[1].write(2, data)

    def write_text(self, text: str) -> None:
        """Do the same for a str, in which a path may have bytes that are not UTF-8."""
        self.write_error(text.encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        """Write as much as readers take now; read no more from the nodes while a reader is slow."""
        full = False
        for target, sink in enumerate(self._sinks, 1):
            waits = not sink.flush() and sink.head()
            for fd in (1, 2) if self._sinks[0] is self._sinks[1] else (target,):
                if fd == waits:
                    self._loop.add(fd, nothing, write=True)
                else:
                    self._loop.remove(fd)
            full = full or sink.full
        for window in self._windows:
            if window.flush():
                self._loop.remove(window.fd)
            else:
                self._loop.add(window.fd, nothing, write=True)
                full = full or window.full
        self._tell()
        if full != self._paused:
            self._pause(full)
        for stream in [stream for stream in self._blocked if not stream.blocked]:
            self._blocked.remove(stream)
            if not self._paused:
                self._listen(stream)

    def finish(self, impatient: int) -> None:
        """Forward the rest of the pipes after the nodes are gone. Gives up when `impatient` can be read."""
        for stream in list(self._streams.values()):
            self._loop.remove(stream.fd)
            while stream.read_rest():
                self.drain(impatient)
            stream.close()
        self._streams.clear()
        self.drain(impatient)
        self._tell()

    def drain(self, impatient: int) -> None:
        """Write everything. Blocks while the reader is slow, until `impatient` can be read."""
        for sink in (*self._sinks, *self._windows):
            while not sink.flush():
                poll = select.poll()
                poll.register(sink.head(), select.POLLOUT)
                poll.register(impatient, select.POLLIN)
                if any(fd == impatient for fd, _events in poll.poll()):
                    sink.give_up()

    def _tell(self) -> None:
        """Report a write error once."""
        error = self._sinks[0].error or self._display.error
        if error is not None and not self._told:
            self._told = True
            self._broken(error)

    def _pause(self, full: bool) -> None:
        self._paused = full
        for stream in self._streams.values():
            if full:
                self._loop.remove(stream.fd)
            elif stream not in self._blocked:
                self._listen(stream)

    def _listen(self, stream: Stream) -> None:
        self._loop.add(stream.fd, lambda: self._forward(stream))

    def _forward(self, stream: Stream) -> None:
        if not stream.read():
            self._loop.remove(stream.fd)
            del self._streams[stream.fd]
            stream.close()
        elif stream.blocked:
            self._loop.remove(stream.fd)
            self._blocked.append(stream)
        sink = stream.sink
        if sink.floor is not None and not sink.floor.shown:
            if sink.floor is stream or not self._loop.waits("line"):
                self._loop.at("line", _LONG_LINE, self._end_long_lines)
        elif stream.unfinished and os.isatty(stream.target):
            self._loop.at("show", _SHOW, self._show_unfinished)

    def _end_long_lines(self) -> None:
        for sink in self._sinks:
            waits = sink.someone_waits or any(stream.sink is sink for stream in self._blocked)
            if sink.floor is not None and not sink.floor.shown and waits:
                sink.take_floor()

    def _show_unfinished(self) -> None:
        for stream in self._streams.values():
            if stream.unfinished:
                stream.show()
