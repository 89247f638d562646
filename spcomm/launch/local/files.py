# SPDX-License-Identifier: MIT
"""`--output FOLDER`: writes each node's whole output, unchanged, to its own file.

The launcher writes the files, not the nodes: output is shown and kept at the same time, and a full disk gives one
sentence of the launcher, whatever the program would do with the error.
"""

import errno
import os
from collections.abc import Callable

from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline.groups import Group


class Files:
    """The files of a run, open from before the first node's start until after the last one's end."""

    def __init__(self, folder: str, groups: "list[Group]") -> None:
        self.error: OSError | None = None  # the first write error; it names the file
        self._paths: list[str] = []
        self._descriptors: list[int] = []
        try:
            mask = os.umask(0)
            os.umask(mask & ~0o700)  # files have to be made in it
            try:
                os.makedirs(folder, exist_ok=True)
            finally:
                os.umask(mask)
            for group in groups:
                before = f"group-{group.number}-" if len(groups) > 1 else ""
                for rank in range(group.size):
                    self._open(os.path.join(folder, f"{before}node-{rank}.txt"))
        except OSError as error:
            self.close()
            raise UsageError(f"spcomm run: --output {folder}: {_reason(error)}") from None

    def _open(self, path: str) -> None:
        # Do not wait for a reader of a pipe that has this name: it is refused (ENXIO), or not waited for later.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NONBLOCK
        self._descriptors.append(os.open(path, flags, 0o666))
        self._paths.append(path)

    def taker(self, index: int) -> "Callable[[bytes], None]":
        """Return the function that keeps bytes of this node."""
        return lambda data: self._write(index, data)

    def _write(self, index: int, data: bytes) -> None:
        fd = self._descriptors[index]
        rest = memoryview(data)
        while rest and fd >= 0:
            try:
                rest = rest[os.write(fd, rest) :]
            except OSError as error:
                self.error = self.error or OSError(error.errno, error.strerror, self._paths[index])
                os.close(fd)
                fd = self._descriptors[index] = -1

    def close(self) -> None:
        for fd in self._descriptors:
            if fd >= 0:
                os.close(fd)
        self._descriptors = []


def _reason(error: OSError) -> str:
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return f"{error.filename} is a file, not a folder"
    if error.errno == errno.ENXIO:
        return f"{error.filename} is a pipe without a reader, not a file"
    return f"{error.filename} cannot be made ({error.strerror})"
