# SPDX-License-Identifier: MIT
"""`%spcomm check`, `%%spcomm_check`, `%%spcomm_write`: the exercises of `spcomm learn` in a notebook."""

import hashlib
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path

from spcomm.learn.catalogue import Exercise
from spcomm.learn.errors import LearnError
from spcomm.notebook.magic_options import MagicError

_MANY = "%spcomm check takes an exercise and a file at most, as in %spcomm check 02 mine.py"

_REFUSED = (
    "%%spcomm_write: {path} was changed outside of this cell, and stays as it is. To go on with that program, copy it "
    "into this cell (%load {path} shows it); to write this cell in its place, begin it with "
    "%%spcomm_write --replace {path}, which keeps the other as {path}.before"
)


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
            f"%spcomm check: there is no {path}{where}; a cell that begins with %%spcomm_write {path} writes it"
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


def write_cell(line: str, cell: str) -> None:
    """``%%spcomm_write [--replace] FILE``: the cell becomes the file, unless that has a program from elsewhere."""
    from spcomm.learn import copying

    words = _words(line)
    replaces = "--replace" in words
    if len(words) != 1 + replaces or (name := words[-1 if words[0] == "--replace" else 0]).startswith("-"):
        raise MagicError("%%spcomm_write: name one file, as in %%spcomm_write exercise.py")
    path, text = Path(name), cell.encode()
    before = copying.read(path) if path.exists() else None
    if before != text:
        if before is not None and not _is_ours(path, before):
            if not replaces:
                raise MagicError(_REFUSED.format(path=path))
            kept = copying.free(path.with_name(f"{path.name}.before"))
            copying.replace(kept, before)
            print(f"{path} had another program, which is in {kept.name} now")
        copying.replace(path.resolve(), text)
    copying.replace(_mark(path), _hash(text).encode())
    print(f"{path} is as it was" if before == text else f"wrote {path}")


def _is_ours(path: Path, text: bytes) -> bool:
    """Whether nothing is lost with a text: an exercise as it was at first, or what a cell has written."""
    exercise = next((known for known in _known() if known.name == path.resolve().parent.name), None)
    if exercise is not None and text == exercise.stub.read_bytes():
        return True
    try:
        return _mark(path).read_text() == _hash(text)
    except (OSError, UnicodeDecodeError):
        return False


def _mark(path: Path) -> Path:
    """The file beside a program that knows what a cell wrote last, also after a restart of the kernel."""
    return path.with_name(f".{path.name}.cell")


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


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
        how_to_ask = f"`spcomm learn hint {exercise.number:02}`"
        page.say(checking.advice(exercise, result, path, how_to_ask, in_cell=_mark(path).exists()))


def _own(known: "list[Exercise]") -> "object":
    """Return the folder of the exercises, if we are in one: it records the passed exercises."""
    from spcomm.learn import lessons

    try:
        return lessons.Lessons(lessons.find(None, known), known)
    except LearnError:
        return None
