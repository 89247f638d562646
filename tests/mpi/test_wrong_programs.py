# SPDX-License-Identifier: MIT
"""Wrong programs are told what is wrong and where; their correct twins run without a word.

They are the entries (entries.py) of wrong/python.txt and wrong/c.txt; a group is a class of mistakes. An entry has
`run:` the options of `spcomm run`, `exit:` the exit code, `says:` texts of the run, and the program: lines with "-" are
in the wrong program only, those with "+" in its twin only, and the run of the wrong one must name each line that ends
in "named". Programs in C are functions of one executable, which calls the one that its argument names; with `own:
start` it leaves MPI's start to the program.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import entries

HERE = Path(__file__).parent / "wrong"
IN_ORDER = 3  # one of so many runs with `make test`
HEADER = """\
#include <mpi.h>
#include <string.h>
"""
MAIN = """\
int main(int argc, char **argv) {
    int rank = 0, size = 0;
    for (const program_t *p = programs; argc > 1 && p->name != NULL; p++) {
        if (strcmp(p->name, argv[1]) == 0 && p->starts_itself) {
            p->run(rank, size);
            return 0;
        }
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (const program_t *p = programs; argc > 1 && p->name != NULL; p++) {
        if (strcmp(p->name, argv[1]) == 0) {
            p->run(rank, size);
        }
    }
    MPI_Finalize();
    return 0;
}
"""


class Twins:
    """An entry: the wrong program and its twin."""

    def __init__(self, entry):
        self.kind, self.name, self.opening = entry.group, entry.name, entry.opening
        self.options, self.code = shlex.split(entry.get("run")), int(entry.get("exit"))
        self.says, self.own = entry.all("says"), entry.get("own") == "start"
        self.lines = entry.program.splitlines()
        assert all(line[:1] in ("", " ", "-", "+") for line in self.lines), self.name

    def program(self, sign):
        """The text of one of the two: "-" the wrong one, "+" its twin."""
        return self.opening + "".join(f"{line[1:]}\n" for line in self.lines if line[:1] in ("", " ", sign))

    def problems(self, result, file):
        """List what the run of the wrong program should have said, and has not."""
        said = re.sub(r'File "[^"]*?([^"/]+)", line (\d+)', r"\1:\2", result.out + result.err)
        found = [f"exit code {result.code}"] if result.code != self.code else []
        found += [text for text in self.says if text not in said]
        for number, line in enumerate(self.program("-").splitlines(), 1):
            if line.endswith("named") and not re.search(rf"{re.escape(file)}:{number}\b", said):
                found.append(f"{file}:{number}: {line.strip()}")
        return found


def all_of(language):
    return [Twins(entry) for entry in entries.read(HERE / f"{language}.txt", "run exit says own")]


PYTHON, C = all_of("python"), all_of("c")


def in_order(found):
    """Some of them for `make test`, always the same ones; the others are slow tests, as NumPy takes time to import."""
    marks = [() if number % IN_ORDER == 0 else pytest.mark.slow for number in range(len(found))]
    return [
        pytest.param(entry, id=f"{entry.kind}-{entry.name}", marks=mark)
        for entry, mark in zip(found, marks, strict=True)
    ]


# ---- Python


@pytest.mark.parametrize("entry", in_order(PYTHON))
def test_programs_in_python(launch, mpi4py, entry):
    file = f"{entry.name}.py"
    result = launch(*entry.options, launch.script(entry.program("-"), file))
    assert entry.problems(result, file) == [], result
    twin = launch(*entry.options, launch.script(entry.program("+"), file))
    assert (twin.code, twin.out, twin.err) == (0, "", ""), twin


# ---- C


def function(entry, sign, folder):
    """One program as a function, whose lines are those of a file of its own."""
    name = f"{entry.name}{'_right' if sign == '+' else ''}"
    path = folder / f"{name}.c"
    path.write_text(entry.program(sign))
    head = f"static void {name}(int rank, int size) {{\n    (void)rank, (void)size;\n"
    return f'{head}#line 1 "{path}"\n{entry.program(sign)}}}\n'


@pytest.fixture(scope="module")
def executable(tmp_path_factory):
    """All programs in C, wrong and right ones."""
    folder = tmp_path_factory.mktemp("wrong")
    rows, functions = [], []
    for entry in C:
        for sign in "-+":
            functions.append(function(entry, sign, folder))
            name = f"{entry.name}{'_right' if sign == '+' else ''}"
            rows.append(f'    {{"{name}", {name}, {int(entry.own)}}},\n')
    table = "typedef struct program {\n    const char *name;\n    void (*run)(int, int);\n    int starts_itself;\n"
    table += "} program_t;\nstatic const program_t programs[] = {\n" + "".join(rows) + "    {0, 0, 0},\n};\n"
    source = folder / "programs.c"
    source.write_text("\n".join([HEADER, *functions, table, MAIN]))
    made = folder / "programs"
    command = [sys.executable, "-m", "spcomm", "mpicc", "-std=c11", "-w", str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize("entry", C, ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_programs_in_c(launch, executable, entry):
    result = launch(*entry.options, executable, entry.name)
    assert entry.problems(result, f"{entry.name}.c") == [], result
    twin = launch(*entry.options, executable, f"{entry.name}_right")
    assert (twin.code, twin.out, twin.err) == (0, "", ""), twin


# ---- the programs themselves


def test_there_is_a_program_for_each_class_in_both_languages():
    assert {entry.kind for entry in PYTHON} == {entry.kind for entry in C}
    assert len(PYTHON) >= 40 and len(C) >= 20
    for found in (PYTHON, C):
        assert len({entry.name for entry in found}) == len(found)
        assert [entry.name for entry in found if entry.program("-") == entry.program("+")] == []
        assert [entry.name for entry in found if not entry.says] == []
    for entry in PYTHON:
        for sign in "-+":
            compile(entry.program(sign), entry.name, "exec")
