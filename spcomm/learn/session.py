# SPDX-License-Identifier: MIT
"""`spcomm learn` at a terminal: shows the exercise, checks it, and checks it again whenever it is saved."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from spcomm.demo import shorter
from spcomm.learn import checking, lessons, watching
from spcomm.learn.catalogue import Exercise
from spcomm.learn.errors import LearnError
from spcomm.learn.keys import Interrupts, Keys
from spcomm.learn.lessons import Lessons
from spcomm.learn.terminal import Page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from spcomm.learn import Grade

_KEYS = "h hint   r run again   n next   l list   x reset   s solution   q quit"


class Session:
    """From the first exercise that is shown to the last key."""

    def __init__(self, own: Lessons, page: Page, grade: "Callable[..., Grade]", exercise: Exercise) -> None:
        self._own = own
        self._page = page
        self._grade = grade
        self._exercise = exercise
        self._seen: tuple[int, int, int] | None = None  # the file as it was checked last
        self._actions: dict[str, Callable[[], None]] = {
            "h": self._hint,
            "l": self._list,
            "r": self._check,
            "x": self._reset,
            "s": self._solution,
        }

    def run(self, keyboard: int) -> int:
        """Go on until the user quits; returns the exit code."""
        if not watching.has_watchfiles():
            self._page.say(
                "watchfiles is not installed (pip install 'spcomm[learn]'): the file is checked three times a second"
            )
        with Keys(keyboard) as keys, contextlib.suppress(EOFError):
            while self._one(keys):
                pass
        return 0

    def _one(self, keys: Keys) -> bool:
        """One exercise. False: that is all."""
        show(self._page, self._own, self._exercise)
        file = self._own.file(self._exercise)
        with watching.Watcher(file) as watcher:
            self._check()
            while True:
                key = keys.wait(watcher.fd, watcher.seconds)
                watcher.clear()
                if key == "q":
                    return False
                if key == "n":
                    if self._next():
                        return True
                elif key:
                    self._guarded(self._actions.get(key.lower(), self._help))
                elif watching.signature(file) != self._seen:
                    self._saved(file)

    def _saved(self, file: Path) -> None:
        before, self._seen = self._seen, watching.settled(file)
        if self._seen is None and before is not None:
            self._page.say(f"{shorter(file)} is gone; x writes it again")
        elif self._seen is not None and self._seen != before:
            self._check()

    def _guarded(self, action: "Callable[[], None]") -> None:
        try:
            action()
        except LearnError as error:
            self._page.say(str(error), "yellow")

    def _check(self) -> None:
        with Interrupts() as interrupts:
            try:
                self._guarded(self._checked)
            except KeyboardInterrupt:
                if interrupts.count > 1:
                    raise
                self._page.say(
                    "the check was ended by Ctrl-C; r runs it again, another Ctrl-C ends spcomm learn"
                )
        if interrupts.count > 1:
            raise KeyboardInterrupt

    def _checked(self) -> None:
        self._page.rule(
            f"{self._exercise.name}, {self._own.done()} of {len(self._own.exercises)} have passed"
        )
        file = self._own.file(self._exercise)
        self._seen = watching.signature(file)
        result = checking.check(self._page, self._grade, self._exercise, file, self._own)
        if not result.passed:
            self._page.say(checking.advice(self._exercise, result, file, "h"))
        elif self._own.after(self._exercise) is None:
            self._page.bar(self._own.done(), len(self._own.exercises))
            self._page.say("all exercises have passed; s shows our solution, q quits")
            return
        else:
            self._page.bar(self._own.done(), len(self._own.exercises))
            self._page.say("n goes on to the next one, s shows our solution")
        self._page.say(_KEYS, "dim")

    def _next(self) -> bool:
        """Whether there is another exercise to show."""
        found = self._own.after(self._exercise)
        if found is None:
            passed = self._own.has_passed(self._exercise)
            self._page.say(
                "all exercises have passed" if passed else "this is the last one that has not passed"
            )
            return False
        if not self._own.has_passed(self._exercise):
            self._page.say(f"{self._exercise.name} has not passed yet, and comes again later")
        try:
            self._own.file(found)
            self._own.choose(found)
        except LearnError as error:
            self._page.say(str(error), "yellow")
            return False
        self._exercise = found
        return True

    def _hint(self) -> None:
        hint(self._page, self._own, self._exercise)

    def _list(self) -> None:
        listing(self._page, self._own)

    def _reset(self) -> None:
        self._page.say(self._own.reset(self._exercise))
        self._seen = watching.signature(self._own.file(self._exercise))

    def _solution(self) -> None:
        self._page.code(lessons.solution(self._own, self._exercise))

    def _help(self) -> None:
        self._page.say(_KEYS, "dim")


def show(page: Page, own: Lessons, exercise: Exercise) -> None:
    """The exercise, and how far one has come."""
    page.bar(own.done(), len(own.exercises))
    page.rule(f"{exercise.name}: {exercise.title}")
    missing = [name for name in exercise.needs if name not in own.progress.read().passed]
    if missing:
        page.say(f"it builds on {', '.join(missing)}, not passed yet", "yellow")
    page.lesson(exercise.lesson)


def hint(page: Page, own: Lessons, exercise: Exercise) -> None:
    """The next hint."""
    number, text = own.hint(exercise)
    page.say(f"hint {number} of {len(exercise.hints)} for {exercise.name}:", "bold")
    page.lesson(text)


def listing(page: Page, own: Lessons) -> None:
    """List all exercises, and mark the passed ones."""
    passed = set(own.progress.read().passed)
    current = own.current().name
    page.rows(
        [
            (
                "passed" if exercise.name in passed else "-> now" if exercise.name == current else "",
                exercise.name,
                exercise.title,
            )
            for exercise in own.exercises
        ]
    )
    page.bar(own.done(), len(own.exercises))
