# SPDX-License-Identifier: MIT
"""Run the tests that are nearest to a change.

    make near                         what differs from the last commit
    make near ARGS="csrc/message"     these files and folders

The table "Touched X? Run this" of CONTRIBUTING.md is the map; a test that was changed is run itself.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def table():
    """{folder or file: what pytest is to run}, in the order of the table."""
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## Touched X? Run this")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \| `(tests.*?)` \|", text, re.MULTILINE)
    return {place: tests for places, tests in rows for place in re.findall(r"`(.+?)`", places)}


def nearest(path, rows):
    """Arguments of pytest for a path; None: no test is near."""
    if re.match(r"tests/.*test_\w+\.py$", path):
        return path
    if found := re.match(r"tests/csrc/(test_\w+)\.c$", path):
        return f"tests/csrc -k {found[1]}"
    fitting = [place for place in rows if path.startswith(place)]
    return rows[max(fitting, key=len)] if fitting else None


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
    for path in [path for path, tests in found.items() if tests is None]:
        print(f"{path}: nothing is near; `make test` has the rest")
    status = int(bool(paths) and not any(found.values()))
    for tests in dict.fromkeys(tests for tests in found.values() if tests is not None):
        print(f"pytest {tests}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "3", *shlex.split(tests)]
        status = subprocess.run(command, cwd=ROOT, check=False).returncode or status
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
