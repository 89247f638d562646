# SPDX-License-Identifier: MIT
"""A program's folder, sent to the members of a room: how it is chosen, packed, and unpacked there."""

import io
import os
import shutil
import tarfile
import tempfile
from typing import TYPE_CHECKING

from spcomm.launch.base.usage import UsageError, from_here
from spcomm.text import rounded_size

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from spcomm.launch.cmdline.options import Part

MOST_BYTES = 64 << 20
MOST_FILES = 10_000
MOST_PACKED = MOST_BYTES + (16 << 20)  # incompressible, and the headers
LEFT_OUT = frozenset(
    (
        ".git .hg .svn .venv .tox .nox __pycache__ node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis "
        ".ipynb_checkpoints .ssh .gnupg"
    ).split()
)
# Options of `TarFile.extract`.
DATA_FILTER: "dict[str, Any]" = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
FETCHED = ".spcomm-fetched"  # in a folder that `--fetch` filled
_LEFT_OUT_WITH = ("pyvenv.cfg", FETCHED)


def choose(part: "Part") -> "tuple[str, str | None]":
    """Return the folder to send, and the program's name in it (None: it is a module, or no file).

    It is the folder in which the run is started, if the program lies in it; else the program's own. Raises
    `UsageError` for a folder that holds much besides.
    """
    here = os.path.realpath(from_here(part.folder or os.curdir))
    name = part.program
    path = os.path.realpath(os.path.join(here, name)) if name is not None else ""
    if name is None or not os.path.exists(path):  # a module, or a command of each machine
        folder, inside = here, name
    elif os.path.commonpath((here, path)) == here:
        folder, inside = here, os.path.join(os.curdir, os.path.relpath(path, here))
        is_itself = path == os.path.abspath(
            os.path.join(here, name)
        )  # else a link, whose file has another folder
        inside = name if is_itself and not os.path.isabs(name) else inside
    else:
        folder, inside = os.path.dirname(path), os.path.join(os.curdir, os.path.basename(path))
    _check_home(folder)
    return folder, inside


def _check_home(folder: str) -> None:
    home = os.path.realpath(os.path.expanduser("~"))
    if os.path.commonpath((folder, home)) == folder:
        raise UsageError(
            f"spcomm run: --room: sends the folder of the program to all members, and {folder} is or holds your home "
            "folder; put the program into a folder of its own, and start it there"
        )


def choose_for_all(parts: "list[Part]") -> "tuple[str, list[tuple[str, str | None]]]":
    """Return the folder to send for several programs; and for each the folder below it, where it runs, and its name.

    Raises `UsageError` if no folder of a program, nor the one in which the run is started, holds all of them.
    """
    chosen = [choose(part) for part in parts]
    folders = [folder for folder, _inside in chosen]
    top = os.path.commonpath(folders)
    if top not in folders and top != os.path.realpath(os.curdir):
        where = ", ".join(sorted(set(folders)))
        raise UsageError(
            f"spcomm run: --room: sends one folder to all members, and the programs are in {where}; start the run in a "
            "folder that holds them all"
        )
    _check_home(top)
    return top, [(os.path.relpath(folder, top), inside) for folder, inside in chosen]


def pack(folder: str) -> "BinaryIO":
    """All of it in one file, which has no name. Raises `UsageError`."""
    packed = tempfile.TemporaryFile()
    total = count = 0
    largest = (0, "")
    try:
        with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as archive:
            for seen, (path, inside) in enumerate(walk(folder)):
                if seen > 4 * MOST_FILES:
                    raise _too_much(folder, (0, ""))
                info = _entry(archive, path, inside)
                if info is None:
                    continue
                total, count = total + info.size, count + 1
                largest = max(largest, (info.size, inside))
                if total > MOST_BYTES or count > MOST_FILES:
                    raise _too_much(folder, largest)
                if info.isdir():
                    archive.addfile(info)
                else:
                    with open(path, "rb") as file:
                        archive.addfile(info, file)
    except OSError as error:
        packed.close()
        where = f": {error.filename}" if error.filename else ""
        raise UsageError(
            f"spcomm run: --room: {folder} cannot be sent{where} ({error.strerror or error})"
        ) from None
    except BaseException:
        packed.close()
        raise
    packed.flush()
    return packed


def walk(folder: str) -> "Iterator[tuple[str, str]]":
    """Yield (path, name in the folder) pairs, folders before their contents, without those that are never sent."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in LEFT_OUT
            and not any(os.path.exists(os.path.join(path, name, mark)) for mark in _LEFT_OUT_WITH)
        )
        for name in [*folders, *sorted(names)]:
            one = os.path.join(path, name)
            yield one, os.path.relpath(one, folder)


def _entry(archive: tarfile.TarFile, path: str, inside: str) -> "tarfile.TarInfo | None":
    """Return the entry; None: it is left out. Links to files stay, as the files; others have no meaning elsewhere."""
    is_link = os.path.islink(path)
    if is_link and not os.path.isfile(path):
        return None
    if not os.path.isfile(path) and not os.path.isdir(path):
        return None
    state = os.stat(path)
    info = tarfile.TarInfo(inside)
    info.mode = 0o755 if os.path.isdir(path) or state.st_mode & 0o100 else 0o644
    info.mtime = int(state.st_mtime)
    if os.path.isdir(path):
        info.type = tarfile.DIRTYPE
    else:
        info.size = state.st_size
    return info


def _too_much(folder: str, largest: "tuple[int, str]") -> UsageError:
    what = f"; the largest file so far is {largest[1]}, {rounded_size(largest[0])}" if largest[1] else ""
    return UsageError(
        f"spcomm run: --room: sends the folder of the program to all members, and {folder} has more than "
        f"{rounded_size(MOST_BYTES)} bytes or {MOST_FILES} files{what}; put the program and what it "
        "needs into a folder of its own"
    )


def unpack(packed: "BinaryIO", target: str) -> None:
    """Unpack the archive of `pack` into an empty folder. `ValueError`: it is something else."""
    packed.seek(0)
    total = count = 0
    try:
        with tarfile.open(fileobj=packed, mode="r:gz") as archive:
            for info in archive:
                total, count = total + info.size, count + 1
                if total > MOST_BYTES or count > MOST_FILES or not (info.isreg() or info.isdir()):
                    raise ValueError("the folder that came is larger than allowed, or holds more than files")
                if os.path.isabs(info.name) or os.pardir in info.name.split("/"):
                    raise ValueError("the folder that came contains a path outside of itself")
                archive.extract(info, target, **DATA_FILTER)
    except (tarfile.TarError, EOFError, io.UnsupportedOperation) as error:
        raise ValueError(f"the folder that came is damaged ({error})") from None


def remove(folder: str) -> None:
    """Remove a folder, or a link that a node put in its place. The target of the link stays."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        os.unlink(folder)
    except OSError:  # it is gone
        pass
