# SPDX-License-Identifier: MIT
"""The options of `%%spcomm` and the words of `%spcomm`: their values, or one sentence about an error."""

import io
import tokenize
from collections.abc import Callable
from typing import NoReturn

from spcomm.argument_parser import ArgumentParser
from spcomm.launch.cmdline.values import MOST_BOXES
from spcomm.text import TIME_GRAMMAR, duration_s, whole_number

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
_LONGEST = 40  # letters of a number in a message


class MagicError(Exception):
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


class _Parser(ArgumentParser):
    """Parser of the options of a cell, whose errors are exceptions."""

    def error(self, message: str) -> NoReturn:
        raise MagicError(f"%%spcomm: {message}")

    def show_help(self, word: str) -> NoReturn:
        self.error(self.unknown(word))

    def unknown(self, word: str) -> str:
        return f"{super().unknown(word)}; there are {', '.join(label for label, _text in self.rows())}"


def cell_parser(most: int = 1) -> ArgumentParser:
    """Return the parser of `%%spcomm`, and of what follows `%spcomm run`. `most`: how many nodes there may be."""
    made = _Parser(
        "%%spcomm",
        "%%spcomm [options]",
        "Runs the cell on all nodes, at the same time. `comm` is there, each node has its own variables, which the "
        "next cell finds, and the result is the list of the values of the last line, by rank.",
        f"The first cell says how many nodes: %%spcomm -n 4. TIME is {TIME_GRAMMAR}. %spcomm? has the commands.",
        completed=lambda _before: [(label.partition(" ")[0], text) for label, text in made.rows()],
        program_after=(),
    )

    boxes = _whole("--boxes", MOST_BOXES)
    text = "the number of nodes; a new number starts new nodes, without variables"
    made.add_argument("-n", metavar="N", dest="nodes", type=_whole("-n", most), help=text)
    made.add_rows(
        ("--boxes", "B", boxes, "divide the nodes among B boxes, which share no memory; a new number starts new nodes"),
        ("--room", "HOST[:PORT]", str, "have the nodes on the members of a room; another room starts new nodes"),
        ("--timeout", "TIME", _seconds, "interrupt the nodes after this time, and show where they were"),
        ("--trace", None, None, "draw the timeline below: computing, waiting and messages of each node"),
        ("--watch", None, None,
         "show below, while the nodes run, what each does and its timeline; then the page of the trace"),
        ("--group", None, None, "show the output at the end, node by node"),
        ("--fresh", None, None, "start new nodes, without variables"),
    )  # fmt: skip
    return made


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


def line_parser() -> ArgumentParser:
    """Return the parser of `%spcomm`, for its help and for completion."""
    made = ArgumentParser(
        "%spcomm",
        "%spcomm COMMAND",
        "Commands for the nodes of this notebook, which %%spcomm starts.",
        f"TIME is {TIME_GRAMMAR}.",
        completed=_completed,
    )
    made.sections.append(("", _COMMANDS))
    heading = "Options of %%spcomm, which begins a cell for all nodes, and of %spcomm run:"
    made.sections.append((heading, cell_parser().rows()))
    return made


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


def _parsed(words: "list[str]", most: int) -> "tuple[CellOptions, list[str]]":
    """The options, and the words from the first one that is none."""
    made = cell_parser(most)
    options, rest = made.divided(words)
    return made.parse_known_args(options, CellOptions())[0], rest


def _whole(name: str, most: int) -> "Callable[[str], int]":
    def read(text: str) -> int:
        value = whole_number(text) or 0
        if not 1 <= value <= most:
            what = "nodes" if name == "-n" else "boxes"
            raise MagicError(f"%%spcomm: {name} {_shown(text)}: the number of {what} is 1 to {most}")
        return value

    return read


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
