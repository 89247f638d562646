# SPDX-License-Identifier: MIT
"""The programs beside each other: what a peer prints is what spcomm's prints; and the names on the pages exist."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

import spcomm
from spcomm.bench import peers
from test_examples import EXAMPLES

BESIDE = EXAMPLES / "beside"
DOCS = EXAMPLES.parent / "docs"
PROGRAMS = ["pi", "ring", "words", "heat", "tasks"]
ARGUMENTS = {"words": [str(EXAMPLES.parent / "LICENSE")]}


def installed(*modules):
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def command(library, nodes):
    """The words before the name of the program, and the environment it needs; skips where the library is missing."""
    if library == "spcomm":
        return [sys.executable, "-m", "spcomm", "run", "--no-label", "-n", str(nodes)], {}
    if library == "mpi4py":
        contender = peers.mpich()
        if contender.missing:
            pytest.skip(contender.missing)
        return [*contender.command, "-n", str(nodes), sys.executable], contender.environment
    installed(*{"ipyparallel": ["ipyparallel"]}.get(library, []))
    return [sys.executable], {}


def output(library, program, nodes, folder):
    start, environment = command(library, nodes)
    count = [str(nodes)] if library in ("multiprocessing", "ipyparallel") else []
    line = [*start, BESIDE / program / f"with_{library}.py", *count, *ARGUMENTS.get(program, [])]
    env = {key: value for key, value in os.environ.items() if not key.startswith("SPCOMM_")}
    env |= {"PYTHONPATH": str(EXAMPLES.parent), "IPYTHONDIR": str(folder), **environment}
    result = subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, timeout=150)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_there_are_four_of_each(program):
    names = sorted(path.name for path in (BESIDE / program).glob("*.py"))
    assert names == [f"with_{name}.py" for name in ("ipyparallel", "mpi4py", "multiprocessing", "spcomm")]


@pytest.mark.spread("library")
@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("library", ["mpi4py", "multiprocessing"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_peer_prints_the_same(tmp_path, program, library, nodes):
    shown = output(library, program, nodes, tmp_path)
    assert shown and shown == output("spcomm", program, nodes, tmp_path)


@pytest.mark.leaves("ipyparallel's controller and engines end a moment after their cluster has been stopped")
@pytest.mark.parametrize("program", PROGRAMS)
def test_ipyparallel_prints_the_same(tmp_path, program):
    shown = output("ipyparallel", program, 3, tmp_path)
    assert shown and shown == output("spcomm", program, 3, tmp_path)


@pytest.mark.parametrize("nodes", [1, 2, 4, 5])
def test_call_by_call(tmp_path, nodes):
    shown = output("spcomm", "calls", nodes, tmp_path)
    assert shown.count("\n") == 23 and shown == output("mpi4py", "calls", nodes, tmp_path)


def columns(page):
    """The cells of all tables of a page, by rows."""
    rows = [
        line.strip("|").split(" | ")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line[:1] == "|"
    ]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_names_of_spcomm_exist():
    rows = columns(DOCS / "howto" / "mpi.md")
    names = {name for row in rows for cell in row[:1] for name in re.findall(r"\bcomm\.(\w+)", cell)}
    assert len(names) > 25 and [name for name in names if not hasattr(spcomm.Comm, name)] == []
    names = {name for row in rows for cell in row for name in re.findall(r"\bspcomm\.(\w+)", cell)}
    assert [name for name in names if not hasattr(spcomm, name)] == []


def test_the_names_of_mpi4py_exist():
    installed("mpi4py")
    start, environment = command("mpi4py", 1)
    rows = columns(DOCS / "howto" / "mpi.md")
    cells = [cell for row in rows if len(row) > 1 for cell in row[1:]]
    names = {name for cell in cells for name in re.findall(r"(?<!spcomm\.)\bMPI\.([\w.]+)", cell)}
    names |= {f"Intracomm.{name}" for cell in cells for name in re.findall(r"\bcomm\.(\w+)", cell)}
    code = f"from mpi4py import MPI\nfor name in {sorted(names)}: eval('MPI.' + name)"
    env = {**os.environ, **environment}
    assert len(names) > 30
    assert subprocess.run([*start, "-c", code], env=env, capture_output=True, text=True).stderr == ""


def test_the_page_shows_all_programs():
    shown = re.findall(
        r"^<!-- listing: \.\./examples/beside/(\S+) -->$", (DOCS / "beside.md").read_text(), re.M
    )
    names = ["spcomm", "mpi4py", "multiprocessing", "ipyparallel"]
    assert shown == [f"{program}/with_{name}.py" for program in PROGRAMS for name in names]
