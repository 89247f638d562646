# SPDX-License-Identifier: MIT
"""Run the tests that are nearest to a change.

    make near                         what differs from the last commit
    make near ARGS="csrc/message"     these files and folders

The table "Touched X? Run this" of CONTRIBUTING.md is the map, and so are the mutants of a file (tests/mutants.toml):
their tests are known to catch errors in it. For a folder, only the table counts. A test that was changed is run itself.
"""

import functools
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

from mutants import FOLDERS, SOURCES, TABLE

ROOT = Path(__file__).resolve().parents[1]
NO_TESTS = 5  # pytest's exit code


def table():
    """{folder or file: what pytest is to run}, in the order of the table."""
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## Touched X? Run this")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \| `(tests.*?)` \|", text, re.MULTILINE)
    return {place: tests for places, tests in rows for place in re.findall(r"`(.+?)`", places)}


def nearest(path, rows):
    """Return pytest's arguments for a path, one string for each call; an empty list: no test is near."""
    if re.match(r"tests/.*test_\w+\.py$", path):
        return [path]
    if found := re.match(r"tests/csrc/(test_\w+)\.c$", path):
        return [f"tests/csrc -k {found[1]}"]
    fitting = [place for place in rows if path.startswith(place)]
    found = [rows[max(fitting, key=len)]] if fitting else []
    return list(dict.fromkeys(found + of_mutants(path)))


def of_mutants(path):
    """The tests that catch the mutants of a file."""
    if path.split("/")[0] not in FOLDERS or Path(path).suffix not in SOURCES or not (ROOT / path).is_file():
        return []
    text = (ROOT / path).read_text()
    return [tests for mutant in mutants() if mutant["pattern"] in text for tests in mutant["tests"]]


@functools.cache
def mutants():
    return list(tomllib.loads(TABLE.read_text()).values())


def changed():
    commands = ["git diff --name-only HEAD", "git ls-files --others --exclude-standard"]
    return [
        path
        for command in commands
        for path in subprocess.check_output(shlex.split(command), cwd=ROOT, text=True).split()
    ]


def main(paths):
    if options := [path for path in paths if path.startswith("-")]:
        sys.exit(f"make near takes files and folders, not {options[0]}; make test hands options to pytest")
    rows = table()
    paths = [f"{path.rstrip('/')}/" if (ROOT / path).is_dir() else path for path in paths]
    found = {path: nearest(path, rows) for path in paths or changed()}
    for path in [path for path, tests in found.items() if not tests]:
        print(f"{path}: nothing is near; `make test` has the rest")
    status = int(bool(paths) and not any(found.values()))
    for tests in dict.fromkeys(tests for several in found.values() for tests in several):
        print(f"pytest {tests}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "3", *shlex.split(tests)]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        status = (0 if code == NO_TESTS else code) or status  # all of them are slow: make test-slow runs them
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
