# SPDX-License-Identifier: MIT
"""Solutions that attack the judge, or are wrong in every way (attacks.txt, entries.py), and what it has to say.

An entry has `verdict: right`, or in `says:` texts of the judge's message; where nothing keeps the solution apart, the
message may be another one: `unwalled:`.
"""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from classes import ATTACKS, EXERCISE, attack
from pairwise import each
from programs import finish, start
from spcomm.learn import grade, running, sandbox

# Those that meet other things where nothing keeps them apart.
OPEN = ("blames", "deletes", "escapes", "forges", "forks", "kills_parent", "leaves_one", "pipes_trace", "prints",
        "reads_others", "right", "stops_guard", "vandal")  # fmt: skip
# Those that meet other walls where the judge is not root; the first is for them alone.
ORDINARY = ("borrows_reaper", "escapes", "forks", "hides_memory", "keeps_keys", "kills_parent", "reads_others", "right",
            "vandal", "writes_settings")  # fmt: skip
AS_ORDINARY = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--uid", "1000", "--gid", "1000", "--"]

walled = pytest.mark.skipif(sandbox.walls().bwrap is None, reason=sandbox.walls().about)


HAS_LANDLOCK = sys.platform == "linux" and ctypes.CDLL(None).syscall(444, None, 0, 1) >= 2


def skip_what_this_kernel_lacks(name):
    if name == "reads_others" and not HAS_LANDLOCK:
        pytest.skip("this kernel has no Landlock that keeps nodes apart")


def check(name, verdict):
    if ATTACKS[name].get("verdict") == "right":
        assert verdict.passed, verdict.message
        return
    assert not verdict.passed
    for text in ATTACKS[name].all("says"):
        assert text in verdict.message
    assert len(verdict.message) < 3000


def test_each_says_what_it_must_get():
    assert len(ATTACKS) > 40
    for name, entry in ATTACKS.items():
        assert (entry.get("verdict") == "right") != bool(entry.all("says")), name
        entry.compile()


@walled
@pytest.mark.parametrize("name", each(10, ATTACKS))
@pytest.mark.slow
def test_behind_walls(name):
    skip_what_this_kernel_lacks(name)
    verdict = grade(attack(name), str(EXERCISE))
    check(name, verdict)
    assert verdict.isolation == "bubblewrap"


@walled
@pytest.mark.skipif(os.getuid() != 0, reason="the judge of all these tests is an ordinary user")
@pytest.mark.parametrize("name", each(len(ORDINARY), ORDINARY))
def test_behind_walls_of_an_ordinary_user(name):
    skip_what_this_kernel_lacks(name)
    words = [
        sys.executable,
        "-m",
        "spcomm",
        "check",
        "--json",
        "--walls",
        "required",
        "--exercise",
        str(EXERCISE),
    ]
    [verdict] = json.loads(finish(start([*AS_ORDINARY, *words, str(attack(name))])).out)
    check(name, SimpleNamespace(**verdict))


@pytest.mark.linux("reads /proc")
@pytest.mark.slow
@pytest.mark.parametrize("name", each(4, OPEN))
def test_without_walls(name, monkeypatch):
    monkeypatch.setattr(sandbox, "walls", lambda: sandbox.Sandbox("none: for a test"))
    if name in ("pipes_trace", "stops_guard"):  # as long as it takes
        monkeypatch.setattr(running, "_GRACE", 1)
        monkeypatch.setattr(running, "_PATIENCE", 9.0)
    skip_what_this_kernel_lacks(name)
    verdict = grade(attack(name), str(EXERCISE))
    if unwalled := ATTACKS[name].get("unwalled"):
        assert not verdict.passed
        assert unwalled in verdict.message
    else:
        check(name, verdict)
    assert verdict.isolation == "none: for a test"
    left = [pid for pid in Path("/proc").glob("[0-9]*") if b"# left behind" in command(pid)]
    assert not left


def command(place):
    try:
        return (place / "cmdline").read_bytes()
    except OSError:
        return b""


OWN_MEMORY = """
import os
from spcomm.learn import node

buffer = memoryview(bytearray(1 << 26))  # before: nothing that is made later overwrites what was freed
mine = node._own_line(1)
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps:
        start, end = (int(word, 16) for word in line.split()[0].split("-"))
        if line.endswith("[heap]\\n"):
            memory.seek(start)
            os.write(1, buffer[: memory.readinto(buffer[: end - start])])
"""


@pytest.mark.linux("reads /proc")
def test_the_lines_of_other_nodes_do_not_stay_in_memory(tmp_path):
    ends = [os.urandom(16).hex() for _ in range(3)]
    (tmp_path / "lines").write_text("".join(f"{20000 * 'x'}{end}\n" for end in ends))
    with open(tmp_path / "lines") as lines:
        memory = subprocess.run(
            [sys.executable, "-c", OWN_MEMORY], stdin=lines, stdout=subprocess.PIPE, check=True
        )
    assert [end.encode() in memory.stdout for end in ends] == [False, True, False]
