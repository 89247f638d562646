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

from spcomm.learn.grade_cache import GradeCache, key
from spcomm.learn.submissions import Submission

_TOLD = 500  # characters of a judge's output before it failed


class ClassGrading:
    """All that is graded by one command, with the same inputs for all."""

    def __init__(self, seed: "int | None", quick: bool, jobs: int, cache: GradeCache) -> None:
        self._asked = seed
        self._seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
        self._quick = quick
        self._jobs = jobs
        self._cache = cache
        self._judges: set[subprocess.Popen[str]] = set()
        self._over = False

    def grade(self, students: "list[Submission]") -> "Iterator[tuple[int, dict[str, object]]]":
        """Yield the number of each student in the list, and a grade, in the order in which they are done."""
        pool = ThreadPoolExecutor(self._jobs)
        waiting: dict[Future[dict[str, object]], tuple[int, str]] = {}
        try:
            for number, student in enumerate(students):
                word, known = self._known(student)
                if known is None:
                    waiting[pool.submit(self._judge, student)] = number, word
                else:
                    yield number, {"student": student.student, **known}
            for future in as_completed(waiting):
                number, word = waiting[future]
                found = future.result()
                self._cache.add(word, found)
                yield number, {"student": students[number].student, **found}
        finally:
            self._over = True
            for judge in list(self._judges):  # by Ctrl-C, or a closed pipe: each ends its run first
                judge.terminate()
            pool.shutdown(cancel_futures=True)

    def _known(self, student: Submission) -> "tuple[str, dict[str, object] | None]":
        if student.problem:
            missing = {"missing": True} if student.is_missing else {}
            return "", {**ungraded(student.file, student.problem), **missing}
        try:
            word = key(student.file, student.exercise, self._asked, self._quick)
        except OSError:  # the judge reports the error
            return "", None
        known = self._cache.get(word)
        return word, known and {**known, "file": os.fspath(student.file)}

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
