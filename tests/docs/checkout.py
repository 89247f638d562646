# SPDX-License-Identifier: MIT
"""The files of the checkout, for tests that read them."""

import functools
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [
    "csrc",
    "spcomm",
    "tests",
    "examples",
    "exercises",
    "scripts",
    "docs",
    ".ci",
    ".devcontainer",
    ".github",
]
MADE = {"__pycache__", "build", "dist"}
BINARY = {".so", ".pyc", ".png", ".o", ".a"}


def relative(path):
    return str(path.relative_to(ROOT))


@functools.cache
def files(*suffixes, below=""):
    """All files of the checkout that somebody wrote, or those below a folder, with one of the suffixes."""
    if below:
        found = (ROOT / below).rglob("*")
    else:
        top = [path for path in ROOT.iterdir() if path.is_file()]
        found = top + [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    wanted = [
        path
        for path in found
        if path.is_file() and not MADE & set(path.relative_to(ROOT).parts) and path.suffix not in BINARY
        if not suffixes or path.suffix in suffixes
    ]
    return sorted(path for path in wanted if relative(path) not in ignored())


@functools.cache
def ignored():
    """The files that git leaves out; none in an unpacked source package, or in a copy inside another checkout."""
    if not (ROOT / ".git").exists():
        return set()
    command = ["git", "ls-files", "--others", "--ignored", "--exclude-standard"]
    try:
        output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        output = ""
    return set(output.splitlines())


def fail_with(complaints):
    """Fails with one line for each complaint, if there are any."""
    if complaints:
        pytest.fail("\n".join(complaints), pytrace=False)
