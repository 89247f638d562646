# SPDX-License-Identifier: MIT
"""The output of nodes: whole lines with ranks, on the caller's own streams, all of it before the call returns."""

import io
import os
import sys

import pytest

import spcomm
from spcomm.launch.base.loop import Loop
from spcomm.notebook.screen import Screen


def lines(text):
    return sorted(text.splitlines())


def test_lines_have_ranks(cluster, capsys):
    cluster.execute("import sys\nprint('out', comm.rank)\nprint('err', comm.rank, file=sys.stderr)")
    found = capsys.readouterr()
    assert lines(found.out) == ["[0] out 0", "[1] out 1", "[2] out 2"]
    assert lines(found.err) == ["[0] err 0", "[1] err 1", "[2] err 2"]


def test_unfinished_lines_are_shown_when_the_call_ends(cluster, capsys):
    cluster.execute("print('half', end='')")
    assert lines(capsys.readouterr().out) == ["[0] half", "[1] half", "[2] half"]
    cluster.execute("print('next')")
    assert lines(capsys.readouterr().out) == ["[0] next", "[1] next", "[2] next"]


def test_what_libraries_and_children_write(cluster, capsys):
    cluster.execute("import os, subprocess\nos.write(1, b'raw\\n')\nsubprocess.run(['echo', 'child'])")
    assert lines(capsys.readouterr().out) == [
        f"[{rank}] {what}" for rank in range(3) for what in ("child", "raw")
    ]


def test_output_comes_while_the_call_runs(cluster, tmp_path, monkeypatch):
    """The caller's stream opens the gate for which the nodes wait."""
    gate = tmp_path / "gate"

    class Stream(io.StringIO):
        def write(self, text):
            if "ready" in text:
                gate.touch()
            return super().write(text)

    monkeypatch.setattr(sys, "stdout", Stream())
    cluster.push(gate=str(gate))
    waiting = "while not os.path.exists(gate): time.sleep(0.001)"
    cluster.execute(f"import os, time\nprint('ready')\n{waiting}\nprint('open')", 60)
    assert sys.stdout.getvalue().count("open") == 3


def test_much_output_arrives_whole(cluster, capsys):
    cluster.execute("for i in range(3000): print('x' * 100, i)")
    found = capsys.readouterr().out.splitlines()
    assert len(found) == 9000
    for rank in range(3):
        mine = [line for line in found if line.startswith(f"[{rank}]")]
        assert [int(line.rsplit(" ", 1)[1]) for line in mine] == list(range(3000))


def test_grouped_output_comes_by_node(capsys):
    with spcomm.Cluster(11) as cluster:
        code = "for i in range(3):\n    comm.barrier()\n    print(i)"
        cluster.execute(code, grouped=True)
        found = capsys.readouterr().out
        assert found == "".join(f"[{rank}] {i}\n" for rank in range(11) for i in range(3))
        cluster.execute("print('again')")
        assert len(capsys.readouterr().out.splitlines()) == 11


def test_output_of_a_failing_call_comes_before_the_error(cluster, capsys):
    with pytest.raises(spcomm.ClusterError):
        cluster.execute("print('before', end='')\n1 / 0")
    assert lines(capsys.readouterr().out) == ["[0] before", "[1] before", "[2] before"]


class Full(io.StringIO):
    def write(self, text):
        raise OSError("full")


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize(("make", "error"), [(Full, OSError), (closed, ValueError)], ids=["full", "closed"])
def test_a_stream_that_fails_is_the_callers_error(cluster, monkeypatch, make, error):
    before = cluster.processes
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", make())
        with pytest.raises(error, match=r"full|closed file"):
            cluster.execute("while True: print(1)")
    assert cluster.processes == before
    assert cluster.run(lambda comm: comm.rank) == [0, 1, 2]


def test_a_cell_that_changes_its_streams(cluster, capsys):
    cluster.execute("import sys, io\nsys.stdout = io.StringIO()\nprint('unseen')")
    cluster.execute("sys.stdout = sys.__stdout__\nprint('seen')")
    assert lines(capsys.readouterr().out) == ["[0] seen", "[1] seen", "[2] seen"]


