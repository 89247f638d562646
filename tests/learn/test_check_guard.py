# SPDX-License-Identifier: MIT
"""The guard leaves nobody behind, also when it is told to end at the worst moment, or a check by another thread."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import spcomm.learn
from classes import ATTACKS
from processes import state
from spcomm.learn import catalogue, grade, limits, sandbox
from spcomm.learn.checking import RunningCheck
from spcomm.learn.terminal import Page

PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
import limits
close = os.close

def ended(fd):
    close(fd)
    raise SystemExit(143)  # as by SIGTERM, just after the fork

limits._control(limits._SUBREAPER, 1)
os.close = ended
try:
    bounds = {"seconds": 60, "memory": 2**30, "processes": 8, "output": 1000}
    limits.LimitedCommand(bounds).run([sys.executable, "-c", "input()"], {}, "/")
except SystemExit as error:
    print(error.code, limits.descendants())
"""


def test_who_was_just_started_is_ended():
    folder = Path(spcomm.learn.__file__).parent
    command = [sys.executable, "-I", "-c", PROGRAM, str(folder)]
    done = subprocess.run(command, stdin=subprocess.PIPE, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("143 []\n", "")


HIDES = """
import os, socket
ends = socket.socketpair()
for _ in range(16):
    file = os.memfd_create("hidden")
    os.write(file, bytes(16 << 20))
    socket.send_fds(ends[0], [b"x"], [file])
    os.close(file)
print("hidden")
"""


def test_memory_on_its_way_between_sockets_counts():
    group = limits.ControlGroup()
    group.make(1 << 30)
    made = group.folder
    group.close()
    if made is None:
        pytest.skip("no control group with a memory limit can be made here")
    about = {
        "command": [sys.executable, "-c", HIDES],
        "folder": "/",
        "environment": dict(os.environ),
        "limits": {"seconds": 60, "memory": 64 << 20, "processes": 8, "output": 1000},
    }
    command = [sys.executable, "-IS", limits.__file__, json.dumps(about)]
    done = subprocess.Popen(command, stdout=subprocess.PIPE)
    told = json.loads(done.communicate()[0])
    assert (told["status"], told["stopped"], told["out"]) == (-9, "memory", "")
    assert not list(Path(made).parent.glob(f"spcomm-check-{done.pid}-*"))


IGNORES_SIGTERM = """
import os, signal
def solve(comm, items):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        os.fork()
    while True:
        pass
"""
STOPS_GUARD = ATTACKS["stops_guard"].program


def states(others):
    """The state of each process below this one, but for those of other tests, such as nodes of a pool."""
    return [state(pid) for pid in set(limits.descendants()) - others]


@pytest.mark.parametrize(
    ("program", "is_walled", "comes"),
    [
        (IGNORES_SIGTERM, True, lambda found: len(found) >= 1),
        (IGNORES_SIGTERM, True, lambda found: len(found) >= 8),
        (IGNORES_SIGTERM, False, lambda found: len(found) >= 3),
        (IGNORES_SIGTERM, False, lambda found: len(found) >= 8),
        pytest.param(STOPS_GUARD, False, lambda found: "stopped" in found, marks=pytest.mark.slow),
    ],
    ids=["guard", "all", "launcher-unwalled", "all-unwalled", "stopped-guard"],
)
def test_a_check_that_is_ended_leaves_nothing(tmp_path, monkeypatch, program, is_walled, comes):
    if is_walled and sandbox.walls().bwrap is None:
        pytest.skip(sandbox.walls().about)
    if not is_walled:
        monkeypatch.setattr(sandbox, "walls", lambda: sandbox.Sandbox("none: for a test"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = tmp_path / "01_sum.py"
    file.write_text(program)
    others = set(limits.descendants())
    running = RunningCheck(grade, catalogue.load(Path(__file__).parent / "room" / "01_sum"), file)
    try:
        while not comes(states(others)):
            assert running.progress(Page()) is None, "it has ended by itself"
    finally:
        running.end()
    assert set(limits.descendants()) <= others
    assert [path.name for path in tmp_path.iterdir()] == ["01_sum.py"]
    assert running._found.empty()


CHECKS = {
    "command": ("-m", "spcomm", "check", "--quick"),
    "grade": (
        "-c",
        "import sys; from spcomm.learn import grade\n"
        "found = grade(sys.argv[1], quick=True); print(found.isolation); sys.exit(not found.passed)",
    ),
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("state", ["ignored", "blocked"])
@pytest.mark.slow
def test_signals_that_the_parent_kept_from_the_judge(check, state):
    """Nobody could be reaped: a right solution failed, or its walls seemed to fail and it ran without them."""
    keep = {
        "ignored": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        "blocked": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()),
    }
    solution = Path(__file__).parents[2] / "exercises" / "solutions" / "01_hello.py"
    done = subprocess.run(
        [sys.executable, *CHECKS[check], str(solution)],
        capture_output=True,
        text=True,
        preexec_fn=keep[state],
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert ("none: " in said) == (sandbox.walls().bwrap is None), said
