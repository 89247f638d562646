# SPDX-License-Identifier: MIT
"""What nodes print: whole lines with ranks, on the caller's own streams, all of it before the call returns."""

import io
import sys

import pytest

import spcomm


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
    cluster.execute("import os\nprint('ready')\nwhile not os.path.exists(gate): pass\nprint('open')", 60)
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


def test_a_stream_that_fails_is_the_callers_error(cluster, monkeypatch):
    class Broken(io.StringIO):
        def write(self, text):
            raise OSError("full")

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Broken())
        with pytest.raises(OSError, match="full"):
            cluster.execute("print(1)")
    assert cluster.run(lambda comm: comm.rank) == [0, 1, 2]


def test_a_cell_that_changes_its_streams(cluster, capsys):
    cluster.execute("import sys, io\nsys.stdout = io.StringIO()\nprint('unseen')")
    cluster.execute("sys.stdout = sys.__stdout__\nprint('seen')")
    assert lines(capsys.readouterr().out) == ["[0] seen", "[1] seen", "[2] seen"]


def test_figures_of_a_cell(cluster):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install matplotlib")
    found = []
    code = "import matplotlib.pyplot as plt\nplt.plot([comm.rank, 1])\nplt.figure()\nNone"
    cluster.execute(code, figure=lambda rank, png: found.append((rank, png[:4])))
    assert sorted(found) == [(rank, b"\x89PNG") for rank in range(3) for _figure in range(2)]
    found.clear()
    cluster.execute(
        "plt.plot([1]); plt.show(); plt.get_fignums()", figure=lambda *figure: found.append(figure)
    )
    assert len(found) == 3
    assert cluster.execute("plt.get_fignums()") == [[]] * 3


def test_a_traced_call(cluster, tmp_path):
    from spcomm.trace import reader

    for name, code in (("one", "comm.barrier()"), ("two", "comm.global_sum(1)\ncomm.sendrecv(0, comm.rank)")):
        path = tmp_path / f"{name}.json"
        cluster.execute(code, name=name, trace=str(path))
        found = reader.read(path)
        assert found.nodes == 3
        assert found.program == name
        calls = {call.name for track in found.tracks for call in track.calls}
        assert calls >= ({"barrier"} if name == "one" else {"global_sum", "sendrecv"})
        assert calls.isdisjoint({"barrier"} if name == "two" else {"global_sum"})
    cluster.execute("comm.barrier()")
    with pytest.raises(spcomm.ClusterError):
        cluster.execute("comm.barrier()\n1 / 0", trace=str(path))
    assert reader.read(path).nodes == 3
