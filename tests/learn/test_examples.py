# SPDX-License-Identifier: MIT
"""`spcomm examples`: the list, the source of one, copies."""

import os
import subprocess
import sys

import pytest

from made import WATCHDOG_S, environment
from spcomm.demo import examples_dir


def examples(*words, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "spcomm", "examples", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=WATCHDOG_S,
        cwd=cwd,
        env=environment(),
    )


def complaint(answer, code=1):
    assert (answer.returncode, answer.stdout) == (code, "")
    assert answer.stderr.count("\n") == 1 and answer.stderr.startswith("spcomm examples: ")
    return answer.stderr


@pytest.mark.smoke
def test_the_list():
    lines = examples().stdout.splitlines()
    assert lines[0].startswith("01_hello            Every node is a process")
    names = {line.split()[0] for line in lines if line[:2].isdecimal()}
    assert names == {path.stem for path in examples_dir().glob("[0-9]*.py")}
    assert "picture" not in {line.split(" ")[0] for line in lines}, "it is a module of others"
    assert examples("list").stdout.splitlines() == lines


@pytest.mark.smoke
@pytest.mark.parametrize("word", ["2", "02", "ring", "02_ring", "02_ring.py", "RING", "_rin"])
def test_the_source_of_one(word):
    path = examples_dir() / "02_ring.py"
    answer = examples(word)
    assert answer.stdout == f"# {path}\n\n" + path.read_text()
    compile(answer.stdout, "02_ring.py", "exec")


def copied(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.smoke
def test_copies(tmp_path):
    folder = tmp_path / "a" / "b"
    answer = examples("init", folder)
    assert (answer.returncode, answer.stderr) == (0, "")
    found = copied(folder)
    assert {
        "01_hello.py",
        "picture.py",
        "c/pi.c",
        "cxx/pi.cpp",
        "notebooks/01_first_steps.ipynb",
        "tutorial/04_circle.py",
    } <= set(found)
    assert not [name for name in found if "__pycache__" in name]
    assert "already" in examples("init", folder).stdout
    (folder / "c" / "pi.c").unlink()
    assert examples("init", folder).stdout.startswith("1 files copied")
    assert copied(folder) == found


def test_copies_never_overwrite(tmp_path):
    (tmp_path / "c").mkdir()
    for name in ("01_hello.py", "02_ring.py", "03_pi.py", "05_primes.py", "c/pi.c"):
        (tmp_path / name).write_text("mine")
    text = complaint(examples("init", tmp_path))
    assert "01_hello.py, 02_ring.py, 03_pi.py and 2 others in" in text and "nothing was copied" in text
    assert set(copied(tmp_path).values()) == {b"mine"}


def test_where_no_folder_can_be(tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file, not a folder" in complaint(examples("init", "file", cwd=tmp_path))
    loop = tmp_path / "loop"
    os.symlink("loop", loop)
    assert "loop" in complaint(examples("init", loop))
    text = complaint(examples("init", "n" * 5000, cwd=tmp_path))
    assert "cannot use nnn" in text and "File name too long; name another place" in text and len(text) < 400
