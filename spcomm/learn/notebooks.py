# SPDX-License-Identifier: MIT
"""An exercise as a notebook: the lesson, the program, cells that run and check it.

The program's cell writes exercise.py beside the notebook, so that both are the same, and a program that runs in the
notebook also runs at a terminal.
"""

import json

from spcomm.learn.catalogue import Exercise

_NODES = 4


def notebook(exercise: Exercise) -> bytes:
    """The notebook, in Jupyter's format."""
    program = exercise.stub.read_text(encoding="utf-8")
    cells = [
        _text("lesson", exercise.lesson),
        _code("load", "%load_ext spcomm"),
        _text(
            "work",
            "**The program.** Change this cell and run it: it writes `exercise.py`, beside this notebook. "
            "The two cells below run it, and check it. A program that you wrote there with an editor stays.",
        ),
        _code("program", "%%spcomm_write exercise.py\n" + program),
        _code(
            "run",
            f"%spcomm run -n {_NODES} --fresh --timeout 60 exercise.py",
        ),
        _code("check", f"%spcomm check {exercise.number:02}"),
    ]
    found = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return (json.dumps(found, indent=1, ensure_ascii=False) + "\n").encode()


def _text(name: str, text: str) -> "dict[str, object]":
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": _lines(text)}


def _code(name: str, text: str) -> "dict[str, object]":
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {},
        "outputs": [],
        "source": _lines(text),
    }


def _lines(text: str) -> "list[str]":
    return text.rstrip("\n").splitlines(keepends=True)
