# SPDX-License-Identifier: MIT
"""The options of `%%spcomm` and the words of `%spcomm`: their values, or one sentence about an error."""

import difflib
import io
import tokenize

from spcomm.launch.cmdline.values import MOST_BOXES
from spcomm.text import duration_s

_OPTIONS = "-n N, --boxes B, --room HOST[:PORT], --timeout S, --trace, --fresh, --group"
_COMMANDS = {
    "push": "push NAME…",
    "pull": "pull NAME…",
    "status": "status",
    "stop": "stop",
    "check": "check NN",
}


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
        self.fresh = False
        self.group = False


_LONGEST = 40  # letters of a number: Python refuses to read thousands of digits
_FLAGS = ("trace", "fresh", "group")
_VALUES = {"-n": "nodes", "--boxes": "boxes", "--timeout": "timeout", "--room": "room"}
_MOST = {"-n": 0, "--boxes": MOST_BOXES}  # 0: the number that the caller of `parse` gives
_KNOWN = [*_VALUES, *(f"--{name}" for name in _FLAGS)]


def parse(line: str, most: int) -> CellOptions:
    """The options of a cell. `most`: how many nodes there may be."""
    found = CellOptions()
    words = line.split()
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name.startswith("-n") and name[2:].isdecimal():
            name, value, equals = "-n", name[2:], "="
        if name in _VALUES:
            if not equals:
                if not words:
                    needs = "a host, as in --room desk" if name == "--room" else f"a number, as in {name} 4"
                    raise MagicError(f"%%spcomm: {name} needs {needs}")
                value = words.pop(0)
            setattr(found, _VALUES[name], _value(name, value, most))
        elif word.removeprefix("--") in _FLAGS and word.startswith("--"):
            setattr(found, word[2:], True)
        else:
            raise MagicError(f"%%spcomm: {_unknown(word)}; there are {_OPTIONS}")
    return found


def _value(name: str, text: str, most: int) -> "int | float | str":
    if name == "--timeout":
        return _seconds(text)
    return text if name == "--room" else _whole(name, text, _MOST[name] or most)


def _unknown(word: str) -> str:
    if not word.startswith("-"):
        return f"{word!r} is not an option; the program belongs in the lines below"
    near = difflib.get_close_matches(word, _KNOWN, 1)
    return f"there is no option {word}" + (f" (did you mean {near[0]}?)" if near else "")


def _whole(name: str, text: str, most: int) -> int:
    if not text.isdecimal() or len(text) > _LONGEST or not 1 <= int(text) <= most:
        what = "nodes" if name == "-n" else "boxes"
        raise MagicError(f"%%spcomm: {name} {_shown(text)}: the number of {what} is 1 to {most}")
    return int(text)


def _seconds(text: str) -> float:
    seconds = duration_s(text)
    if not seconds:
        raise MagicError(f"%%spcomm: --timeout {_shown(text)}: a timeout is a number of seconds, more than 0")
    return seconds


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def command(line: str) -> "tuple[str, list[str]]":
    """The command of `%spcomm`, and the names that follow it."""
    verb, *names = line.split() or [""]
    if verb == "check":  # its argument is no variable
        return verb, names
    if verb not in _COMMANDS:
        what = f"there is no command {verb!r}" if verb else "a command is missing"
        cell = "; options belong to a cell: %%spcomm" if verb.startswith("-") else ""
        raise MagicError(f"%spcomm: {what}; there are {', '.join(_COMMANDS.values())}{cell}")
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
