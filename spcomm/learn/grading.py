# SPDX-License-Identifier: MIT
"""Grades a student's file: runs the cases of its exercise, and lets check.py judge the results."""

import itertools
import os
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from spcomm.learn import failure_text, running, sandbox
from spcomm.learn.case import Case, Outcome, Wrong
from spcomm.learn.catalogue import Exercise, exercise_of, find
from spcomm.learn.check_script import Check
from spcomm.learn.errors import LearnError, of_system, shown
from spcomm.text import printable

QUICK = 3  # cases
_ENDLESS = ("seconds", "processes", "memory", "output", "guard")


@dataclass(frozen=True)
class CaseGrade:
    """One run: whether it has passed, and if not, the message for the student."""

    name: str
    passed: bool
    message: str = ""


@dataclass(frozen=True)
class Grade:
    """The judge's result for a file."""

    exercise: str
    file: str
    passed: bool
    cases: "tuple[CaseGrade, ...]"
    message: str  # of the first case that failed; empty if all passed
    isolation: str  # how the program was isolated, or why it was not
    seed: int  # with the same one the same inputs are drawn
    left_out: int = 0  # cases that were not run, because one before them went to a limit

    def as_dict(self) -> "dict[str, object]":
        """Return it for JSON."""
        cases = [{"name": c.name, "passed": c.passed, "message": c.message} for c in self.cases]
        return {
            "exercise": self.exercise,
            "file": self.file,
            "passed": self.passed,
            "cases": cases,
            "message": self.message,
            "isolation": self.isolation,
            "seed": self.seed,
            "left_out": self.left_out,
        }


def grade(
    path: "str | os.PathLike[str]",
    exercise: "Exercise | str | None" = None,
    seed: "int | None" = None,
    on_case: "Callable[[CaseGrade], None] | None" = None,
    quick: bool = False,
    cancellation: "running.Cancellation | None" = None,
) -> Grade:
    """Grade a solution.

    Runs it once for each case of the exercise, as `spcomm check` does. Waits for all of them.

    Parameters
    ----------
    path
        The student's file, a Python program. Only this file is given to the nodes.
    exercise
        Its exercise: an `Exercise`, a number, a name, a folder; default: the one that the name of the file, or of
        its folder, gives.
    seed
        From which inputs and disturbances are drawn; default: another one each time.
    on_case
        Called after each case with its `CaseGrade`.
    quick
        Only the first three cases.
    cancellation
        Another thread may call its `request()`: the run ends at once, and this function raises `Cancelled`.

    Returns
    -------
    Grade

    Raises
    ------
    LearnError
        There is no such file or exercise, or the exercise's check.py fails: not the student's fault.

    Examples
    --------
    >>> from spcomm.learn import grade
    >>> grade("02_split/exercise.py").message  # doctest: +SKIP
    'node 1 returned None; expected 42 (3 nodes)'
    """
    file = _file(path)
    if not isinstance(exercise, Exercise):
        exercise = exercise_of(file) if exercise is None else find(str(exercise))
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    check = Check(exercise)
    cases = itertools.islice(check.cases(seed), QUICK if quick else None)
    done = _grade_cases(file, exercise, check, cases, seed, on_case, cancellation or running.Cancellation())
    wrong = [case.message for case in done if not case.passed]
    message = wrong[0] if wrong else ""
    left = sum(1 for _case in cases)
    return Grade(
        exercise.name, os.fspath(path), not wrong, tuple(done), message, sandbox.walls().about, seed, left
    )


def _file(path: "str | os.PathLike[str]") -> Path:
    """The student's file, if it is one."""
    file = Path(path)
    try:
        if file.is_symlink():  # what is behind it may be somebody else's
            raise LearnError(f"{shown(os.fspath(path))} is a link; give the file itself")
        if file.suffix == ".py" and file.is_file():
            return file
        is_there = file.exists()
    except OSError as error:
        raise of_system(error) from None
    is_none = "is not a Python file (its name must end in .py)"
    if file.suffix == ".py":
        is_none = "is a folder, a pipe or a device, not a file"
    what = is_none if is_there else "does not exist"
    raise LearnError(f"{shown(os.fspath(path))} {what}; give the file with your solution")


def _grade_cases(
    file: Path,
    exercise: Exercise,
    check: Check,
    cases: "Iterable[Case]",
    seed: int,
    on_case: "Callable[[CaseGrade], None] | None",
    cancellation: running.Cancellation,
) -> "list[CaseGrade]":
    done: list[CaseGrade] = []
    for number, case in enumerate(cases):
        cancellation.check()
        disturbance = random.Random(f"{seed} {number}").randrange(1 << 31)
        run = running.run(case, file, exercise, disturbance, sandbox.walls(), cancellation)
        try:
            found = failure_text.values_of(run, file.name, exercise.limits)
            check.judge(case, Recorded(found, run))
            done.append(CaseGrade(case.name, True))
        except Wrong as wrong:
            done.append(CaseGrade(case.name, False, printable(str(wrong))))
        if on_case is not None:
            on_case(done[-1])
        if run.stopped in _ENDLESS or run.code == 124:
            break  # it would take as long each time
    return done


class Recorded(Outcome):
    """The outcome of a run; its trace is read when it is first used."""

    def __init__(self, found: "list[object]", run: running.Run) -> None:
        super().__init__(found, run.output)
        self._run = run

    @property
    def trace(self) -> object:
        """Results of the program. Raises `Wrong` if they are not known."""
        if self._trace is None:
            from spcomm.trace import reader

            try:
                self._trace = reader.parse((self._run.trace or b"").decode(), "the trace of the run")
            except Exception as error:  # the program may have written to it
                raise Wrong(f"the program's trace cannot be read: {str(error)[:300]}") from None
            for rank, lost in enumerate(self._trace.overwritten):
                if lost:
                    raise Wrong(
                        f"node {rank} made more calls than the judge can record ({running.TRACE_EVENTS} events): "
                        "does it poll in a loop?"
                    )
        return self._trace
