# SPDX-License-Identifier: MIT
"""JupyterLab in Chromium: notebooks are opened, all of each is run, nothing goes wrong."""

import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import browser
from spcomm.learn import catalogue, lessons

ROOT = Path(__file__).resolve().parents[2]
NAME = "02_fuzzy_barrier.ipynb"
COMPLAINTS = "document.querySelectorAll('.jp-Dialog, .jp-RenderedText[data-mime-type*=stderr]').length"
NEEDED = ("jupyterlab", "ipykernel", "matplotlib", "cloudpickle", "anywidget", "PIL")
MISSING = [name for name in NEEDED if importlib.util.find_spec(name) is None]

pytestmark = [
    browser.needed,
    pytest.mark.skipif(
        bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; pip install --group notebooks"
    ),
    pytest.mark.leaves("tornado keeps sockets and threads until it is collected"),
]
# All cells are there, not only those on the screen, and nobody asks whether they want news.
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
}


@contextlib.contextmanager
def lab(folder, notebook):
    """A server of this folder; the address of a notebook in `notebooks` there."""
    token = secrets.token_hex(16)
    for name, values in SETTINGS.items():
        path = folder / "settings" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    own = {
        name: str(folder / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    }
    environment = {
        **os.environ, **own, "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"), "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_TOKEN": token,
    }  # fmt: skip
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0",
        "--LabApp.expose_app_in_browser=True", f"--ServerApp.root_dir={folder / 'notebooks'}",
    ]  # fmt: skip
    with open(folder / "lab.log", "w") as log:
        server = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port(folder, server)}/lab/tree/{notebook}?token={token}"
    finally:
        server.terminate()
        server.wait(browser.WATCHDOG_S)


def port(folder, server):
    """The server listens when it has written where."""
    place = folder / "jupyter_runtime_dir" / f"jpserver-{server.pid}.json"
    for _attempt in range(int(browser.WATCHDOG_S / 0.05)):
        with contextlib.suppress(OSError, ValueError):
            return json.loads(place.read_text())["port"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(0.05)
            break
    raise AssertionError("JupyterLab does not start:\n" + (folder / "lab.log").read_text())


def run_cells(page, address, name):
    """Open the notebook and run all cells; what became of them."""
    begin_cells(page, address, name)
    page.evaluate("book.ran")
    return page.evaluate("book.context.model.toJSON().cells")


def begin_cells(page, address, name):
    """Open the notebook and begin to run all cells."""
    book = (
        f"[...(window.jupyterapp?.shell.widgets('main') ?? [])].find(one => one.context?.path === '{name}')"
    )
    page.open(address)
    page.until(f"({book})?.id")
    page.evaluate(
        f"window.book = {book}; book.context.ready.then(() => book.sessionContext.ready).then(() => true)"
    )
    page.evaluate("jupyterapp.shell.activateById(book.id)")
    page.until("jupyterapp.shell.currentWidget === book")
    page.evaluate("book.ran = jupyterapp.commands.execute('notebook:run-all-cells').then(() => true), true")


def run_exercise(address, name, folder):
    """All of an exercise; its cells, the text that is shown below them, complaints."""
    with browser.Driven(folder) as page:
        cells = run_cells(page, address, name)
        shown = page.evaluate(
            "[...document.querySelectorAll('.jp-OutputArea-output')].map(one => one.innerText).join('\\n')"
        )
        return cells, shown, page.evaluate(COMPLAINTS), page.exceptions


def run_all(address, folder):
    """Open the notebook and run all cells; what became of them, and a picture."""
    with browser.Driven(folder) as page:
        cells = run_cells(page, address, NAME)
        page.until("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
        shown = page.evaluate("document.querySelectorAll('.jp-OutputArea-output img').length")
        dialogs = page.evaluate(COMPLAINTS)
        page.evaluate(
            "[...document.querySelectorAll('.jp-OutputArea-output img')][1].scrollIntoView({block: 'center'})"
        )
        page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
        )
        picture = folder / "lab.png"
        page.picture(picture)
        return cells, shown, dialogs, page.exceptions, picture


@pytest.mark.slow
def test_all_of_the_fuzzy_barrier_runs_in_jupyterlab(tmp_path):
    (tmp_path / "notebooks").mkdir()
    shutil.copy(ROOT / "examples" / "notebooks" / NAME, tmp_path / "notebooks")
    with lab(tmp_path, NAME) as address:
        cells, shown, dialogs, exceptions, picture = run_all(address, tmp_path)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert all(cell["execution_count"] for cell in code)
    assert (shown, dialogs, exceptions) == (4, 0, [])
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG") and len(data) > 50_000, "there is something on it"


@pytest.mark.slow
def test_an_exercise_is_judged_in_jupyterlab(tmp_path):
    exercise = catalogue.find("1")
    lessons.init(tmp_path / "notebooks", [exercise], notebooks=True)
    name = f"{exercise.name}/exercise.ipynb"
    with lab(tmp_path, name) as address:
        cells, shown, complaints, exceptions = run_exercise(address, name, tmp_path)
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert all(cell["execution_count"] for cell in code) and len(code) == 4
    assert (complaints, exceptions) == (0, [])
    assert "[3] hello from node 0 of 1" in shown, "the program, run as it was given out"
    assert "passed  1 node" in shown and "failed  2 nodes" in shown and exercise.stub_says in shown
    assert "`spcomm learn hint 01` shows a hint" in shown


def notebook(folder, name, *sources):
    """Write a notebook with these cells, where a server of this folder finds it."""
    cells = [
        {
            "cell_type": "code", "execution_count": None, "id": f"cell{number}", "metadata": {}, "outputs": [],
            "source": source,
        }
        for number, source in enumerate(sources)
    ]  # fmt: skip
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / name).write_text(
        json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5})
    )


