# SPDX-License-Identifier: MIT
"""One check of a student's program, reported as it runs: a line for each run, and at the end the next step."""

import os
import re
import select
import shlex
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from spcomm.demo import command, shorter
from spcomm.learn.catalogue import Exercise
from spcomm.learn.lessons import Lessons
from spcomm.learn.running import Cancellation, Cancelled
from spcomm.learn.terminal import Page
from spcomm.text import counted

if TYPE_CHECKING:
    from spcomm.learn import CaseGrade, Grade

_NODES = 3  # if the run that failed does not name a number
_SHOWN = 40  # lines of a message
_PATIENCE_S = 15.0  # for a check that is to end: its guard gives up after 10 s


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
    with RunningCheck(grade, exercise, file) as running:
        while (result := running.progress(page)) is None:
            page.clock(running.seconds())
            running.wait()
    finish(page, exercise, result, lessons)
    return result


def finish(page: Page, exercise: Exercise, result: Result, lessons: "Lessons | None") -> None:
    """Show the result of a check, and record that an exercise has passed."""
    if result.passed:
        page.say(f"{exercise.name} has passed: {counted(result.runs, 'run')}", "bold green")
        if lessons is not None:
            lessons.progress.note_passed(exercise.name)
    else:
        page.say(_limited(result.message), "red")


class _FirstFailure(Exception):
    """A run has failed: the others would take time, and add little."""


class RunningCheck:
    """A check in a thread of its own, so that the thread that has started it can end it at any moment.

    Attributes
    ----------
    fd : int
        Can be read when there is something for `progress` to show.
    """

    def __init__(self, grade: "Callable[..., Grade]", exercise: Exercise, file: Path) -> None:
        self._began = time.monotonic()
        self._found: SimpleQueue[CaseGrade | Result | BaseException] = SimpleQueue()
        self.passed = 0  # runs that were shown
        self.fd, self._write_end = os.pipe()
        self._cancellation = Cancellation()
        self._thread = threading.Thread(
            target=self._run, args=(grade, exercise, file), name="spcomm check", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> "RunningCheck":
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    def seconds(self) -> int:
        """The age of the check."""
        return int(time.monotonic() - self._began)

    def wait(self) -> None:
        """Wait for something to show, or for the next second."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        poll.poll((1.0 - (time.monotonic() - self._began) % 1.0) * 1000)

    def progress(self, page: Page) -> "Result | None":
        """Show the runs that have ended; return the result, when all have. Raises the error of a judge that failed."""
        while True:
            try:
                found = self._found.get_nowait()
            except Empty:
                return None
            os.read(self.fd, 1)
            page.clock(None)
            if isinstance(found, BaseException):
                raise found
            if isinstance(found, Result):
                return found
            self.passed += found.passed
            page.case(found.name, found.passed)

    def end(self) -> None:
        """End it at once, if it has not ended: none of its processes is left then, and nothing more is shown."""
        self._cancellation.request()
        self._thread.join(_PATIENCE_S)
        while self._thread.is_alive():
            self._cancellation.kill()
            self._thread.join(1)
        os.close(self.fd)
        os.close(self._write_end)

    def _run(self, grade: "Callable[..., Grade]", exercise: Exercise, file: Path) -> None:
        try:
            self._put(self._graded(grade, exercise, file))
        except Cancelled:
            pass
        except BaseException as error:  # the other thread raises it
            self._put(error)

    def _graded(self, grade: "Callable[..., Grade]", exercise: Exercise, file: Path) -> Result:
        seen = []

        def one_more(case: "CaseGrade") -> None:
            seen.append(case)
            self._put(case)
            if not case.passed:
                raise _FirstFailure

        try:
            whole = grade(file, exercise=exercise, on_case=one_more, cancellation=self._cancellation)
        except _FirstFailure:
            return Result(False, len(seen), seen[-1].name, seen[-1].message)
        return Result(whole.passed, len(seen), "", whole.message)

    def _put(self, found: "CaseGrade | Result | BaseException") -> None:
        self._found.put(found)
        os.write(self._write_end, b".")


def advice(exercise: Exercise, result: Result, file: Path, how_to_ask: str, in_cell: bool = False) -> str:
    """Advice after a check that has not passed. `in_cell`: a cell of the notebook writes the file."""
    hint = f"{how_to_ask} shows a hint" if exercise.hints else "read README.md again"
    if in_cell:
        by_itself = by_hand(result, file, "%spcomm")
        return f"next: change the cell above and run it, then this one; {hint}\nrun it yourself: {by_itself}"
    return f"next: change {_named(file)} and save it; {hint}\nrun it yourself: {by_hand(result, file)}"


def by_hand(result: Result, file: Path, spcomm: str = "") -> str:
    """The command line that runs the program as the run that failed did."""
    told = re.findall(r"(\d+) nodes?\b", result.failed)
    return f"{spcomm or command()} run -n {told[-1] if told else _NODES} {_named(file)}"


def _named(file: Path) -> str:
    """The path from here, as a shell takes it."""
    return shlex.quote(shorter(file))


def _limited(text: str) -> str:
    """A message may be a whole report."""
    lines = text.rstrip().splitlines()
    if len(lines) <= _SHOWN:
        return "\n".join(lines)
    half = _SHOWN // 2
    left = len(lines) - 2 * half
    return "\n".join([*lines[:half], f"... {left} lines left out ...", *lines[-half:]])
