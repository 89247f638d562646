# SPDX-License-Identifier: MIT
"""The nodes' output as it comes, in whole lines with labels, on the caller's `sys.stdout` and `sys.stderr`.

These may be a notebook's, which are no files: hence not the launcher's own `Sink`, which writes to descriptors.
"""

import fcntl
import sys
import termios

from spcomm.launch.base.loop import Loop
from spcomm.launch.cmdline.groups import Names
from spcomm.launch.local.display import Display
from spcomm.launch.local.output import Sink, Stream

_PIECE = 1 << 16  # bytes that a Stream reads at once


class Screen:
    """The streams of all nodes of a cluster."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._display = Display(Names(), labels=True)
        self._sink = _Writer()
        self._streams: dict[int, list[Stream]] = {}

    @property
    def label(self) -> "Display.label":
        """The text before each line: `label(index, target)`."""
        return self._display.label

    def add(self, index: int, stdout: int, stderr: int) -> None:
        """Show a node's two pipes, from the ends that are read."""
        for target, fd in ((1, stdout), (2, stderr)):
            stream = self._display.stream(index, target, fd, self._sink, alone=False)
            self._streams.setdefault(index, []).append(stream)
            self._loop.add(fd, lambda stream=stream: self._forward(stream))

    def say(self, text: str) -> None:
        """Words of our own, on stderr."""
        self._sink.write(2, text.encode("utf-8", "replace"))

    def gather(self, grouped: bool) -> None:
        """From now on keep the output, and show it node by node when `settle` is called; or show it as it comes."""
        self._sink.kept = {} if grouped else None

    def settle(self) -> None:
        """Show all that nodes have written so far, and end lines that they have not ended."""
        for node in self._streams:
            self.settle_node(node)
        self._sink.release()
        self._sink.flush()

    def settle_node(self, node: int) -> None:
        """Take in all that a node has written so far."""
        for stream in self._streams[node]:
            _take_in(stream)
            stream.end_line()

    def take_error(self) -> "Exception | None":
        """The reason why something could not be shown, once. The output is lost."""
        error, self._sink.error = self._sink.error, None
        return error

    def give_up(self) -> None:
        """Show nothing any more."""
        self._sink.give_up()

    def close(self) -> None:
        """The nodes have ended."""
        for streams in self._streams.values():
            for stream in streams:
                if stream.fd >= 0:
                    self._loop.remove(stream.fd)
                    _take_in(stream)
                    stream.close()
        self._streams.clear()
        self._sink.release()

    def _forward(self, stream: Stream) -> None:
        if not stream.read():
            self._loop.remove(stream.fd)
            stream.close()


class _Writer(Sink):
    """Writes at once, and keeps the lines of each node apart on request."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[bytes, list[tuple[int, bytes]]] | None = None

    def release(self) -> None:
        """Show the kept output, by node."""
        kept, self.kept = self.kept, None
        for _label, pieces in sorted((kept or {}).items(), key=lambda item: (len(item[0]), item[0])):
            for target, data in pieces:
                self._append(target, data)

    def _append(self, fd: int, data: bytes) -> None:
        if self.kept is not None and data.startswith(b"["):
            self.kept.setdefault(data[: data.find(b"]")], []).append((fd, data))
            return
        self._show(fd, data.decode("utf-8", "replace"))

    def _show(self, fd: int, text: str) -> None:
        stream = sys.stdout if fd == 1 else sys.stderr
        if stream is None or self.error is not None:
            return
        try:
            try:
                stream.write(text)
            except UnicodeEncodeError as error:  # an ASCII terminal
                stream.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
        except Exception as error:  # a closed file, a full disk, a pipe without a reader
            self.error = error

    def flush(self) -> bool:
        """Hand on the content of the caller's streams. True: nothing is left."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and self.error is None:
                try:
                    stream.flush()
                except Exception as error:
                    self.error = error
        return True


def _take_in(stream: Stream) -> None:
    """Read the pipe's present contents, and no more: a thread or a child may go on writing without end."""
    if stream.fd < 0:
        return
    left = int.from_bytes(fcntl.ioctl(stream.fd, termios.FIONREAD, bytes(4)), sys.byteorder)
    for _piece in range(0, left, _PIECE):
        stream.read_rest()
