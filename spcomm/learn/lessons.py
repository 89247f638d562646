# SPDX-License-Identifier: MIT
"""The exercises in a learner's folder: copied out of the package, found again, reset.

README.md and exercise.py of each exercise are copied; its check, its hints and its solution stay in the package.
Beside them is a README.md that describes the folder.
"""

import os
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from spcomm.demo import shorter
from spcomm.learn import copying, names, progress
from spcomm.learn.catalogue import Exercise
from spcomm.learn.errors import LearnError

_LIST = "spcomm learn list"
_PROGRAM = re.compile(r"(?<![\w/.])exercise\.py(?!\.?\w)")  # the name of the program, in a text about it
_README = "README.md"
_NEW = "my-exercises"
_ABOUT = """\
# Exercises of spcomm

Each folder is an exercise: `README.md` is its lesson, `exercise.py` a small program with gaps, marked `TODO`. Edit
`exercise.py` alone, in an editor of your choice; `{first}` comes first.{notebooks}

| in this folder | |
| --- | --- |
| `spcomm learn` | shows the lesson, checks the program, and checks it again whenever you save it; its keys give hints |
| `spcomm learn next` | the lesson of the next exercise that has not passed |
| `spcomm learn check 1` | checks exercise 1 once |
| `spcomm learn hint 1` | a hint: a question, then the idea, then nearly the code |
| `spcomm learn list` | all exercises, and which have passed |
| `spcomm learn reset 1` | `exercise.py` as it was at first; yours is kept as `exercise.py.before` |
| `spcomm learn solution 1` | our solution, once yours has passed |

To run a program yourself, in its folder: `cd {first}`, then `spcomm run -n 4 exercise.py`.
"""
_NOTEBOOKS = """ In JupyterLab open `exercise.ipynb` in
its place: its cells write `exercise.py`, run it, and check it."""


class Lessons:
    """The folder of a learner.

    Attributes
    ----------
    folder : Path
        Where it is.
    exercises : list of Exercise
        All there are, by number.
    progress : Progress
        The passed exercises.
    """

    def __init__(
        self, folder: Path, exercises: "Sequence[Exercise]", say: "Callable[[str], None]" = print
    ) -> None:
        self.folder = folder
        self.exercises = list(exercises)
        self.progress = progress.Progress(folder, say)

    def named(self, word: str) -> Exercise:
        """Return the exercise that the user names: `3`, `03`, `03_pi`, `pi`."""
        return named(word, self.exercises)

    def current(self) -> Exercise:
        """The one whose folder we are in, else the one that was chosen, else the first that has not passed."""
        state = self.progress.read()
        here = _here()
        for exercise in self.exercises:
            if here is not None and here.resolve() == (self.folder / exercise.name).resolve():
                return exercise
        for exercise in self.exercises:
            if exercise.name == state.current:
                return exercise
        return self.after(None) or self.exercises[-1]

    def after(self, exercise: "Exercise | None") -> "Exercise | None":
        """The next one that has not passed, from an exercise on, and round; None if there is no other."""
        passed = set(self.progress.read().passed)
        at = self.exercises.index(exercise) + 1 if exercise is not None else 0
        others = self.exercises[at:] + self.exercises[: max(at - 1, 0)]
        return next((other for other in others if other.name not in passed), None)

    def choose(self, exercise: Exercise) -> None:
        """From now on this one is the current one."""
        self.progress.change(lambda state: setattr(state, "current", exercise.name))

    def done(self) -> int:
        """The number of exercises that have passed."""
        passed = set(self.progress.read().passed)
        return sum(exercise.name in passed for exercise in self.exercises)

    def has_passed(self, exercise: Exercise) -> bool:
        """Whether it has passed at least once."""
        return exercise.name in self.progress.read().passed

    def hint(self, exercise: Exercise) -> "tuple[int, str, bool]":
        """The number and the text of the next hint; after the last one those again, and True."""
        if not exercise.hints:
            raise LearnError(f"{exercise.name} has no hints")

        shown = 0

        def count(state: progress.State) -> None:
            nonlocal shown
            shown = state.hints.get(exercise.name, 0)
            state.hints[exercise.name] = min(shown + 1, len(exercise.hints))

        number = self.progress.change(count).hints[exercise.name]
        return number, exercise.hints[number - 1], shown >= number

    def lesson(self, exercise: Exercise) -> str:
        """The text of README.md, with the program's path from here: what it says to run can be run from here."""
        name = shlex.quote(shorter(self.folder / exercise.name / "exercise.py"))
        return _PROGRAM.sub(lambda _match: name, exercise.lesson)

    def file(self, exercise: Exercise) -> Path:
        """exercise.py as the student has it.

        Raises
        ------
        LearnError
            If it is not there, or a link leads out of the folder.
        """
        path = self._path(exercise)
        if path.exists() and not path.is_file():
            raise LearnError(
                f"{shorter(path)} is no file; move it away, then `spcomm learn reset {exercise.number:02}` writes it"
            )
        if not path.is_file():
            raise LearnError(
                f"{shorter(path)} is missing; `spcomm learn reset {exercise.number:02}` writes it anew"
            )
        return path

    def _path(self, exercise: Exercise) -> Path:
        path = self.folder / exercise.name / "exercise.py"
        if not copying.is_inside(path, self.folder):
            raise LearnError(
                f"{shorter(path)} leads out of {shorter(self.folder)} by a link, and is not followed"
            )
        return path

    def reset(self, exercise: Exercise) -> str:
        """Write the original exercise.py; return one sentence on where the student's own file is now."""
        path = self._path(exercise)
        try:
            return self._reset(path, exercise)
        except OSError as error:
            where = error.filename or path
            raise LearnError(
                f"cannot write {shorter(where)}: {error.strerror}; {shorter(path)} is as it was"
            ) from None

    def _reset(self, path: Path, exercise: Exercise) -> str:
        first = exercise.stub.read_bytes()
        if not path.exists():
            files = {f"{exercise.name}/exercise.py": first}
            if not (path.parent / "README.md").exists():
                files[f"{exercise.name}/README.md"] = exercise.lesson.encode()
            copying.write(self.folder, files)
            return f"{path.name} is there again"
        before = copying.read(path)
        if before == first:
            return f"{path.name} is unchanged: nothing to reset"
        kept = copying.free(path.with_name(f"{path.name}.before"))
        copying.replace(kept, before)
        copying.replace(path.resolve(), first)
        return f"{path.name} is as it was at first; yours is in {kept.name}"


