# SPDX-License-Identifier: MIT
"""Standard input: the first node of the run has the launcher's, all others are at the end of a file.

A file or a pipe is handed over as it is. A terminal cannot be: nodes are in process groups of their own, and
one that reads from the terminal would be stopped. So what is typed is relayed through a pipe.
"""

import os

from spcomm.launch.loop import Loop

_PIECE = 4096
_RETRY = 0.5  # seconds until a launcher in the background looks whether it is in the foreground again


class Stdin:
    """Where nodes read from."""

    def __init__(self) -> None:
        self._null = os.open(os.devnull, os.O_RDONLY)
        self._relayed = os.isatty(0)
        self._read = self._write = -1
        if self._relayed:
            self._read, self._write = os.pipe()

    def descriptor(self, index: int) -> int:
        """The descriptor that becomes the node's standard input."""
        if index != 0:
            return self._null
        return self._read if self._relayed else 0

    def started(self, loop: Loop) -> None:
        """The first node has been sent its end of the pipe."""
        if self._relayed:
            os.close(self._read)
            self._loop = loop
            loop.add(0, self._relay)

    def _relay(self) -> None:
        if not _in_foreground():  # reading would stop us
            self._loop.remove(0)
            self._loop.at("stdin", _RETRY, lambda: self._loop.add(0, self._relay))
            return
        try:
            data = os.read(0, _PIECE)
            if data:
                # Blocks only when the node leaves 64 KiB unread, and then nobody types.
                os.write(self._write, data)
                return
        except OSError:
            pass  # the terminal or the node is gone
        self._loop.remove(0)
        os.close(self._write)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
