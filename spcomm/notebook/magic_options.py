# SPDX-License-Identifier: MIT
"""The options of `%%spcomm` and the words of `%spcomm`: their values, or one sentence about an error."""

import difflib
import io
import tokenize

from spcomm.command_help import CommandHelp
from spcomm.launch.cmdline.values import MOST_BOXES
from spcomm.text import TIME_GRAMMAR, duration_s, is_option, whole_number

_ROWS = [
    ("-n N", "the number of nodes; a new number starts new nodes, without variables"),
    ("--boxes B", "divide the nodes among B boxes, which share no memory; a new number starts new nodes"),
    ("--room HOST[:PORT]", "have the nodes on the members of a room; another room starts new nodes"),
    ("--timeout TIME", "interrupt the nodes after this time, and show where they were"),
    ("--trace", "draw the timeline below: computing, waiting and messages of each node"),
    (
        "--watch",
        "show below, while the nodes run, what each does and its timeline; then the page of the trace",
    ),
    ("--group", "show the output at the end, node by node"),
    ("--fresh", "start new nodes, without variables"),
]
_COMMANDS = [
    ("push NAME…", "copy variables of the notebook to all nodes"),
    ("pull NAME…", "return a variable of the nodes, as a list by rank; for several names, a dict of lists"),
    ("run [options] FILE [arguments]", "run a program on the nodes, with the options of %%spcomm"),
    ("check [NN] [FILE]", "check the program of an exercise"),
    ("explain [CODE]", "explain a code in a message, such as SP101"),
    ("status", "show the nodes and their processes"),
    ("stop", "end the nodes"),
]
_VERBS = [label.partition(" ")[0] for label, _text in _COMMANDS]
_FREE = ("check", "explain", "run")  # they read their words themselves
CELL_HELP = CommandHelp(
    "%%spcomm [options]",
    "Runs the cell on all nodes, at the same time. `comm` is there, each node has its own variables, which the next "
    "cell finds, and the result is the list of the values of the last line, by rank.",
    ("", _ROWS),
    arguments=[(label.partition(" ")[0], text) for label, text in _ROWS],
    closing=f"The first cell says how many nodes: %%spcomm -n 4. TIME is {TIME_GRAMMAR}. %spcomm? has the commands.",
)


def _completed(before: "list[str]") -> "str | list[tuple[str, str]]":
    if not before:
        return [(label.partition(" ")[0], text) for label, text in _COMMANDS]
    if before == ["check"]:
        from spcomm.learn.catalogue import exercises

        return [(f"{exercise.number:02}", exercise.title) for exercise in exercises()]
    if before == ["explain"]:
        from spcomm.diagnose import explain

        return [(code, explain.title(code)) for code in explain.codes()]
    return "FILE" if before[0] in ("run", "check") else []


LINE_HELP = CommandHelp(
    "%spcomm COMMAND",
    "Commands for the nodes of this notebook, which %%spcomm starts.",
    ("", _COMMANDS),
    ("Options of %%spcomm, which begins a cell for all nodes, and of %spcomm run:", _ROWS),
    closing=f"TIME is {TIME_GRAMMAR}.",
    arguments=_completed,
)


class MagicError(ValueError):
    """The user has made a mistake; its text is one sentence."""


class CellOptions:
    """Options of `%%spcomm`."""

    def __init__(self) -> None:
        self.nodes: int | None = None
        self.boxes: int | None = None
        self.room: str | None = None
        self.timeout: float | None = None
        self.trace = False
        self.watch = False
        self.fresh = False
        self.group = False


_LONGEST = 40  # letters of a number in a message
_FLAGS = ("trace", "watch", "fresh", "group")
_VALUES = {"-n": "nodes", "--boxes": "boxes", "--timeout": "timeout", "--room": "room"}
_MOST = {"-n": 0, "--boxes": MOST_BOXES}  # 0: the number that the caller of `parse` gives
_KNOWN = [*_VALUES, *(f"--{name}" for name in _FLAGS)]


