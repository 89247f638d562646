# SPDX-License-Identifier: MIT
"""`spcomm mpiexec`: `spcomm run` with the options that Open MPI's and MPICH's mpiexec have."""

import os
import sys
from typing import TYPE_CHECKING

from spcomm.launch.base.usage import UsageError
from spcomm.launch.cmdline import table
from spcomm.text import is_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from spcomm.argument_parser import ArgumentParser

# The options are written here without their hyphens, of which Open MPI has two and MPICH one; spcomm takes both.
# {option: that of `spcomm run`}, with a value
_MAPPED = {
    **dict.fromkeys(("n", "np", "c"), "-n"),
    "x": "-x",
    **dict.fromkeys(("wdir", "wd"), "--wdir"),
    **dict.fromkeys(("host", "hosts", "H"), "--host"),
    **dict.fromkeys(("hostfile", "machinefile", "f"), "--hostfile"),
    **dict.fromkeys(("stdin", "s"), "--stdin"),
    "timeout": "--timeout",
    "xterm": "--window",
}
# {option: those of `spcomm run`}, without a value
_MAPPED_ALONE = {
    **dict.fromkeys(("tag-output", "l", "prepend-rank"), ("--label",)),
    "report-bindings": ("--report-bindings",),
    "bind-to-core": ("--bind-to", "core"),
    **dict.fromkeys(("genvnone", "envnone"), ("--env", "none")),
}
# {option: number of values}: accepted without effect, since they say how another MPI does what spcomm does anyway, or
# which cores nodes are put on in turn.
_WITHOUT_EFFECT = {
    **dict.fromkeys(
        (
            "oversubscribe", "nooversubscribe", "allow-run-as-root", "use-hwthread-cpus", "genvall", "envall",
            "bind-to-socket", "bind-to-none", "bycore", "byslot", "bysocket", "q", "quiet", "v", "verbose",
            "display-map", "display-allocation", "display-topo", "print-rank-map", "print-all-exitcodes",
            "disable-auto-cleanup", "disable-hostname-propagation", "enable-x", "disable-x", "no-oversubscribe",
            "hetero", "hetero-nodes", "get-stack-traces", "report-state-on-timeout", "ordered-output", "ordered",
            "leave-session-attached", "display-devel-map", "display-diffable-map", "novm", "no-local-bind",
            "noprefix", "show-progress",
        ),
        0,
    ),
    **dict.fromkeys(
        ("rank-by", "display", "launcher", "bootstrap", "launcher-exec", "rmk", "iface", "prefix", "pmi-port",
         "localhost", "usize", "membind", "cpus-per-proc", "cpus-per-rank", "stream-buffering", "forward-signals",
         "personality", "runtime-options", "tmpdir", "soft"),
        1,
    ),
    **dict.fromkeys(("mca", "gmca", "omca", "prtemca", "pmixmca"), 2),
}  # fmt: skip
# {option: what to use instead}: refused, because a run without it would not be what was asked for.
_SHARE = (
    "how many nodes each host gets is a part of --host, as in --host alpha:2,beta:2; on one machine -n is all"
)
_REFUSED = {
    **dict.fromkeys(("N", "npernode", "npersocket", "map-by-ppr", "ppn", "perhost", "ppr", "grr"), _SHARE),
    "pernode": _SHARE,
    **dict.fromkeys(
        ("rankfile", "rf"), "spcomm run --bind-to 0-1/2,3 binds nodes to processors, --map 0,0,1 to hosts"
    ),
    **dict.fromkeys(("cpu-set", "cpu-list"), "spcomm run --bind-to 0-1/2,3 names the processors of each node"),
    **dict.fromkeys(("slot-list", "cpus"), "spcomm run --bind-to 0-1/2,3 names the processors of each node"),
    **dict.fromkeys(("nolocal", "arch"), "--host names the hosts that get nodes"),
    "path": "the program is looked for in PATH: name its folder there, or before the program",
    "timestamp-output": "spcomm run --trace FILE shows when each node did what",
    "check_mpi": "spcomm checks each run; --strict makes doubtful calls errors",
    **dict.fromkeys(("bynode", "rr"), "spcomm run --map cyclic puts neighbours on different hosts"),
    **dict.fromkeys(
        ("output-filename", "output", "outfile-pattern", "errfile-pattern"),
        "spcomm run --output FOLDER also writes the output of each node to a file",
    ),
    "merge-stderr-to-stdout": "2>&1 after the command does the same",
    **dict.fromkeys(
        ("gdb", "tv", "debug", "debugger"), "spcomm run --debug runs a node in gdb or pdb"
    ),
    **dict.fromkeys(
        ("configfile", "app", "appfile"), "write the programs into the command, as in -n 2 ./a : -n 2 ./b"
    ),
    **dict.fromkeys(
        ("am", "tune"), "spcomm has no settings in files"
    ),
    **dict.fromkeys(
        ("ckpoint-interval", "ckpoint-prefix", "ckpointlib", "enable-recovery", "continuous"),
        "a run ends when a node fails",
    ),
    **dict.fromkeys(("gpu", "gpus-per-proc", "dvm", "dvm-uri", "preload-binary", "preload-files", "s-preload"),
                    "spcomm has nothing like it"),
}  # fmt: skip
_BINDINGS = ("hwthread", "l1cache", "l2cache", "l3cache", "socket", "numa", "board", "package", "user")
_PLACES = (
    "slot",
    "core",
    "hwthread",
    "l1cache",
    "l2cache",
    "l3cache",
    "socket",
    "numa",
    "board",
    "package",
    "machine",
)

