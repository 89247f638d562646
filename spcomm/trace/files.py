# SPDX-License-Identifier: MIT
"""Files that are there as a whole or not at all."""

import contextlib
import os
import shutil
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def replace(path: str, fill: "Callable") -> None:
    """Make a file: `fill` writes it, as text, into one beside it, which then takes its place. `OSError`: it cannot be.

    What cannot be replaced is written itself: a device, a pipe, a file in a folder where nobody may make others, one
    of somebody else's in /tmp, or one that is mounted, as those of containers and of `spcomm check` are.
    """
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "w", encoding="utf-8") as file:
            fill(file)
        return
    path = os.path.realpath(path)  # a link stays one
    beside = f"{path}.{os.getpid()}.part"
    try:
        file = open(beside, "x", encoding="utf-8")
    except OSError:
        _write_itself(path, fill, mode is None)
        return
    try:
        with file:
            fill(file)
        if mode is not None:
            os.chmod(beside, stat.S_IMODE(mode))
        _take_place(beside, path, mode is None)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _take_place(beside: str, path: str, is_new: bool) -> None:
    try:
        os.replace(beside, path)
    except OSError:  # EBUSY of a mounted file, EPERM of another user's
        with open(beside, encoding="utf-8") as made:
            _write_itself(path, lambda file: shutil.copyfileobj(made, file), is_new)
        os.unlink(beside)


def _mode(path: str) -> "int | None":
    try:
        return os.stat(path).st_mode
    except OSError:
        return None


def _write_itself(path: str, fill: "Callable", is_new: bool) -> None:
    with open(path, "w", encoding="utf-8") as file:
        try:
            fill(file)
            file.flush()
        except BaseException:  # half of it is worse than nothing
            with contextlib.suppress(OSError):
                file.close()
            with contextlib.suppress(OSError):
                if is_new:
                    os.unlink(path)
                else:
                    os.truncate(path, 0)
            raise
