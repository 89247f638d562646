# SPDX-License-Identifier: MIT
"""The listings of the documents do what the documents show.

Every folder docs/*/listings is looked at. A file NAME.txt there is what a terminal shows: lines that begin with "$ "
are commands, what follows is their output, and "$ echo $?" asks for the exit code of the command before (else it is 0).
Lines may come in any order, since nodes are at work. "…" stands for anything: a line of it for any lines. Numbers
before a unit of time, size, rate or share are measurements: any number of any such unit will do, "<0.1 %", too.

A program that no .txt names, and whose output no page shows, is run as its docstring says (a line that begins with
"spcomm run"), and has to end well.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from checkout import ROOT, fail_with
from programs import finish, start

FOLDERS = sorted((ROOT / "docs").glob("*/listings"))
RECORDS = [path for folder in FOLDERS for path in sorted(folder.glob("*.txt"))]
PROGRAMS = [
    path for folder in FOLDERS for path in sorted(folder.iterdir()) if path.suffix in (".py", ".c", ".cpp")
]
UNITS = r"(?:ns|µs|ms|s|B|kB|MB|GB|GB/s|MB/s|times)(?!\w)|%"
NUMBER = r"\d+(?:\.\d+)?(?:e[+-]\d+)?"
MEASURED = re.compile(rf"(?<![\w.]){NUMBER} (?:{UNITS})")


def commands(text):
    """[(command, the lines that it prints, its exit code)] of a record."""
    found = []
    for line in text.splitlines():
        if line == "$ echo $?":
            found.append(None)
        elif line.startswith("$ "):
            found.append((line[2:], [], 0))
        elif found[-1] is None:
            found.pop()
            found[-1] = (*found[-1][:2], int(line))
        else:
            found[-1][1].append(line)
    return found


def pattern(line):
    """As a regular expression: … is anything, a measured number any number."""
    parts, at = [], 0
    for match in MEASURED.finditer(line):
        parts += [re.escape(line[at : match.start()]), rf"[<>]?{NUMBER} (?:{UNITS})"]
        at = match.end()
    text = "".join([*parts, re.escape(line[at:])])
    return re.compile(re.sub(r"(\\ )+", r"\\s+", text).replace("…", ".*"))


def differences(wanted, printed):
    """Lines that are missing, and lines that are there and should not be."""
    rest, missing = [line.rstrip() for line in printed if line.strip()], []
    wanted = [line.rstrip() for line in wanted if line.strip()]
    for line in sorted((line for line in wanted if line.strip() != "…"), key=lambda line: "…" in line):
        found = next((other for other in rest if pattern(line.strip()).fullmatch(other.strip())), None)
        if found is None:
            missing.append(f"- {line}")
        else:
            rest.remove(found)
    return missing + ([] if any(line.strip() == "…" for line in wanted) else [f"+ {line}" for line in rest])


def run(command, folder, labels):
    """As a shell does, with this Python's spcomm; both streams are one, as in a terminal."""
    words = f"{sys.executable} -m spcomm"
    command = re.sub(r"^spcomm run\b", f"spcomm run {'-l' if labels else '--no-label'}", command)
    command = re.sub(r"^spcomm\b|(?<=\$\()spcomm\b", words, command)
    command = re.sub(r"^python\b", sys.executable, command)
    environment = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return finish(start(["bash", "-c", f"{command} 2>&1"], cwd=folder, env=environment))


@pytest.fixture
def copies(tmp_path, request):
    """Listings write files: they run in a copy of their folder."""
    return shutil.copytree(request.param.parent, tmp_path / "listings")


def test_there_are_listings():
    assert RECORDS and PROGRAMS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("copies", "record"), [(path, path) for path in RECORDS], indirect=["copies"], ids=lambda path: path.stem
)
def test_does_what_it_shows(copies, record):
    for command, wanted, code in commands(record.read_text()):
        result = run(command, copies, any(line.startswith("[") for line in wanted))
        found = differences(wanted, result.out.splitlines())
        found += [f"exit code {result.code} instead of {code}"] if result.code != code else []
        fail_with([f"{record.name}: $ {command}", *found, "---- it printed", result.out] if found else [])


def recorded():
    """All commands of records, which test_does_what_it_shows runs."""
    return " ".join(command for path in RECORDS for command, _, _ in commands(path.read_text()))


@pytest.mark.parametrize(
    ("copies", "program"),
    [(path, path) for path in PROGRAMS if path.name not in recorded()],
    indirect=["copies"],
    ids=lambda path: path.name,
)
def test_ends_well(copies, program):
    said = re.search(
        rf"^\W*(spcomm run .*{re.escape(program.name)}.*?)\W*$", program.read_text(), re.MULTILINE
    )
    result = run(said.group(1) if said else f"spcomm run -n 4 {program.name}", copies, False)
    assert result.code == 0, result.out


def test_every_listing_is_on_a_page():
    pages = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    fail_with(
        [
            f"{path.name} is on no page"
            for path in [*RECORDS, *PROGRAMS]
            if f"listings/{path.name}" not in pages
        ]
    )
