# SPDX-License-Identifier: MIT
"""Whether a file was saved: once for each save, in whichever way an editor writes.

Editors empty a file and fill it, rename another one over it, or move it away first; and they leave copies beside it.
So only the file itself counts: its state when it was last read, and its state when it has come to rest.
The source of events, watchfiles or a clock, only decides when the watcher looks.
"""

import importlib.util
import os
import threading
import time
from pathlib import Path

_QUIET = 0.08  # seconds without a change, after which a file is taken to be written
_PATIENCE = 2.0  # for a file that is empty or gone, or does not come to rest
_LOOKS = {"watchfiles": 1.0, "polling": 0.3}  # seconds between looks; with watchfiles for missed changes


def signature(path: Path) -> "tuple[int, int, int] | None":
    """The identity of a saved file, which changes when it is saved; None if it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def settled(path: Path) -> "tuple[int, int, int] | None":
    """The signature once writing has stopped; an empty or missing file is given some time to come back."""
    end = time.monotonic() + _PATIENCE
    found = signature(path)
    since = time.monotonic()
    while (now := time.monotonic()) < end:
        if (newer := signature(path)) != found:
            found, since = newer, now
        if now - since >= _QUIET and found is not None and found[1] > 0:
            break
        time.sleep(_QUIET / 4)
    return found


def has_watchfiles() -> bool:
    """Whether the system reports changes, so that no polling is needed."""
    return importlib.util.find_spec("watchfiles") is not None


class Watcher:
    """A context: within it `fd` can be read when something has happened beside the file.

    Attributes
    ----------
    fd : int
        To wait for; -1 without watchfiles.
    seconds : float
        After which to look anyway.
    """

    def __init__(self, path: Path) -> None:
        self._folders = sorted({str(path.parent), str(path.resolve().parent)})
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.fd = self._write_end = -1
        self.seconds = _LOOKS["polling"]

    def __enter__(self) -> "Watcher":
        if has_watchfiles():
            self.seconds = _LOOKS["watchfiles"]
            self.fd, self._write_end = os.pipe()
            self._thread = threading.Thread(target=self._watch, name="spcomm learn", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            os.close(self.fd)
            os.close(self._write_end)

    def clear(self) -> None:
        """Forget earlier changes: the file is about to be read."""
        if self.fd >= 0:
            import select

            poll = select.poll()
            poll.register(self.fd, select.POLLIN)
            while poll.poll(0):
                os.read(self.fd, 64)

    def _watch(self) -> None:
        """Run in a thread: write a byte for each change."""
        import watchfiles

        try:
            for _changes in watchfiles.watch(
                *self._folders,
                watch_filter=None,
                debounce=200,
                stop_event=self._stop,
                recursive=False,
                raise_interrupt=False,
            ):
                os.write(self._write_end, b".")
        except (OSError, RuntimeError):  # the folder is gone, or there are too many watches
            self.seconds = _LOOKS["polling"]
