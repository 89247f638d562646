# SPDX-License-Identifier: MIT
"""The `spcomm` command: sub-commands, each imported when it is called."""

import _signal
import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # an import before `main` is one that Ctrl-C ends with a traceback
    from collections.abc import Callable


def main(arguments: "list[str] | None" = None) -> int:
    """Entry point of `spcomm` and of `python -m spcomm`; return or end with the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    name = words[0] if words else "help"
    entry = _COMMANDS.get(_ALIASES.get(name, name))
    if name in ("box", "meet"):  # users never type these
        return _box(words[1:]) if name == "box" else _meet(words[1:])
    if entry is None:
        return _unknown(name)
    for stream in (sys.stdout, sys.stderr):  # a message may have letters that a terminal lacks
        if getattr(stream, "errors", None) == "strict":
            stream.reconfigure(errors="backslashreplace")
    try:
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


def _run(words: "list[str]") -> int:
    from spcomm.launch.command import main as run

    code = run(words)
    if sys.stdout is not None:  # it is None when the launcher was started with its stdout closed
        sys.stdout.flush()
    # Everything is written and every process has ended; taking the interpreter apart would only cost time.
    os._exit(code)


def _box(words: "list[str]") -> int:
    from spcomm.launch.remote.box import main as box

    return box(words)


def _meet(words: "list[str]") -> int:
    from spcomm.launch.room.meet import main as meet

    return meet(words)


def _serve(words: "list[str]") -> int:
    from spcomm.launch.room.server import main as serve

    return serve(words)


def _join(words: "list[str]") -> int:
    from spcomm.launch.room.member import main as join

    return join(words)


def _doctor(words: "list[str]") -> int:
    from spcomm.launch.room.doctor import main as doctor

    return doctor(words)


def _demo(words: "list[str]") -> int:
    from spcomm.demo import main as demo

    return demo(words) or 0


def _bench(words: "list[str]") -> int:
    from spcomm.bench import main as bench

    return bench(words) or 0


def _model(words: "list[str]") -> int:
    from spcomm.model import main as model

    return model(words)


def _config(words: "list[str]") -> int:
    from spcomm.compiling import main as config

    return config(words)


def _info(words: "list[str]") -> int:
    from spcomm.info import main as info

    return info(words)


def _explain(words: "list[str]") -> int:
    from spcomm.diagnose.explain import main as explain

    return explain(words)


def _check(words: "list[str]") -> int:
    from spcomm.learn.command import main as check

    return check(words)


def _trace(words: "list[str]") -> int:
    from spcomm.trace.command import main as trace

    return trace(words)


def _learn(words: "list[str]") -> int:
    from spcomm.learn.learning import main as learn

    return learn(words)


def _examples(words: "list[str]") -> int:
    from spcomm.learn.examples import main as examples

    return examples(words)


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
        print(f"  {name:<10}{text}")
    print("\nspcomm COMMAND --help has the details.")
    return 0


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
    "run": (_run, "run a program as N cooperating nodes"),
    "serve": (_serve, "serve runs of several boxes, or make a room that machines join"),
    "join": (_join, "let programs of a room run on this machine"),
    "doctor": (_doctor, "find out why a server cannot be reached"),
    "demo": (_demo, "three example programs on real input"),
    "learn": (_learn, "exercises at the terminal, checked whenever they are saved"),
    "examples": (_examples, "list the examples, print one, copy all of them to a folder"),
    "bench": (_bench, "measure spcomm beside the other libraries that are installed"),
    "model": (_model, "model the time that communication takes: equations, a fit, a prediction"),
    "trace": (_trace, "show a trace of `spcomm run --trace`: text, a page, pictures"),
    "check": (_check, "grade solutions of exercises"),
    "info": (_info, "this machine on one page: cores, memory, features, versions"),
    "config": (_config, "print the flags for a C or C++ compiler"),
    "explain": (_explain, "explain a code in a message (SP101) by example"),
    "version": (_version, "print the version"),
    "help": (_help, "this text; help COMMAND is COMMAND --help"),
}
_ALIASES = {"-h": "help", "--help": "help", "--version": "version", "-V": "version"}