HELD = """\
%%spcomm -n 4 --watch
import os
if comm.rank == 0:
    while not os.path.exists("go"): pass
    for to in range(1, comm.size): comm.send(None, to)
else:
    comm.recv(source=0)
"""
OUTPUT = "document.querySelector('.jp-OutputArea-output')"


def watch_nodes(address, name, folder):
    """The picture while three nodes wait; after they were released, the page of the trace."""
    with browser.Driven(folder, size=(1200, 1000)) as page:
        begin_cells(page, address, name)
        page.until(f"{OUTPUT}?.innerText.includes('3 wait')")
        drawn = "[...document.querySelectorAll('.spcomm-watch img')].map(one => one.naturalWidth > 0)"
        bars = page.evaluate(drawn)
        page.picture(folder / "running.png")
        (folder / "notebooks" / "go").touch()
        page.evaluate("book.ran")
        page.until(f"{OUTPUT}.querySelector('iframe')?.clientHeight > 400")
        assert page.evaluate("document.querySelectorAll('.spcomm-watch').length") == 0
        page.picture(folder / "ended.png")
        return bars, page.evaluate(COMPLAINTS), page.exceptions


@pytest.mark.slow
@pytest.mark.machine  # a slow one makes spcomm warn of waits
def test_nodes_are_shown_in_jupyterlab_while_they_run(tmp_path):
    notebook(tmp_path, "watch.ipynb", "%load_ext spcomm", HELD)
    with lab(tmp_path, "watch.ipynb") as address:
        bars, complaints, exceptions = watch_nodes(address, "watch.ipynb", tmp_path)
    assert (bars, complaints, exceptions) == ([True] * 4, 0, [])


RENDERING = f"""\
import sys
import numpy as np
import spcomm
sys.path.insert(0, {str(ROOT / "examples" / "rendering")!r})
import rendering
from viewer import Viewer

cluster = spcomm.Cluster(3)
views = []

def draw(view):
    views.append(view)
    return cluster.run(
        lambda comm: rendering.render_spheres(
            comm, [[0.5 * comm.rank, 0, 0]], 0.3, [255, 0, 0], view, size=128
        )
    )[0]

viewer = Viewer(draw, size=200)
viewer
"""
CANVAS = "document.querySelector('.jp-OutputArea-output canvas')"


def drag(address, name, folder):
    """Drag a picture to the right, by half of its width in forty steps; frames, colours and captions."""
    with browser.Driven(folder, size=(1000, 900)) as page:
        run_cells(page, address, name)
        page.until(f"{CANVAS}?.dataset.frames === '1'")
        at = page.evaluate(
            f"(({{x, y}}) => [x + 50, y + 100])({CANVAS}.getBoundingClientRect())",
        )
        red = (
            f"[...{CANVAS}.getContext('2d').getImageData(0, 100, 200, 1).data]"
            ".filter((_value, at) => at % 4 === 0).map((value) => value > 100 ? 1 : 0)"
        )
        before = page.evaluate(red)
        mouse = {"button": "left", "buttons": 1, "y": at[1]}
        page.tell("Input.dispatchMouseEvent", type="mousePressed", x=at[0], clickCount=1, **mouse)
        for step in range(1, 41):
            page.tell("Input.dispatchMouseEvent", type="mouseMoved", x=at[0] + 2.5 * step, **mouse)
        page.tell("Input.dispatchMouseEvent", type="mouseReleased", x=at[0] + 100, clickCount=1, **mouse)
        dragged = settled(page)
        after = page.evaluate(red)
        caption = page.evaluate(f"{CANVAS}.nextSibling.textContent")
        for kind in ("rawKeyDown", "keyUp"):
            page.tell("Input.dispatchKeyEvent", type=kind, key="ArrowUp", code="ArrowUp")
        page.until(f"+{CANVAS}.dataset.frames > {dragged}")
        page.picture(folder / "viewer.png")
        complaints = page.evaluate(COMPLAINTS)
        return before, after, dragged, caption, complaints, page.exceptions


def settled(page):
    """Wait until the picture has turned by 90 degrees; how many frames that took."""
    expression = (
        "[int(np.rint(np.degrees(np.arctan2(-viewer.view[0, 2], viewer.view[0, 0])))), viewer.frames]"
    )
    code = f"""window.book.sessionContext.session.kernel.requestExecute(
        {{code: "", user_expressions: {{found: "{expression}"}}}}
    ).done.then((reply) => JSON.parse(reply.content.user_expressions.found.data["text/plain"]))"""
    deadline = time.monotonic() + browser.WATCHDOG_S
    while (found := page.evaluate(code))[0] != 90:
        assert time.monotonic() < deadline, f"turned by {found[0]} degrees"
    page.until(f"{CANVAS}.dataset.frames === '{found[1]}'")
    return found[1]


@pytest.mark.slow
def test_the_mouse_turns_a_picture(tmp_path):
    notebook(tmp_path, "turn.ipynb", RENDERING)
    with lab(tmp_path, "turn.ipynb") as address:
        before, after, frames, caption, complaints, exceptions = drag(address, "turn.ipynb", tmp_path)
    # Three spheres side by side, from the middle to the right edge; turned by 90 degrees, one behind the other.
    assert before[100:190].count(1) > 60 and before[:60].count(1) == 0
    assert after[75:125].count(1) > 30 and after[140:].count(1) == 0
    assert 2 <= frames <= 42 and caption.endswith(" frames/s")
    assert (complaints, exceptions) == (0, [])
