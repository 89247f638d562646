# SPDX-License-Identifier: MIT
"""Submissions of a class: the file to grade in each student's folder."""

import os
from dataclasses import dataclass
from pathlib import Path

from spcomm.learn.catalogue import Exercise, exercise_of, find
from spcomm.learn.errors import LearnError

_PROGRAM = "exercise.py"


@dataclass(frozen=True)
class Submission:
    """Submission of one student, or the reason why it cannot be graded."""

    student: str
    file: Path
    exercise: "Exercise | None" = None
    problem: str = ""
    is_missing: bool = False  # nothing was handed in


def handed_in(words: "list[str]", exercise: "str | None") -> "list[Submission]":
    """Find the files, and the folders of classes, that the words of a command line name.

    Parameters
    ----------
    words
        A file belongs to a student named like the word. In a folder, each folder and each Python file belongs to a
        student.
    exercise
        The exercise of all files; default: the one that the name of the file or of the folder gives.

    Raises
    ------
    LearnError
        There is no such exercise, or nothing in a folder.
    """
    asked = None if exercise is None else find(exercise)
    found: list[Submission] = []
    for word in words:
        found += _class(Path(word), asked) if os.path.isdir(word) else [_file(word, asked)]
    return found


def _file(word: str, asked: "Exercise | None") -> Submission:
    try:
        return Submission(word, Path(word), asked or exercise_of(word))
    except LearnError as error:
        return Submission(word, Path(word), None, str(error))


def _class(folder: Path, asked: "Exercise | None") -> "list[Submission]":
    exercise = asked or _exercise_of_class(folder)
    try:
        entries = sorted(entry for entry in folder.iterdir() if not _passed_over(entry.name))
    except OSError as error:
        raise LearnError(f"{folder} cannot be read: {error.strerror}") from None
    entries = [entry for entry in entries if entry.is_dir() or entry.suffix == ".py"]
    if not entries:
        raise LearnError(f"nothing in {folder} can be graded: give a folder with a folder for each student")
    return [_student(entry, exercise) for entry in entries]


def _exercise_of_class(folder: Path) -> Exercise:
    try:
        return exercise_of(folder / _PROGRAM)
    except LearnError:
        raise LearnError(
            f"{folder}: it is not clear which exercise this is; give it the name of the exercise (02_split), or add "
            "--exercise 2 (in Python exercise=2)"
        ) from None


def _student(entry: Path, exercise: Exercise) -> Submission:
    if entry.is_symlink():  # what is behind it may be somebody else's
        return Submission(entry.name, entry, exercise, f"{entry} is a link; give the file itself")
    if not entry.is_dir():
        return Submission(entry.stem, entry, exercise)
    programs = _programs(entry)
    for liked in (_named(exercise), lambda path: path.name == _PROGRAM, lambda path: True):
        chosen = [path for path in programs if liked(path)]
        if len(chosen) == 1:
            return Submission(entry.name, chosen[0], exercise)
        if chosen:
            names = ", ".join(str(path.relative_to(entry)) for path in chosen[:3])
            why = f"there are {len(chosen)} Python files in {entry} that could be it ({names}); keep one {_PROGRAM}"
            return Submission(entry.name, entry, exercise, why)
    why = f"there is no Python file in {entry}: nothing was handed in"
    return Submission(entry.name, entry, exercise, why, is_missing=True)


def _named(exercise: Exercise) -> "object":
    """Whether a path's name is that of the exercise."""
    return lambda path: (
        path.stem == exercise.name or (path.name == _PROGRAM and path.parent.name == exercise.name)
    )


def _programs(folder: Path) -> "list[Path]":
    """All Python files below a folder, but no links: they may lead to the teacher's own solution."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _passed_over(name)]
        paths = [Path(place, name) for name in names if name.endswith(".py") and not _passed_over(name)]
        found += [path for path in paths if path.is_file() and not path.is_symlink()]
    return sorted(found)


def _passed_over(name: str) -> bool:
    """Files that systems put into folders and archives by themselves."""
    return name.startswith(".") or name in ("__pycache__", "__MACOSX")
