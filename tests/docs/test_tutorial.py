# SPDX-License-Identifier: MIT
"""Pages 1 to 4 of the tutorial: every listing is on its page, and prints what the page shows."""

import os
import re
import subprocess
import sys

import pytest

from checkout import ROOT

FOLDER = ROOT / "docs" / "tutorial"
LISTINGS = FOLDER / "listings"
PAGES = sorted(FOLDER.glob("0[1-4]_*.md"))
# How each command on a page ends; 0 where nothing is said.
CODES = {
    "01_wrong.py": 1, "02_mismatch.py": 1, "04_circle.py": 99, "--rendezvous 0 04_luck.py": 99,
    "04_finished.py": 1, "04_tag.py": 1, "04_stuck.py": 124,
}  # fmt: skip
# What another run may say otherwise: how Python marks a place, who else was stopped, who was first to see a mistake,
# and in which line of its loop a node was.
ANY_RUN = [
    (r"^(\[\d\])? +[~^]+\n", ""),
    (r"(?<=\(exit code 1\));.*", ""),
    (r"(?<=04_stuck\.py:)[78]\b", "7 or 8"),
    (r"for \d+ s now", "for some seconds now"),
]
MISMATCH = [
    (r"^\[\d\] (?:Traceback|  File|    ).*\n", ""),
    (r"^\[\d\] ", ""),
    (r"MismatchError: \w+", "MismatchError: one"),
    (r"node \d ended", "a node ended"),
]


def commands():
    """(page, command, what it shows)."""
    for page in PAGES:
        for block in re.findall(r"^```\n\$ (.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
            command, _, shown = block.partition("\n")
            yield pytest.param(command, shown, id=f"{page.stem[:2]} {command}")


def same(text, command):
    """The lines of a run in an order that does not depend on who was first, without what varies."""
    for pattern, by in ANY_RUN + (MISMATCH if "mismatch" in command else []):
        text = re.sub(pattern, by, text, flags=re.MULTILINE)
    return sorted(text.splitlines())


def run(command):
    python, rest = command.split(" ", 1)
    words = [sys.executable, *(["-m", "spcomm"] if python == "spcomm" else []), *rest.split()]
    if python == "spcomm":
        words.insert(words.index("run") + 1, "-l")  # as at a terminal
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SPCOMM_", "PYTHON"))}
    env |= {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(words, cwd=LISTINGS, env=env, capture_output=True, text=True, timeout=120)
    return result.returncode, (result.stdout + result.stderr).replace(f"{LISTINGS}/", "")


def test_there_are_four_pages():
    assert [page.name[:3] for page in PAGES] == ["01_", "02_", "03_", "04_"]


@pytest.mark.parametrize(("command", "shown"), list(commands()))
def test_a_command_does_what_the_page_shows(command, shown):
    code, said = run(command)
    wanted = next((code for end, code in CODES.items() if command.endswith(end)), 0)
    assert code == wanted, said
    assert same(said, command) == same(shown, command)


def test_every_listing_is_on_its_page_and_is_run():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        included = re.findall(r"^```\{literalinclude\} listings/(\S+)$", text, re.MULTILINE)
        assert included == [name for name in included if (LISTINGS / name).is_file()]
        assert sorted(included) == sorted(path.name for path in LISTINGS.glob(f"{page.name[:3]}*.py"))
        assert all(re.search(rf"^\$ .*\b{re.escape(name)}", text, re.MULTILINE) for name in included)
        assert {name for name in re.findall(r"`(\d\d_\w+\.py)`", text)} <= set(included)
