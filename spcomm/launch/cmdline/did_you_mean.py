# SPDX-License-Identifier: MIT
"""Did-you-mean suggestions for a missing program."""

import contextlib
import difflib
import json
import os
import re

_MOST = 3  # names in one sentence
_ALIKE = 0.8  # a.py is not near b.py
_LOOKED_AT = 10_000  # entries of a folder
_EXERCISE = re.compile(r"\d\d_\w+")
_PROGRESS = ".spcomm-learn.json"  # in a folder of exercises: spcomm/learn/progress.py writes it


def near(name: str) -> str:
    """Return a part of a sentence, such as ``"; did you mean heat.py?"``; empty if no name is near."""
    folder, wanted = os.path.split(name)
    below = _below(folder, wanted)
    if any(map(_EXERCISE.fullmatch, below)):
        found = os.path.join(folder, _next(folder, [each for each in below if _EXERCISE.fullmatch(each)]))
        return f"; each exercise has its own folder: cd {found}, or give {os.path.join(found, wanted)}"
    found = [os.path.join(each, wanted) for each in below[:_MOST]]
    for word in (wanted, f"{wanted}.py"):
        found = found or difflib.get_close_matches(word, _names(folder, os.DirEntry.is_file), _MOST, _ALIKE)
    if not found:
        return ""
    *most, last = [os.path.join(folder, each) for each in found]
    return f"; did you mean {', '.join(most)}{' or ' * bool(most)}{last}?"


def _below(folder: str, wanted: str) -> "list[str]":
    """Return the folders in this one that have such a file."""
    names = _names(folder, os.DirEntry.is_dir)
    return [each for each in names if os.path.isfile(os.path.join(folder, each, wanted))]


def _names(folder: str, is_one: object) -> "list[str]":
    """Return the entries of a folder, in order, without hidden and strange ones; none if it is unreadable."""
    try:
        with os.scandir(folder or os.curdir) as entries:
            known = (entry for entry, _count in zip(entries, range(_LOOKED_AT), strict=False))
            return sorted(entry.name for entry in known if _is_plain(entry.name) and is_one(entry))
    except OSError:
        return []


def _is_plain(name: str) -> bool:
    return name[0] != "." and name.isprintable()  # others could steer the terminal


def _next(folder: str, exercises: "list[str]") -> str:
    """Return the exercise that `spcomm learn` shows, or the first that has not passed."""
    current, passed = "", []
    with contextlib.suppress(OSError, ValueError, RecursionError, AttributeError):
        with open(os.path.join(folder, _PROGRESS), encoding="utf-8") as file:
            told = json.load(file)
        current, passed = told.get("current", ""), told.get("passed", [])
    if isinstance(current, str) and current in exercises:
        return current
    left = [each for each in exercises if not isinstance(passed, list) or each not in passed]
    return (left or exercises)[0]
