# SPDX-License-Identifier: MIT
"""Exercises, and who grades them: `spcomm check`, `spcomm learn`.

`catalogue` finds the exercises, `case` is what an exercise's check.py is written with. `grading` runs a solution and
judges it, `command` is `spcomm check`; docs/internals/judge.md says what the modules below them do. `learning` is
`spcomm learn`: `session` at a terminal, `lessons` for the folder of who learns, `checking` for one check, which
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
