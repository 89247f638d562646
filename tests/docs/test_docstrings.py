# SPDX-License-Identifier: MIT
"""Docstrings of public names: numpydoc, complete, with examples that run."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import public
from checkout import fail_with

SECTIONS = ("Parameters", "Returns", "Raises", "Attributes", "Notes", "Examples")
# One line says all about these.
BRIEF = (
    "ALL",
    "ANY",
    "OTHERS",
    "PROC_NULL",
    *"SUM PROD MIN MAX MINLOC MAXLOC LAND LOR LXOR BAND BOR BXOR".split(),
)
# The Notes of the class hold for these, too.
OF_THEIR_CLASS = ("Cluster.", "Destination.", "SimTime.")


def sections(text):
    """{title: text} of a docstring; "" is what stands before them."""
    parts = re.split(rf"^({'|'.join(SECTIONS)})\n-+\n", text, flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[0::2], strict=True))


def is_value(thing):
    """Whether it is looked at, not called."""
    return inspect.isgetsetdescriptor(thing) or isinstance(thing, property)


def test_sections():
    assert list(sections("Do it.\n\nNotes\n-----\nNever.\n\nExamples\n--------\n>>> 1\n")) == [
        "",
        "Notes",
        "Examples",
    ]


@pytest.mark.parametrize("name", list(public.objects()))
def test_is_complete(name):
    thing, text = public.objects()[name], public.docstring(name)
    found = sections(text)
    complaints = []
    if not text.partition("\n\n")[0].rstrip().endswith((".", ":", "?")):
        complaints.append(f"the first paragraph should be a sentence; it is {text[:60]!r}")
    if name not in BRIEF and not is_value(thing):
        complaints += [
            f"it has no {wanted}" for wanted in ("Examples",) if ">>>" not in found.get(wanted, "")
        ]
        if "Notes" not in found and not name.startswith(OF_THEIR_CLASS):
            complaints.append("it has no Notes: does it wait, what does it cost, where in the papers is it?")
    if not inspect.isclass(thing) and name not in BRIEF:
        complaints += missing_parameters(thing, found)
    fail_with([f"{name}: {complaint}" for complaint in complaints])


def missing_parameters(thing, found):
    try:
        parameters = inspect.signature(thing).parameters
    except (TypeError, ValueError):  # of what is not called, and of some functions in C
        return []
    named = re.findall(r"^\**(\w[\w, ]*?)(?: :.*)?$", found.get("Parameters", ""), re.MULTILINE)
    named = {word for line in named for word in line.split(", ")}
    return [
        f"its Parameters lack {word}"
        for word in parameters
        if word not in ("self", "cls") and word not in named
    ]


EXAMPLES = f"""
import doctest, os, sys
sys.path.insert(0, {str(Path(public.__file__).parent)!r})
import public, numpy as np, spcomm


def run(name):
    scope = dict(spcomm=spcomm, np=np, comm=spcomm.startup())
    test = doctest.DocTestParser().get_doctest(public.docstring(name), scope, name, None, 0)
    return doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test).failed


for line in sys.stdin:
    name, _, output = line.rstrip("\\n").partition(" ")
    child = os.fork()
    if child == 0:
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT, 0o600), 1)
        os.dup2(1, 2)
        raise SystemExit(1 if run(name) else 0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def interpreter():
    """Has imported numpy and spcomm, and becomes two for each example."""
    command = [sys.executable, "-c", EXAMPLES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in public.objects() if ">>>" in public.docstring(name)])
def test_examples_run(name, interpreter, tmp_path):
    """In an interpreter of its own, alone, as a reader would try it."""
    interpreter.stdin.write(f"{name} {tmp_path / 'output'}\n")
    interpreter.stdin.flush()
    if interpreter.stdout.readline() != "0\n":
        pytest.fail(f"{name}:\n{(tmp_path / 'output').read_text()}", pytrace=False)
