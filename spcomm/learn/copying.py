# SPDX-License-Identifier: MIT
"""Writes files into a user's folder: all or none of them, and never over existing ones.

Links are followed only within the folder.
"""

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from spcomm.learn.errors import LearnError

_SHOWN = 3  # names in one sentence


def write(folder: Path, files: "Mapping[str, bytes]") -> "list[str]":
    """Write the files, whose names are paths within the folder; returns the names of those that were not there.

    Raises
    ------
    LearnError
        If one of them exists with other content, or cannot be written. Nothing has changed then.
    """
    if folder.exists() and not folder.is_dir():
        raise LearnError(f"{folder} is a file, not a folder; name another place")
    missing = _missing(folder, files)
    made: list[Path] = []
    try:
        _make(folder, made)
        for name in missing:
            _make((folder / name).parent, made)
            made.append(_new(folder / name, files[name]))
    except OSError as error:
        _undo(made)
        where = error.filename or folder
        raise LearnError(f"cannot write {where}: {error.strerror}; nothing was copied to {folder}") from None
    except BaseException:
        _undo(made)
        raise
    return missing


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path is in a folder, after all links are followed."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # links in a circle
        return False


def read(path: Path, most: "int | None" = None) -> "bytes | None":
    """Content of a file; never waits for a writer of a pipe. None: it has more than `most` bytes.

    Raises
    ------
    OSError
        If it cannot be read, or is a folder, a pipe or a device.
    """
    with open(path, "rb", opener=lambda name, how: os.open(name, how | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", os.fspath(path))
        if most is None:
            return file.read()
        return None if os.fstat(file.fileno()).st_size > most else file.read(most)


def replace(path: Path, content: bytes) -> None:
    """Give a file new content at once: an interrupt or a full disk leaves the old content.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(unfinished, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def free(path: Path) -> Path:
    """The path, or one with a number that is free: existing files are never overwritten."""
    found, count = path, 1
    while os.path.lexists(found):
        count += 1
        found = path.with_name(f"{path.name}{count}")
    return found


def _missing(folder: Path, files: "Mapping[str, bytes]") -> "list[str]":
    """The names that are not there yet; an error if others are there with another content."""
    missing, different = [], []
    for name, content in files.items():
        path = folder / name
        if folder.exists() and not is_inside(path, folder):
            raise LearnError(f"{path} leads out of {folder} by a link; nothing was copied")
        try:
            if read(path) != content:
                different.append(name)
        except (FileNotFoundError, NotADirectoryError):
            missing.append(name)
        except OSError as error:  # a folder of that name, or one that may not be read
            raise LearnError(f"cannot read {path}: {error.strerror}; nothing was copied") from None
    if different:
        raise LearnError(
            f"{_named(different)} in {folder} {'are' if len(different) > 1 else 'is'} there already, with another "
            "content; nothing was copied: name another folder"
        )
    return missing


def _named(names: "list[str]") -> str:
    if len(names) <= _SHOWN + 1:
        return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} others"


def _make(folder: Path, made: "list[Path]") -> None:
    """Make a folder and those above it, and note which."""
    if not folder.is_dir():
        _make(folder.parent, made)
        folder.mkdir(exist_ok=True)
        made.append(folder)


def _new(path: Path, content: bytes) -> Path:
    """A file that was not there, and that is not there either if it cannot be written."""
    with open(path, "xb") as file:
        try:
            file.write(content)
            file.flush()
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return path


def _undo(made: "list[Path]") -> None:
    for path in reversed(made):
        try:
            path.rmdir() if path.is_dir() else path.unlink()
        except OSError:
            pass  # another process has put something there