def parse(line: str, most: int) -> CellOptions:
    """The options of a cell. `most`: how many nodes there may be."""
    options, rest = _parsed(line.split(), most)
    if rest:
        raise MagicError(f"%%spcomm: {rest[0]!r} is not an option; the program belongs in the lines below")
    return options


def program(words: "list[str]", most: int) -> "tuple[CellOptions, str, list[str]]":
    """The options, the file and the arguments after `%spcomm run`."""
    options, rest = _parsed(words, most)
    if not rest:
        raise MagicError("%spcomm run: which program? As in %spcomm run -n 4 hello.py")
    return options, rest[0], rest[1:]


def _parsed(line: "list[str]", most: int) -> "tuple[CellOptions, list[str]]":
    """The options, and the words from the first one that is none."""
    found = CellOptions()
    words = list(line)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name.startswith("-n") and name[2:].isdecimal():
            name, value, equals = "-n", name[2:], "="
        if name in _VALUES:
            if not equals:
                if not words or is_option(words[0]):
                    needs = "a host, as in --room desk" if name == "--room" else f"a number, as in {name} 4"
                    raise MagicError(f"%%spcomm: {name} needs {needs}")
                value = words.pop(0)
            setattr(found, _VALUES[name], _value(name, value, most))
        elif word.removeprefix("--") in _FLAGS and word.startswith("--"):
            setattr(found, word[2:], True)
        else:
            near = difflib.get_close_matches(word, _KNOWN, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            labels = ", ".join(label for label, _text in _ROWS)
            raise MagicError(f"%%spcomm: there is no option {word}{hint}; there are {labels}")
    return found, words


def _value(name: str, text: str, most: int) -> "int | float | str":
    if name == "--timeout":
        return _seconds(text)
    return text if name == "--room" else _whole(name, text, _MOST[name] or most)


def _whole(name: str, text: str, most: int) -> int:
    value = whole_number(text) or 0
    if not 1 <= value <= most:
        what = "nodes" if name == "-n" else "boxes"
        raise MagicError(f"%%spcomm: {name} {_shown(text)}: the number of {what} is 1 to {most}")
    return value


def _seconds(text: str) -> float:
    seconds = duration_s(text)
    if not seconds:
        raise MagicError(f"%%spcomm: --timeout {_shown(text)}: a timeout is more than 0, and {TIME_GRAMMAR}")
    return seconds


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def command(line: str) -> "tuple[str, list[str]]":
    """The command of `%spcomm`, and the names that follow it."""
    verb, *names = line.split() or [""]
    if verb in _FREE:
        return verb, names
    if verb not in _VERBS:
        what = f"there is no command {verb!r}" if verb else "a command is missing"
        cell = "; options belong to a cell: %%spcomm" if verb.startswith("-") else ""
        raise MagicError(f"%spcomm: {what}; there are {', '.join(label for label, _text in _COMMANDS)}{cell}")
    takes = verb in ("push", "pull")
    if takes and not names:
        raise MagicError(f"%spcomm {verb}: name the variables, as in %spcomm {verb} x")
    if names and not takes:
        raise MagicError(f"%spcomm {verb}: it takes no argument, but was given {names[0]!r}")
    for name in names:
        if not name.isidentifier():
            raise MagicError(f"%spcomm {verb} {name}: that is not the name of a variable")
    return verb, names


def ends_silently(cell: str) -> bool:
    """Whether a semicolon ends it, which in a notebook hides the result."""
    passed = (tokenize.COMMENT, tokenize.NEWLINE, tokenize.NL, tokenize.DEDENT, tokenize.ENDMARKER)
    words = [
        word.string
        for word in tokenize.generate_tokens(io.StringIO(cell).readline)
        if word.type not in passed
    ]
    return words[-1:] == [";"]
