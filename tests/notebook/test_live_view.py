# SPDX-License-Identifier: MIT
"""`%%spcomm --watch`: what it shows while the nodes run, the timeline as it grows, and its end."""

import base64
import io
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("PIL", reason="pip install 'spcomm[notebook]'")
from PIL import Image

import spcomm
from spcomm.notebook import live_view
from spcomm.notebook.live_view import Raster
from spcomm.trace.states import COLORS

# Node 0 works until a file is there; the others wait for it.
HELD = """
import os, time
if comm.rank == 0:
    while not os.path.exists({path!r}): time.sleep(0.001)
    for to in range(1, comm.size): comm.send("go on", to, tag=7)
else:
    comm.recv(source=0, tag=7)
"""


class Watcher:
    """Keeps what it is shown, and makes the file when nodes are shown to wait in recv."""

    def __init__(self, path, waiting):
        self.path, self.waiting, self.seen, self.met = path, waiting, [], None

    def __call__(self, html):
        self.seen.append(html)
        if self.met is None and self.is_met(html):
            self.met = html
            self.path.touch()

    def is_met(self, html):
        rows = [row(html, node) for node in self.waiting]
        return all(
            cells[2:3] == ["waits"] and cells[4] for cells in rows
        )  # where it waits is known a little later


def row(html, node):
    """The texts of a node's line: node, timeline, state, for, operation, line, sent/s, received/s."""
    found = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in re.findall("<tr>(.*?)</tr>", html)]
    [cells] = [cells for cells in found if cells and cells[0] == str(node)]
    return [re.sub("<span[^>]*></span>", "", cell) for cell in cells]


def bar(picture):
    """The colours of a bar: line, column, red-green-blue-alpha."""
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGBA"))


def shares(picture, state):
    """The parts of its columns that have the colour of a state."""
    color = [*bytes.fromhex(COLORS[state][1:]), 255]
    return (bar(picture) == color).all(axis=2).mean(axis=0)


def test_nodes_are_shown_while_they_run(cluster, tmp_path):
    watcher = Watcher(tmp_path / "go", waiting=(1, 2))
    cluster.execute(HELD.format(path=str(watcher.path)), name="In[7]", watch=watcher)
    assert watcher.met is not None and watcher.seen[-1] is not watcher.met
    for node in (1, 2):
        assert row(watcher.met, node)[4:6] == ["recv(source=0, tag=7)", "In[7]:7"]
    assert [row(watcher.seen[-1], node)[2] for node in range(3)] == ["ended"] * 3
    pictures = re.findall('base64,([^"]*)', watcher.seen[-1])
    assert shares(pictures[0], "computing").mean() > 0.5 > shares(pictures[0], "waiting").mean()
    assert shares(pictures[1], "waiting").mean() > 0.5
    assert cluster.execute("comm.global_sum(1)") == [3] * 3


def test_it_goes_with_boxes_and_a_trace(tmp_path):
    from spcomm.trace import reader

    watcher = Watcher(tmp_path / "go", waiting=(1, 2))
    with spcomm.Cluster(3, boxes=2) as cluster:
        trace = str(tmp_path / "t.json")
        cluster.execute(HELD.format(path=str(watcher.path)), watch=watcher, trace=trace)
    assert watcher.met is not None
    assert {call.name for call in reader.read(trace).tracks[1].calls} >= {"recv"}


def test_names_are_no_markup(cluster, tmp_path):
    watcher = Watcher(tmp_path / "go", waiting=(1, 2))
    cluster.execute(HELD.format(path=str(watcher.path)), name="<script>&'", watch=watcher)
    assert row(watcher.met, 1)[5] == "&lt;script&gt;&amp;&#x27;:7" and "<script" not in "".join(watcher.seen)


def test_an_error_of_the_function_ends_the_call(cluster):
    calls = []

    def broken(html):
        calls.append(html)
        raise ValueError("no screen")

    with pytest.raises(ValueError, match="no screen"):
        cluster.execute("import time\nwhile True: time.sleep(0.01)", watch=broken)
    assert len(calls) == 1 and cluster.execute("comm.rank") == [0, 1, 2]


def test_a_call_that_fails_is_shown_to_its_end(cluster):
    seen = []
    with pytest.raises(spcomm.ClusterError):
        cluster.execute("1 / 0 if comm.rank else comm.recv()", watch=seen.append)
    assert [row(seen[-1], node)[2] for node in range(3)] == ["ended"] * 3


@pytest.mark.parametrize("value", [0, "html", b""])
def test_only_functions_are_taken(cluster, value):
    with pytest.raises(TypeError, match=r"watch=.*: it is a function of a str"):
        cluster.execute("comm.rank", watch=value)


def test_of_many_nodes_those_that_wait_are_shown(monkeypatch, tmp_path):
    monkeypatch.setattr(live_view, "_MOST_ROWS", 3)
    watcher = Watcher(tmp_path / "go", waiting=())
    watcher.is_met = lambda html: "4 wait" in html
    with spcomm.Cluster(5) as cluster:
        cluster.execute(HELD.format(path=str(watcher.path)), watch=watcher)
    assert watcher.met.count("<img") == 2 and "and 3 more" in watcher.met


@given(
    st.lists(st.tuples(st.floats(1, 1e7), st.lists(st.floats(0, 0.25), min_size=4, max_size=4)), min_size=1),
    st.integers(0, 1),
)
def test_a_raster_keeps_all_time(spans, node):
    """However often two columns become one, and wherever spans begin."""
    raster, begin, whole = Raster(2), 0.0, np.zeros(4)
    for length, parts in spans:
        raster.add(node, begin, begin + length, parts)
        begin += length
        whole += length * np.array(parts)
    cells = raster._cells
    assert np.allclose(cells[node].sum(axis=0), whole) and not cells[1 - node].any()
    assert cells.sum(axis=2).max() <= raster._step_us * (1 + 1e-9)
    assert raster.seconds == pytest.approx(begin / 1e6)


def test_a_bar_has_the_shares_at_their_times():
    raster = Raster(1)
    raster.add(0, 0, 10_000, [0, 1, 0, 0])
    raster.add(0, 10_000, 20_000, [0.25, 0.25, 0, 0.5])
    raster.add(0, 30_000, 40_000, [0, 0, 0, 1])
    picture = raster.picture(0)
    assert bar(picture).shape == (16, 40, 4)
    assert shares(picture, "waiting").tolist() == [1] * 10 + [0.25] * 10 + [0] * 20
    assert shares(picture, "transferring").tolist() == [0] * 10 + [0.25] * 10 + [0] * 20
    assert shares(picture, "computing").tolist() == [0] * 10 + [0.5] * 10 + [0] * 10 + [1] * 10
    assert not bar(picture)[:, 20:30, 3].any(), "transparent where nothing is known"
    assert (bar(picture)[-1, 15, :3] == list(bytes.fromhex(COLORS["computing"][1:]))).all(), "at the bottom"
