# SPDX-License-Identifier: MIT
"""An exercise's check.py: its cases, and its judgement of their outcomes. Its faults are the teacher's."""

import importlib.util
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from spcomm.learn.case import Case, Outcome, Wrong
from spcomm.learn.catalogue import Exercise
from spcomm.learn.errors import LearnError

_MOST = 100  # cases


class Check:
    """The check.py of an exercise."""

    def __init__(self, exercise: Exercise) -> None:
        self._path = exercise.folder / "check.py"
        name = f"spcomm_check_{exercise.name}"
        spec = importlib.util.spec_from_file_location(name, self._path)
        self._module = importlib.util.module_from_spec(spec)
        sys.modules[name] = self._module
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            spec.loader.exec_module(self._module)
        except Exception as error:
            raise self._fault("cannot be imported", error) from error
        finally:
            sys.dont_write_bytecode = before
            sys.modules.pop(name, None)
        missing = [name for name in ("cases", "judge") if not callable(getattr(self._module, name, None))]
        if missing:
            raise LearnError(f"{self._path} has no function {' and no function '.join(missing)}")

    def cases(self, seed: int) -> "Iterator[Case]":
        """Yield the runs to be made, drawn from a seed: each when it is to be made, after those before were judged."""
        count = 0
        found = self._asked(lambda: iter(self._module.cases(random.Random(seed))))
        while (case := self._asked(self._next, found, count)) is not None:
            count += 1
            yield case
        if not count:
            raise LearnError(f"{self._path}: cases() yields no case, so nothing is checked")

    def _asked(self, call: "Callable[..., object]", *arguments: object) -> object:
        try:
            return call(*arguments)
        except Exception as error:
            raise self._fault("cases() failed", error) from error

    @staticmethod
    def _next(found: "Iterator[object]", count: int) -> "Case | None":
        for case in found:
            if not isinstance(case, Case):
                raise TypeError(f"cases() yields {type(case).__name__}, not spcomm.learn.case.Case")
            if count == _MOST:
                raise ValueError(f"cases() yields more than {_MOST} cases")
            return case
        return None

    def judge(self, case: Case, outcome: Outcome) -> None:
        """Raise `Wrong` if it is not right."""
        try:
            self._module.judge(case, outcome)
        except Wrong:
            raise
        except Exception as error:
            raise self._fault(f"judge() failed in case {case.name!r}", error) from error

    def _fault(self, what: str, error: Exception) -> LearnError:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
                 if Path(frame.filename) == self._path]  # fmt: skip
        place = f"{self._path}:{lines[-1]}" if lines else str(self._path)
        return LearnError(
            f"{place}: {what}: {type(error).__name__}: {str(error)[:500]}; that is a fault of the exercise, "
            "not of the solution"
        )
