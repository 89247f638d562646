# SPDX-License-Identifier: MIT
"""The command line of `spcomm learn`."""

import os
import sys
from argparse import SUPPRESS, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spcomm.argument_parser import ArgumentParser, near
from spcomm.learn.catalogue import Exercise
from spcomm.learn.errors import LearnError, of_system
from spcomm.learn.names import UsageError
from spcomm.text import printable

if TYPE_CHECKING:
    from spcomm.learn import Grade
    from spcomm.learn.lessons import Lessons
    from spcomm.learn.terminal import Page

_ROWS = [
    ("init DIR", "copy the exercises to DIR; with --notebooks each of them as a notebook, too"),
    ("watch", "show the exercise, check it, and check it again at each save; keys give hints (default)"),
    ("next", "show the next exercise that has not passed"),
    ("check [NN]", "check one exercise once; exit code 0: it has passed, 1: it has not"),
    ("hint [NN]", "the next hint: a question, then the idea, then nearly the code"),
    ("list", "all exercises, and which have passed"),
    ("reset NN", "restore exercise.py; yours is kept as exercise.py.before"),
    ("solution NN", "our solution, once yours has passed"),
]
_COMMANDS = {  # how many words may follow: at least, at most
    "init": (1, 1),
    "watch": (0, 0),
    "next": (0, 0),
    "check": (0, 1),
    "hint": (0, 1),
    "list": (0, 0),
    "reset": (1, 1),
    "solution": (1, 1),
}


def parser() -> ArgumentParser:
    """Return the parser of `spcomm learn`."""
    made = ArgumentParser(
        "spcomm learn",
        "spcomm learn init DIR [--notebooks]\nspcomm learn [watch]\n"
        "spcomm learn next | check [NN] | hint [NN] | list | reset NN | solution NN",
        "Exercises: small programs with gaps, checked whenever they are saved.",
        "NN is the number or a part of the name; the default is the current exercise.",
        completed=_completed,
    )
    made.sections.append(("Commands:", _ROWS))
    made.add_argument("command", nargs="?", default="watch", help=SUPPRESS)
    made.add_argument("names", nargs="*", help=SUPPRESS)
    made.add_rows(
        ("--dir", "DIR", str, "where the exercises are (default: this folder, or one above it)"),
        ("--notebooks", None, None, "with init: each exercise as a notebook, too"),
        ("--plain", None, None, "text only, without colours"),
    )
    return made


def _completed(before: "list[str]") -> "str | list[tuple[str, str]]":
    if not before:
        return [(label.partition(" ")[0], text) for label, text in _ROWS]
    if len(before) > 1 or _COMMANDS.get(before[0], (0, 0))[1] == 0:
        return []
    if before == ["init"]:
        return "FOLDER"
    from spcomm.learn.catalogue import exercises

    return [(f"{exercise.number:02}", exercise.title) for exercise in exercises()]


def main(
    words: "list[str]",
    exercises: "Callable[[], Sequence[Exercise]] | None" = None,
    grade: "Callable[..., Grade] | None" = None,
) -> int:
    """Run `spcomm learn`; returns the exit code: 1 for an error, 125 for a wrong command line.

    Parameters
    ----------
    words : list of str
        The arguments after `spcomm learn`.
    exercises, grade : callables, optional
        In place of spcomm's own exercises, and of their judge.
    """
    asked = parser().parse_args(words)
    try:
        _check(asked)
        if exercises is None:
            from spcomm.learn.catalogue import exercises
        return _do(asked, exercises(), grade or _late_grade)
    except LearnError as error:
        print(f"spcomm learn: {printable(str(error))}", file=sys.stderr)
        return 125 if isinstance(error, UsageError) else 1
    except OSError as error:
        if error.filename is None:
            raise
        print(f"spcomm learn: {of_system(error)}", file=sys.stderr)
        return 1


def _late_grade(*arguments: object, **more: object) -> "Grade":
    """Import and call the judge, which needs much of spcomm, only when there is something to judge."""
    from spcomm.learn import grade

    return grade(*arguments, **more)


def _check(asked: Namespace) -> None:
    if asked.command == "run":
        print("spcomm learn: run is now called check; the next version knows check only", file=sys.stderr)
        asked.command = "check"
    if asked.command not in _COMMANDS:
        raise UsageError(
            f"no command {asked.command!r}; there are {', '.join(_COMMANDS)}{near(asked.command, _COMMANDS)}"
        )
    least, most = _COMMANDS[asked.command]
    if len(asked.names) < least:
        what = "a folder to copy to, as in `spcomm learn init my-exercises`"
        number = f"the number of an exercise, as in `spcomm learn {asked.command} 3`"
        raise UsageError(f"{asked.command} needs {what if asked.command == 'init' else number}")
    if len(asked.names) > most:
        raise UsageError(f"{asked.command}: too many words, {' '.join(asked.names[most:])!r} has no meaning")
    if asked.dir == "":
        raise UsageError("--dir needs a folder, as in --dir my-exercises")
    if asked.command == "init" and asked.dir is not None:
        raise UsageError("init has its folder already; --dir is for the other commands")
    if asked.notebooks and asked.command != "init":
        raise UsageError("--notebooks goes with init")


