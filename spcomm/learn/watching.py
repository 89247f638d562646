# SPDX-License-Identifier: MIT
"""Whether a file was saved: once for each save, in whichever way an editor writes.

Editors empty a file and fill it, rename another one over it, or move it away first; and they leave copies beside it.
So only the file itself counts: its state when it was last read, and its state when it has come to rest. It is looked at
ten times a second, which costs less than a library that is told of changes, and works on shared disks, too.
"""

import time
from pathlib import Path

LOOK_S = 0.1  # seconds between looks at a file
_QUIET = 0.08  # seconds without a change, after which a file is taken to be written
SETTLING_S = 0.02  # seconds between looks at a file that is being written
_PATIENCE = 2.0  # for a file that is empty or gone, or does not come to rest


def signature(path: Path) -> "tuple[int, int, int] | None":
    """The identity of a saved file, which changes when it is saved; None if it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class Settling:
    """A file that is being written, until writing has stopped; an empty or missing one is given time to come back.

    Attributes
    ----------
    signature : tuple or None
        Its signature, as it was found last.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.signature = signature(path)
        self._since = time.monotonic()
        self._end = self._since + _PATIENCE

    def is_over(self) -> bool:
        """Look again: whether it has come to rest, or has had its time. To be asked every `SETTLING_S`."""
        now = time.monotonic()
        if (newer := signature(self._path)) != self.signature:
            self.signature, self._since = newer, now
        is_there = self.signature is not None and self.signature[1] > 0
        return now >= self._end or (is_there and now - self._since >= _QUIET)
