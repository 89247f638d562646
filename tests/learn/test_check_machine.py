# SPDX-License-Identifier: MIT
"""`spcomm check` on a machine with troubles of its own: full disks, closed pipes. They are never the solution's."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from classes import attack
from processes import children
from programs import PATIENCE_S, finish, start
from spcomm.learn import LearnError, grade, lessons, running, sandbox
from spcomm.learn.case import Case, Wrong
from spcomm.learn.catalogue import Limits, exercises
from spcomm.learn.failure_text import values_of
from spcomm.learn.running import Run

EXERCISE = Path(__file__).parent / "room" / "01_sum"
RIGHT = attack("right")
CHECK = [sys.executable, "-m", "spcomm", "check", "--exercise", str(EXERCISE)]
UNWALLED = """
import sys
from spcomm.learn import grade, sandbox
sandbox.walls = lambda: sandbox.Sandbox("none: for a test")
found = grade(sys.argv[1], sys.argv[2])
"""
PRINT = "print('passed' if found.passed else found.message)"
LEARN = """
import sys
from spcomm.learn.catalogue import exercises
from spcomm.learn.learning import main

sys.exit(main(sys.argv[2:], lambda: exercises(sys.argv[1])))
"""
INTERRUPTED = """
import select, subprocess

def interrupt(process, told, *_more):
    process.stdin.write(told)
    process.stdin.close()
    select.select([process.stdout], [], [])
    raise KeyboardInterrupt

subprocess.Popen.communicate = interrupt
"""


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


@pytest.mark.slow
@pytest.mark.parametrize("command", [["list"], ["next"], ["hint", "1"], ["watch"]])
@pytest.mark.parametrize("where", ["closed", "full"])
def test_nobody_hears_what_is_learnt(own, command, where):
    words = [sys.executable, "-m", "spcomm", "learn", *command, "--dir", str(own)]
    to = ">&-" if where == "closed" else "> /dev/full"
    done = finish(start(["/bin/sh", "-c", f'exec "$@" {to}', "sh", *words]))
    if where == "full":
        assert done.code == 125
        assert (
            done.err
            == "spcomm learn: its output cannot be written: No space left on device (exit code 125)\n"
        )
    else:
        assert "Traceback" not in done.err, done


@pytest.mark.parametrize(
    ("name", "command"),
    [
        (".spcomm-learn.json", ["hint", "1"]),
        ("01_sum/exercise.py", ["reset", "1"]),
        ("01_sum/README.md", ["init"]),
    ],
)
def test_pipes_are_not_waited_for(tmp_path, name, command):
    own = tmp_path / "own"
    shelf = exercises(EXERCISE.parent)
    lessons.init(own, shelf)
    (own / name).unlink()
    os.mkfifo(own / name)
    words = [*command, str(own)] if command == ["init"] else [*command, "--dir", str(own)]
    done = finish(
        start([sys.executable, "-c", LEARN, str(EXERCISE.parent), *words]), patience=min(PATIENCE_S, 60)
    )
    assert done.code == 1, done
    assert "it is a pipe or a device, not a file" in done.err


def test_a_folder_that_is_gone(tmp_path):
    words = "import os, sys; from spcomm.cli import main; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); "
    words += "main(['learn', 'list'])"
    (tmp_path / "gone").mkdir()
    done = finish(start([sys.executable, "-c", words, str(tmp_path / "gone")]))
    assert done.err.startswith("spcomm learn: there are no exercises in this folder; "), done


def test_nobody_hears_it():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*CHECK, str(RIGHT)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (
        done.stderr == "spcomm check: its output cannot be written: No space left on device (exit code 125)\n"
    )
    assert done.returncode == 125


def test_letters_that_the_output_has_not(tmp_path):
    shutil.copy(RIGHT, tmp_path / "lösung.py")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = finish(start([*CHECK, str(tmp_path / "lösung.py")], env=environment))
    assert done.code == 0, done.err
    assert "l\\xf6sung.py: 01_sum has passed" in done.out


@pytest.mark.parametrize("line", ["the trace cannot be written to trace.json (No space left on device)"])
def test_a_trace_that_has_no_room(line):
    run = Run(Case(1), 125, errors=[(None, f"spcomm: {line}")], results={}, doubled=[], trace=b"")
    with pytest.raises(LearnError, match="the judge cannot store the program's trace: the trace cannot be"):
        values_of(run, "a.py", Limits())


@pytest.mark.parametrize(
    "line", ["spcomm: the trace cannot be written to trace.json", "spcomm run: --map 7: no such box"]
)
def test_who_has_run_can_put_the_blame_on_nobody(line):
    """The launcher's stderr is there for all processes of the run; what has run has left a trace."""
    run = Run(Case(1), 125, errors=[(None, line)], results={}, doubled=[], trace=b"{}")
    with pytest.raises(Wrong, match=r"trace cannot be|no such box"):
        values_of(run, "a.py", Limits())


def test_no_folder_for_temporary_files(monkeypatch):
    def refuse(*_words, **_more):
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(running.tempfile, "TemporaryDirectory", refuse)
    with pytest.raises(
        LearnError, match=r"a folder for temporary files cannot be made: .*No usable.*; set TMPDIR"
    ):
        grade(RIGHT, str(EXERCISE))


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    shutil.copy(RIGHT, tmp_path / "a.py")

    def refuse(*_words):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(running.copying, "read", refuse)
    with pytest.raises(LearnError, match=r"a\.py cannot be read: Permission denied"):
        grade(tmp_path / "a.py", str(EXERCISE))


