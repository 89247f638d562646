# SPDX-License-Identifier: MIT
"""The command line of `spcomm run`: one table, read without argparse, whose import costs too much."""

import sys

MOST_NODES = 1024  # agent.NODES_MAX, known before the core is loaded


class UsageError(Exception):
    """A command line that cannot be obeyed; the text is the whole sentence for the user."""

    def __init__(self, text: str, code: int = 125) -> None:
        super().__init__(text)
        self.code = code


class Options:
    """What the command line said. None: nothing was said."""

    def __init__(self) -> None:
        self.nodes: int | None = None
        self.start: str | None = None
        self.preload: list[str] | None = None
        self.module: str | None = None
        self.label: bool | None = None
        self.timeout: float | None = None
        self.grace: float = 3.0
        self.buffers: dict[str, int] = {}  # slots, ring, arena, queue_limit, fanin
        self.program: str | None = None
        self.arguments: list[str] = []
        self.help = False


def parse(arguments: "list[str]") -> Options:
    """Read what follows `spcomm run`. The first word that is no option is the program; the rest is its own."""
    options = Options()
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if word in ("-h", "--help"):
            options.help = True
            return options
        if not word.startswith("-") or word == "-":
            rest.insert(0, word)
            break
        if _read(options, word, rest):
            break
    if options.module is None and rest:
        options.program = rest.pop(0)
    options.arguments = rest
    if options.module is None and not options.program:
        raise UsageError(
            "spcomm run: which program? For example: spcomm run -n 4 hello.py  (spcomm run --help)"
        )
    return options


def check_buffers(options: Options, limits: "dict[str, tuple[int, int, int]]") -> None:
    """Raise when a buffer size lies outside what the core can do."""
    for name, value in options.buffers.items():
        least, most, default = limits[name]
        if not least <= value <= most:
            option = "--" + name.replace("_", "-")
            default_text = _size_text(name, default) if default else "chosen for this machine"
            raise UsageError(
                f"spcomm run: {option} {_size_text(name, value)}: must be from {_size_text(name, least)} to "
                f"{_size_text(name, most)} (without {option}: {default_text})"
            )


def _read(options: Options, word: str, rest: "list[str]") -> bool:
    """Read one option, and its value from `rest`. True when the program follows."""
    name, equals, value = word.partition("=")
    entry = _TABLE.get(name)
    if entry is None or (equals and not word.startswith("--")):
        name, entry, value, equals = _short(word)
    kind, field = entry[0], entry[1]
    if kind is None:
        if equals:
            raise UsageError(f"spcomm run: {name} takes no value, but was given {value!r}")
        if field is not None:
            setattr(options, field, entry[2])
        return False
    if not equals:
        if not rest:
            raise UsageError(f"spcomm run: {name} needs a value: {name} {entry[2]}")
        value = rest.pop(0)
    result = kind(name, value)
    if kind in (_size, _count):
        options.buffers[field] = result
    else:
        setattr(options, field, result)
    return field == "module"


def _short(word: str) -> tuple:
    """-n4 and -np4; else the option is unknown."""
    for name in ("-np", "-n"):
        if word.startswith(name) and word[len(name) :].lstrip("=").isdecimal():
            return name, _TABLE[name], word[len(name) :].lstrip("="), "="
    import difflib

    near = difflib.get_close_matches(word.partition("=")[0], _TABLE, 1)
    hint = f"did you mean {near[0]}?" if near else "spcomm run --help lists the options"
    raise UsageError(f"spcomm run: unknown option {word}; {hint} (the program's own options follow its name)")


