# SPDX-License-Identifier: MIT
"""`spcomm check` on a machine with troubles of its own: full disks, closed pipes. They are never the solution's."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from programs import finish, start
from spcomm.learn import LearnError, grade, running
from spcomm.learn.case import Case
from spcomm.learn.catalogue import Limits
from spcomm.learn.running import Run
from spcomm.learn.words import values_of

EXERCISE = Path(__file__).parent / "room" / "01_sum"
RIGHT = Path(__file__).parent / "attacks" / "right.py"
CHECK = [sys.executable, "-m", "spcomm", "check", "--exercise", str(EXERCISE)]


def test_what_cannot_be_graded_keeps_no_other_from_it(tmp_path):
    done = finish(start([*CHECK, "--json", str(tmp_path / "no.py"), str(RIGHT)]))
    assert done.code == 125
    missing, right = json.loads(done.out)
    assert missing == {
        "file": str(tmp_path / "no.py"),
        "passed": None,
        "cases": [],
        "message": f"{tmp_path / 'no.py'} does not exist; give the file with your solution",
    }
    assert right["passed"] is True
    assert done.err == f"spcomm check: {missing['message']}\n"


def test_nobody_hears_it():
    with open("/dev/full", "w") as full:
        done = subprocess.run([*CHECK, str(RIGHT)], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.stderr == "spcomm check: the grades cannot be printed: No space left on device\n"
    assert done.returncode == 125


def test_letters_that_the_output_has_not(tmp_path):
    shutil.copy(RIGHT, tmp_path / "lösung.py")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = finish(start([*CHECK, str(tmp_path / "lösung.py")], env=environment))
    assert done.code == 0, done.err
    assert "l\\xf6sung.py: right in all" in done.out


@pytest.mark.parametrize("line", ["the trace cannot be written to trace.json (No space left on device)"])
def test_a_trace_that_has_no_room(line):
    run = Run(Case(1), 125, errors=[(None, f"spcomm: {line}")], results={}, doubled=[])
    with pytest.raises(LearnError, match="the judge cannot keep what the program did: the trace cannot be"):
        values_of(run, "a.py", Limits())


def test_no_folder_for_temporary_files(monkeypatch):
    def refuse(*_words, **_more):
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(running.tempfile, "TemporaryDirectory", refuse)
    with pytest.raises(LearnError, match="a folder for temporary files cannot be made: .*No usable.*; set TMPDIR"):
        grade(RIGHT, str(EXERCISE))


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    shutil.copy(RIGHT, tmp_path / "a.py")

    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(LearnError, match="a.py cannot be read: Permission denied"):
        grade(tmp_path / "a.py", str(EXERCISE))
