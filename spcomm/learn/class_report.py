# SPDX-License-Identifier: MIT
"""Report on a class, or on several files: a line for each, a line for all, a table for spreadsheets."""

import csv
import os
import sys

from spcomm.learn.errors import LearnError
from spcomm.text import printable

VERDICTS = {True: "passed", False: "failed", None: "not judged"}

_COLUMNS = (
    "student", "passed", "right", "of", "not_run", "message", "file", "exercise", "seed", "isolation",
)  # fmt: skip
_MOST = 100  # characters of a message in a line
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def line(grade: "dict[str, object]", width: int) -> str:
    """Return the line of one student."""
    verdict = "missing" if is_missing(grade) else VERDICTS[grade["passed"]]
    right, planned = counted(grade)
    count = "" if grade["passed"] is None else f"{right}/{planned}"
    left_out = f"({grade['left_out']} not run) " if grade.get("left_out") else ""
    name = printable(grade["student"], "")
    return f"{name:<{width}}  {verdict:<10}  {count:>5}  {left_out}{short(grade['message'])}".rstrip()


def is_missing(grade: "dict[str, object]") -> bool:
    """Whether the student has handed in nothing."""
    return grade.get("missing") is True


def summary(grades: "list[dict[str, object]]") -> str:
    """Return the line of all."""
    there = [grade for grade in grades if not is_missing(grade)]
    counts = [sum(grade["passed"] is verdict for grade in there) for verdict in (True, False, None)]
    text = "{} handed in: {} passed, {} failed, {} not judged".format(len(there), *counts)
    missing = len(grades) - len(there)
    return f"{text}; {missing} handed in nothing" if missing else text


def counted(grade: "dict[str, object]") -> "tuple[int, int]":
    """Return how many cases were right, and of how many."""
    cases = grade["cases"]
    return sum(case["passed"] for case in cases), len(cases) + grade.get("left_out", 0)


def write_csv(path: str, grades: "list[dict[str, object]]") -> None:
    """Write the table. It is there as a whole, or as it was before."""
    half = f"{path}.part"
    try:
        with open(half, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(_COLUMNS)
            rows.writerows(_row(grade) for grade in grades)
        os.replace(half, path)
    except OSError as error:
        raise LearnError(f"--csv {path} cannot be written: {error.strerror or error}") from None


def show(text: str) -> None:
    """Print a line now."""
    print(text, flush=True)


def show_isolation(grades: "list[dict[str, object]]") -> None:
    """Print once, for all solutions, how they were isolated."""
    for about in sorted({str(grade["isolation"]) for grade in grades if "isolation" in grade}):
        print(f"Isolation: {about}", file=sys.stderr)


def _row(grade: "dict[str, object]") -> "list[object]":
    """A row for a table: a line in each cell, and of the isolation its name alone."""
    right, planned = counted(grade)
    told = {**grade, "right": right, "of": planned, "not_run": grade.get("left_out", 0)}
    told["passed"] = "no" if is_missing(grade) else {True: "yes", False: "no", None: ""}[grade["passed"]]
    told["message"] = " | ".join(line.strip() for line in grade["message"].splitlines())
    told["isolation"] = str(grade.get("isolation", "")).partition(":")[0]
    return [_cell(told.get(name, "")) for name in _COLUMNS]


def _cell(value: object) -> object:
    """A text that a spreadsheet takes for a formula gets a quote, which it does not show."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def short(text: str) -> str:
    """Return the beginning of a message, which is the student's: nothing in it may move the cursor."""
    first = printable(text.strip().partition("\n")[0], "")
    return first if len(first) <= _MOST else f"{first[: _MOST - 3]}..."