def _do(asked: Namespace, exercises: "Sequence[Exercise]", grade: "Callable[..., Grade]") -> int:
    """Run a command whose words are right; return the exit code."""
    from spcomm.learn import lessons
    from spcomm.learn.terminal import is_shown, page

    if asked.command == "init":
        _init(Path(asked.names[0]), exercises, asked.notebooks)
        return 0
    if not exercises:
        raise LearnError("this installation of spcomm has no exercises; reinstall it")
    offered = asked.command == "watch" and asked.dir is None and is_shown() and os.isatty(0)
    folder = lessons.find(asked.dir, exercises, _offer if offered else None)
    out = page(asked.plain)
    own = lessons.Lessons(folder, exercises, lambda text: print(f"spcomm learn: {text}", file=sys.stderr))
    chosen = own.named(asked.names[0]) if asked.names else None
    return _DO[asked.command](own, out, chosen or own.current(), grade)


def _offer(folder: Path, exercises: "Sequence[Exercise]") -> bool:
    """Ask whether to copy the exercises to a new folder, or to go on in one that is there; do it."""
    from spcomm.learn import lessons

    is_there = lessons.has_exercises(folder, exercises)
    what = (
        f"Go on with those in {folder}" if is_there else f"Copy all {len(exercises)} to {folder}, and begin"
    )
    try:
        answer = input(f"There are no exercises in this folder.\n{what}? [Y/n] ")
    except EOFError:
        print()
        return False
    if answer.strip().lower() not in ("", "y", "yes"):
        return False
    if not is_there:
        lessons.init(folder, exercises)
    return True


def _init(folder: Path, exercises: "Sequence[Exercise]", notebooks: bool) -> None:
    from spcomm.learn import lessons

    copied = lessons.init(folder, exercises, notebooks)
    if not copied:
        print(f"all {len(exercises)} exercises are in {folder} already; next: cd {folder}, then spcomm learn")
        return
    then = "spcomm learn, or jupyter lab" if notebooks else "spcomm learn"
    print(f"{len(exercises)} exercises are in {folder}; next: cd {folder}, then {then}")


def _watch(own: "Lessons", page: "Page", exercise: Exercise, grade: "Callable[..., Grade]") -> int:
    from spcomm.learn import session
    from spcomm.learn.terminal import is_shown

    if own.has_passed(exercise):
        exercise = own.after(exercise) or exercise
    if not (os.isatty(0) and is_shown()):
        session.show(page, own, exercise)
        page.rule("there is no terminal: checked once, without watching")
        return _run(own, page, exercise, grade)
    return session.Session(own, page.whole_screen(session.KEYS), grade, exercise).run(0)


def _next(own: "Lessons", page: "Page", exercise: Exercise, _grade: object) -> int:
    from spcomm.learn import session

    found = own.after(exercise) if own.has_passed(exercise) else exercise
    if found is None:
        page.bar(own.done(), len(own.exercises))
        page.say("all exercises have passed")
        return 0
    own.choose(found)
    session.show(page, own, found)
    page.say(f"\nthe program: {own.file(found)}")
    return 0


def _run(own: "Lessons", page: "Page", exercise: Exercise, grade: "Callable[..., Grade]") -> int:
    from spcomm.learn import checking

    file = own.file(exercise)
    result = checking.check(page, grade, exercise, file, own)
    if not result.passed:
        page.say(checking.advice(exercise, result, file, _how_to_ask(exercise)))
        return 1
    page.bar(own.done(), len(own.exercises))
    following = own.after(exercise)
    if following is not None:
        page.say(f"next: {following.name}; `spcomm learn next` shows it")
    return 0


def _how_to_ask(exercise: Exercise) -> str:
    """Return the command that shows a hint."""
    return f"`spcomm learn hint {exercise.number:02}`"


def _hint(own: "Lessons", page: "Page", exercise: Exercise, _grade: object) -> int:
    from spcomm.learn import session

    session.hint(page, own, exercise, "the lesson, README.md, may say more")
    return 0


def _list(own: "Lessons", page: "Page", _exercise: Exercise, _grade: object) -> int:
    from spcomm.learn import session

    session.listing(page, own)
    return 0


def _reset(own: "Lessons", page: "Page", exercise: Exercise, _grade: object) -> int:
    page.say(f"{exercise.name}: {own.reset(exercise)}")
    return 0


def _solution(own: "Lessons", page: "Page", exercise: Exercise, _grade: object) -> int:
    from spcomm.learn import lessons

    page.code(lessons.solution(own, exercise, _how_to_ask(exercise)))
    return 0


_DO = {
    "watch": _watch,
    "next": _next,
    "check": _run,
    "hint": _hint,
    "list": _list,
    "reset": _reset,
    "solution": _solution,
}
