# SPDX-License-Identifier: MIT
"""The files of docs/howto/grade.md do what the page says."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checkout import ROOT
from classes import attack

FOLDER = ROOT / "docs" / "howto" / "grading"
EXERCISE = Path(__file__).parent / "room" / "01_sum"
RIGHT = attack("right")
# The keys that Gradescope's specification allows in results.json, as far as we use it.
WHOLE = {"score": (int, float), "output": str, "output_format": str, "tests": list, "extra_data": dict}
EACH = {"name": str, "score": (int, float), "max_score": (int, float), "output": str}


@pytest.fixture
def environment(tmp_path):
    """Where `spcomm` is that of this Python."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "spcomm"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m spcomm "$@"\n')
    script.chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "AUTOGRADER": str(tmp_path), "EXERCISE": str(EXERCISE)}


@pytest.fixture
def autograde(tmp_path, environment):
    """Gradescope's folders; the archive has an exercise of its own, as the page says."""
    for name in ("source", "submission", "results"):
        (tmp_path / name).mkdir()
    shutil.copytree(EXERCISE, tmp_path / "source" / "01_sum")
    text = (FOLDER / "run_autograder").read_text()
    assert text.count('EXERCISE = "02"') == 1
    # The harness runs a copy, in the folder above.
    script = tmp_path / "run_autograder"
    script.write_text(text.replace('EXERCISE = "02"', 'EXERCISE = "./01_sum"'))

    def autograde(**files):
        for name, origin in files.items():
            shutil.copy(origin, tmp_path / "submission" / f"{name}.py")
        command = [sys.executable, str(script)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        )
        found = json.loads((tmp_path / "results" / "results.json").read_text())
        check_form(found)
        return found, done

    return autograde


def check_form(found):
    """As the specification says it, and the points of tests are those of the whole."""
    assert set(found) <= set(WHOLE)
    assert all(isinstance(value, WHOLE[name]) for name, value in found.items())
    if "tests" in found:
        assert all(set(test) == set(EACH) for test in found["tests"])
        assert all(isinstance(value, EACH[name]) for test in found["tests"] for name, value in test.items())
        assert found["score"] == pytest.approx(sum(test["score"] for test in found["tests"]), abs=0.01)
        assert sum(test["max_score"] for test in found["tests"]) == pytest.approx(10)


def test_gradescope(autograde):
    found, done = autograde(exercise=RIGHT)
    assert found["tests"] == [{"name": "01_sum: 2 nodes", "score": 10.0, "max_score": 10.0, "output": ""}]
    assert found["score"] == 10
    assert done.stdout == f"isolation: {found['extra_data']['isolation']}\n"


STUB = EXERCISE / "exercise.py"
HANDED_IN = {  # the files, their points, and what is said of them
    "a wrong solution": ({"mine": STUB}, 0, "node 0 returned None; expected"),
    "nothing": ({}, 0, "Please hand in one Python file, exercise.py."),
    "the same solution twice": ({"a": RIGHT, "b": RIGHT}, 0, "Please hand in one Python file, exercise.py."),
    "one file of that name": ({"a": STUB, "exercise": RIGHT}, 10, ""),
}


@pytest.mark.parametrize("files", HANDED_IN)
def test_gradescope_of(autograde, files):
    names, score, said = HANDED_IN[files]
    found, _done = autograde(**names)
    assert found["score"] == score and said in found.get("output", found.get("tests", [{}])[0].get("output"))


@pytest.mark.stress
def test_gradescope_of_an_endless_solution(autograde, tmp_path):
    """Cases that were not run count as lost."""
    with open(tmp_path / "source" / "01_sum" / "check.py", "a") as file:
        file.write(
            "\ndef cases(rng, before=cases):\n    for _ in range(4):\n        yield from before(rng)\n"
        )
    found, _done = autograde(exercise=attack("loop"))
    assert [test["max_score"] for test in found["tests"]] == [2.5, 7.5]
    assert found["tests"][1]["name"] == "01_sum: 3 more, which were not run after this"
    assert found["score"] == 0


def test_gradescope_where_the_exercise_is_broken(autograde, tmp_path):
    (tmp_path / "source" / "01_sum" / "check.py").write_text("1 / 0")
    found, done = autograde(exercise=RIGHT)
    assert found["output"] == "This could not be graded; please tell your teacher."
    assert "a fault of the exercise" in done.stderr


def test_gradescope_follows_no_links(autograde, tmp_path):
    (tmp_path / "submission" / "exercise.py").symlink_to(RIGHT)
    found, _done = autograde()
    assert found["score"] == 0


@pytest.mark.parametrize(("solution", "code"), [(RIGHT, 0), (STUB, 1)])
def test_cell(tmp_path, environment, solution, code):
    shutil.copy(solution, tmp_path / "exercise.py")
    text = (FOLDER / "autograded_cell.py").read_text()
    assert text.count('EXERCISE = "02"') == 1
    words = [sys.executable, "-c", text.replace('EXERCISE = "02"', f"EXERCISE = {str(EXERCISE)!r}")]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert code == 0 or "AssertionError: node 0 returned None" in done.stderr


def test_configuration_of_nbgrader():
    class Any:
        def __getattr__(self, name):
            return self.__dict__.setdefault(name, Any())

    told = Any()
    exec((FOLDER / "nbgrader_config.py").read_text(), {"get_config": lambda: told})
    assert told.Execute.timeout == 600


@pytest.mark.slow
@pytest.mark.parametrize(("solution", "code"), [(RIGHT, 0), (STUB, 1)])
def test_classroom(tmp_path, environment, solution, code):
    """The command of its grader, in a repository with one exercise; the grader looks at its exit code."""
    (tmp_path / "work" / "02_split").mkdir(parents=True)
    shutil.copy(solution, tmp_path / "work" / "02_split" / "exercise.py")
    [command] = re.findall(r"^ +command: (spcomm check .*)$", (FOLDER / "classroom.yml").read_text(), re.M)
    command = command.replace("spcomm check", f"spcomm check --exercise {EXERCISE}")
    words, where = ["sh", "-c", command], tmp_path / "work"
    done = subprocess.run(words, cwd=where, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert code == 1 or "02_split/exercise.py: 01_sum has passed: 1 run" in done.stdout


def test_what_the_reporter_is_told():
    """Each step with an id is named in the environment and in the list of the last one."""
    text = (FOLDER / "classroom.yml").read_text()
    ids = re.findall(r"- id: (\w+)", text)
    assert re.findall(r"(\w+)_RESULTS: \$\{\{ steps\.(\w+)\.outputs\.result \}\}", text) == [
        (name.upper(), name) for name in ids
    ]
    assert re.findall(r"runners: (.*)", text) == [",".join(ids)]
