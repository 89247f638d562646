# SPDX-License-Identifier: MIT
"""The simulator against a slow one, which works in another way, and against times that follow from the rules."""

import json
import math
from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawn import examples
from slow_simulator import Slow
from spcomm.model import ModelError, command, engine, simulate_command
from spcomm.model.loggp import Estimate, LogGP
from spcomm.model.simulate import ALGORITHMS, RADIXES, Case, Costs, Noise, scaling, simulate

NO_COSTS = Costs(0, 0, 1, 0, 0, 0, 0, 0, 0)
cost = st.one_of(st.just(0), st.integers(0, 100))
PROGRAMS = max(number for known in ALGORITHMS.values() for number in known.values()) + 1


@st.composite
def tori(draw):
    """The lengths of four dimensions, of 1 to 64 nodes together."""
    lengths = [1] * 4
    for dimension in draw(st.permutations(range(4))):
        lengths[dimension] = draw(st.integers(1, 64 // math.prod(lengths)))
    return tuple(lengths)


@pytest.mark.smoke
@examples(600)
@given(
    st.integers(0, PROGRAMS - 1),
    tori(),
    st.sampled_from([0, 2, 3, 4, 8, 63, 64, 1000]),
    st.integers(1, 3),
    st.sampled_from([0, 1, 8, 1000, 12345]),
    st.integers(1, 5),
    st.sampled_from([0, 10, 50, 100]),
    st.integers(0, 2**64 - 1),
    st.tuples(cost, cost, st.integers(1, 100), cost, cost, cost, *[st.integers(0, 2000)] * 3),
    st.lists(st.lists(st.sampled_from([0, 0, 0, 7, 300]), min_size=8, max_size=8), max_size=3),
)
@pytest.mark.slow
def test_it_agrees_with_the_slow_simulator_event_for_event(
    program, torus, radix, rounds, size, fanout, hot, seed, costs, noise
):
    needs_server = program in (known["server"] for known in ALGORITHMS.values() if "server" in known)
    radix = max(2, radix) if needs_server else radix
    nodes = math.prod(torus)
    rest = (program, nodes, radix, rounds, size, fanout, hot, seed, torus, costs)
    slow = Slow(*rest, noise).run()
    buffer = b"".join(array("i", one).tobytes() for one in noise)
    time_ns, mean_ns, messages, events, servers, busiest_ns, log = engine.run(*rest, buffer, len(noise), True)
    finished = [node.finished for node in slow.places[:nodes]]
    assert log == slow.log
    assert time_ns == max(finished)
    assert mean_ns == pytest.approx(sum(finished) / nodes)
    assert events == len(slow.log) >= messages == sum(not waited for *_rest, waited in slow.log)
    assert servers == len(slow.places) - nodes
    assert busiest_ns == max((server.busy for server in slow.places[nodes:]), default=0)


@pytest.mark.parametrize("nodes", [1, 2, 3, 7, 8, 64, 1000])
def test_dissemination_takes_its_rounds(nodes):
    costs = replace(NO_COSTS, send_ns=30, receive_ns=5, latency_ns=100)
    found = simulate(Case("barrier", nodes, "dissemination"), costs)
    rounds = math.ceil(math.log2(nodes))
    assert found.time_ns == rounds * (30 + 100 + 5)
    assert found.messages == found.events == nodes * rounds


@pytest.mark.parametrize("nodes", [1, 2, 5, 100])
def test_the_single_server_serves_one_after_another(nodes):
    costs = replace(
        NO_COSTS, send_ns=10, receive_ns=20, latency_ns=1000, server_receive_ns=7, server_send_ns=9
    )
    found = simulate(Case("barrier", nodes, "server", nodes + 1), costs)
    assert found.time_ns == 10 + 1000 + nodes * (7 + 9) + 1000 + 20
    assert (found.servers, found.busiest_ns, found.messages) == (1, nodes * (7 + 9), 2 * nodes)


def test_a_port_passes_one_message_at_a_time():
    costs = replace(NO_COSTS, byte_ns=2, gap_ns=50)
    found = simulate(Case("unbalanced", 9, hot_percent=100, bytes=100), costs, log=True)
    at_node_0 = [time for time, place, *_rest in found.log if place == 0]
    assert at_node_0[0] == 1 + 200 and found.time_ns == at_node_0[-1] == 201 + 8 * 250


def test_messages_wait_for_the_server_that_all_share():
    costs = replace(NO_COSTS, latency_ns=10, server_receive_ns=100)
    through_one = simulate(Case("all-to-all", 32, radix=32), costs)
    assert through_one.time_ns >= 32 * 31 * 100
    assert simulate(Case("all-to-all", 32), costs).time_ns == 31 * 10


@pytest.mark.parametrize(
    ("algorithm", "messages"), [("ring", 2 * 12 * 11), ("binary-swap", 2 * 8 * 3 + 2 * 4)]
)
def test_messages_of_reductions(algorithm, messages):
    assert simulate(Case("allreduce", 12, algorithm, bytes=999)).messages == messages


def test_a_ring_moves_each_byte_twice():
    costs = replace(NO_COSTS, byte_ns=1)
    found = simulate(Case("allreduce", 8, "ring", bytes=8000), costs)
    assert found.time_ns == 2 * 7 * (1000 + 1)


def test_noise_of_one_length_is_a_longer_cost():
    case = Case("allreduce", 37, "tree", rounds=3)
    noisy = simulate(case, NO_COSTS, Noise((array("i", [25]),)))
    assert noisy.time_ns == simulate(case, replace(NO_COSTS, send_ns=25, receive_ns=25)).time_ns


def test_a_seed_repeats_and_another_does_not():
    case, noise = Case("barrier", 64, "tree"), Noise((array("i", range(1000)),))
    first, again = (simulate(case, noise=noise, log=True).log for _time in range(2))
    assert first == again != simulate(replace(case, seed=1), noise=noise, log=True).log


def test_noise_is_measured_written_and_read(tmp_path):
    noise = Noise.measure(work_ns=500, count=100)
    path = str(tmp_path / "noise.json")
    noise.write(path)
    assert Noise.read(path) == noise
    assert all(len(series) == 100 and min(series) == 0 for series in noise.series)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (None, "No such file"),
        ("{", "is not JSON"),
        pytest.param("[" * 100_000, "is not JSON", id="deep"),
        ("[]", "is no noise measurement"),
        ('{"format": "spcomm noise", "version": 2}', "of version 2, and this spcomm reads version 1"),
        ('{"format": "spcomm noise", "version": 1}', "is damaged"),
        ('{"format": "spcomm noise", "version": 1, "noise_ns": [[1], [1, 2]]}', "series of one length"),
        ('{"format": "spcomm noise", "version": 1, "noise_ns": [[-1]]}', "numbers from 0 on"),
        ('{"format": "spcomm noise", "version": 1, "noise_ns": [["1"]]}', "is damaged"),
    ],
)
def test_a_file_of_noise_that_is_none(tmp_path, content, part):
    path = tmp_path / "noise.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ModelError, match=f"{part}.*--measure-noise"):
        Noise.read(str(path))


