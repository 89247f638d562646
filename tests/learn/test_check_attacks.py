# SPDX-License-Identifier: MIT
"""Solutions that attack the judge, or are wrong in every way: each says in comments what the judge has to say."""

import ctypes
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pairwise import each
from programs import finish, start
from spcomm.learn import grade, running, sandbox

FOLDER = Path(__file__).parent
ATTACKS = sorted((FOLDER / "attacks").glob("*.py"), key=lambda path: path.name)
EXERCISE = FOLDER / "room" / "01_sum"
# Those that meet other things where nothing keeps them apart.
OPEN = ("blames", "deletes", "escapes", "forges", "forks", "kills_parent", "leaves_one", "pipes_trace", "prints",
        "reads_others", "right", "stops_guard", "vandal")  # fmt: skip
# Those that meet other walls where the judge is not root; the first is for them alone.
ORDINARY = ("borrows_reaper", "escapes", "forks", "hides_memory", "keeps_keys", "kills_parent", "reads_others", "right",
            "vandal", "writes_settings")  # fmt: skip
AS_ORDINARY = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--uid", "1000", "--gid", "1000", "--"]

walled = pytest.mark.skipif(sandbox.walls().bwrap is None, reason=sandbox.walls().about)


HAS_LANDLOCK = sys.platform == "linux" and ctypes.CDLL(None).syscall(444, None, 0, 1) >= 2


def skip_what_this_kernel_lacks(path):
    if path.stem == "reads_others" and not HAS_LANDLOCK:
        pytest.skip("this kernel has no Landlock that keeps nodes apart")


def told(path):
    """{word: texts} of the comments."""
    found = {}
    for word, text in re.findall(
        r"^# (right|wrong|also|unwalled)(?:: (.*))?$", path.read_text(), re.MULTILINE
    ):
        found.setdefault(word, []).append(text)
    return found


def check(path, verdict):
    wanted = told(path)
    if "right" in wanted:
        assert verdict.passed, verdict.message
        return
    assert not verdict.passed
    for text in wanted["wrong"] + wanted.get("also", []):
        assert text in verdict.message
    assert len(verdict.message) < 3000


def test_each_says_what_it_must_get():
    assert len(ATTACKS) > 40
    for path in ATTACKS:
        assert ("right" in told(path)) != ("wrong" in told(path)), path


@walled
@pytest.mark.parametrize("path", each(10, ATTACKS), ids=lambda path: path.stem)
@pytest.mark.slow
def test_behind_walls(path):
    skip_what_this_kernel_lacks(path)
    verdict = grade(path, str(EXERCISE))
    check(path, verdict)
    assert verdict.isolation == "bubblewrap"


@walled
@pytest.mark.skipif(os.getuid() != 0, reason="the judge of all these tests is an ordinary user")
@pytest.mark.parametrize("name", each(len(ORDINARY), ORDINARY))
def test_behind_walls_of_an_ordinary_user(name):
    path = FOLDER / "attacks" / f"{name}.py"
    skip_what_this_kernel_lacks(path)
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
    [verdict] = json.loads(finish(start([*AS_ORDINARY, *words, str(path)])).out)
    check(path, SimpleNamespace(**verdict))


@pytest.mark.slow
@pytest.mark.parametrize("name", each(4, OPEN))
def test_without_walls(name, monkeypatch):
    monkeypatch.setattr(sandbox, "walls", lambda: sandbox.Sandbox("none: for a test"))
    if name in ("pipes_trace", "stops_guard"):  # as long as it takes
        monkeypatch.setattr(running, "_GRACE", 1)
        monkeypatch.setattr(running, "_PATIENCE", 9.0)
    path = FOLDER / "attacks" / f"{name}.py"
    skip_what_this_kernel_lacks(path)
    verdict = grade(path, str(EXERCISE))
    if "unwalled" in told(path):
        assert not verdict.passed
        assert told(path)["unwalled"][0] in verdict.message
    else:
        check(path, verdict)
    assert verdict.isolation == "none: for a test"
    left = [pid for pid in Path("/proc").glob("[0-9]*") if b"# left behind" in command(pid)]
    assert not left


def command(place):
    try:
        return (place / "cmdline").read_bytes()
    except OSError:
        return b""
