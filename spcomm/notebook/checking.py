# SPDX-License-Identifier: MIT
"""`%spcomm check` and `%%spcomm_check`: the exercises of `spcomm learn` in a notebook."""

import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path

from spcomm.learn.catalogue import Exercise
from spcomm.learn.errors import LearnError
from spcomm.notebook.magic_options import MagicError

_MANY = "%spcomm check takes an exercise and a file at most, as in %spcomm check 02 mine.py"


def check(line: str) -> None:
    """``%spcomm check [NN] [FILE]``: without a file exercise.py, here or in the folder of the exercise."""
    words = _words(line)
    if len(words) > 2:
        raise MagicError(_MANY)
    known = _known()
    file = words.pop() if words and (words[-1].endswith(".py") or len(words) == 2) else None
    exercise = _named(words[0], known) if words else None
    path = Path(file) if file is not None else _file(exercise)
    if not path.is_file():
        where = f" in {Path.cwd()}" if file is None else ""
        raise MagicError(
            f"%spcomm check: there is no {path}{where}; a cell that begins with %%writefile {path} writes it"
        )
    _graded(path, exercise or _of(path, known), known)


def check_cell(line: str, cell: str) -> None:
    """``%%spcomm_check NN``: the cell is the program."""
    words = _words(line)
    if len(words) != 1:
        raise MagicError("%%spcomm_check: name one exercise, as in %%spcomm_check 02")
    known = _known()
    exercise = _named(words[0], known)
    with tempfile.TemporaryDirectory(prefix="spcomm-") as folder:
        path = Path(folder, "exercise.py")
        path.write_text(cell, encoding="utf-8")
        _graded(path, exercise, known, is_cell=True)


def _words(line: str) -> "list[str]":
    try:
        return shlex.split(line)
    except ValueError as error:
        raise MagicError(f"%spcomm check: {error}") from None


def _known() -> "list[Exercise]":
    from spcomm.learn.catalogue import exercises

    return _told(exercises)


def _told(call: "Callable[[], object]") -> object:
    try:
        return call()
    except LearnError as error:
        raise MagicError(f"%spcomm check: {error}") from None


def _named(word: str, known: "list[Exercise]") -> Exercise:
    from spcomm.learn import lessons

    return _told(lambda: lessons.named(word, known))


def _of(path: Path, known: "list[Exercise]") -> Exercise:
    """The exercise that a file is of, by its own name or that of its folder."""
    full = path.resolve()
    for exercise in known:
        if exercise.name in (full.stem, full.parent.name):
            return exercise
    raise MagicError(
        f"%spcomm check: it is not clear which exercise {path} is; put the number before it, as in "
        f"%spcomm check 02 {path}"
    )


def _file(exercise: "Exercise | None") -> Path:
    """exercise.py in the folder of the exercise, if that is below this one or beside it; else here."""
    if exercise is not None:
        for folder in (Path(), Path("..")):
            path = folder / exercise.name / "exercise.py"
            if path.is_file() and Path.cwd().name != exercise.name:
                return path
    return Path("exercise.py")


def _graded(path: Path, exercise: Exercise, known: "list[Exercise]", is_cell: bool = False) -> None:
    from spcomm.learn import checking, grade
    from spcomm.learn.terminal import Page

    page = Page()
    own = _own(known)
    result = _told(
        lambda: checking.check(page, grade, exercise, path, own, name="the cell" if is_cell else "")
    )
    if not result.passed and not is_cell:
        page.say(checking.advice(exercise, result, path, f"`spcomm learn hint {exercise.number:02}`"))


def _own(known: "list[Exercise]") -> "object":
    """Return the folder of the exercises, if we are in one: it records the passed exercises."""
    from spcomm.learn import lessons

    try:
        return lessons.Lessons(lessons.find(None, known), known)
    except LearnError:
        return None