def test_a_file_that_is_no_solution_by_its_size(tmp_path):
    with open(tmp_path / "a.py", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(LearnError, match=r"a\.py has more than 16 MiB, and no solution needs that"):
        grade(tmp_path / "a.py", str(EXERCISE))


SEARCH = """
import os

def solve(comm, items):
    for place in {places!r}:
        assert os.path.isdir(place), place
        assert not os.path.exists(f"{{place}}/exercises") or not os.listdir(f"{{place}}/exercises"), place
    return comm.allreduce(sum(items)) // comm.size
"""


@pytest.mark.skipif(sandbox.walls().bwrap is None, reason=sandbox.walls().about)
def test_exercises_are_hidden_whichever_way_packages_are_found(tmp_path, monkeypatch):
    """A user sets PYTHONPATH to this checkout, or to the data of an installed wheel, directly and by a link."""
    checkout = exercises()[0].folder.parent.parent
    assert os.listdir(checkout / "exercises")
    link = tmp_path / "link"
    link.symlink_to(checkout)
    places = [str(checkout), str(link)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*places, str(checkout / "exercises" / "solutions")]))
    (tmp_path / "a.py").write_text(SEARCH.format(places=places))
    found = grade(tmp_path / "a.py", str(EXERCISE))
    assert found.passed, found.message


@pytest.mark.parametrize("command", ["check", "unwalled"])
def test_spcomm_among_the_packages_of_a_user(tmp_path, command):
    """As by `pip install --user`: solutions have another HOME, and find it all the same."""
    python = getattr(sys, "_base_executable", sys.executable)
    folder = (
        tmp_path / ".local" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    )
    folder.mkdir(parents=True)
    checkout = exercises()[0].folder.parent.parent
    (folder / "spcomm.pth").write_text(f"{checkout}\n")
    words = ["-m", "spcomm", "check", "--exercise"] if command == "check" else ["-c", UNWALLED + PRINT]
    files = [str(EXERCISE), str(RIGHT)] if command == "check" else [str(RIGHT), str(EXERCISE)]
    others = sysconfig.get_path("purelib")  # NumPy
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": others}
    done = subprocess.run(
        [python, *words, *files], env=environment, capture_output=True, text=True, check=False
    )
    assert "passed" in done.stdout, done


@pytest.mark.skipif(sandbox.walls().bwrap is None, reason=sandbox.walls().about)
def test_an_exercise_of_the_teachers_own_is_hidden(tmp_path, monkeypatch):
    """It lies where Python looks for packages, so that check.py finds a module beside it."""
    own = tmp_path / "packages" / "01_sum"
    shutil.copytree(EXERCISE, own)
    monkeypatch.setenv("PYTHONPATH", str(own.parent))
    (tmp_path / "a.py").write_text(
        f"import os\ndef solve(comm, items):\n    assert not os.path.exists({str(own / 'check.py')!r})\n"
        "    return comm.allreduce(sum(items)) // comm.size\n"
    )
    found = grade(tmp_path / "a.py", str(own))
    assert found.passed, found.message


def test_folders_are_hidden_once(tmp_path, monkeypatch):
    """Those of a wheel lie in each other, and bubblewrap makes nothing in a hidden folder."""
    data = tmp_path / "data" / "exercises" / "01_sum"
    data.mkdir(parents=True)
    monkeypatch.setattr(sandbox, "exercises_dir", lambda: data.parent)
    assert sandbox._hidden([str(tmp_path)], str(data)) == [str(data.parent)]


def test_walls_required(tmp_path, monkeypatch, capsys):
    from spcomm.learn import command

    monkeypatch.setattr(sandbox, "walls", lambda: sandbox.Sandbox("none: for a test"))
    (tmp_path / "a.py").write_text("def solve(comm, items):\n    return 42\n")
    assert command.main(["--walls", "required", "--exercise", str(EXERCISE), str(tmp_path / "a.py")]) == 125
    said = capsys.readouterr()
    assert said.err == "spcomm check: --walls required: nothing is graded here. Isolation: none: for a test\n"
    assert said.out == ""


def test_a_link_is_not_graded(tmp_path):
    (tmp_path / "a.py").symlink_to(RIGHT)
    with pytest.raises(LearnError, match=r"a\.py is a link; give the file itself"):
        grade(tmp_path / "a.py", str(EXERCISE))


@pytest.mark.linux("pidfd")
@pytest.mark.parametrize("hangs_up", [False, True])
def test_a_judge_that_is_killed_leaves_nothing(tmp_path, hangs_up):
    """Also if it led the session of its terminal, and the guard hears of that first."""
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    (tmp_path / "a.py").write_text(
        f"def solve(*_, **__):\n    open({str(begun)!r}, 'w').close()\n    while 1: pass\n"
    )
    words = [sys.executable, "-c", UNWALLED, str(tmp_path / "a.py"), str(EXERCISE)]
    process = start(words, env={"TMPDIR": str(tmp)})
    with open(begun):  # until the solution runs
        pass
    [guard] = children(process.pid)
    watched = os.pidfd_open(guard)
    assert [path.name for path in tmp.iterdir() if path.name.startswith("spcomm-check-")]
    if hangs_up:
        process.send_signal(signal.SIGSTOP)
        os.kill(guard, signal.SIGHUP)
    process.kill()
    process.communicate()
    assert select.select([watched], [], [], PATIENCE_S)[0]
    os.close(watched)
    assert not list(tmp.iterdir())


def test_ctrl_c_while_the_guard_says_much(tmp_path):
    """It hears nothing then, and waits until somebody reads."""
    (tmp_path / "a.py").write_text("def solve(comm, items):\n    print('x' * 200_000)\n")
    done = finish(
        start([sys.executable, "-c", INTERRUPTED + UNWALLED, str(tmp_path / "a.py"), str(EXERCISE)])
    )
    assert done.err.splitlines()[-1:] == ["KeyboardInterrupt"], done
