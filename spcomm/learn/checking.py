# SPDX-License-Identifier: MIT
"""One check of a student's program, reported as it runs: a line for each run, and at the end the next step."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from spcomm.demo import command, shorter
from spcomm.learn.catalogue import Exercise
from spcomm.learn.lessons import Lessons
from spcomm.learn.terminal import Page
from spcomm.text import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm.learn import CaseGrade, Grade

_NODES = 3  # if the run that failed does not name a number
_SHOWN = 40  # lines of a message


@dataclass(frozen=True)
class Result:
    """Result of a check, up to the first run that failed."""

    passed: bool
    runs: int
    failed: str = ""  # the name of the run that failed
    message: str = ""  # the judge's message about it


def check(
    page: Page,
    grade: "Callable[..., Grade]",
    exercise: Exercise,
    file: Path,
    lessons: "Lessons | None" = None,
    name: str = "",
) -> Result:
    """Grade a file up to the first run that fails, and return the outcome.

    Parameters
    ----------
    page, grade, exercise, file
        The page for the output, the judge, the exercise, and the student's file.
    lessons : Lessons, optional
        It records the passed exercises.
    name : str, optional
        The name of the file.

    Raises
    ------
    LearnError
        If it cannot be graded.
    """
    page.say(f"checking {name or shorter(file)}")
    result = _graded(page, grade, exercise, file)
    if result.passed:
        page.say(f"{exercise.name} has passed: {counted(result.runs, 'run')}", "bold green")
        if lessons is not None:
            lessons.progress.note_passed(exercise.name)
    else:
        page.say(_limited(result.message), "red")
    return result


class _FirstFailure(Exception):
    """A run has failed: the others would take time, and add little."""


def _graded(page: Page, grade: "Callable[..., Grade]", exercise: Exercise, file: Path) -> Result:
    seen = []

    def one_more(case: "CaseGrade") -> None:
        seen.append(case)
        page.case(case.name, case.passed)
        if not case.passed:
            raise _FirstFailure

    try:
        whole = grade(file, exercise=exercise, on_case=one_more)
    except _FirstFailure:
        return Result(False, len(seen), seen[-1].name, seen[-1].message)
    return Result(whole.passed, len(seen), "", whole.message)


def advice(exercise: Exercise, result: Result, file: Path, how_to_ask: str) -> str:
    """Advice after a check that has not passed."""
    hint = f"{how_to_ask} shows a hint" if exercise.hints else "read README.md again"
    return f"next: change {shorter(file)} and save it; {hint}\nrun it yourself: {by_hand(result, file)}"


def by_hand(result: Result, file: Path) -> str:
    """The command line that runs the program as the run that failed did."""
    told = re.findall(r"(\d+) nodes?\b", result.failed)
    return f"{command()} run -n {told[-1] if told else _NODES} {shlex.quote(shorter(file))}"


def _limited(text: str) -> str:
    """A message may be a whole report."""
    lines = text.rstrip().splitlines()
    if len(lines) <= _SHOWN:
        return "\n".join(lines)
    half = _SHOWN // 2
    left = len(lines) - 2 * half
    return "\n".join([*lines[:half], f"... {left} lines left out ...", *lines[-half:]])