@pytest.mark.slow
def test_figures_of_a_cell(cluster):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib")
    found = []
    code = "import matplotlib.pyplot as plt\nplt.plot([comm.rank, 1])\nplt.figure()\nNone"
    cluster.execute(code, figure=lambda rank, png: found.append((rank, png[:4])))
    assert found == [(rank, b"\x89PNG") for rank in range(3) for _figure in range(2)]
    found.clear()
    late = """
if comm.rank < 2:
    comm.recv(comm.rank + 1)
plt.plot([1])
plt.show()
if comm.rank > 0:
    comm.send("drawn", comm.rank - 1)
"""
    cluster.execute(late, figure=lambda rank, png: found.append(rank))
    assert found == [0, 1, 2], "though they were drawn in the other order"
    found.clear()
    cluster.execute(
        "plt.plot([1]); plt.show(); plt.get_fignums()", figure=lambda *figure: found.append(figure)
    )
    assert len(found) == 3
    assert cluster.execute("plt.get_fignums()") == [[]] * 3
    found.clear()
    with pytest.raises(spcomm.ClusterError):
        cluster.execute("plt.plot([1])\n1 / 0", figure=lambda *figure: found.append(figure))
    values = cluster.execute("plt.figure()\nplt.plot([1])", figure=lambda *figure: found.append(figure))
    assert len(found) == 3
    assert repr(values[0]).startswith("[<matplotlib.lines.Line2D object")
    assert type(values[0]).__name__ == "UnpicklableValue"


def test_each_traced_call_has_a_trace_of_its_own(cluster, tmp_path):
    from spcomm.trace import reader

    for name, code, expected in (
        ("one", "comm.barrier()", {"barrier"}),
        ("two", "comm.global_sum(1)\ncomm.sendrecv(0, comm.rank)", {"global_sum", "sendrecv"}),
        ("three", "comm.allgather(1)\n\ncomm.barrier()", {"allgather", "barrier"}),
    ):
        path = tmp_path / f"{name}.json"
        cluster.execute(code, name=name, trace=str(path))
        found = reader.read(path)
        assert (found.nodes, found.program) == (3, name)
        calls = [(call.name, call.line) for track in found.tracks for call in track.calls]
        assert {what for what, _line in calls} - {"close"} == expected
        assert {line.partition(":")[0] for what, line in calls if what in expected} == {name}
    cluster.execute("comm.barrier()")
    with pytest.raises(spcomm.ClusterError):
        cluster.execute("comm.barrier()\n1 / 0", trace=str(path))
    assert reader.read(path).nodes == 3


def test_a_trace_that_cannot_be_written(cluster, tmp_path, capsys):
    assert cluster.execute("comm.rank", trace=str(tmp_path / "no" / "t.json")) == [0, 1, 2]
    assert "the trace cannot be written to" in capsys.readouterr().err


# ---- the caller's streams may be anything


class Endless(io.StringIO):
    """Each line that is shown makes another one, as a thread does that prints for ever."""

    def __init__(self, source):
        super().__init__()
        self.source = source
        self.shown = 0

    def write(self, text):
        self.shown += 1
        assert self.shown < 1000, "the output is followed without end"
        os.write(self.source, b"more\n")
        return super().write(text)


def test_output_without_end_is_not_followed(monkeypatch):
    loop = Loop()
    screen = Screen(loop)
    (out, source), (err, other) = os.pipe(), os.pipe()
    monkeypatch.setattr(sys, "stdout", Endless(source))
    screen.add(0, out, err)
    os.write(source, b"one\n")
    screen.settle()
    assert sys.stdout.getvalue() == "[0] one\n"
    screen.close()
    assert sys.stdout.getvalue() == "[0] one\n[0] more\n"
    loop.close()
    os.close(source)
    os.close(other)


def test_a_stream_that_knows_ascii_only(cluster, monkeypatch):
    file = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file, encoding="ascii"))
    cluster.execute("if comm.rank == 1: print('grün')")
    assert file.getvalue() == b"[1] gr\\xfcn\n"


@pytest.mark.slow
def test_who_shows_figures_fails(cluster):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib")
    before = cluster.processes
    with pytest.raises(ZeroDivisionError):
        cluster.execute(
            "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()\nwhile True: pass",
            figure=lambda rank, png: 1 / 0,
        )
    assert cluster.processes == before
