# SPDX-License-Identifier: MIT
"""One check of a student's program, told as it goes: a line for each run, and at the end what to do."""

import shlex
from collections.abc import Callable
from pathlib import Path

from spcomm.learn.catalogue import Exercise
from spcomm.learn.lessons import Lessons
from spcomm.learn.terminal import Page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm.learn import Grade

_SHOWN = 40  # lines of a message


def check(
    page: Page,
    grade: "Callable[..., Grade]",
    exercise: Exercise,
    file: Path,
    lessons: "Lessons | None" = None,
    name: str = "",
) -> "Grade":
    """Grade a file and say what came of it; what has passed is noted in `lessons`. `name`: what the file is called.

    Raises
    ------
    LearnError
        If it cannot be graded.
    """
    from spcomm.demo import shorter

    page.say(f"checking {name or shorter(file)}")
    result = grade(file, exercise=exercise.name, on_case=lambda case: page.case(case.name, case.passed))
    if result.passed:
        if lessons is not None:
            lessons.progress.note_passed(exercise.name)
        count = len(result.cases)
        page.say(f"{exercise.name} has passed: {count} run{'s' if count != 1 else ''}", "bold green")
        return result
    page.say(_limited(result.message), "red")
    return result


def advice(exercise: Exercise, result: "Grade", file: Path, how_to_ask: str) -> str:
    """What to do after a check that has not passed."""
    hint = f"{how_to_ask} shows a hint" if exercise.hints else "read README.md again"
    return f"what to do: {hint}; by hand: {by_hand(result, file)}"


def by_hand(result: "Grade", file: Path) -> str:
    """The command line that runs the program as the run that failed did."""
    from spcomm.demo import command, shorter

    failed = next((case for case in result.cases if not case.passed), None)
    nodes = getattr(failed, "nodes", None) or 3
    return f"{command()} run -n {nodes} {shlex.quote(shorter(file))}"


def _limited(text: str) -> str:
    """A message may be a whole report."""
    lines = text.rstrip().splitlines()
    if len(lines) <= _SHOWN:
        return "\n".join(lines)
    half = _SHOWN // 2
    left = len(lines) - 2 * half
    return "\n".join([*lines[:half], f"... {left} lines left out ...", *lines[-half:]])
