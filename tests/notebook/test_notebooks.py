# SPDX-License-Identifier: MIT
"""The notebooks of examples/notebooks: committed without outputs, and each runs in a real kernel as it is."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "notebooks"
SCRIPT = ROOT / "scripts" / "render-notebooks.py"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))
NEEDED = ("nbclient", "nbconvert", "ipykernel", "matplotlib", "cloudpickle", "anywidget", "PIL")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

needs_jupyter = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; pip install --group notebooks"
)
# The required outputs of each: pictures, and the errors that its tagged cells raise.
PICTURES = {"02_fuzzy_barrier.ipynb": 4, "03_load_balancing.ipynb": 5, "07_rendering.ipynb": 3}
ERRORS = {
    "01_first_steps.ipynb": ["ClusterError"],
    "04_deadlock.ipynb": [
        "DeadlockError",
        "DeadlockError",
        "DeadlockError",
        "ClusterError",
        "WaitTimeoutError",
    ],
}


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def sources(cells, kind):
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def test_all_are_here():
    words = ("first", "fuzzy", "load", "deadlock", "reductions", "net", "rendering", "prediction")
    assert [name.split("_")[1].removesuffix(".ipynb") for name in NAMES] == list(words)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_committed_without_outputs(name):
    notebook = read(FOLDER / name)
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert notebook["metadata"]["language_info"] == {"name": "python"}, "no version of who saved it last"
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == [], "".join(cell["source"])
        assert cell.get("execution_count") is None
        assert set(cell["metadata"]) <= {"tags"}
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", NAMES)
def test_it_lets_the_reader_predict_and_go_on(name):
    text = "\n".join(sources(read(FOLDER / name)["cells"], "markdown"))
    assert text.count("**Predict**") >= 3
    assert text.startswith("# ") and "\n## Try it\n" in text


@pytest.mark.slow
@needs_jupyter
@pytest.mark.parametrize("name", NAMES)
def test_it_runs(name, tmp_path):
    result = subprocess.run(
        [sys.executable, SCRIPT, "--to", tmp_path, name], capture_output=True, text=True, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    outputs = [output for cell in read(tmp_path / name)["cells"] for output in cell.get("outputs", ())]
    assert [o["ename"] for o in outputs if o["output_type"] == "error"] == ERRORS.get(name, [])
    pictures = [o for o in outputs if "image/png" in o.get("data", {})]
    assert len(pictures) >= PICTURES.get(name, 0)
    rendered = (tmp_path / name).with_suffix(".md").read_text()
    assert rendered.startswith("# ") and "\033" not in rendered
    for number in range(len(pictures)):
        assert len(list(tmp_path.glob(f"{Path(name).stem}_files/*"))) > number


@pytest.mark.slow
@needs_jupyter
@pytest.mark.parametrize("name", ["01_first_steps.ipynb", "04_deadlock.ipynb", "06_net_types.ipynb"])
def test_it_runs_on_eight_nodes(name, tmp_path):
    """As readers try it; those that are left out have a number of nodes in what they draw, or take long."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    changed = re.sub(r"(%%spcomm.*? -n) \d+\\n", r"\1 8\\n", text)
    assert changed != text
    (tmp_path / name).write_text(changed, encoding="utf-8")
    command = [sys.executable, SCRIPT, "--to", tmp_path / "made", tmp_path / name]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
@needs_jupyter
def test_an_error_that_nobody_wants_fails(tmp_path):
    for number, (tags, text) in enumerate([([], "1 / 0"), (["raises-exception"], "1 / 1")]):
        notebook = read(FOLDER / NAMES[0])
        cell = {"cell_type": "code", "execution_count": None, "id": "a", "metadata": {"tags": tags}}
        notebook["cells"] = [{**cell, "outputs": [], "source": [text]}]
        path = tmp_path / f"wrong-{number}.ipynb"
        path.write_text(json.dumps(notebook))
        command = [sys.executable, SCRIPT, "--to", tmp_path / "made", path]
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 1
        assert ("ZeroDivisionError" if not tags else "raises no error") in result.stderr


@pytest.mark.slow
@needs_jupyter
def test_with_changed_only_what_has_changed_runs(tmp_path):
    notebook = read(FOLDER / NAMES[0])
    cell = {"cell_type": "code", "execution_count": None, "id": "a", "metadata": {}, "outputs": []}
    log, path, made = tmp_path / "log", tmp_path / "one.ipynb", tmp_path / "made"

    def runs_after(text):
        notebook["cells"] = [{**cell, "source": [text]}]
        path.write_text(json.dumps(notebook))
        command = [sys.executable, SCRIPT, "--changed", "--to", made, path]
        subprocess.run(command, capture_output=True, check="1 / 0" not in text)
        return log.read_text().split()

    first = f"print('one', file=open({str(log)!r}, 'a'))"
    assert runs_after(first) == ["one"]
    assert runs_after(first) == ["one"]
    assert runs_after(f"{first}\n1 / 0") == ["one"] * 2
    assert runs_after(f"{first}\n1 / 0") == ["one"] * 3, "what failed runs again"
    assert runs_after(first) == ["one"] * 4
