# SPDX-License-Identifier: MIT
"""The exercises: their folders, and the contents of their info.toml."""

import os
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from spcomm.demo import data_dir
from spcomm.learn.errors import LearnError

_NAME = re.compile(r"(\d\d)_[a-z0-9_]+")
_LONGEST = 4096  # letters of a name or path of an exercise
_FILES = ("README.md", "exercise.py", "check.py", "info.toml")


@dataclass(frozen=True)
class Limits:
    """Limits of one run of a solution."""

    seconds: float = 20.0
    memory_mib: float = 1024.0  # of all its nodes together
    processes: int = 64
    output_kib: float = 256.0


@dataclass(frozen=True)
class Exercise:
    """One exercise: a folder with README.md, exercise.py, check.py and info.toml."""

    name: str  # of its folder, "02_split"
    number: int
    title: str
    teaches: str
    needs: "tuple[str, ...]"  # names of those to be done before
    hints: "tuple[str, ...]"  # a question; the idea; nearly the code
    stub_says: str  # a part of the judge's message about the untouched exercise.py
    limits: Limits
    folder: Path
    solution: Path  # a file that passes; there may be none of exercises that are not spcomm's own

    @property
    def lesson(self) -> str:
        """The text of README.md."""
        return (self.folder / "README.md").read_text(encoding="utf-8")

    @property
    def stub(self) -> Path:
        """exercise.py as it is given out."""
        return self.folder / "exercise.py"


def exercises_dir() -> Path:
    """Return the folder of the exercises: of the installed package, or of the checkout.

    Raises
    ------
    LearnError
        If neither is there.
    """
    try:
        return data_dir("exercises", "01_hello")
    except FileNotFoundError as error:
        raise LearnError(str(error)) from None


def exercises(folder: "str | os.PathLike[str] | None" = None) -> "list[Exercise]":
    """Return all exercises by number.

    Parameters
    ----------
    folder
        Where they are; default: `exercises_dir()`.

    Raises
    ------
    LearnError
        One of them is not as it has to be.
    """
    root = exercises_dir() if folder is None else Path(folder)
    return [load(root / name) for name in _names(root)]


def find(word: str, folder: "str | os.PathLike[str] | None" = None) -> Exercise:
    """Return the exercise that is called so: `2`, `02`, `02_split`, or a folder with an exercise in it.

    Raises
    ------
    LearnError
        There is none, or it is not as it has to be.
    """
    if len(word) > _LONGEST:  # Python refuses to read numbers of thousands of digits
        raise LearnError(f"no exercise has a name of {len(word)} letters")
    if os.sep in word or word == ".":
        return load(Path(word))
    root = exercises_dir() if folder is None else Path(folder)
    names = _names(root)
    for name in names:
        if word == name or (word.isascii() and word.isdigit() and int(word) == int(name[:2])):
            return load(root / name)
    known = f"there are {', '.join(names)}" if names else f"there are none in {root}"
    raise LearnError(f"no exercise {word!r}; {known}")


def exercise_of(file: "str | os.PathLike[str]", folder: "str | os.PathLike[str] | None" = None) -> Exercise:
    """Return the exercise that a student's file is of, by its name or that of its folder.

    Raises
    ------
    LearnError
        Neither `02_split.py` nor a file in a folder `02_split`, or no such exercise.
    """
    path = Path(file).resolve()
    for name in (path.stem, path.parent.name):
        if _NAME.fullmatch(name):
            return find(name, folder)
    raise LearnError(
        f"{os.fspath(file)}: it is not clear which exercise this is; give it or its folder the name of the exercise "
        "(02_split), or add --exercise 2 (in Python exercise=2)"
    )


def load(folder: "str | os.PathLike[str]") -> Exercise:
    """Read the exercise in a folder.

    Raises
    ------
    LearnError
        A file is missing, or info.toml is not as it has to be.
    """
    try:
        place = Path(folder).resolve()
        missing = [name for name in _FILES if not (place / name).is_file()]
    except (
        OSError,
        ValueError,
        RuntimeError,
    ) as error:  # too long, without permission, with \\0, links in a circle
        raise LearnError(f"{folder} is no exercise: {getattr(error, 'strerror', None) or error}") from None
    if missing:
        raise LearnError(f"{folder} is not an exercise: it lacks {', '.join(missing)}")
    match = _NAME.fullmatch(place.name)
    if match is None:
        raise LearnError(f"{folder} is not an exercise: its name must be two digits and a word, as 02_split")
    told = _toml(place / "info.toml")
    reader = _Info(place / "info.toml", told)
    exercise = Exercise(
        name=place.name,
        number=int(match[1]),
        title=reader.text("title"),
        teaches=reader.text("teaches"),
        needs=reader.texts("needs"),
        hints=reader.texts("hints"),
        stub_says=reader.text("stub_says"),
        limits=reader.limits(),
        folder=place,
        solution=place.parent / "solutions" / f"{place.name}.py",
    )
    reader.end()
    return exercise


def _names(root: Path) -> "list[str]":
    try:
        found = sorted(path.name for path in root.iterdir() if _NAME.fullmatch(path.name) and path.is_dir())
    except OSError as error:
        raise LearnError(f"cannot look for exercises in {root}: {error.strerror}") from None
    return found


def _toml(path: Path) -> "dict[str, object]":
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LearnError(f"{path} is not TOML: {error}") from None
    except OSError as error:
        raise LearnError(f"cannot read {path}: {error.strerror}") from None


class _Info:
    """Takes the known keys out of info.toml; errors name the file and the entry."""

    def __init__(self, path: Path, told: "dict[str, object]") -> None:
        self._path = path
        self._told = dict(told)

    def text(self, key: str) -> str:
        value = self._told.pop(key, None)
        if not isinstance(value, str) or not value.strip():
            self._fail(key, value, "a text")
        return value

    def texts(self, key: str) -> "tuple[str, ...]":
        value = self._told.pop(key, None)
        if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
            self._fail(key, value, "a list of texts")
        return tuple(value)

    def limits(self) -> Limits:
        value = self._told.pop("limits", {})
        known = {field.name: field.default for field in fields(Limits)}
        if not isinstance(value, dict):
            self._fail("limits", value, "a table")
        for key, number in value.items():
            if key not in known:
                self._fail(f"limits.{key}", number, f"one of {', '.join(known)}")
            allowed = (int,) if isinstance(known[key], int) else (int, float)
            if isinstance(number, bool) or not isinstance(number, allowed) or not 0 < number < 1e6:
                self._fail(f"limits.{key}", number, "a number above 0")
        return Limits(**value)

    def end(self) -> None:
        if self._told:
            raise LearnError(f"{self._path} has unknown keys: {', '.join(self._told)}")

    def _fail(self, key: str, value: object, needed: str) -> None:
        found = "is missing" if value is None else f"is {value!r}"
        raise LearnError(f"{self._path}: {key} {found}; it must be {needed}")