_CYCLIC = "--map=cyclic"


def parser() -> "ArgumentParser":
    """Return the parser of `spcomm mpiexec`."""
    from spcomm.argument_parser import ArgumentParser

    rows = [
        ("-n N, -np N, -c N", "number of nodes, as in spcomm run"),
        ("-x VAR[=VALUE]", "set a variable for the nodes of a program (Open MPI)"),
        ("-genv VAR, -env VAR", "the same (MPICH); the value is the next word: -genv VAR VALUE"),
        ("-genvlist VARS, -envlist VARS", "pass these variables, separated by commas"),
        ("-genvnone, -envnone", "pass no variables"),
        ("--wdir FOLDER, -wd FOLDER", "run the program in that folder"),
        ("--host HOST:N,…, -hosts HOST:N,…", "run on these hosts, as spcomm run --host does"),
        ("--hostfile FILE, -machinefile FILE, -f FILE", "the same from a file"),
        ("--timeout TIME", "end the run after this time"),
        ("--tag-output, -l, -prepend-rank", "put the rank before each line"),
        ("--bind-to core|none", "as in spcomm run; other places are accepted without effect"),
        (
            "--map-by node",
            "with hosts: neighbours are on different ones; other places are accepted without effect",
        ),
        ("--report-bindings", "print the core of each node"),
        ("--stdin RANKS, -s RANKS", "the nodes that get the standard input"),
        ("--xterm RANKS", "show the output of these nodes in windows of their own"),
    ]
    ignored = ", ".join(f"-{name}" if len(name) == 1 else f"--{name}" for name in _WITHOUT_EFFECT)
    refused = ", ".join(f"-{name}" if len(name) == 1 else f"--{name}" for name in _REFUSED)
    made = ArgumentParser(
        "spcomm mpiexec",
        "spcomm mpiexec [options] program [arguments] [: [options] program [arguments]]...",
        "Runs a program as spcomm run does, with the options of Open MPI's and MPICH's mpiexec. Each takes one hyphen "
        "or two. Options of spcomm run that are not among them work, too.\n\n"
        "  spcomm mpiexec --oversubscribe -n 4 ./hello",
        f"Accepted without effect: {ignored}.\n\nRefused, with what to use instead: {refused}.\n\n"
        "The word python before a script may stay: its nodes start as those of spcomm run do.",
        completed="FILE",
        program_after=("-m",),
    )
    made.sections.append(("", rows))
    return made


def main(words: "list[str]") -> int:
    """Entry point of `spcomm mpiexec`; return the exit code."""
    if words[:1] in (["-h"], ["--help"], ["-help"]):
        print(parser().format_help(), end="")
        return 0
    if words[:1] in (["-V"], ["--version"], ["-version"], ["-info"]):
        from importlib.metadata import version

        print(f"spcomm {version('spcomm')}")
        return 0
    from spcomm.launch import command

    try:
        return command.main(translated(words))
    except UsageError as error:
        print(error, file=sys.stderr)
        return error.code


def translated(words: "list[str]") -> "list[str]":
    """Return the words after `spcomm run` for these after `mpiexec`. Raises `UsageError`."""
    found: list[str] = []
    rest = list(words)
    while rest:
        found += _program(rest)
        if rest:
            found.append(rest.pop(0))  # the colon
    if _CYCLIC in found and not {"--host", "--hostfile", "--boxes"} & set(found):
        found = [word for word in found if word != _CYCLIC]  # on one machine all places are alike
    return found


