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

pytestmark = pytest.mark.rota(4)

FOLDER = ROOT / "docs" / "howto" / "grading"
EXERCISE = Path(__file__).parent / "room" / "01_sum"
RIGHT = Path(__file__).parent / "attacks" / "right.py"


@pytest.fixture
def environment(tmp_path):
    """Where `spcomm` and `python3` are those of this Python."""
    (tmp_path / "bin").mkdir()
    for name, words in (("spcomm", "-m spcomm "), ("python3", "")):
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        script.chmod(0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "AUTOGRADER": str(tmp_path), "EXERCISE": str(EXERCISE)}


def autograde(tmp_path, environment, solution):
    for name in ("source", "submission", "results"):
        (tmp_path / name).mkdir()
    for name in ("run_autograder", "gradescope.py"):
        shutil.copy(FOLDER / name, tmp_path / "source")
    if solution is not None:
        shutil.copy(solution, tmp_path / "submission")
    subprocess.run([tmp_path / "source" / "run_autograder"], env=environment, check=True)
    return json.loads((tmp_path / "results" / "results.json").read_text())


def test_gradescope(tmp_path, environment):
    found = autograde(tmp_path, environment, RIGHT)
    assert found == {"tests": [{"name": "01_sum: 2 nodes", "score": 1.0, "max_score": 1.0, "output": ""}]}


def test_gradescope_of_a_wrong_solution(tmp_path, environment):
    [test] = autograde(tmp_path, environment, EXERCISE / "exercise.py")["tests"]
    assert test["score"] == 0
    assert "node 0 returned None; expected" in test["output"]


def test_gradescope_of_nothing(tmp_path, environment):
    found = autograde(tmp_path, environment, None)
    assert found["score"] == 0
    assert "tell your teacher" in found["output"]


@pytest.mark.parametrize(("solution", "code"), [(RIGHT, 0), (EXERCISE / "exercise.py", 1)])
def test_cell(tmp_path, environment, solution, code):
    shutil.copy(solution, tmp_path / "exercise.py")
    cell = [sys.executable, FOLDER / "autograded_cell.py"]
    done = subprocess.run(cell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert code == 0 or "AssertionError: node 0 returned None" in done.stderr


def test_classroom(tmp_path, environment):
    """Its last step, in a repository with one exercise."""
    shutil.copytree(EXERCISE, tmp_path / "work" / "01_sum")
    shutil.copy(RIGHT, tmp_path / "work" / "01_sum" / "exercise.py")
    steps = re.findall(r"- run: (.*)", (FOLDER / "classroom.yml").read_text())
    assert steps[-1].startswith("spcomm check ")
    command = steps[-1].replace("spcomm check", f"spcomm check --exercise {EXERCISE}")
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path / "work",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "01_sum/exercise.py: 01_sum has passed: 1 run" in done.stdout
