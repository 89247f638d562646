# SPDX-License-Identifier: MIT
"""The papers' figures: what they declare, what they show of known numbers, and what is drawn."""

import dataclasses
import importlib.util
import json
from operator import sub

import pytest
from contenders import answering

from spcomm.bench import figures, figures_command, peers, plot
from spcomm.bench.cases import sweep
from spcomm.bench.command import main
from spcomm.bench.figures import BYTES, DEFAULT, FIGURES, FULL, NODES, RATE, TIME, Figure, Panel
from spcomm.bench.measure import Plan, Results, estimate
from spcomm.bench.report import Report
from spcomm.bench.results_file import ResultsFile, load

SMALL = dataclasses.replace(DEFAULT, sizes=(8, 64), nodes=(2, 4), tcp_nodes=(2, 4), largest=4, long_bytes=64)


def found(tmp_path, rows, seconds=1e-3):
    """A file in which spcomm takes `seconds`, twice and four times as much in three rounds, for everything."""
    times = {row.key: {"spcomm": [[seconds], [2 * seconds], [4 * seconds]]} for row in rows}
    contenders = [answering("spcomm", 1.0, "spcomm")]
    path = tmp_path / "found.json"
    path.write_text(json.dumps(Report(rows, contenders, Results(times, rounds=3)).json()))
    return load(path)


@pytest.mark.parametrize("extent", [SMALL, DEFAULT, FULL], ids=["small", "default", "full"])
def test_every_panel_has_something_to_show(tmp_path, extent):
    whole = found(tmp_path, figures.rows(extent)).measurements
    for figure in FIGURES:
        for panel in figure.panels:
            lines = {line.name: line for line in figures.series(figure, panel, whole)}
            ours = "spcomm_mpi_c" if figure.name == "mpi" else "spcomm"
            assert ours in lines, (figure.name, panel)
            assert figure.name == "aclmpl-latency" or len(lines[ours].x) > 1
            for line in lines.values():
                assert list(line.x) == sorted(set(line.x)), (figure.name, line)


@pytest.mark.parametrize(
    ("operation", "nodes", "y"),
    [("one_way", 2, 0.5), ("pingpong", 2, 0.5), ("all_to_all", 8, 3.5), ("one_to_all", 4, 1.5)],
)
def test_throughput_counts_what_goes_to_other_nodes(tmp_path, operation, nodes, y):
    """1000 bytes in 2 ms are half a megabyte in a second, for each message that goes to another node."""
    whole = found(tmp_path, [sweep.row(operation, nodes, size, "memory", "hot") for size in (1000, 2000)])
    (line,) = figures.series(FIGURES[0], Panel(operation, BYTES, RATE, nodes=nodes), whole.measurements)
    assert line.x == (1000, 2000) and line.y[0] == pytest.approx(y)
    assert line.low[0] == pytest.approx(y / 2) and line.high[0] == pytest.approx(2 * y)


def test_times_are_medians_in_microseconds(tmp_path):
    whole = found(tmp_path, [sweep.row("barrier", n, 0, "memory", "hot") for n in (4, 2)])
    (line,) = figures.series(FIGURES[0], Panel("barrier", NODES, TIME), whole.measurements)
    assert line.x == (2, 4)
    assert line.y == pytest.approx((2000.0, 2000.0)) and line.low[0] == pytest.approx(1000.0)


def test_cold_buffers_and_the_other_transport_are_left_out(tmp_path):
    rows = [
        sweep.row("pingpong", 2, 8, transport, kind)
        for transport in ("memory", "tcp")
        for kind in ("hot", "cold")
    ]
    whole = found(tmp_path, rows).measurements
    for transport in ("memory", "tcp"):
        panel = Panel("pingpong", BYTES, TIME, transport=transport)
        assert [line.x for line in figures.series(FIGURES[0], panel, whole)] == [(8,)]


def test_peers_do_not_run_the_floors():
    """Their times would count as those of plain C."""
    for row in figures.in_c(8):
        assert [name for name, make in peers.PEERS.items() if make().can_run(row)] == []


