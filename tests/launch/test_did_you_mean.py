# SPDX-License-Identifier: MIT
"""A program that is not there: which one may be meant."""

import json

import pytest

from spcomm.launch.cmdline.did_you_mean import near
from spcomm.learn import catalogue, lessons, progress


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (
        "heat.py",
        "heaps.py",
        "hello.py",
        ".hidden.py",
        "alarm\a.py",
        "plate/heat2.py",
        "plates/heat2.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("helo.py", "; did you mean hello.py?"),
        ("hiden.py", ""),
        ("alarm.py", ""),
        ("./helo.py", "; did you mean ./hello.py?"),
        ("haet.py", "; did you mean heat.py?"),
        ("heat2.py", "; did you mean plate/heat2.py or plates/heat2.py?"),
        ("plate/heat.py", "; did you mean plate/heat2.py?"),
        ("plat/heat.py", ""),
        ("something_else", ""),
        ("plates.py", ""),
        ("", ""),
        ("x" * 5000, ""),
        ("\udcff.py", ""),
    ],
)
def test_names_that_are_near(folder, name, text):
    assert near(name) == text


def test_one_sentence_at_the_terminal(launch):
    launch.script("print('hello')", "hello.py")
    for name in ("helo.py", "helo"):
        result = launch("-n", 2, name)
        assert result.code == 127 and result.err.endswith("; did you mean hello.py?\n"), result
        assert result.err.count("\n") == 1 and result.out == ""


def test_the_next_exercise(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exercises = catalogue.exercises()
    lessons.init(tmp_path, exercises)
    own = lessons.Lessons(tmp_path, exercises)
    text = "; each exercise has its own folder: cd {0}, or give {0}/exercise.py"
    assert near("exercise.py") == text.format(exercises[0].name)
    own.progress.note_passed(exercises[0].name)
    assert near("exercise.py") == text.format(own.current().name) == text.format(exercises[1].name)
    own.choose(exercises[4])
    assert near("exercise.py") == text.format(own.current().name)
    assert near("../" + tmp_path.name + "/exercise.py").endswith(f"/{exercises[4].name}/exercise.py")
    for damaged in ("{", "[]", "[" * 99999, json.dumps({"current": [], "passed": 7})):
        (tmp_path / progress.FILE).write_text(damaged)
        assert near("exercise.py") == text.format(exercises[0].name)
