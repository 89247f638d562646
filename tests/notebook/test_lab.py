# SPDX-License-Identifier: MIT
"""JupyterLab in Chromium: notebooks are opened, all of each is run, nothing goes wrong."""

import asyncio
import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import browser
from chromium import WATCHDOG_S, Chromium
from spcomm.learn import catalogue, lessons

ROOT = Path(__file__).resolve().parents[2]
NAME = "02_fuzzy_barrier.ipynb"
COMPLAINTS = "document.querySelectorAll('.jp-Dialog, .jp-RenderedText[data-mime-type*=stderr]').length"
NEEDED = ("jupyterlab", "ipykernel", "matplotlib", "cloudpickle")
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
        server.wait(WATCHDOG_S)


def port(folder, server):
    """The server listens when it has written where."""
    place = folder / "jupyter_runtime_dir" / f"jpserver-{server.pid}.json"
    for _attempt in range(int(WATCHDOG_S / 0.05)):
        with contextlib.suppress(OSError, ValueError):
            return json.loads(place.read_text())["port"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(0.05)
            break
    raise AssertionError("JupyterLab does not start:\n" + (folder / "lab.log").read_text())


async def run_cells(page, address, name):
    """Open the notebook and run all cells; what became of them."""
    book = (
        f"[...(window.jupyterapp?.shell.widgets('main') ?? [])].find(one => one.context?.path === '{name}')"
    )
    await page.open(address)
    await page.until(f"({book})?.id")
    await page.evaluate(
        f"window.book = {book}; book.context.ready.then(() => book.sessionContext.ready).then(() => true)"
    )
    await page.evaluate("jupyterapp.shell.activateById(book.id)")
    await page.until("jupyterapp.shell.currentWidget === book")
    await page.evaluate("jupyterapp.commands.execute('notebook:run-all-cells').then(() => true)")
    return await page.evaluate("book.context.model.toJSON().cells")


async def run_exercise(address, name, folder):
    """All of an exercise; its cells, the text that is shown below them, complaints."""
    async with Chromium(folder) as page:
        cells = await run_cells(page, address, name)
        shown = await page.evaluate(
            "[...document.querySelectorAll('.jp-OutputArea-output')].map(one => one.innerText).join('\\n')"
        )
        return cells, shown, await page.evaluate(COMPLAINTS), page.exceptions


async def run_all(address, folder):
    """Open the notebook and run all cells; what became of them, and a picture."""
    async with Chromium(folder) as page:
        cells = await run_cells(page, address, NAME)
        await page.until("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
        shown = await page.evaluate("document.querySelectorAll('.jp-OutputArea-output img').length")
        dialogs = await page.evaluate(COMPLAINTS)
        await page.evaluate(
            "[...document.querySelectorAll('.jp-OutputArea-output img')][1].scrollIntoView({block: 'center'})"
        )
        await page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
        )
        picture = await page.picture(folder / "lab.png")
        return cells, shown, dialogs, page.exceptions, picture


@pytest.mark.slow
def test_all_of_the_fuzzy_barrier_runs_in_jupyterlab(tmp_path):
    (tmp_path / "notebooks").mkdir()
    shutil.copy(ROOT / "examples" / "notebooks" / NAME, tmp_path / "notebooks")
    with lab(tmp_path, NAME) as address:
        cells, shown, dialogs, exceptions, picture = asyncio.run(run_all(address, tmp_path))
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
        cells, shown, complaints, exceptions = asyncio.run(run_exercise(address, name, tmp_path))
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert all(cell["execution_count"] for cell in code) and len(code) == 4
    assert (complaints, exceptions) == (0, [])
    assert "[3] hello from node 0 of 1" in shown, "the program, run as it was given out"
    assert "passed  1 node" in shown and "failed  2 nodes" in shown and exercise.stub_says in shown
    assert "`spcomm learn hint 01` shows a hint" in shown
