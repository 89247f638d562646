# SPDX-License-Identifier: MIT
"""Pictures by matplotlib, and what is said where there is none."""

import contextlib
import errno
import importlib.util
import sys

import pytest

from builder import Builder, two_nodes
from pairwise import each
from spcomm.trace import raster
from spcomm.trace.command import main
from spcomm.trace.reader import parse

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
