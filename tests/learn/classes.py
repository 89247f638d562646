# SPDX-License-Identifier: MIT
"""A class's submissions, the solutions of attacks.txt (entries.py), and the grades that `spcomm check` gives."""

import json
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

import entries
from checkout import ROOT
from programs import PATIENCE_S, finish, start

HERE = Path(__file__).parent
EXERCISE = HERE / "room" / "01_sum"
STUB = EXERCISE / "exercise.py"
ATTACKS = {entry.name: entry for entry in entries.read(HERE / "attacks.txt", "verdict says unwalled")}
WRITTEN = ROOT / "build" / "attacks"


@cache
def attack(name):
    """The file of one: it is never there in part, since other workers may read it."""
    WRITTEN.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WRITTEN) as folder:
        os.replace(ATTACKS[name].write(Path(folder)), WRITTEN / f"{name}.py")
    return WRITTEN / f"{name}.py"


def hand_in(folder, student, program, name="exercise.py"):
    """No two files are alike."""
    place = folder / student / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"{program.read_text()}\n# handed in by {student}\n")
    return place


def own_exercise(folder, check):
    """A copy of the exercise with more in its check.py."""
    shutil.copytree(EXERCISE, folder / "01_sum")
    with open(folder / "01_sum" / "check.py", "a") as file:
        file.write(check)
    return folder / "01_sum"


def command(*words, exercise=EXERCISE):
    return [sys.executable, "-m", "spcomm", "check", "--exercise", str(exercise), *map(str, words)]


def grades(*words, code, exercise=EXERCISE):
    """By student; what is printed is as the page says."""
    done = finish(start(command("--json", *words, exercise=exercise)), patience=6 * PATIENCE_S)
    assert done.code == code, done
    found = json.loads(done.out)
    assert not [error.message for error in schema().iter_errors(found)]
    return {grade["student"]: grade for grade in found}


@cache
def schema():
    from jsonschema import Draft202012Validator  # takes a second or more, and each worker collects this file

    told = json.loads((ROOT / "docs" / "howto" / "grading" / "grades.schema.json").read_text())
    Draft202012Validator.check_schema(told)
    return Draft202012Validator(told)
