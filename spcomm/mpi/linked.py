# SPDX-License-Identifier: MIT
"""The MPI to which an executable is linked, read from the file as the system's loader reads it."""

import mmap
import os
import re
import sys
from collections import namedtuple

from spcomm import mpi

Dynamic = namedtuple("Dynamic", "needed rpath runpath")  # names of libraries, and folders
# libmpi.so.40 (Open MPI), libmpich.so.12 (Debian's MPICH), libmpi_mpifh.so.40 (Fortran) and the like.
_LIBRARY = re.compile(r"libmpi(ch|fort|_cxx|_abi|_mpifh|_usempi\w*)?\.so(\.|$)")
# Prefixes of settings, which stripped executables still contain.
_STATIC = {b"MPIR_CVAR_": "MPICH", b"OMPI_MCA_": "Open MPI"}

_LOAD, _DYNAMIC = 1, 2  # kinds of program headers
_NEEDED, _STRTAB, _RPATH, _RUNPATH = 1, 5, 15, 29  # tags of the dynamic section


def dynamic(path: str) -> "Dynamic | None":
    """Return the dynamic section of an ELF file; None if it has none or cannot be read."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _dynamic(data, os.path.dirname(os.path.realpath(path)))
    except (OSError, ValueError, IndexError):  # an empty file, a truncated one
        return None


def _dynamic(data: mmap.mmap, origin: str) -> "Dynamic | None":
    if data[:5] != b"\x7fELF\x02":  # of 64 bits
        return None
    order = "big" if data[5] == 2 else "little"

    def number(at: int, size: int = 8) -> int:
        return int.from_bytes(data[at : at + size], order)

    starts, each, count = number(32), number(54, 2), number(56, 2)
    headers = [starts + at * each for at in range(count)]
    loads = [
        (number(at + 16), number(at + 8), number(at + 32)) for at in headers if number(at, 4) == _LOAD
    ]  # address, offset, size
    entries: list[tuple[int, int]] = []
    for at in headers:
        if number(at, 4) == _DYNAMIC:
            begin = number(at + 8)
            entries = [(number(at), number(at + 8)) for at in range(begin, begin + number(at + 32), 16)]
    address = dict(entries).get(_STRTAB)
    texts = next(
        (
            address - first + offset
            for first, offset, size in loads
            if address and 0 <= address - first < size
        ),
        None,
    )
    if texts is None:
        return None

    def strings(wanted: int) -> "list[str]":
        found = [texts + value for tag, value in entries if tag == wanted]
        return [os.fsdecode(data[at : data.find(b"\0", at)]) if at < len(data) else "" for at in found]

    def folders(wanted: int) -> "list[str]":
        words = [word for text in strings(wanted) for word in text.split(":") if word]
        return [re.sub(r"\$(ORIGIN|\{ORIGIN\})", lambda _: origin, word) for word in words]

    return Dynamic(strings(_NEEDED), folders(_RPATH), folders(_RUNPATH))


def problem(path: str, environment: "dict[str, str]") -> "tuple[str, bool]":
    """Return why this executable cannot use spcomm's MPI, or "", and whether the loader must be told its folder.

    The loader searches the RPATH (unless there is a RUNPATH), then LD_LIBRARY_PATH, then the RUNPATH.
    """
    found = dynamic(path)
    if found is None:
        return _static(path), False
    needed = [name for name in found.needed if _LIBRARY.match(name)]
    if not needed:
        return _static(path), False
    other = next((name for name in needed if name not in (mpi.MPICH, mpi.STANDARD)), None)
    if other is not None:
        return f"is linked to another MPI ({other})", False
    first = found.rpath if not found.runpath else []
    given = [folder for folder in environment.get(mpi.LOADER_VARIABLE, "").split(os.pathsep) if folder]
    is_missing = False
    for name in needed:
        theirs = _place(name, first)
        if theirs is not None:
            if not _is_own(theirs):
                return f"has an RPATH to another MPI ({theirs})", False
            continue
        theirs = _place(name, given)
        if theirs is not None:
            if not _is_own(theirs):
                return f"would load another MPI, to which {mpi.LOADER_VARIABLE} leads ({theirs})", False
            continue
        theirs = _place(name, found.runpath)
        is_missing |= theirs is None or not _is_own(theirs)
    return "", is_missing


def _place(name: str, folders: "list[str]") -> "str | None":
    return next((path for folder in folders if os.path.exists(path := os.path.join(folder, name))), None)


def _is_own(path: str) -> bool:
    own = mpi.library(os.path.basename(path))
    return os.path.exists(own) and os.path.samefile(path, own)


def _static(path: str) -> str:
    """Return a sentence for an executable that contains an MPI."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[:4] != b"\x7fELF" or data.find(b"MPI_Init") < 0:
                return ""
            title = next((title for words, title in _STATIC.items() if data.find(words) >= 0), None)
    except (OSError, ValueError):
        return ""
    return f"contains another MPI ({title})" if title else ""


def advice(path: str) -> str:
    """Return the command that compiles a program for spcomm's MPI."""
    name = os.path.basename(path)
    return f"compile it with spcomm mpicc (C++: spcomm mpicxx), as in: spcomm mpicc {name}.c -o {name}"


def prepare(path: str, environment: "dict[str, str]") -> str:
    """Let the loader find spcomm's MPI for this executable, if it uses MPI. Return a complaint, or ""."""
    if sys.platform == "darwin":
        return ""  # its executables have another format; those of `spcomm mpicc` name the folder
    complaint, is_missing = problem(path, environment)
    if complaint:
        return f"{complaint}; {advice(path)}"
    if is_missing:
        before = environment.get(mpi.LOADER_VARIABLE, "")
        environment[mpi.RESTORED_VARIABLE] = before
        environment[mpi.LOADER_VARIABLE] = os.pathsep.join(filter(None, (mpi.folder("lib"), before)))
    return ""
