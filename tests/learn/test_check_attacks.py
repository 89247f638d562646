# SPDX-License-Identifier: MIT
"""Solutions that attack the judge, or are wrong in every way: each says in comments what the judge has to say."""

import re
from pathlib import Path

import pytest

from pairwise import each
from spcomm.learn import grade, running, walls

FOLDER = Path(__file__).parent
ATTACKS = sorted((FOLDER / "attacks").glob("*.py"), key=lambda path: path.name)
EXERCISE = FOLDER / "room" / "01_sum"
# Those that meet other things where nothing keeps them apart.
OPEN = ("blames", "deletes", "escapes", "forges", "forks", "kills_parent", "leaves_one", "pipes_trace", "prints",
        "right", "stops_guard", "vandal")  # fmt: skip

walled = pytest.mark.skipif(walls.walls().bwrap is None, reason=walls.walls().about)


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
@pytest.mark.parametrize("path", each(5, ATTACKS), ids=lambda path: path.stem)
def test_behind_walls(path):
    verdict = grade(path, str(EXERCISE))
    check(path, verdict)
    assert verdict.isolation == "bubblewrap"


@pytest.mark.parametrize("name", each(4, OPEN))
def test_without_walls(name, monkeypatch):
    monkeypatch.setattr(walls, "walls", lambda: walls.Walls("none: for a test"))
    if name in ("pipes_trace", "stops_guard"):  # as long as it takes
        monkeypatch.setattr(running, "_GRACE", 1)
        monkeypatch.setattr(running, "_PATIENCE", 9.0)
    path = FOLDER / "attacks" / f"{name}.py"
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