def _program(rest: "list[str]") -> "list[str]":
    """Translate one program with its options, and take its words away; a colon stays."""
    found: list[str] = []
    is_ended = False
    while rest and is_option(rest[0]) and not is_ended:
        word = rest.pop(0)
        is_ended = word in ("--", "-m")
        found += [word] if is_ended else _option(word, rest)
    end = rest.index(":") if ":" in rest else len(rest)
    program, rest[:] = rest[:end], rest[end:]
    return found + (program if is_ended else _without_python(program))


def _option(word: str, rest: "list[str]") -> "list[str]":
    name, equals, value = word.lstrip("-").partition("=")
    if equals:
        rest.insert(0, value)
    if name in _SPECIAL:
        return _SPECIAL[name](word, rest)
    if name == "x" and rest and "=" not in rest[0] and rest[0] not in os.environ:
        del rest[0]  # handouts pass variables, such as LD_LIBRARY_PATH, that only some machines have set
        return []
    if name in _MAPPED:
        return [_MAPPED[name], _value(word, rest)]
    if name in _MAPPED_ALONE:
        return list(_MAPPED_ALONE[name])
    if name in _WITHOUT_EFFECT:
        for _ in range(_WITHOUT_EFFECT[name]):
            _value(word, rest)
        return []
    if name in _REFUSED:
        raise UsageError(f"spcomm mpiexec: {word}: {_REFUSED[name]}")
    if equals:
        del rest[0]
    entry = table.parser().options.get(word.partition("=")[0])
    if entry is None and word[:2] != "-n":
        raise UsageError(
            f"spcomm mpiexec: {word}: no option of mpiexec that spcomm knows, nor one of spcomm run; "
            "spcomm mpiexec --help has all of them"
        )
    takes_value = entry is not None and entry.nargs is None and not equals
    return [word, _value(word, rest)] if takes_value else [word]


def _value(word: str, rest: "list[str]") -> str:
    if not rest or rest[0] == ":":
        raise UsageError(f"spcomm mpiexec: {word} needs a value")
    return rest.pop(0)


def _variable(word: str, rest: "list[str]") -> "list[str]":
    """Translate `-genv NAME VALUE`."""
    name = _value(word, rest)
    return ["-x", name if "=" in name else f"{name}={_value(word, rest)}"]


def _variables(word: str, rest: "list[str]") -> "list[str]":
    """Translate `-genvlist A,B`."""
    return [each for name in _value(word, rest).split(",") for each in ("-x", name)]


def _binding(word: str, rest: "list[str]") -> "list[str]":
    value = _value(word, rest)
    place = value.partition(":")[0]
    if place in ("core", "none"):
        return ["--bind-to", place]
    if place in _BINDINGS or not place:
        return []
    if place[0].isdecimal():
        return ["--bind-to", value]  # as in spcomm run
    raise UsageError(f"spcomm mpiexec: {word} {value}: the places are core, none, {', '.join(_BINDINGS)}")


def _mapping(word: str, rest: "list[str]") -> "list[str]":
    value = _value(word, rest)
    place = value.partition(":")[0].lower()
    if place == "ppr":
        raise UsageError(f"spcomm mpiexec: {word} {value}: {_SHARE}")
    if place == "node":
        return [_CYCLIC]
    if place in _PLACES or not place:
        return []
    raise UsageError(f"spcomm mpiexec: {word} {value}: the places are node, {', '.join(_PLACES)}")


_SPECIAL: "dict[str, Callable[[str, list[str]], list[str]]]" = {
    **dict.fromkeys(("genv", "env"), _variable),
    **dict.fromkeys(("genvlist", "envlist"), _variables),
    "bind-to": _binding,
    "map-by": _mapping,
}


def _without_python(program: "list[str]") -> "list[str]":
    """Leave out the interpreter of spcomm itself before a script, `-m` or `-c`: its nodes are forked then."""
    if len(program) < 2 or (program[1][:1] == "-" and program[1] not in ("-m", "-c")):
        return program
    from spcomm.launch.cmdline.plan import in_path

    name = program[0]
    path = name if os.sep in name else in_path(name)
    if path is None or not os.path.basename(name).startswith("python"):
        return program
    is_ours = os.path.dirname(os.path.abspath(path)) == os.path.dirname(os.path.abspath(sys.executable))
    return program[1:] if is_ours and os.path.samefile(path, sys.executable) else program