def _nodes(name: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise UsageError(
            f"spcomm run: {name} {text}: the number of nodes is a whole number, for example {name} 4"
        ) from None
    if not 1 <= value <= MOST_NODES:
        raise UsageError(f"spcomm run: {name} {text}: the number of nodes must be from 1 to {MOST_NODES}")
    return value


def _start(name: str, text: str) -> str:
    if text not in ("fork", "exec"):
        raise UsageError(
            f"spcomm run: {name} {text}: must be fork (from one warm process) or exec (each by itself)"
        )
    return text


def _modules(name: str, text: str) -> "list[str]":
    names = [part.strip() for part in text.split(",") if part.strip()]
    for part in names:
        if not all(piece.isidentifier() for piece in part.split(".")):
            raise UsageError(
                f"spcomm run: {name} {text}: {part!r} is no module name; separate names by commas"
            )
    return names


def _text(name: str, text: str) -> str:
    if not text:
        raise UsageError(f"spcomm run: {name} needs the name of a module, for example {name} package.module")
    return text


def _seconds(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise UsageError(
            f"spcomm run: {name} {text}: must be a number of seconds above 0, for example {name} 60"
        )
    return value


def _count(name: str, text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"spcomm run: {name} {text}: must be a whole number")
    return int(text)


def _size(name: str, text: str) -> int:
    digits = text.upper().removesuffix("IB").removesuffix("B")
    shift = {"K": 10, "M": 20, "G": 30}.get(digits[-1:], 0)
    digits = digits[:-1] if shift else digits
    if not (digits.isascii() and digits.isdecimal()):
        raise UsageError(
            f"spcomm run: {name} {text}: must be a number of bytes; K, M and G may follow, as in {name} 4M"
        )
    return int(digits) << shift


def _size_text(name: str, value: int) -> str:
    if name in ("slots", "fanin"):
        return str(value)
    for shift, letter in ((30, "G"), (20, "M"), (10, "K")):
        if value >= 1 << shift and value % (1 << shift) == 0:
            return f"{value >> shift}{letter}"
    return str(value)


# option: (how to read its value or None, field, the value it sets or what to call its value)
_TABLE = {
    "-n": (_nodes, "nodes", "N"),
    "-np": (_nodes, "nodes", "N"),
    "--start": (_start, "start", "fork|exec"),
    "--preload": (_modules, "preload", "MODULES"),
    "-m": (_text, "module", "MODULE"),
    "-l": (None, "label", True),
    "--label": (None, "label", True),
    "--tag-output": (None, "label", True),
    "--no-label": (None, "label", False),
    "--timeout": (_seconds, "timeout", "SECONDS"),
    "--grace": (_seconds, "grace", "SECONDS"),
    "--slots": (_count, "slots", "N"),
    "--ring": (_size, "ring", "SIZE"),
    "--arena": (_size, "arena", "SIZE"),
    "--queue-limit": (_size, "queue_limit", "SIZE"),
    "--fanin": (_count, "fanin", "N"),
    "--oversubscribe": (None, None, None),
    "--allow-run-as-root": (None, None, None),
    "--use-hwthread-cpus": (None, None, None),
}

HELP = """\
usage: spcomm run [options] program [arguments]
       spcomm run [options] -m module [arguments]

Runs one program as N cooperating nodes. The program is a Python script (its name ends in .py) or an
executable.

  -n N, -np N          number of nodes (default: the cores this process may use)
  -m MODULE            run a module, as python -m does
  --start fork|exec    fork: all nodes from one process that has imported NumPy and spcomm once (default for
                       Python on Linux); exec: each node starts by itself (default for executables)
  --preload MODULES    what that process imports before it forks, separated by commas
  -l, --no-label       put [3] before each line that node 3 prints, or do not (default: at a terminal)
  --timeout SECONDS    end the run after this time, say where each node was, exit with 124
  --grace SECONDS      how long nodes that are told to end may take before they are killed (default: 3)
  --slots N  --ring SIZE  --arena SIZE  --queue-limit SIZE  --fanin N
                       buffers and tree; sizes are in bytes or end in K, M or G
  --oversubscribe, --allow-run-as-root, --use-hwthread-cpus, --tag-output
                       accepted as in other launchers; only the last has an effect (-l)

Exit codes: of the first node that failed; 124 timeout, 125 spcomm itself, 126 not executable, 127 not found,
128 + signal number, 130 Ctrl-C. The last line on stderr says which.
"""


def show_help() -> None:
    sys.stdout.write(HELP)
