# SPDX-License-Identifier: MIT
"""`spcomm model sci`: the equations against an enumeration of all ways, and the crossovers of the thesis."""

import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spcomm.model import ModelError, command, sci
from spcomm.model.command import main
from spcomm.model.sci import Components, Torus

WHOLE = st.lists(st.integers(1, 6), min_size=1, max_size=4).filter(lambda sides: any(n > 1 for n in sides))


def ways(torus):
    """The hops from one node to each other node, the shorter way around where that is allowed."""
    for hops in itertools.product(*(range(int(n)) for n in torus.nodes)):
        if any(hops):
            yield [
                min(h, int(n) - h) if torus.bidirectional else h
                for h, n in zip(hops, torus.nodes, strict=True)
            ]


@given(sides=WHOLE, bidirectional=st.booleans())
def test_the_averages_are_those_of_all_ways(sides, bidirectional):
    torus, components = Torus(tuple(map(float, sides)), bidirectional), Components()
    found = list(ways(torus))
    others = len(found)
    assert torus.average_hops() == pytest.approx(sum(map(sum, found)) / others)
    switches = sum(sum(1 for h in hops if h) - 1 for hops in found) / others
    assert torus.average_switches() == pytest.approx(switches)
    total = sum(torus.point_to_point(hops, components) for hops in found)
    assert torus.multi_unicast(components) == pytest.approx(total)
    assert torus.average_latency(components) == pytest.approx(total / others)


def test_request_and_response_in_a_ring_are_equations_2_and_3():
    components, n, h = Components(), 6, 4
    torus = Torus((float(n),))
    o, lp, lf = components.overhead(64), components.propagation_ns, components.forwarding_ns
    assert torus.point_to_point([h], components) == 2 * o + h * lp + (h - 1) * lf
    assert torus.response([h], components) == 2 * o + (n - h) * lp + (n - h - 1) * lf


@pytest.mark.parametrize(
    ("switching", "wanted"), [(670.0, (18.25, 191.0, 1832.75)), (335.0, (8.25, 44.75, 229.0))]
)
def test_crossovers(switching, wanted):
    components = Components(switching_ns=switching)
    roots = [sci.crossover(d, components) for d in (1, 2, 3)]
    assert tuple(map(sci.on_quarters, roots)) == wanted
    for d, root in zip((1, 2, 3), roots, strict=True):
        fewer, more = (Torus.of(root, dimensions).multi_unicast(components) for dimensions in (d, d + 1))
        assert fewer == pytest.approx(more), "the totals cross where the averages do"


def test_a_faster_switch_and_a_load_move_the_crossovers_down():
    slow, fast = Components(), Components(switching_ns=200)
    assert all(sci.crossover(d, fast) < sci.crossover(d, slow) for d in (1, 2, 3))
    loaded = [sci.crossover(d, slow, load=0.1) for d in (1, 2, 3)]
    assert all(found < sci.crossover(d, slow) for d, found in zip((1, 2, 3), loaded, strict=True))
    assert sci.crossover(1, Components(switching_ns=1e12)) is None
    assert sci.crossover(1, Components(switching_ns=0)) == 2


@given(load=st.floats(0, 0.9), total=st.floats(3, 1000), dimensions=st.integers(1, 4))
def test_more_load_never_shortens_a_latency(load, total, dimensions):
    torus, components = Torus.of(total, dimensions), Components()
    if torus.utilisation(load) >= 1:
        with pytest.raises(ModelError, match=r"cannot carry a load of .*; it saturates at"):
            torus.average_latency(components, load=load)
    else:
        loaded = torus.average_latency(components, load=load)
        assert loaded >= torus.average_latency(components, load=load / 2)
        assert torus.average_latency(components, load=0) == torus.average_latency(components)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--torus 3x3 --hops 3,1", "3 hops in a ring of 3 nodes; a message takes 0 to 2 there"),
        ("--torus 3x3 --hops 1", "needs 2 numbers of hops, not all 0; got 1"),
        ("--torus 3x3 --hops 0,0", "needs 2 numbers of hops, not all 0; got 0,0"),
        ("--hops 1,1", "--hops needs a torus to travel in, such as --torus 3x3 --hops 1,2"),
        ("--torus 0x3", "no torus: 0x3 has a dimension without nodes, or is one node"),
        ("--torus 1", "no torus: 1 has a dimension without nodes, or is one node"),
        ("--torus 2x2x2x2x2", "a torus has 1 to 4 dimensions; got 5"),
        ("--nodes 1", "a torus has at least 2 nodes; got 1"),
        ("--torus 8 --load 0.5", "a torus of 8 nodes cannot carry a load of 0.5; it saturates at 0.25"),
    ],
)
def test_bad_input_is_one_sentence(capsys, words, complaint):
    assert main(["sci", *words.split()]) == 1
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1 and shown.err.startswith("spcomm model sci: ")
    assert complaint in shown.err


@pytest.mark.parametrize(
    ("words", "package"),
    [
        ("sci", "scipy"),
        ("sci --nodes 8 --figures out", "matplotlib"),
        ("simulate barrier --scaling --png x.png", "matplotlib"),
    ],
)
def test_a_missing_package_is_told_before_anything_else(capsys, monkeypatch, words, package):
    for name in ("scipy", "scipy.optimize", "matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(words.split()) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    command_name = words.split()[0]
    assert shown.err == (
        f"spcomm model {command_name}: this needs {package}, which is not installed;"
        " python -m pip install 'spcomm[model]' brings it\n"
    )


@pytest.mark.parametrize("name", list(command.COMMANDS))
def test_help_and_errors_are_those_of_the_other_commands(capsys, name):
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: spcomm model {name} ")
    with pytest.raises(SystemExit) as ended:
        main([name, "--no-such-option"])
    shown = capsys.readouterr().err
    assert ended.value.code == 125
    assert shown.count("\n") == 1 and f"(spcomm model {name} --help lists the options)" in shown


def test_commands(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in command.COMMANDS)


def test_the_table_of_crossovers_stands_beside_that_of_the_thesis(capsys):
    assert main(["sci"]) == 0
    shown = capsys.readouterr().out
    assert ["2D", "to", "3D", "190.84", "191.00", "191", "220"] in [
        line.split() for line in shown.splitlines()
    ]
    assert "(N - 1) times the average" in shown
    assert main(["sci", "--switching", "400"]) == 0
    assert "thesis" not in capsys.readouterr().out, "the thesis has no such system"


def test_systems(capsys):
    assert main(["sci", "--nodes", "64", "--load", "0.2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["64", "64"] and "saturated" in lines[1]
    assert lines[2].startswith("8x8") and lines[3].startswith("4x4x4") and "saturated" not in lines[2]
    assert main(["sci", "--torus", "3x3", "--hops", "2,1"]) == 0
    assert "over 2,1 hops: request 4.921 µs, response 4.921 µs." in capsys.readouterr().out


@pytest.mark.leaves("matplotlib keeps the files of its fonts open")
@pytest.mark.slow
def test_the_figures_of_the_thesis(tmp_path, capsys):
    assert main(["sci", "--figures", str(tmp_path / "figures")]) == 0
    names = [f"sci-{number}.png" for number in (12, 13, 14, 15)]
    assert capsys.readouterr().out.splitlines()[-4:] == [str(tmp_path / "figures" / name) for name in names]
    assert all((tmp_path / "figures" / name).stat().st_size > 10_000 for name in names)
    (tmp_path / "file").write_text("")
    assert main(["sci", "--figures", str(tmp_path / "file")]) == 1
    assert "cannot write" in capsys.readouterr().err
