# SPDX-License-Identifier: MIT
"""The `spcomm` command: sub-commands, each imported when it is called."""

import _signal
import codecs
import errno
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # an import before `main` is one that Ctrl-C ends with a traceback
    from collections.abc import Callable

    from spcomm.argument_parser import ArgumentParser


def main(arguments: "list[str] | None" = None) -> int:
    """Entry point of `spcomm` and of `python -m spcomm`; return or end with the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    name = words[0] if words else "help"
    entry = _COMMANDS.get(_ALIASES.get(name, name))
    if name in _INTERNAL:
        _start_clean()
        return _INTERNAL[name](words[1:])
    if entry is None:
        return _unknown(name)
    _replace_what_streams_lack()
    try:
        _start_clean()
        return entry[0](words[1:])
    except BrokenPipeError:  # as in `| head`: the reader is gone, also for the text still buffered
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO) or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        print(
            f"spcomm {name}: its output cannot be written: {error.strerror} (exit code 125)",
            file=sys.stderr,
        )
        return 125
    except KeyboardInterrupt:
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)  # another one would show the frames of this function
        print("spcomm: interrupted by Ctrl-C (exit code 130)", file=sys.stderr)
        return 130


def _replace_what_streams_lack() -> None:
    """Let streams print any text: what their encoding lacks is replaced, also in an ASCII locale.

    In the locale C, names of files that are not ASCII stay the bytes that they are.
    """
    codecs.register_error("spcomm", _replaced)
    codecs.register_error("spcomm-bytes", _replaced_or_bytes)
    for stream in (sys.stdout, sys.stderr):
        errors = getattr(stream, "errors", None)
        if errors in ("strict", "backslashreplace", "surrogateescape"):
            stream.reconfigure(errors="spcomm-bytes" if errors == "surrogateescape" else "spcomm")


def _replaced(error: UnicodeError) -> "tuple[str | bytes, int]":
    """Return a look-alike of the first letter that cannot be encoded, or its number; and where to go on."""
    assert isinstance(error, UnicodeEncodeError)
    letter = error.object[error.start]
    return _LOOK_ALIKES.get(letter) or letter.encode("ascii", "backslashreplace"), error.start + 1


def _replaced_or_bytes(error: UnicodeError) -> "tuple[str | bytes, int]":
    assert isinstance(error, UnicodeEncodeError)
    letter = error.object[error.start]
    if "\udc80" <= letter <= "\udcff":
        return letter.encode("ascii", "surrogateescape"), error.start + 1
    return _replaced(error)


# Look-alikes of the letters in texts of spcomm, for encodings that lack them.
_LOOK_ALIKES = {
    "…": "...",
    "→": "->",
    "–": "-",
    "—": "-",
    "─": "-",
    "·": "*",
    "µ": "u",
    "μ": "u",
    "≤": "<=",
    "²": "^2",
}


def _start_clean() -> None:
    from spcomm.launch.base import process

    process.start_clean()


class _Command:
    """A command whose module is imported when it is called."""

    def __init__(self, module: str, *name: str) -> None:
        self.module = module
        self.name = name  # of a module with several commands

    def __call__(self, words: "list[str]") -> int:
        return __import__(self.module, fromlist=("main",)).main(words, *self.name)

    def parser(self) -> "ArgumentParser":
        """Return the parser of the command."""
        return __import__(self.module, fromlist=("main",)).parser(*self.name)


class _Starter(_Command):
    """A command whose runs stay on this machine, in a cluster's job, too."""

    def __call__(self, words: "list[str]") -> int:
        from spcomm import config

        os.environ.setdefault(config.ALONE_VARIABLE, "1")
        return super().__call__(words)


class _Run(_Command):
    """`spcomm run`."""

    def __call__(self, words: "list[str]") -> int:
        gc.disable()  # until nodes run: imports leave little to collect, and looking for it takes a tenth of their time
        code = super().__call__(words)
        if sys.stdout is not None:  # it is None when the launcher was started with its stdout closed
            sys.stdout.flush()
        # Everything is written and every process has ended; taking the interpreter apart would only cost time.
        os._exit(code)