@pytest.mark.parametrize("operation", [name for name, known in ALGORITHMS.items() if "server" in known])
def test_the_answers_of_a_comparison_are_where_it_turns(operation):
    case, costs = Case(operation, 200, bytes=64, radix=2), Costs(send_ns=9000, latency_ns=30000)
    found = scaling(case, costs)

    def server(nodes, radix):
        return simulate(Case(operation, nodes, "server", max(2, radix), bytes=64), costs)

    def trees(nodes):
        return min((server(nodes, radix).time_ns for radix in RADIXES if radix < nodes), default=math.inf)

    for least, is_true in (
        (found.tree_wins, lambda n: trees(n) < server(n, n).time_ns),
        (found.half_busy, lambda n: server(n, n).busy >= 0.5),
    ):
        assert least is not None and is_true(least) and (least == 2 or not is_true(least - 1))
    assert found.nodes == [2, 4, 8, 16, 32, 64, 128, 200]
    assert found.times_ns["radix 8"][-1] == server(200, 8).time_ns
    assert found.times_ns["radix 8"][2] is None


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("", "which operation"),
        ("baryer", "no operation 'baryer'; there are: barrier"),
        ("barrier --nodes 0", "nodes is 0; the simulator takes 1 to"),
        ("neighbors --torus 4x4 --nodes 8", "a torus of 4x4 has 16 nodes, and the simulation 8"),
        ("neighbors --torus 2x2x2x2x2", "a torus has 1 to 4 dimensions; got 2x2x2x2x2"),
        ("neighbors --torus 0x4", "nodes is 0"),
        ("neighbors --torus 2.5x4", "--torus 2.5x4: simulated nodes are whole"),
        ("barrier --torus 4x4", "says which nodes are neighbors; barrier has none"),
        ("barrier --radix 1", "radix 1 has no end: each server needs at least 2"),
        ("barrier --radix 0", "radix 0 has no end"),
        ("barrier --network server --radix 4", "--radix is about a tree of servers"),
        ("barrier --algorithm ring", "barrier has no algorithm 'ring'; it has: server, tree, dissemination"),
        ("barrier --algorithm server --network direct", "by the server needs one"),
        ("all-to-all --nodes 20000", "399,980,000 messages; their number grows with the square of the nodes"),
        ("neighbors --scaling", "--scaling compares servers with direct links"),
        ("barrier --png x.png", "--png draws a comparison; add --scaling"),
        ("barrier --costs latency=0", "latency is 0 ns; the simulator takes 1 ns"),
        ("barrier --costs latncy=1us", "did you mean latency=?"),
        ("barrier --costs latency=٣us", "latency takes a time such as 500ns or 10us"),
        ("barrier --costs latency=fast", "latency takes a time such as 500ns or 10us"),
        ("barrier --costs gap=1us,gap=2us", "gap twice"),
        ("barrier --fit missing.json", "cannot read 'missing.json'"),
        ("unbalanced --hot 101", "hot_percent is 101; the simulator takes 0 to 100"),
    ],
)
def test_what_cannot_be_simulated_is_one_sentence(words, part, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command.main(["simulate", *words.split()]) == 1
    said = capsys.readouterr()
    assert said.out == "" and part in said.err and said.err.count("\n") == 1


def test_costs_of_a_fit():
    numbers = (100.0, 80.0, 0.2, 120.0, 0.05)
    costs = Costs.of_fit(LogGP(*(Estimate(value, value, value) for value in numbers)))
    assert (costs.send_ns, costs.receive_ns, costs.latency_ns, costs.gap_ns, costs.byte_ns) == (
        100,
        80,
        1,
        120,
        0.05,
    )


def test_a_torus_of_the_command(capsys):
    """A node sends in each of six directions and receives as many: the last message comes after six sends."""
    costs = "send=10ns,receive=1ns,latency=100ns,gap=0ns,byte=0ns"
    assert command.main(f"simulate neighbors --torus 10x10x10 --costs {costs}".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "neighbors of 1000 nodes in a torus of 10x10x10, pairwise, over direct links"
    assert lines[1].split()[:3] == ["time", "161", "ns"]
    assert lines[4].split()[:2] == ["events", "6,000"]


def test_the_command_says_how_many_events(capsys):
    assert command.main("simulate multicast --nodes 100 --fanout 3 --algorithm tree".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "multicast of 100 nodes, tree, over direct links"
    assert [line.split()[:2] for line in lines[3:]] == [["messages", "99"], ["events", "99"]]


@pytest.mark.leaves("matplotlib keeps the files of its fonts open")
def test_the_comparison_and_its_picture(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "barrier.svg"
    assert command.main(["simulate", "barrier", "--nodes", "64", "--scaling", "--png", str(path)]) == 0
    out = capsys.readouterr().out
    found = scaling(Case("barrier", 64, radix=2))
    for sentence in simulate_command.answers(found):
        assert sentence in out
    assert f"From {found.tree_wins} nodes on it is the bottleneck" in out
    assert path.read_text().startswith("<?xml")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "least"),
    [
        (Case("barrier", 10**6, "server", 16), 2 * 10**6),
        (Case("broadcast", 10**6, "tree"), 10**6 - 1),
        (Case("barrier", 10**6, "dissemination"), 20 * 10**6),
        (Case("neighbors", 10**6, rounds=2, torus=(100, 100, 100)), 12 * 10**6),
        (Case("all-to-all", 2048), 2048 * 2047),
        (Case("allreduce", 2048, "ring", bytes=2**20), 2 * 2048 * 2047),
    ],
    ids=lambda value: f"{value.operation}-{value.algorithm}" if isinstance(value, Case) else "",
)
def test_large_simulations(case, least):
    found = simulate(case, noise=Noise((array("i", [0] * 50 + [1000, 200000]),)))
    assert least <= found.messages <= found.events <= 4 * 10**7


def test_its_noise_file_is_json_of_its_version(tmp_path):
    path = tmp_path / "noise.json"
    Noise((array("i", [1, 2]),)).write(str(path))
    assert json.loads(path.read_text()) == {"format": "spcomm noise", "version": 1, "noise_ns": [[1, 2]]}