def test_every_number_of_a_paper_belongs_to_a_panel_and_names_its_place():
    panels = {(figure.name, panel.y) for figure in FIGURES for panel in figure.panels}
    numbers = figures.paper_numbers()
    assert set(numbers) <= panels
    for several in numbers.values():
        for one in several:
            assert one.source and one.label and len(one.y) == len(one.x or one.y[:1])
            assert min(one.y) > 0 and list(one.x) == sorted(one.x)


def test_a_figure_without_numbers_says_so():
    numbers = {name for name, _ in figures.paper_numbers()}
    for figure in FIGURES:
        assert figure.name in numbers or "picture only" in figure.note or "no numbers" in figure.note


def test_the_tables_of_scampi_are_whole():
    def of_sci(figure, y):
        return next(one for one in figures.paper_numbers()[figure, y] if "SCI" in one.label)

    barriers, exchanges = of_sci("scampi-1", TIME), of_sci("scampi-2", RATE)
    assert len(barriers.x) == 9 and (barriers.x[-1], barriers.y[-1]) == (96, 33.1)
    assert len(exchanges.x) == 7 and (exchanges.x[-1], exchanges.y[-1]) == (96, 26.2)


def test_the_default_takes_three_minutes_at_most():
    """By what starts and works are declared to take, with every peer installed; drawing takes a few seconds."""
    contenders = [dataclasses.replace(make(), missing="") for make in (peers.spcomm, *peers.PEERS.values())]
    plan = Plan(figures.rows(DEFAULT), contenders, DEFAULT.rounds, DEFAULT.seconds, DEFAULT.limit)
    rounds, seconds = estimate(plan)
    assert rounds >= 2 and seconds <= 160


def test_an_exchange_of_all_nodes_fits_into_memory():
    rows = [row for row in figures.rows(FULL) if row.operation == "all_to_all"]
    assert max(row.nodes**2 * row.size_bytes for row in rows) <= figures.MOST_EXCHANGED