def _version(_words: "list[str]") -> int:
    from importlib.metadata import PackageNotFoundError, version

    try:
        print(f"spcomm {version('spcomm')}")
    except PackageNotFoundError:
        print("spcomm (not installed)")
    return 0


def _help(words: "list[str]") -> int:
    entry = _COMMANDS.get(words[0]) if words else None
    if words and entry is None:
        return _unknown(words[0])
    if entry is not None and words[0] not in ("help", "version"):
        return entry[0](["--help"])
    print("usage: spcomm COMMAND [arguments]\n")
    for name, (_call, text) in _COMMANDS.items():
        print(f"  {name:<12}{text}")
    print("\nspcomm COMMAND --help has the details.")
    return 0


def summaries() -> "dict[str, str]":
    """Return each command and its purpose."""
    return {name: text for name, (_call, text) in _COMMANDS.items()}


def parser_of(name: str) -> "ArgumentParser | None":
    """Return the parser of a command; None if it has none, or there is no such command."""
    call = _COMMANDS[name][0] if name in _COMMANDS else None
    return call.parser() if isinstance(call, _Command) else None


def _unknown(name: str) -> int:
    names = ", ".join(_COMMANDS)
    if name.endswith(".py") or os.path.exists(name) or name in ("-n", "-np", "-m"):
        hint = f"to run a program: spcomm run {' '.join(sys.argv[1:])}"
    else:
        from difflib import get_close_matches

        near = get_close_matches(name, _COMMANDS, 1)
        hint = f"did you mean {near[0]}? Commands: {names}" if near else f"commands: {names}"
    print(f"spcomm: no command {name!r}; {hint}", file=sys.stderr)
    return 125


_COMMANDS: "dict[str, tuple[Callable[[list[str]], int], str]]" = {
    "run": (_Run("spcomm.launch.command"), "run a program as N cooperating nodes"),
    "serve": (
        _Command("spcomm.launch.room.server"),
        "serve runs of several boxes, or make a room that machines join",
    ),
    "join": (_Command("spcomm.launch.room.member"), "let programs of a room run on this machine"),
    "doctor": (_Command("spcomm.launch.room.doctor"), "find out why a server cannot be reached"),
    "demo": (_Starter("spcomm.demo"), "three example programs on real input"),
    "learn": (
        _Starter("spcomm.learn.learning"),
        "exercises at the terminal, checked whenever they are saved",
    ),
    "examples": (
        _Command("spcomm.learn.examples"),
        "list the examples, print one, copy all of them to a folder",
    ),
    "docs": (
        _Command("spcomm.docs.command"),
        "show a page of the documentation, at the terminal or in a browser",
    ),
    "bench": (
        _Starter("spcomm.bench.command"),
        "measure spcomm beside the other libraries that are installed",
    ),
    "model": (
        _Starter("spcomm.model.command"),
        "model the time that communication takes: equations, a fit, a prediction",
    ),
    "trace": (
        _Command("spcomm.trace.command"),
        "show a trace of `spcomm run --trace`: text, a page, pictures",
    ),
    "check": (_Starter("spcomm.learn.command"), "grade solutions of exercises"),
    "info": (_Command("spcomm.info"), "this machine on one page: cores, memory, features, versions"),
    "config": (_Command("spcomm.compiling"), "print the flags for a C or C++ compiler"),
    "mpicc": (_Command("spcomm.mpi.compiler", "mpicc"), "compile an MPI program in C"),
    "mpicxx": (_Command("spcomm.mpi.compiler", "mpicxx"), "compile an MPI program in C++"),
    "mpiexec": (_Run("spcomm.launch.mpiexec"), "run a program with the options of other MPIs' mpiexec"),
    "explain": (_Command("spcomm.diagnose.explain"), "explain a code in a message (SP101) by example"),
    "completion": (_Command("spcomm.completion"), "print what makes a shell complete words of spcomm"),
    "version": (_version, "print the version"),
    "help": (_help, "this text; help COMMAND is COMMAND --help"),
}
_INTERNAL = {  # users never type these
    "box": _Command("spcomm.launch.remote.box"),
    "meet": _Command("spcomm.launch.room.meet"),
    "conclude": _Command("spcomm.launch.supervise.conclude"),
}
_ALIASES = {"-h": "help", "--help": "help", "--version": "version", "-V": "version"}
