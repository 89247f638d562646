# SPDX-License-Identifier: MIT
"""Values of the options of `spcomm run`: the valid ones, and the error about any other.

A reader takes the option's name and its value, and returns the parsed value.
"""

from spcomm.launch.base.usage import UsageError
from spcomm.text import SIZE_GRAMMAR, TIME_GRAMMAR, duration_s, size_bytes, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOST_NODES = 1024  # of one group: segments.NODES_MAX, known before the core is loaded
MOST_GROUP = 2**31 - 1
MOST_BOXES = 64
LINK_TIMEOUT_S = 30.0  # by default
TRACE_EVENTS = 1 << 16  # events that each node of a traced run keeps by default
RESERVED = ("SPCOMM_NODE", "SPCOMM_REPORT")  # an executed node learns its place from them


def whole(least: int, most: int, what: str, example: int) -> "Callable[[str, str], int]":
    """Return a reader of whole numbers."""

    def read(name: str, text: str) -> int:
        value = whole_number(text)
        if value is None or not least <= value <= most:
            allowed = f"{what} is a whole number from {least} to {most}, for example {name} {example}"
            raise UsageError(f"spcomm run: {name} {text}: {allowed}")
        return value

    return read


def one_of(words: "dict[str, str]") -> "Callable[[str, str], str]":
    """Return a reader of one of these words, each with its meaning."""

    def read(name: str, text: str) -> str:
        if text not in words:
            allowed = " or ".join(f"{word} ({meaning})" for word, meaning in words.items())
            raise UsageError(f"spcomm run: {name} {text}: must be {allowed}")
        return text

    return read


def placing(name: str, text: str) -> "str | tuple[int, ...]":
    """Read `block`, `cyclic`, or the box of each node."""
    if text in ("block", "cyclic"):
        return text
    items = [item.strip() for item in text.split(",")]
    numbers = [whole_number(item) for item in items]
    if None in numbers:
        raise UsageError(
            f"spcomm run: {name} {text}: must be block (neighbours share a box), cyclic (a box after the other), or "
            f"the box of each node, as in {name} 0,0,1,0,1"
        )
    found = tuple(min(number, MOST_BOXES) for number in numbers if number is not None)
    if max(found) >= MOST_BOXES:
        raise UsageError(f"spcomm run: {name} {text}: boxes are numbered from 0 to {MOST_BOXES - 1} at most")
    empty = set(range(max(found))) - set(found)
    if empty:
        raise UsageError(
            f"spcomm run: {name} {text}: box {min(empty)} has no node; each box from 0 to {max(found)} needs one"
        )
    return found


def words(name: str, text: str) -> str:
    if not text.strip():
        raise UsageError(f"spcomm run: {name}: needs a value")
    return text


def is_host(text: str) -> bool:
    """Whether the system accepts a name; for one without an ASCII form its calls raise `TypeError`."""
    try:
        return text.isascii() or bool(text.encode("idna"))
    except UnicodeError:
        return False


def address(name: str, text: str) -> str:
    if not is_host(words(name, text)):
        raise UsageError(f"spcomm run: {name} {text}: is neither a name nor an address of a machine")
    return text


def shell_words(name: str, text: str) -> str:
    """Split words with `shlex`."""
    import shlex

    try:
        found = shlex.split(words(name, text))
    except ValueError as error:
        raise UsageError(f"spcomm run: {name} {text}: cannot be divided into words ({error})") from None
    if not found or not found[0]:
        raise UsageError(f"spcomm run: {name} {text}: names no program")
    return text


def reach(name: str, text: str) -> str:
    if not any("{host}" in word for word in shell_words(name, text).split()[1:]):
        raise UsageError(
            f"spcomm run: {name} {text}: must have {{host}} where the host's name belongs, as in {name} 'rsh {{host}}'"
        )
    return text


def modules(name: str, text: str) -> "list[str]":
    names = [part.strip() for part in text.split(",") if part.strip()]
    for part in names:
        if not all(piece.isidentifier() for piece in part.split(".")):
            raise UsageError(
                f"spcomm run: {name} {text}: {part!r} is not a module name; separate names by commas"
            )
    return names


def module(name: str, text: str) -> str:
    if not text:
        raise UsageError(f"spcomm run: {name} needs the name of a module, for example {name} package.module")
    return text


