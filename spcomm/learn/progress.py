# SPDX-License-Identifier: MIT
"""Progress of a learner: a small file in the folder of the exercises.

Several commands may change it at once: each reads it anew, changes its part, and puts the new file in place of the old
one, under a lock on the folder.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from spcomm.learn import copying
from spcomm.learn.errors import LearnError

FILE = ".spcomm-learn.json"


@dataclass
class State:
    """The content of the file."""

    current: str = ""  # the exercise that is shown; "" for the first that has not passed
    passed: "list[str]" = field(default_factory=list)
    hints: "dict[str, int]" = field(default_factory=dict)  # how many were shown of each exercise


class Progress:
    """The file of one folder.

    Unwritten progress counts as long as this object lives: a full disk keeps no hint back.

    Attributes
    ----------
    say : callable
        Gets one sentence when the file was damaged or cannot be written.
    said : list of str
        Those sentences.
    """

    def __init__(self, folder: Path, say: "Callable[[str], None]") -> None:
        self.path = folder / FILE
        self.say = say
        self.said: list[str] = []
        self._unsaved = State()

    def read(self) -> State:
        """Return the present content, together with unwritten progress."""
        state, own = self._saved(), self._unsaved
        state.current = own.current or state.current
        state.passed += [name for name in own.passed if name not in state.passed]
        state.hints |= {name: max(count, state.hints.get(name, 0)) for name, count in own.hints.items()}
        return state

    def _saved(self) -> State:
        """The content of the file; nothing, if it is damaged: then it is kept under another name."""
        try:
            return _parsed(copying.read(self.path))
        except FileNotFoundError:
            return State()
        except OSError as error:
            raise LearnError(f"cannot read {self.path}: {error.strerror}") from None
        except (ValueError, RecursionError):
            self._put_aside()
            return State()

    def change(self, change: "Callable[[State], None]") -> State:
        """Read it, change it, write it; returns the new contents. If it cannot be written the old one stays."""
        with self._locked():
            state = self.read()
            change(state)
            try:
                copying.replace(self.path, _text(state))
                self._unsaved = State()
            except OSError as error:
                self._unsaved = state
                self._tell(f"cannot keep your progress in {self.path}: {error.strerror}; it is unchanged")
            return state

    def note_passed(self, name: str) -> None:
        """An exercise has passed. Not written again if that is known."""
        if name not in self.read().passed:
            self.change(lambda state: state.passed.append(name))

    def _put_aside(self) -> None:
        """Keep the damaged file, under a name that is free."""
        aside = copying.free(self.path.with_name(f"{FILE}.damaged"))
        try:
            os.rename(self.path, aside)
        except FileNotFoundError:
            return  # another process has just done so
        except OSError as error:
            raise LearnError(
                f"{self.path} is damaged, and cannot be renamed: {error.strerror}; remove it"
            ) from None
        self._tell(
            f"{self.path.name} was damaged and is now {aside.name}; no exercise counts as passed before it is "
            "checked again"
        )

    def _tell(self, sentence: str) -> None:
        self.said.append(sentence)
        self.say(sentence)

    @contextlib.contextmanager
    def _locked(self) -> "Iterator[None]":
        try:
            folder = os.open(self.path.parent, os.O_RDONLY)
        except OSError as error:
            raise LearnError(f"cannot open {self.path.parent}: {error.strerror}") from None
        try:
            with contextlib.suppress(OSError):  # some network file systems know no locks
                fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


def first() -> bytes:
    """The file of a new learner."""
    return _text(State())


def _text(state: State) -> bytes:
    return (json.dumps(asdict(state), indent=1) + "\n").encode()


def _parsed(data: bytes) -> State:
    """ValueError: these are not such data."""
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError(data)
    current, passed, hints = found.get("current", ""), found.get("passed", []), found.get("hints", {})
    right = (
        isinstance(current, str)
        and isinstance(passed, list)
        and all(isinstance(name, str) for name in passed)
        and isinstance(hints, dict)
        and all(type(count) is int and count >= 0 for count in hints.values())
    )
    if not right:
        raise ValueError(data)
    return State(current, list(dict.fromkeys(passed)), hints)
