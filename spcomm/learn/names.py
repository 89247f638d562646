# SPDX-License-Identifier: MIT
"""Match of a numbered thing that a user means: `3`, `03`, `03_pi`, `pi`, or any part that only one has."""

import difflib
from collections.abc import Sequence

from spcomm.learn.errors import LearnError

_LONGEST = 200  # letters: Python refuses to read numbers of thousands of them


class UsageError(LearnError):
    """Nothing matches what was typed."""


def chosen(word: str, names: Sequence[str], kind: str, listing: str) -> str:
    """The name that a word means.

    Parameters
    ----------
    word : str
        The typed word.
    names : sequence of str
        Such as ``03_pi``; those without a number are known by their letters.
    kind, listing : str
        Their kind ("exercise"), and the command that lists them, for the error.

    Raises
    ------
    UsageError
        If it means none of them, or several.
    """
    wanted = word.strip().removesuffix("/").lower()
    if len(wanted) > _LONGEST:
        raise UsageError(f"there is no {kind} with a name of {len(wanted)} letters; `{listing}` lists them")
    if wanted.isdecimal():
        found = [name for name in names if number(name) == int(wanted)]
    else:
        plain = wanted.removesuffix(".py")
        found = [name for name in names if plain in (name.lower(), topic(name))]
        found = found or [name for name in names if plain and plain in name.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{word!r} is in the names of several: {', '.join(found)}; give one of them")
    raise UsageError(f"there is no {kind} {word!r}{_near(wanted, names)}; `{listing}` lists them")


def number(name: str) -> "int | None":
    """The candidates that begin with it."""
    digits = name.partition("_")[0]
    return int(digits) if digits.isdecimal() else None


def topic(name: str) -> str:
    """The name without its number and its ending."""
    return name.lower().removesuffix(".py").lstrip("0123456789").lstrip("_")


def _near(wanted: str, names: Sequence[str]) -> str:
    if wanted.isdecimal() and (numbers := [n for n in map(number, names) if n is not None]):
        nearest = min(numbers, key=lambda n: abs(n - int(wanted)))
        name = next(name for name in names if number(name) == nearest)
        return f" (the nearest is {name})"
    words = {topic(name): name for name in names} | {name.lower(): name for name in names}
    near = difflib.get_close_matches(wanted.removesuffix(".py"), words, 1, cutoff=0.5)
    return f" (did you mean {words[near[0]]}?)" if near else ""