def code(name: str, text: str) -> str:
    if text.isdecimal():  # in place of -n, as other launchers have it
        raise UsageError(
            f"spcomm run: {name} {text}: {name} runs Python code; a number of nodes is -n {text}"
        )
    return text


def variable(name: str, text: str) -> "tuple[str, str | None]":
    """Read `VAR` or `VAR=value`; None: the value from this environment."""
    key, equals, value = text.partition("=")
    if not key:
        raise UsageError(
            f"spcomm run: {name} {text}: needs the name of a variable, for example {name} SEED=7"
        )
    if key in RESERVED:
        raise UsageError(f"spcomm run: {name} {text}: spcomm itself sets {key}, for each node")
    return key, value if equals else None


def file(name: str, text: str) -> str:
    if not text or text.endswith("/"):
        raise UsageError(f"spcomm run: {name} needs the name of a file, for example {name} t.json")
    return text


def folder(name: str, text: str) -> str:
    if not text:
        raise UsageError(f"spcomm run: {name} needs the name of a folder, for example {name} results")
    return text


def seconds(name: str, text: str) -> float:
    value = duration_s(text)
    if not value or value >= 1e9:
        raise UsageError(
            f"spcomm run: {name} {text}: must be a time above 0, for example {name} 60 or {name} 5m; a time is "
            f"{TIME_GRAMMAR}"
        )
    return value


def link_timeout(name: str, text: str, command: str = "spcomm run") -> float:
    """Read a time of at least a second: both ends of a connection send a heartbeat every thirtieth part of it."""
    try:
        value = seconds(name, text)
    except UsageError:
        value = 0.0
    if value < 1:
        raise UsageError(
            f"{command}: {name} {text}: must be a second or more, for example {name} 30; a time is {TIME_GRAMMAR}"
        )
    return value


def seconds_or_never(name: str, text: str) -> float:
    """Read a time; 0: never."""
    if text.isascii() and text.isdecimal() and int(text[:10]) == 0:
        return 0.0
    try:
        return seconds(name, text)
    except UsageError:
        raise UsageError(
            f"spcomm run: {name} {text}: must be a time, or 0 for never, for example {name} 10; a time is "
            f"{TIME_GRAMMAR}"
        ) from None


def binding(name: str, text: str) -> "str | tuple[tuple[int, ...], ...]":
    """Read `core`, `none`, or the processors of each node, as in `0-1/2,3`: as for taskset, with / between nodes."""
    if text in ("core", "none"):
        return text
    return tuple(_processors(name, text, item) for item in text.split("/"))


def _processors(name: str, text: str, item: str) -> "tuple[int, ...]":
    found: set[int] = set()
    for piece in item.split(","):
        low, dash, high = piece.strip().partition("-")
        ends = (low, high if dash else low)
        if not all(end.isascii() and end.isdecimal() and len(end) <= 5 for end in ends) or int(ends[0]) > int(
            ends[1]
        ):
            raise UsageError(
                f"spcomm run: {name} {text}: must be core (each node on one core, in turn), none (wherever there is "
                f"room), or the processors of each node, with / between nodes, as in {name} 0-1/2,3"
            )
        found.update(range(int(ends[0]), int(ends[1]) + 1))
    return tuple(sorted(found))


def count(name: str, text: str) -> int:
    value = whole_number(text)
    if value is None:
        raise UsageError(f"spcomm run: {name} {text}: must be a whole number")
    return value


def size(name: str, text: str) -> int:
    value = size_bytes(text)
    if value is None:
        raise UsageError(f"spcomm run: {name} {text}: must be {SIZE_GRAMMAR}")
    return value


def rendezvous(name: str, text: str) -> int:
    value = size(name, text)
    if value >= 2**63:
        raise UsageError(f"spcomm run: {name} {text}: must be from 0 (every send) to {2**63 - 1} bytes")
    return value


def size_text(name: str, value: int) -> str:
    """Return the value of a buffer option as a user would write it."""
    if name in ("slots", "fanin"):
        return str(value)
    for shift, letter in ((30, "G"), (20, "M"), (10, "K")):
        if value >= 1 << shift and value % (1 << shift) == 0:
            return f"{value >> shift}{letter}"
    return str(value)
