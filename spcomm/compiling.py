# SPDX-License-Identifier: MIT
"""`spcomm config`: the options of a C or C++ compiler for the installed package."""

import shlex
import sys
from pathlib import Path

from spcomm import mpi
from spcomm.argument_parser import ArgumentParser


def parser() -> ArgumentParser:
    """Return the parser of `spcomm config`."""
    made = ArgumentParser(
        "spcomm config",
        "spcomm config [--cflags] [--libs] [--includedir] [--library] [--version] [--mpi-bin]",
        "Prints compiler flags for a program that includes spcomm/spcomm.h (C) or spcomm/speedescomm.hpp (C++):\n\n"
        "  cc program.c $(spcomm config --cflags --libs) -o program && spcomm run -n 4 ./program",
        "Without options, it prints all of these.",
    )
    for name, (_value, text) in _OPTIONS.items():
        made.add_argument(name, action="append_const", dest="names", const=name, default=[], help=text)
    return made


def include_dir() -> Path:
    """Return the folder for the compiler's ``-I``: of the installed package, or of the checkout.

    Raises
    ------
    FileNotFoundError
        The headers are in neither.
    """
    package = Path(__file__).resolve().parent
    for folder in (package / "include", package.parent / "csrc" / "include"):
        if (folder / "spcomm" / "spcomm.h").is_file():
            return folder
    raise FileNotFoundError(
        f"no spcomm/spcomm.h in {package / 'include'}: this installation is incomplete; reinstall spcomm"
    )


def library() -> Path:
    """Return the static library.

    Raises
    ------
    FileNotFoundError
        The library does not exist.
    """
    package = Path(__file__).resolve().parent
    path = package / "lib" / "libspcomm.a"
    if not path.is_file():
        raise FileNotFoundError(f"no {path}: reinstall spcomm, or, in a checkout, compile it by `make build`")
    return path


def cflags() -> "list[str]":
    """Return the options for compiling, each a word."""
    return [f"-I{include_dir()}", "-pthread"]


def libs() -> "list[str]":
    """Return the options for linking, each a word; they follow the program's own files."""
    system = ["-lrt"] if sys.platform.startswith("linux") else []  # shm_open, before glibc 2.34
    return [str(library()), "-pthread", "-lm", *system]


def _version() -> str:
    from importlib.metadata import version

    return version("spcomm")


_OPTIONS = {
    "--cflags": (lambda: shlex.join(cflags()), "options for compiling"),
    "--libs": (
        lambda: shlex.join(libs()),
        "options for linking: the static library, and the system libraries that it needs",
    ),
    "--includedir": (lambda: str(include_dir()), "the folder of the headers"),
    "--library": (lambda: str(library()), "the static library"),
    "--version": (_version, "the version of spcomm"),
    "--mpi-bin": (lambda: mpi.folder("bin"), "the folder with mpicc, mpicxx, mpiexec and mpirun, for PATH"),
}


def main(words: "list[str]") -> int:
    """Entry point of `spcomm config`; return the exit code."""
    names = parser().parse_args(words).names
    try:
        if not names:
            for name, (value, _text) in _OPTIONS.items():
                print(f"{name:<13} {value()}")
            return 0
        # In the order that a compiler needs, whatever the order here.
        print(*[value() for name, (value, _text) in _OPTIONS.items() if name in names])
    except FileNotFoundError as error:
        print(f"spcomm config: {error}", file=sys.stderr)
        return 125
    return 0
