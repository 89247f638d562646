# SPDX-License-Identifier: MIT
"""`spcomm learn` at a terminal: shows the exercise, checks it, and checks it again whenever it is saved."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from spcomm.demo import shorter
from spcomm.learn import checking, lessons, watching
from spcomm.learn.catalogue import Exercise
from spcomm.learn.errors import LearnError
from spcomm.learn.keys import INTERRUPT, Keys
from spcomm.learn.lessons import Lessons
from spcomm.learn.terminal import Page
from spcomm.text import counted

if TYPE_CHECKING:
    from spcomm.learn import Grade

_ENDED = "the check was ended; r runs it again"
_BELOW = "End shows it"  # to a reader of the lesson
_VERDICTS = {True: (f"  passed: {_BELOW}", "green"), False: (f"  not passed yet: {_BELOW}", "yellow")}
KEYS = "h hint  r run  n next  l list  x reset  s solution  t top of lesson  q quit"


class Session:
    """From the first exercise that is shown to the last key."""

    def __init__(self, own: Lessons, page: Page, grade: "Callable[..., Grade]", exercise: Exercise) -> None:
        self._own = own
        self._page = page
        self._grade = grade
        self._exercise = exercise
        self._file = Path()
        self._hints: list[tuple[str, str]] = []  # those of this exercise that were shown
        # The lines above the lesson. Sentences printed before would have scrolled away.
        self._notice = "\n".join(own.progress.said)
        own.progress.say = lambda sentence: page.say(sentence, "yellow")
        self._running: checking.RunningCheck | None = None
        self._seen: tuple[int, int, int] | None = None  # the file as it was checked last
        self._settling: watching.Settling | None = None  # the file, while it is being saved
        self._was_ended = False  # the check that ran when it was saved
        self._warned: checking.RunningCheck | None = None  # the check that n would have ended
        self._actions: dict[str, Callable[[], None]] = {
            "h": self._hint,
            "l": self._list,
            "r": self._start,
            "x": self._reset,
            "s": self._solution,
            "t": self._lesson,
        }

    def run(self, keyboard: int) -> int:
        """Go on until the user quits; returns the exit code."""
        with Keys(keyboard) as keys, contextlib.suppress(EOFError):
            try:
                while self._one(keys):
                    pass
            finally:
                self._page.close()
        return 0

    def _one(self, keys: Keys) -> bool:
        """One exercise. False: that is all."""
        self._hints = []
        self._page.open_at_start()
        self._lesson()
        self._file = self._own.file(self._exercise)
        try:
            self._guarded(self._start)
            while (key := self._key(keys)) != "q":
                if key == "n" and self._skips():
                    self._end(_ENDED)
                    if self._next():
                        return True
                self._answer(key)
            return False
        finally:
            self._end()

    def _key(self, keys: Keys) -> str:
        """Wait for the next key, for something new of the check, or until it is time to look at the file."""
        fd = self._running.fd if self._running is not None else -1
        key = keys.wait(fd, watching.SETTLING_S if self._settling is not None else watching.LOOK_S)
        if keys.was_stopped():
            self._page.resume()
        self._page.refresh()
        self._guarded(self._progress)  # a result that is there counts, whatever was pressed meanwhile
        self._look()
        return key

    def _skips(self) -> bool:
        """Whether `n` leaves the exercise. While a check passes, it does so the second time."""
        running = self._running
        if running is None or not running.passed or running is self._warned:
            return True
        self._warned = running
        runs = counted(running.passed, "run")
        self._page.follow()
        self._page.clock(None)
        self._page.say(f"the check goes on, and {runs} passed so far; n again skips the exercise", "yellow")
        return False

    def _answer(self, key: str) -> None:
        if key == INTERRUPT and not self._end(
            "the check was ended by Ctrl-C; r runs it again, another Ctrl-C ends spcomm learn"
        ):
            raise KeyboardInterrupt
        action = self._actions.get(key.lower())
        if key in ("", "n", INTERRUPT) or self._page.scroll(key.lower()):
            return
        self._page.follow()
        if action is not None:
            self._end(_ENDED)
            self._page.part("answer")
            self._guarded(action)
        elif self._running is None:
            self._page.part("answer")
            name = key if key.strip() and key.isprintable() else "that"
            self._page.say(f"{name} is not one of the keys", "yellow")
            self._page.keys(KEYS)

    def _look(self) -> None:
        """Check the file when it has been saved. What was running is ended at the first sign of that."""
        if self._settling is None:
            if watching.signature(self._file) != self._seen:
                self._page.follow()
                self._was_ended = self._end("the check was ended: the program is being saved")
                self._settling = watching.Settling(self._file)
        elif self._settling.is_over():
            before, self._seen = self._seen, self._settling.signature
            self._settling = None
            if self._seen is not None and (self._seen != before or self._was_ended):
                self._guarded(self._start)
            elif self._seen is None and before is not None:
                self._page.part("answer")
                self._page.say(f"{shorter(self._file)} is gone; x writes it again")

    def _guarded(self, action: "Callable[[], None]") -> None:
        try:
            action()
        except LearnError as error:
            self._end()
            self._page.say(str(error), "yellow")
            self._page.note(f"  an error: {_BELOW}", "yellow")

    def _start(self) -> None:
        """Check the file, in place of a check that runs."""
        self._end()
        self._settling = None
        self._page.part("hints")
        for title, text in self._hints:
            self._page.remind(title, text)
        self._page.part("check")
        self._page.rule(f"check of {self._exercise.name}")
        self._own.file(self._exercise)  # an error, if it is gone
        self._seen = watching.signature(self._file)
        self._page.say(f"checking {shorter(self._file)}")
        self._running = checking.RunningCheck(self._grade, self._exercise, self._file)
        self._page.clock(0)

    def _end(self, why: str = "") -> bool:
        """End the check that runs; its result is never shown. False: there is none."""
        if self._running is None:
            return False
        running, self._running = self._running, None
        running.end()
        self._page.clock(None)
        if why:
            self._page.follow()
            self._page.say(why, "yellow")
        return True

    def _progress(self) -> None:
        if self._running is None:
            return
        result = self._running.progress(self._page)
        if result is None:
            self._page.clock(self._running.seconds())
            return
        self._end()
        checking.finish(self._page, self._exercise, result, self._own)
        if not result.passed:
            self._page.say(checking.advice(self._exercise, result, self._file, "h"))
        else:
            self._page.bar(self._own.done(), len(self._own.exercises))
            is_last = self._own.after(self._exercise) is None
            self._page.say(
                "all exercises have passed; s shows our solution, q quits"
                if is_last
                else "n goes on to the next one, s shows our solution"
            )
        self._page.note(*_VERDICTS[result.passed])
        self._page.keys(KEYS)

    def _lesson(self) -> None:
        """Show the lesson from its beginning."""
        self._page.part("lesson")
        if self._notice:
            self._page.say(self._notice, "yellow")
            self._notice = ""
        show(self._page, self._own, self._exercise)

    def _next(self) -> bool:
        """Whether there is another exercise to show."""
        found = self._own.after(self._exercise)
        has_passed = self._own.has_passed(self._exercise)
        self._page.part("answer")
        self._page.follow()
        if found is None:
            self._page.say(
                "all exercises have passed" if has_passed else "this is the last one that has not passed"
            )
            return False
        before = len(self._own.progress.said)
        try:
            self._own.file(found)
            self._own.choose(found)
        except LearnError as error:
            self._page.say(str(error), "yellow")
            return False
        notices = self._own.progress.said[before:]
        if not has_passed:
            notices.append(f"{self._exercise.name} has not passed yet, and comes again later")
        self._notice = "\n".join(notices)
        self._exercise = found
        return True

    def _hint(self) -> None:
        found = hint(self._page, self._own, self._exercise, "the lesson above may say more (t)")
        if found not in self._hints:
            self._hints.append(found)

    def _list(self) -> None:
        listing(self._page, self._own)

    def _reset(self) -> None:
        self._page.say(self._own.reset(self._exercise))
        self._seen = watching.signature(self._file)

    def _solution(self) -> None:
        self._page.code(lessons.solution(self._own, self._exercise, "h"))


def show(page: Page, own: Lessons, exercise: Exercise) -> None:
    """The exercise, and how far one has come."""
    page.bar(own.done(), len(own.exercises))
    page.rule(f"{exercise.name}: {exercise.title}")
    missing = [name for name in exercise.needs if name not in own.progress.read().passed]
    if missing:
        page.say(f"it builds on {', '.join(missing)}, not passed yet", "yellow")
    page.lesson(own.lesson(exercise))


def hint(page: Page, own: Lessons, exercise: Exercise, more: str) -> "tuple[str, str]":
    """Show the next hint, or the last one again and where there is `more`. Returns its title and its text."""
    number, text, is_again = own.hint(exercise)
    title = f"hint {number} of {len(exercise.hints)} for {exercise.name}:"
    page.say(title, "bold")
    page.lesson(text)
    if is_again:
        page.say(f"that was the last hint; {more}")
    return title, text


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
