# SPDX-License-Identifier: MIT
"""`spcomm demo`: where its programs are, what it says, what it returns."""

import struct
import sys

import pytest

from spcomm import demo


def test_examples_are_found():
    names = {path.name for path in demo.examples_dir().glob("*.py")}
    assert {name for _, name, _ in demo.programs([])} < names


@pytest.mark.linux("others refuse to remove it")
def test_a_folder_that_is_gone(monkeypatch, tmp_path, capfd):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert demo.main([]) == 125
    sentence = "spcomm demo: the current folder does not exist any more; cd to another one\n"
    assert capfd.readouterr() == ("", sentence)


@pytest.mark.slow
def test_all_three(monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(tmp_path)
    assert demo.main([]) == 0
    shown = capfd.readouterr().out
    assert shown.count("checked: one node") == 3
    assert shown.count("spcomm run -n 8 ") == 3
    assert "all 3 checked" in shown
    picture = (tmp_path / "heat.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", picture[16:24]) == (482, 322)


def test_the_command_it_shows_can_be_typed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    assert demo.command() == "bin/python -m spcomm"
    script = tmp_path / "bin" / "spcomm"
    script.parent.mkdir()
    script.touch(0o755)
    assert demo.command() == "bin/spcomm"
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin")
    assert demo.command() == "spcomm"


@pytest.mark.slow
def test_files_to_count(monkeypatch, tmp_path, capfd):
    (tmp_path / "some words.txt").write_text("one two two\nthree three three\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert demo.main(["-n", "2", "some words.txt"]) == 0
    shown = capfd.readouterr().out
    assert "1 files, 2 lines, 6 words, 3 different ones" in shown
    assert "three 3, two 2, one 1" in shown


@pytest.mark.slow
def test_a_failure_is_the_exit_code(monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(tmp_path)
    assert demo.main(["-n", "2", "no-such-file.txt"]) == 1
    shown = capfd.readouterr()
    assert "failed: 07_word_count.py (exit code 1)" in shown.out
    assert "no-such-file.txt" in shown.err
    assert shown.out.count("checked: one node") == 2  # the other two ran


def test_an_incomplete_installation(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo, "__file__", str(tmp_path / "spcomm" / "demo.py"))
    assert demo.main([]) == 125
    assert "this installation of spcomm is incomplete" in capsys.readouterr().err


def test_a_picture_goes_elsewhere_when_it_must(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(demo.examples_dir())
    monkeypatch.setitem(sys.modules, "picture", None)
    del sys.modules["picture"]
    import numpy as np
    import picture

    monkeypatch.setattr(picture.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    path = picture.save_png("/no/such/folder/heat.png", np.zeros((3, 4)))
    assert path == tmp_path / "heat.png" and path.read_bytes().startswith(b"\x89PNG")
