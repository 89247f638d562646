# SPDX-License-Identifier: MIT
"""The exercises as notebooks, and `%spcomm check` and `%%spcomm_check` in a real kernel."""

import json
import re

import pytest

import made
from kernel import WATCHDOG_S, Kernel
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
        assert found["program"] == "%%spcomm_write exercise.py\n" + STUB.format(name=name).rstrip("\n")
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
            cell = kernel.run("%%spcomm_write exercise.py\n" + program if name == "program" else text)
            assert cell.error == "", cell
            if name == "run":
                assert sorted(cell.out.splitlines()) == [f"[{rank}] right {rank}" for rank in range(4)]
    assert "02_ring has passed: 3 runs" in cell.out
    assert json.loads((folder / ".spcomm-learn.json").read_text())["passed"] == ["02_ring"]


REFUSED = "exercise.py was changed outside of this cell, and stays as it is"


def test_a_cell_never_writes_over_a_solution(folder, kernel):
    """Run All in a notebook whose exercise was solved in an editor; then by turns in the cell and in the editor."""
    file = folder / "02_ring" / "exercise.py"
    stub = cells(folder / "02_ring" / "exercise.ipynb")["program"]
    kernel.run(f"%cd {folder / '02_ring'}")
    solution = "print('right')\n"
    file.write_text(solution)
    cell = kernel.run(stub)
    assert REFUSED in cell.err and file.read_text() == solution
    assert "02_ring has passed" in kernel.run("%spcomm check 02").out
    cell = kernel.run("%%spcomm_write exercise.py\n" + solution)  # taken over into the cell
    assert (cell.out, cell.err) == ("exercise.py is as it was\n", "")
    assert kernel.run("%%spcomm_write exercise.py\n# mine").out == "wrote exercise.py\n"
    assert kernel.run("%%spcomm_write exercise.py\n# mine, too").out == "wrote exercise.py\n"
    file.write_text("# by the editor")
    assert REFUSED in kernel.run("%%spcomm_write exercise.py\n# mine, too").err
    assert file.read_text() == "# by the editor"
    cell = kernel.run("%%spcomm_write --replace exercise.py\n# mine again")
    assert "is in exercise.py.before now" in cell.out and file.read_text() == "# mine again\n"
    assert file.with_name("exercise.py.before").read_text() == "# by the editor"
    file.write_text("# by the editor once more")
    kernel.run("%%spcomm_write exercise.py --replace\n# mine")
    assert file.with_name("exercise.py.before").read_text() == "# by the editor"
    assert file.with_name("exercise.py.before2").read_text() == "# by the editor once more"


@pytest.mark.slow
def test_a_cell_knows_what_it_wrote_before_a_restart(shelf, folder, kernel):
    kernel.run(f"%cd {folder / '02_ring'}")
    kernel.run(cells(folder / "02_ring" / "exercise.ipynb")["program"])
    kernel.run("%%spcomm_write exercise.py\n# mine")
    kernel.manager.restart_kernel(now=True)
    kernel.client.wait_for_ready(timeout=WATCHDOG_S)
    kernel.run(SETTING.format(tests=made.__file__.rpartition("/")[0], shelf=str(shelf)))
    kernel.run(f"%cd {folder / '02_ring'}")
    assert kernel.run("%%spcomm_write exercise.py\n# mine, later").out == "wrote exercise.py\n"


def test_run_all_stops_at_the_cell_that_refuses(folder, shelf, tmp_path):
    """By the machinery of Jupyter itself: no later cell runs, and the solution is there."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    place = folder / "02_ring"
    (place / "exercise.py").write_text("# solved in an editor\n")
    notebook = nbformat.read(place / "exercise.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=WATCHDOG_S, resources={"metadata": {"path": str(place)}}, kernel_name="python3"
    )
    with pytest.raises(nbclient.exceptions.CellExecutionError):
        client.execute()
    found = {cell["id"]: cell for cell in notebook["cells"]}
    assert REFUSED in str(found["program"]["outputs"])
    assert found["check"]["execution_count"] is None
    assert (place / "exercise.py").read_text() == "# solved in an editor\n"


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


def test_after_a_cell_that_writes_the_program_the_advice_is_about_the_cell(folder, kernel):
    kernel.run(f"%cd {folder / '01_hello'}")
    kernel.run("%%spcomm_write --replace exercise.py\nprint('wrong')")
    lines = kernel.run("%spcomm check").out.splitlines()
    assert any(
        line.startswith("next: change the cell above and run it, then this one; `spcomm") for line in lines
    )
    assert any(re.fullmatch(r"run it yourself: %spcomm run -n \d+ exercise\.py", line) for line in lines)


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
        ("%spcomm check", "a cell that begins with %%spcomm_write exercise.py writes it"),
        ("%%spcomm_write\n1", "name one file, as in %%spcomm_write exercise.py"),
        ("%%spcomm_write --replace\n1", "name one file, as in %%spcomm_write exercise.py"),
        ("%%spcomm_write a.py b.py\n1", "name one file, as in %%spcomm_write exercise.py"),
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