def test_without_matplotlib_nothing_is_measured(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(figures_command, "find_spec", lambda name: None)
    assert main(["figures", "--out", str(tmp_path)]) == 125
    shown = capsys.readouterr().err
    assert shown == "spcomm bench figures: it draws with matplotlib: python -m pip install 'spcomm[model]'\n"


needs_matplotlib = pytest.mark.skipif(
    not importlib.util.find_spec("matplotlib"), reason="matplotlib is not installed"
)


@pytest.mark.leaves("matplotlib keeps its fonts open")
@needs_matplotlib
@pytest.mark.slow
def test_pictures_and_a_page(tmp_path, capsys):
    from PIL import Image, ImageColor

    found(tmp_path, figures.rows(SMALL))
    folder = tmp_path / "out"
    assert main(["figures", "--from", str(tmp_path / "found.json"), "--out", str(folder)]) == 0
    assert str(folder / "index.html") in capsys.readouterr().out
    page = (folder / "index.html").read_text()
    for figure in FIGURES:
        assert (folder / f"{figure.name}.png").read_bytes().startswith(b"\x89PNG")
        assert f'src="{figure.name}.png"' in page and figure.source in page
    assert "0 of " in page and "Huse and others 1999, table 1.1" in page
    pixels = Image.open(folder / "aclmpl-7.png").convert("RGB").getcolors(1 << 24)
    blue = ImageColor.getrgb(plot.STYLES["spcomm"][1])
    assert min(max(map(abs, map(sub, blue, pixel))) for _count, pixel in pixels) <= 4


@pytest.fixture
def invented(monkeypatch):
    """One barrier, one figure that shows it, and spcomm alone, which answers without being started."""
    monkeypatch.setattr(figures_command.signal, "signal", lambda *_: None)
    monkeypatch.setattr(peers, "spcomm", lambda: answering("spcomm", 1e-6, "spcomm"))
    monkeypatch.setattr(peers, "PEERS", {})
    monkeypatch.setattr(figures, "rows", lambda extent: [sweep.row("barrier", 2, 0, "memory", "hot")])
    shown = [figure for figure in FIGURES if figure.name == "scampi-1"]
    monkeypatch.setattr(figures_command, "FIGURES", shown)


@pytest.mark.leaves("matplotlib keeps its fonts open")
@needs_matplotlib
def test_what_is_measured_is_kept_and_drawn(invented, tmp_path, capsys):
    assert main(["figures", "--out", str(tmp_path)]) == 0
    first = "About 5 s: 1 row, 1 contender, 3 rounds. Measuring takes 2.5 minutes at most."
    assert capsys.readouterr().err.startswith(first)
    assert [one.operation for one in load(tmp_path / "measurements.json").measurements] == ["barrier"]
    assert (tmp_path / "scampi-1.png").exists()


@pytest.mark.leaves("matplotlib keeps its fonts open")
@needs_matplotlib
def test_an_interrupted_measurement_is_drawn_as_far_as_it_came(invented, tmp_path, monkeypatch):
    def interrupted(plan):
        times = {plan.rows[0].key: {"spcomm": [[1e-6]]}}
        return Results(times, interrupted=True, planned_rounds=plan.rounds)

    monkeypatch.setattr(figures_command.command, "run", interrupted)
    assert main(["figures", "--rounds", "5", "--out", str(tmp_path)]) == 130
    page = (tmp_path / "index.html").read_text()
    assert "Not all points have the 5 rounds that were planned: 1 has 1." in page


@pytest.mark.leaves("matplotlib keeps its fonts open")
@needs_matplotlib
@pytest.mark.parametrize(("failing", "code"), [("peer", 0), ("spcomm", 1)])
def test_the_figures_lack_a_point_that_failed(invented, tmp_path, monkeypatch, capsys, failing, code):
    def failed(plan):
        first, second = (row.key for row in plan.rows)
        return Results({first: {"spcomm": [[1e-6]]}}, {(second, failing): "exit code 1: no memory"}, rounds=1)

    rows = [sweep.row("barrier", nodes, 0, "memory", "hot") for nodes in (2, 4)]
    monkeypatch.setattr(figures, "rows", lambda extent: rows)
    monkeypatch.setattr(peers, "PEERS", {"peer": lambda: answering("peer", 1.0)})
    monkeypatch.setattr(figures_command.command, "run", failed)
    assert main(["figures", "--out", str(tmp_path)]) == code
    assert "exit code 1: no memory" in capsys.readouterr().out
    page = (tmp_path / "index.html").read_text()
    assert "1 point failed; the end of this page has the reasons." in page
    assert f"<li>{failing}, failed: barrier, 4 nodes: exit code 1: no memory</li>" in page


def test_thinned_points_are_named():
    machine = {"cores": 2, "system": "Linux 6", "python": "3"}
    thinned = (("barrier, 4 nodes", "mpich", 1), ("barrier, 8 nodes", "mpich", 1), ("reduce", "c", 0))
    one = ResultsFile("x", "2026-11-25", machine, {"spcomm": "0"}, {}, (), 3, thinned)
    assert plot.thinned(one) == [
        "mpi4py, MPICH, 1 round: barrier, 4 nodes; barrier, 8 nodes.",
        "plain C, not measured: reduce.",
    ]
    assert plot.introduction(one)[-1].startswith(
        "Not all points have the 3 rounds that were planned: 2 have 1, 1 has none."
    )
    assert "<li>plain C, not measured: reduce.</li>" in plot.html([], one)
    assert "plain C, not measured: reduce." in plot.markdown([], one, "")
    assert plot.THINNED not in plot.html([], dataclasses.replace(one, thinned=()))


@needs_matplotlib
def test_an_early_end_draws_nothing(invented, tmp_path, monkeypatch, capsys):
    def interrupted(plan):
        return Results(interrupted=True)

    monkeypatch.setattr(figures_command.command, "run", interrupted)
    assert main(["figures", "--out", str(tmp_path)]) == 130
    assert "interrupted before anything was measured" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_titles_are_escaped():
    odd = Figure("odd", "a < b & c", 'the "paper"', (Panel("barrier", NODES, TIME),))
    machine = {"cores": 2, "system": "<Linux> 6", "python": "3"}
    page = plot.html([odd], ResultsFile("x", "2026-11-25", machine, {"spcomm": "0"}, {}, ()))
    assert "a &lt; b &amp; c" in page and "&lt;Linux&gt;" in page
    assert 'alt="a &lt; b &amp; c: the &quot;paper&quot;, measured here"' in page
