# SPDX-License-Identifier: MIT
"""Files that are there as a whole or not at all."""

import contextlib
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def replace(path: str, fill: "Callable") -> None:
    """Make a file: `fill` writes it, as text, into one beside it, which then takes its place. `OSError`: it cannot be.

    What cannot be replaced, a device, a pipe, or a file in a folder where nobody may make others, is written itself.
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
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


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
