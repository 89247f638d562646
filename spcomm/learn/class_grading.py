# SPDX-License-Identifier: MIT
"""Grades the files that a class has handed in: several at a time, each by a judge that is a process of its own.

If one judge fails, the others go on.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path

from spcomm.learn.submissions import Submission

_TOLD = 500  # characters of a judge's output before it failed


class ClassGrading:
    """All that is graded by one command, with the same inputs for all."""

    def __init__(self, seed: "int | None", quick: bool, jobs: int) -> None:
        self._seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
        self._quick = quick
        self._jobs = jobs
        self._judges: set[subprocess.Popen[str]] = set()
        self._over = False

    def grade(self, students: "list[Submission]") -> "Iterator[tuple[int, dict[str, object]]]":
        """Yield the number of each student in the list, and a grade, in the order in which they are done."""
        pool = ThreadPoolExecutor(self._jobs)
        waiting: dict[Future[dict[str, object]], int] = {}
        try:
            for number, student in enumerate(students):
                if student.problem:
                    missing = {"missing": True} if student.is_missing else {}
                    found = {**ungraded(student.file, student.problem), **missing}
                    yield number, {"student": student.student, **found}
                else:
                    waiting[pool.submit(self._judge, student)] = number
            for future in as_completed(waiting):
                number = waiting[future]
                yield number, {"student": students[number].student, **future.result()}
        finally:
            self._over = True
            for judge in list(self._judges):  # by Ctrl-C, or a closed pipe: each ends its run first
                judge.terminate()
            pool.shutdown(cancel_futures=True)

    def _judge(self, student: Submission) -> "dict[str, object]":
        words = [sys.executable, "-P", "-m", "spcomm", "check", "--json", "--seed", str(self._seed)]
        words += ["--quick"] if self._quick else []
        words += ["--exercise", str(student.exercise.folder), "--", str(student.file)]
        judge = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._judges.add(judge)
        if self._over:
            judge.terminate()
        out, err = judge.communicate()
        self._judges.discard(judge)
        try:
            [found] = json.loads(out)
            return found
        except ValueError:
            said = f": {err.strip()[-_TOLD:]}" if err.strip() else ""
            return ungraded(student.file, f"the judge ended with exit code {judge.returncode}{said}")


def ungraded(file: "Path | str", why: str) -> "dict[str, object]":
    """The line for a file that cannot be graded."""
    return {"file": os.fspath(file), "passed": None, "cases": [], "message": why}
