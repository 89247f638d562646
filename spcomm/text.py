# SPDX-License-Identifier: MIT
"""Text that several parts of spcomm write: tables, ranks, counted nouns, and text that is safe on a terminal."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Sequence


def aligned(
    rows: "Sequence[Sequence[str]]",
    left: "Collection[int] | None" = (0,),
    indent: str = "  ",
    gap: str = "  ",
) -> str:
    """Return lines of columns. Columns in `left` (None: all) are flush left, others flush right; rows may be short."""
    columns = widths(rows)
    lines = []
    for row in rows:
        blanks = [" " * (columns[i] - width(cell)) for i, cell in enumerate(row)]
        cells = [
            cell + blank if left is None or i in left else blank + cell
            for i, (cell, blank) in enumerate(zip(row, blanks, strict=True))
        ]
        lines.append((indent + gap.join(cells)).rstrip() + "\n")
    return "".join(lines)


def widths(rows: "Sequence[Sequence[str]]") -> "list[int]":
    """Return the width of each column."""
    columns = max(map(len, rows), default=0)
    return [max(width(row[i]) for row in rows if i < len(row)) for i in range(columns)]


def width(text: str) -> int:
    """Return the number of columns of a terminal that the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return `1 node`, `2 nodes`; `plural` is for a noun that needs more than an s."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def summary_of(path: "str | os.PathLike[str]") -> str:
    """Return the first line of the docstring of a Python file, which has it under `python -OO`, too."""
    import ast

    with open(path, encoding="utf-8") as file:
        text = ast.get_docstring(ast.parse(file.read())) or ""
    return text.partition("\n")[0]


def ranges_text(numbers: "Collection[int]") -> str:
    """Return `0-2, 5`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def ranks_text(ranks: "Sequence[int]") -> str:
    """Return `node 3`, `nodes 0-2, 5`."""
    return f"node{'s' if len(ranks) != 1 else ''} {ranges_text(ranks)}"


TIME_GRAMMAR = (
    "a number with a unit, ns, us, ms, s, m, h or d, as in 200ms or 1.5h; without a unit it is in seconds"
)
SIZE_GRAMMAR = "a number of bytes, or of K, M or G (1024 of the former each), as in 64K"
_UNIT_S = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 0.001,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30}
_LONGEST = 20  # digits; Python reads at most some thousand


def duration_s(text: str) -> "float | None":
    """Return the seconds in `90`, `0.5`, `10us`, `200ms`, `90s`, `5m`, `8h`, `2d`; None: another text."""
    number = text.rstrip("nuµμmshdi")
    unit = _UNIT_S.get(text[len(number) :] or "s")
    if unit is None or not number.isascii() or "_" in number or number.strip() != number:
        return None  # float would read these
    try:
        value = float(number)
    except ValueError:
        return None
    return value * unit if 0 <= value < 1e9 else None


def whole_number(text: str) -> "int | None":
    """Return the number that ASCII digits spell; one of more than 20 digits is cut. None: another text."""
    if not (text.isascii() and text.isdecimal()):
        return None
    return int(text) if len(text.lstrip("0")) <= _LONGEST else 10**_LONGEST


def is_option(word: str) -> bool:
    """Return whether a word of a command line is an option, and so no value of the option before it.

    A negative number is a value: the option that refuses it says which numbers it takes.
    """
    return word.startswith("-") and not word[1:2].isdecimal()


def size_bytes(text: str) -> "int | None":
    """Return the bytes in `4096`, `64K`, `64KB`, `64KiB`, `2M`, `1G`; None: another text."""
    digits = text.upper().removesuffix("B")
    digits = digits.removesuffix("I") if digits[-2:-1] in ("K", "M", "G") else digits
    unit = digits.lstrip("0123456789")
    number = whole_number(digits.removesuffix(unit))
    return None if number is None or unit not in _SHIFTS else number << _SHIFTS[unit]


def rounded_size(value: int) -> str:
    """Return a number of bytes for reading: `7.8G`."""
    for shift, letter in ((30, "G"), (20, "M"), (10, "K")):
        if value >= 1 << shift:
            return f"{value / (1 << shift):.1f}".removesuffix(".0") + letter
    return str(value)


def duration_text(seconds: float) -> str:
    """Format as `3.4 s`, `12:34`, `1:02:03`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def printable(text: str, kept: str = "\n\t") -> str:
    """Return text that cannot steer a terminal: unprintable characters are replaced, except those to keep."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in kept else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