def named(word: str, exercises: "Sequence[Exercise]") -> Exercise:
    """Return the exercise that the user names: `3`, `03`, `03_pi`, `pi`.

    Raises
    ------
    UsageError
        If it means none of them, or several.
    """
    known = {exercise.name: exercise for exercise in exercises}
    return known[names.chosen(word, list(known), "exercise", _LIST)]


def find(
    start: "str | None",
    exercises: "Sequence[Exercise]",
    offer: "Callable[[Path, Sequence[Exercise]], bool] | None" = None,
) -> Path:
    """The folder of the exercises: the one given, or the one we are in, or one above it.

    Where there is none, `offer` may make one: it gets a name, and returns whether the exercises are there now.

    Raises
    ------
    LearnError
        If there is none.
    """
    if start is not None:
        folder = Path(start)
        if not folder.exists():
            raise LearnError(f"there is no folder {start}; `spcomm learn init {start}` makes it")
        if not folder.is_dir():
            raise LearnError(f"{start} is a file, not a folder of exercises")
        if not has_exercises(folder, exercises):
            raise LearnError(
                f"there are no exercises in {start}; `spcomm learn init {start}` copies them there"
            )
        return folder
    here = _here()
    for folder in (here, *here.parents) if here is not None else ():
        if has_exercises(folder, exercises):
            return folder
    if offer is not None and offer(Path(_NEW), exercises):
        return Path(_NEW)
    raise LearnError(
        f"there are no exercises in this folder; `spcomm learn init {_NEW}` copies them to a new one, and "
        "--dir DIR says where they are"
    )


def init(folder: Path, exercises: "Sequence[Exercise]", notebooks: bool = False) -> "list[str]":
    """Copy the exercises; returns the names of the files that were not there.

    Raises
    ------
    LearnError
        If files of other content are there, or cannot be written. Nothing has changed then.
    """
    if not exercises:
        raise LearnError("this installation of spcomm has no exercises; reinstall it")
    files = {}
    if not os.path.lexists(folder / _README):  # there may be another one
        about = _ABOUT.format(first=exercises[0].name, notebooks=_NOTEBOOKS if notebooks else "")
        files[_README] = about.encode()
    for exercise in exercises:
        files[f"{exercise.name}/README.md"] = exercise.lesson.encode()
        files[f"{exercise.name}/exercise.py"] = exercise.stub.read_bytes()
        if notebooks:
            from spcomm.learn.notebooks import notebook

            files[f"{exercise.name}/exercise.ipynb"] = notebook(exercise)
    if not os.path.lexists(folder / progress.FILE):  # earlier progress stays
        files[progress.FILE] = progress.first()
    return copying.write(folder, files)


def solution(lessons: Lessons, exercise: Exercise, how_to_ask: str) -> str:
    """The text of a program that passes, for a learner who has one; `how_to_ask` for a hint, for any other.

    Raises
    ------
    LearnError
        If the exercise has not passed yet.
    """
    if not lessons.has_passed(exercise):
        raise LearnError(
            f"the solution of {exercise.name} is shown after it has passed; {how_to_ask} shows a hint"
        )
    if not exercise.solution.is_file():
        raise LearnError(f"there is no solution of {exercise.name}: yours is one")
    return exercise.solution.read_text(encoding="utf-8")


def _here() -> "Path | None":
    """The folder we are in; it may have been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def has_exercises(folder: Path, exercises: "Sequence[Exercise]") -> bool:
    """Whether a folder is one of exercises, as a learner has them."""
    return (folder / progress.FILE).is_file() or any(
        (folder / exercise.name / "exercise.py").is_file()
        and not (folder / exercise.name / "check.py").exists()
        for exercise in exercises
    )
