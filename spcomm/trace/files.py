# SPDX-License-Identifier: MIT
"""Files that are there as a whole or not at all."""

import contextlib
import errno
import glob
import os
import shutil
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

PAGES = (".html", ".htm")  # endings of a page; any other trace is JSON

# There can be no other file beside it, but it may be written itself; a full disk is none of these.
_NONE_BESIDE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.EBUSY)
_IS_MOUNTED = (errno.EBUSY, errno.EPERM, errno.EACCES)


def replace(path: str, fill: "Callable", is_text: bool = True) -> None:
    """Make a file: `fill` writes it into one beside it, which then takes its place. `OSError`: it cannot be.

    The other one has no name until it is whole, if the file system has such files: a killed process leaves nothing
    behind. A file that cannot be replaced (a device, a pipe, a mounted file, or one in a folder that takes no new
    files) is written itself.
    """
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        with _opened(path, "w", is_text) as file:
            fill(file)
        return
    path = os.path.realpath(path)  # a link stays one
    name = f"{path}.{os.uname().nodename}."
    beside = f"{name}{os.getpid()}.part"
    try:
        if _is_elsewhere(path):
            raise OSError(errno.EBUSY, "mounted by itself")
        _remove_stale(name)
        file, is_named = _make(beside, is_text)
    except OSError as error:
        if error.errno not in _NONE_BESIDE:
            raise
        _write_itself(path, fill, mode is None, is_text)
        return
    try:
        with file:
            fill(file)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            if not is_named:
                _give_name(file.fileno(), beside)
        _take_place(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _opened(place: "str | int", mode: str, is_text: bool) -> "IO[Any]":
    return open(place, mode, encoding="utf-8") if is_text else open(place, mode + "b")


def _make(beside: str, is_text: bool) -> "tuple[IO[Any], bool]":
    """A new file, and whether it has that name: otherwise none, and is to be linked to it."""
    if hasattr(os, "O_TMPFILE") and os.path.exists("/proc/self/fd"):
        with contextlib.suppress(
            OSError
        ):  # a file system that has none, or why there can be none with a name either
            unnamed = os.open(os.path.dirname(beside), os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
            return _opened(unnamed, "w", is_text), False
    return _opened(beside, "x", is_text), True


def _give_name(descriptor: int, beside: str) -> None:
    try:
        # With a folder, which an absolute path does not need, Python calls linkat, and that follows the link.
        os.link(f"/proc/self/fd/{descriptor}", beside, src_dir_fd=descriptor)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOENT, errno.EOPNOTSUPP):
            raise
        os.lseek(descriptor, 0, os.SEEK_SET)
        with open(os.dup(descriptor), "rb") as whole, open(beside, "xb") as named:
            shutil.copyfileobj(whole, named)
            os.fchmod(named.fileno(), stat.S_IMODE(os.fstat(descriptor).st_mode))


def _remove_stale(name: str) -> None:
    """Leftovers of killed writers on this machine, where files need a name; one of them may have had this one's id."""
    for beside in glob.glob(f"{glob.escape(name)}*.part"):
        process = beside[len(name) : -len(".part")]
        with contextlib.suppress(OSError):
            if process.isdecimal() and (int(process) == os.getpid() or not _runs(int(process))):
                os.unlink(beside)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass  # another user's; or no process at all, and then no file of ours
    return True


def _is_elsewhere(path: str) -> bool:
    """Whether this is a file of another file system than its folder's, which may have no room for it."""
    return os.path.exists(path) and os.stat(path).st_dev != os.stat(os.path.dirname(path)).st_dev


def _take_place(beside: str, path: str) -> None:
    try:
        os.replace(beside, path)
    except OSError as error:
        if error.errno not in _IS_MOUNTED:
            raise
        # A mounted file, or another user's in a folder such as /tmp; `fill` may not be able to write twice.
        with open(beside, "rb") as whole:
            _copy(whole, path, False)
        os.unlink(beside)


def _mode(path: str) -> "int | None":
    try:
        return os.stat(path).st_mode
    except OSError:
        return None


def _write_itself(path: str, fill: "Callable", is_new: bool, is_text: bool) -> None:
    """Write all of it elsewhere first: the old content is lost only when the new content is complete."""
    import tempfile

    with tempfile.TemporaryFile() as whole:
        with _opened(os.dup(whole.fileno()), "w", is_text) as file:
            fill(file)
        whole.seek(0)
        _copy(whole, path, is_new)


def _copy(whole: "IO[bytes]", path: str, is_new: bool) -> None:
    """Room for all of it is made before anything is lost, where the file system can promise that."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666), "wb") as file:
        before = os.fstat(file.fileno()).st_size
        size = os.fstat(whole.fileno()).st_size
        try:
            _reserve(file.fileno(), size)
            shutil.copyfileobj(whole, file)
            file.truncate()
        except BaseException:
            with contextlib.suppress(OSError):
                if is_new:
                    os.unlink(path)
                else:
                    file.truncate(before if file.tell() == 0 else 0)
            raise


def _reserve(descriptor: int, size: int) -> None:
    if not hasattr(os, "posix_fallocate") or not size:
        return
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENODEV, errno.ESPIPE):
            raise
