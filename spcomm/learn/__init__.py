# SPDX-License-Identifier: MIT
"""Exercises and their grading: `spcomm check`, `spcomm learn`.

`catalogue` finds the exercises, `case` is the API for an exercise's check.py. `grading` runs a solution and judges it,
`command` is `spcomm check`; docs/internals/judge.md describes the modules below them. `learning` is
`spcomm learn`: `session` at a terminal, `lessons` for the learner's folder, `checking` for one check, which
notebooks use, too. `examples` is `spcomm examples`.
"""

_WHERE = {
    "Exercise": "catalogue",
    "LearnError": "errors",
    "Grade": "grading",
    "CaseGrade": "grading",
    "grade": "grading",
}
__all__ = ["CaseGrade", "Exercise", "Grade", "LearnError", "grade"]


def __getattr__(name: str) -> object:
    """Import late: an exercise's check.py needs one module of this package, not all."""
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(f"spcomm.learn.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'spcomm.learn' has no attribute {name!r}")
