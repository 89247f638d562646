# SPDX-License-Identifier: MIT
"""The exercises as notebooks, and `%spcomm check` and `%%spcomm_check` in a real kernel."""

import json

import pytest

import made
from kernel import Kernel
from made import NAMES, STUB, run

pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install ipykernel")
pytest.importorskip("jupyter_client", reason="jupyter_client is not installed: pip install ipykernel")

pytestmark = [
    pytest.mark.leaves("the client of the kernel keeps sockets and threads until it is collected"),
]

# The exercises and the judge of the tests, in the kernel.
SETTING = """
import sys
sys.path[:0] = [{tests!r}]
import made
from pathlib import Path
import spcomm.learn, spcomm.learn.catalogue as catalogue
every = catalogue.exercises
catalogue.exercises = lambda: every(Path({shelf!r}))
spcomm.learn.grade = made.judge(Path({shelf!r}))
%load_ext spcomm
"""


@pytest.fixture
def folder(shelf, tmp_path):
    answer = run(shelf, "init", tmp_path / "own", "--notebooks")
    assert (answer.returncode, answer.stderr) == (0, "")
    return tmp_path / "own"


@pytest.fixture
def kernel(shelf):
    found = Kernel()
    try:
        tests = made.__file__.rpartition("/")[0]
        cell = found.run(SETTING.format(tests=tests, shelf=str(shelf)))
        assert (cell.error, cell.err) == ("", "")
        yield found
    finally:
        found.close()


def cells(path):
    return {cell["id"]: "".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]}


def test_each_exercise_is_a_notebook(folder):
    for number, name in enumerate(NAMES, 1):
        found = cells(folder / name / "exercise.ipynb")
        assert found["lesson"] == (folder / name / "README.md").read_text().rstrip("\n")
        assert found["program"] == "%%writefile exercise.py\n" + STUB.format(name=name).rstrip("\n")
        assert found["check"] == f"%spcomm check {number:02}"


def test_jupyter_knows_the_format(folder):
    nbformat = pytest.importorskip("nbformat")
    for name in NAMES:
        nbformat.validate(nbformat.read(folder / name / "exercise.ipynb", as_version=4))


def test_a_notebook_runs_from_its_first_cell_to_its_last(folder, kernel):
    kernel.run(f"%cd {folder / '02_ring'}")
    found = cells(folder / "02_ring" / "exercise.ipynb")
    program = "import spcomm\nif __name__ == '__main__':\n    print('right', spcomm.startup().rank)\n"
    for name, text in found.items():
        if name in ("load", "program", "run", "check"):
            cell = kernel.run("%%writefile exercise.py\n" + program if name == "program" else text)
            assert cell.error == "", cell
            if name == "run":
                assert sorted(cell.out.splitlines()) == [f"[{rank}] right {rank}" for rank in range(4)]
    assert "02_ring has passed: 3 runs" in cell.out
    assert json.loads((folder / ".spcomm-learn.json").read_text())["passed"] == ["02_ring"]


def test_check_finds_the_program(folder, kernel):
    for here, line in (
        ("01_hello", "%spcomm check"),
        ("01_hello", "%spcomm check 1"),
        (".", "%spcomm check hello"),
        ("02_ring", "%spcomm check 01"),
        (".", "%spcomm check 1 02_ring/exercise.py"),
        (".", "%spcomm check 01_hello/exercise.py"),
    ):
        kernel.run(f"%cd {folder / here}")
        cell = kernel.run(line)
        assert cell.error == "" and "node 1 returned" in cell.out, (line, cell)
        assert "`spcomm learn hint 01`" in cell.out, (line, cell)


def test_a_cell_is_checked(folder, kernel):
    kernel.run(f"%cd {folder}")
    cell = kernel.run("%%spcomm_check 03\nprint('wrong')")
    assert cell.out.splitlines()[:3] == [
        "checking the cell",
        "  passed  a list on 1 nodes",
        "  failed  a list on 3 nodes",
    ]
    cell = kernel.run("%%spcomm_check sums\nprint('right')")
    assert cell.out.splitlines()[-1] == "03_sums has passed: 3 runs"
    assert kernel.run("%unload_ext spcomm").error == ""
    assert "not found" in kernel.run("%%spcomm_check sums\nprint('right')").err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("%spcomm check 17", "there is no exercise '17' (the nearest is 03_sums)"),
        ("%spcomm check", "a cell that begins with %%writefile exercise.py writes it"),
        ("%spcomm check 1 2 3", "takes an exercise and a file at most"),
        ("%%spcomm_check\n1", "name one exercise, as in %%spcomm_check 02"),
        ("%%spcomm_check rnig\n1", "did you mean 02_ring?"),
    ],
)
def test_one_clear_sentence(folder, kernel, code, text):
    kernel.run(f"%cd {folder}")
    cell = kernel.run(code)
    assert text in cell.err and cell.err.count("\n") == 1 and cell.err.startswith("UsageError: ")


def test_interrupting_the_kernel_ends_the_check(folder, kernel):
    kernel.run(f"%cd {folder}")
    cell = kernel.run("%%spcomm_check 1\nhang", interrupt_at="checking the cell")
    assert cell.ename == "KeyboardInterrupt"
    assert "has passed" in kernel.run("%%spcomm_check 1\nright").out
