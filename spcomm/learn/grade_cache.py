# SPDX-License-Identifier: MIT
"""Grades that `spcomm check --keep` has written down, so that it does not grade the same file again."""

import hashlib
import json
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from spcomm.learn.catalogue import Exercise
from spcomm.learn.errors import LearnError


class GradeCache:
    """A file with a grade in each line, under a key of all that the grade depends on."""

    def __init__(self, path: "str | None") -> None:
        self._path = path
        self._grades: dict[str, dict[str, object]] = {}
        self._file = None
        if path is None:
            return
        try:
            text = Path(path).read_text(encoding="utf-8") if os.path.exists(path) else ""
            self._file = open(path, "a", encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise LearnError(f"--keep {path} cannot be used: {error}; give another file") from None
        self._read(text)
        if text and not text.endswith("\n"):  # the machine stopped while it was written
            self._file.write("\n")

    def get(self, key: str) -> "dict[str, object] | None":
        """Return the earlier result for the same file, or None."""
        return self._grades.get(key)

    def add(self, key: str, grade: "dict[str, object]") -> None:
        """Write a grade down; a file that could not be graded is tried again next time."""
        if self._file is None or grade["passed"] is None:
            return
        self._file.write(json.dumps({"key": key, "grade": grade}) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Nothing more will be added."""
        if self._file is not None:
            self._file.close()

    def _read(self, text: str) -> None:
        lines = text.splitlines()
        for number, line in enumerate(lines):
            try:
                told = json.loads(line)
                self._grades[told["key"]] = dict(told["grade"])
            except (ValueError, KeyError, TypeError):
                if number == 0 and text.endswith("\n"):
                    raise LearnError(
                        f"--keep {self._path} is not a file that --keep has written; give another name"
                    ) from None


def key(file: Path, exercise: Exercise, seed: "int | None", quick: bool) -> str:
    """Return a word for all that a grade depends on: the file, the exercise, the inputs asked for, spcomm itself."""
    try:
        about = version("spcomm")
    except PackageNotFoundError:
        about = ""
    found = hashlib.sha256(json.dumps([exercise.name, file.name, seed, quick, about]).encode())
    for path in (exercise.folder / "check.py", exercise.folder / "info.toml", file):
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()
