# SPDX-License-Identifier: MIT
"""Pictures by matplotlib, and what is said where there is none."""

import colorsys
import contextlib
import errno
import importlib.util
import itertools
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from builder import Builder, two_nodes
from pairwise import each
from spcomm.trace import picture, raster
from spcomm.trace.command import main
from spcomm.trace.reader import parse
from spcomm.trace.states import COLORS, QUEUED, STARTING, TERMINAL

needed = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed"
)
pytestmark = pytest.mark.leaves("matplotlib keeps the files of its fonts open")
STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    two_nodes().write(tmp_path)
    return tmp_path


# Linear RGB as an eye with three kinds of cones sees it, and as eyes without one of them do: G. M. Machado, M. M.
# Oliveira, L. A. F. Fernandes, A physiologically-based model for simulation of color vision deficiency, IEEE
# Transactions on Visualization and Computer Graphics 15(6), 2009, table for severity 1.
EYES = {
    "all": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# From linear RGB to Oklab, in which equal distances look about equal: https://bottosson.github.io/posts/oklab/
CONES = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
         [0.0883024619, 0.2817188376, 0.6299787005]]  # fmt: skip
OKLAB = [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
         [0.0259040371, 0.7827717662, -0.8086757660]]  # fmt: skip


def seen(color, eye):
    """`#rrggbb` as an eye sees it, in Oklab."""
    parts = np.frombuffer(bytes.fromhex(color[1:]), np.uint8) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return np.array(OKLAB) @ np.cbrt(np.array(CONES) @ np.clip(np.array(EYES[eye]) @ linear, 0, 1))


def palettes():
    """The colours of the states by where they are shown."""
    css = (Path(raster.__file__).parent / "page" / "page.css").read_text()
    light, dark = css.split("@media (prefers-color-scheme: dark)")
    names = {state: {QUEUED: "queued"}.get(state, state) for state in (*COLORS, "starting")}
    pages = {
        place: {state: re.search(rf"--{name}: (#[0-9a-f]{{6}});", text)[1] for state, name in names.items()}
        for place, text in (("light", light), ("dark", dark))
    }
    return {"picture": {**COLORS, "starting": STARTING}, **pages}


@pytest.mark.parametrize("eye", EYES)
def test_no_two_states_look_the_same(eye):
    """0.1 is five times what is just noticed; waiting for a core and starting were the same grey."""
    for place, colors in palettes().items():
        for one, other in itertools.combinations(colors, 2):
            apart = np.linalg.norm(seen(colors[one], eye) - seen(colors[other], eye))
            assert apart > 0.1, (place, one, other)


def test_the_page_has_the_colours_of_pictures():
    places = palettes()
    assert places["light"] == places["picture"] != places["dark"]


def hue(color):
    """Return the hue of `#rrggbb`: from 0 to 1, which is 0 again."""
    return colorsys.rgb_to_hsv(*(part / 255 for part in bytes.fromhex(color[1:])))[0]


def test_a_terminal_has_the_colours_of_the_page():
    """Those of --watch: its green was computing, which the page has for waits for a core."""
    rich = pytest.importorskip("rich.color")
    for state, name in TERMINAL.items():
        mine = hue(rich.Color.parse(name).get_truecolor().hex)
        away = {
            other: min(abs(mine - hue(color)), 1 - abs(mine - hue(color))) for other, color in COLORS.items()
        }
        assert min(away, key=away.get) == state, (state, name, away)


def test_columns_show_what_takes_most_of_them():
    trace = parse(two_nodes().text())
    # Node 1: transfers 0-5, waits to 35, transfers to 40, computes to 60, transfers to 70, waits to 90.
    assert raster.runs(trace, trace.tracks[1], 10) == {
        "computing": [(40, 20)],
        "transferring": [(0, 10), (30, 10), (60, 10), (90, 10)],  # of equal parts the first
        "waiting": [(10, 20), (70, 20)],
        "waiting for a core": [],
    }
    trace = parse(two_nodes().core(1, 40, 60).text())
    found = raster.runs(trace, trace.tracks[1], 10)
    assert (found["computing"], found["waiting for a core"]) == ([], [(40, 20)])


@pytest.mark.slow
@needed
@pytest.mark.parametrize("ending", each(3, [".png", ".svg", ".pdf"]))
def test_pictures(folder, ending, capsys):
    assert main(["t.json", "--matrix", "--png", f"o{ending}"]) == 0
    assert capsys.readouterr().err == f"spcomm trace: wrote o{ending}\nspcomm trace: wrote o-matrix{ending}\n"
    for name in ("o", "o-matrix"):
        raw = (folder / f"{name}{ending}").read_bytes()
        assert raw.startswith(STARTS[ending]) and len(raw) > 5000


@needed
def test_a_picture_that_fails_leaves_the_one_before(folder, monkeypatch, capsys):
    """matplotlib writes into what it is given: half a picture."""
    from matplotlib.figure import Figure

    def half(_figure, file, **_more):
        with open(file, "wb") if isinstance(file, str) else contextlib.nullcontext(file) as half_written:
            half_written.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    (folder / "o.png").write_bytes(b"the one before")
    monkeypatch.setattr(Figure, "savefig", half)
    assert main(["t.json", "--png", "o.png"]) == 1
    assert capsys.readouterr().err == "spcomm trace: cannot write o.png: No space left on device\n"
    assert (folder / "o.png").read_bytes() == b"the one before"


@pytest.mark.slow
@needed
def test_nothing_is_drawn_as_well(folder, capsys):
    for built in (Builder(1), Builder(2).call(0, 5, 5), Builder(2).message(0, 1, None, 4)):
        built.write(folder)
        assert main(["t.json", "--png", "--matrix"]) == 0
        assert capsys.readouterr().err.count("wrote") == 2


@pytest.mark.slow
@needed
def test_many_nodes_and_messages(folder, capsys):
    built = Builder(200)
    for rank in range(200):
        built.call(rank, rank, rank + 50)
        for at in range(3):
            built.message(rank, (rank + 1) % 200, rank + at, rank + at + 2)
    built.write(folder)
    assert main(["t.json", "--png", "--matrix"]) == 0
    assert (folder / "t-matrix.png").stat().st_size > 5000 and "t-matrix.png" in capsys.readouterr().err


@needed
def test_endings_that_matplotlib_does_not_know(folder, capsys):
    assert main(["t.json", "--png=o.xyz"]) == 1
    err = capsys.readouterr().err
    assert (
        err.startswith("spcomm trace: --png cannot make o.xyz: it ends in none of .") and err.count("\n") == 1
    )


def test_without_matplotlib_one_sentence_says_what_to_install(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["t.json", "--png"]) == 1
    err = capsys.readouterr().err
    assert "pip install 'spcomm[plot]'" in err and err.count("\n") == 1
    assert [path.name for path in folder.iterdir()] == ["t.json"]


def test_in_a_notebook_the_page_shows_through(tmp_path):
    from PIL import Image

    out = tmp_path / "t.png"
    picture.timeline(parse(two_nodes().text()), str(out), in_notebook=True)
    image = Image.open(out)
    assert image.width == 1200 and image.getpixel((0, 0))[3] == 0
