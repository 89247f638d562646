# SPDX-License-Identifier: MIT
"""Runs in another world: predicted from a trace, and made anew in that world by a second model, which must agree."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import Builder, two_nodes
from spcomm.trace import command
from spcomm.trace.errors import TraceError
from spcomm.trace.model import cut
from spcomm.trace.reader import parse
from spcomm.trace.what_if import Replay, pieces_of, predict, text, world_of

exactly = pytest.approx
LATENCY = 0.5  # µs; that of a message for which nobody waited, too


class Run:
    """A program that runs in a world of its own making: every call takes 2 µs, and waits for what it needs."""

    def __init__(self, nodes, compute=None, calls=1.0):
        self.nodes = nodes
        self.calls = calls
        self.factors = compute or [1.0] * nodes
        self.built = Builder(nodes)
        self.clock = [0.0] * nodes
        self.under_way = []
        for rank in range(nodes):
            self.built.call(rank, 0, 0, "layout")  # the life of all begins here

    def work(self, rank, length, is_declared):
        begin, self.clock[rank] = self.clock[rank], self.clock[rank] + length * self.factors[rank]
        if is_declared:
            self.built.call(rank, begin, self.clock[rank], "work", "a.py:1", cost=length)

    def send(self, source, dest, size):
        begin = self.clock[source]
        sent = begin + self.calls
        self.clock[source] = begin + 2 * self.calls
        self.built.call(source, begin, self.clock[source], "send", "a.py:2")
        self.under_way.append((source, dest, sent, size))

    def receive(self, which):
        source, dest, sent, size = self.under_way.pop(which)
        begin = self.clock[dest]
        waits_from = begin + self.calls
        arrived = max(waits_from, sent + LATENCY)
        self.clock[dest] = arrived + self.calls
        waits = [(waits_from, arrived)] if arrived > waits_from else []
        self.built.call(dest, begin, self.clock[dest], "recv", "a.py:3", waits)
        self.built.message(source, dest, sent, arrived, size)

    def together(self, name, root):
        begun = list(self.clock)
        for rank in range(self.nodes):
            whom = [root] if name == "bcast" else range(self.nodes)
            way = LATENCY if any(other != rank for other in whom) else 0.0
            waits_from = begun[rank] + self.calls
            end = max(waits_from, max(begun[other] for other in whom) + way)
            waits = [(waits_from, end)] if end > waits_from else []
            told = {"root": root} if name == "bcast" and root else {}
            self.built.call(rank, begun[rank], end, name, "a.py:4", waits, **told)
            self.clock[rank] = end

    def run(self, seed, steps):
        rng = random.Random(seed)
        for _step in range(steps):
            kind = rng.randrange(8)
            if kind < 3:
                self.work(rng.randrange(self.nodes), rng.randrange(1, 200), rng.random() < 0.5)
            elif kind < 5:
                self.send(rng.randrange(self.nodes), rng.randrange(self.nodes), rng.choice([8, 1000]))
            elif kind < 7 and self.under_way:
                self.receive(rng.randrange(len(self.under_way)))
            else:
                self.together(rng.choice(["barrier", "allreduce", "bcast"]), rng.randrange(self.nodes))
        self.together("barrier", 0)
        return self

    def trace(self):
        return parse(self.built.text())


@st.composite
def other_worlds(draw):
    """(nodes, the settings, the same for `Run`)."""
    nodes = draw(st.integers(1, 6))
    compute, slow, calls = (draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])) for _factor in range(3))
    words = f"compute={compute},compute-0={slow},calls={calls}"
    return nodes, words, {"compute": [compute * slow] + [compute] * (nodes - 1), "calls": calls}


@pytest.mark.smoke
@given(other_worlds(), st.integers(0, 60), st.integers())
def test_it_predicts_the_run_that_takes_place_there(case, steps, seed):
    nodes, words, world = case
    there = Run(nodes, **world).run(seed, steps)
    here = Run(nodes).run(seed, steps)
    found = predict(here.trace(), words)
    assert found.predicted == exactly(max(there.clock), abs=1e-6)
    assert sum(took for _key, took, _ranks, _free in found.path) <= found.predicted + 1e-6
    assert found.unexplained == 0


@given(st.integers(1, 6), st.integers(0, 80), st.integers(), st.booleans())
def test_a_world_without_a_difference_repeats_the_run(nodes, steps, seed, with_cores):
    trace = Run(nodes, calls=3.5).run(seed, steps).trace()
    assert predict(trace, f"cores={nodes}" if with_cores else "compute=1").predicted == exactly(trace.end)


def test_the_critical_path_and_what_its_parts_are_worth():
    """Node 0 works 100, sends to node 1, which has worked 70, and then works 50 more."""
    run = Run(2)
    run.work(0, 100, True)
    run.work(1, 70, False)
    run.send(0, 1, 8)
    run.receive(0)
    run.work(1, 50, True)
    found = predict(run.trace(), "compute=1")
    assert found.predicted == exactly(100 + 1 + LATENCY + 1 + 50)
    parts = {key: (took, ranks, free) for key, took, ranks, free in found.path}
    assert parts["work", "work", "a.py:1"] == (exactly(150), [0, 1], exactly(70 + 1 + 1))
    assert parts["message", "recv", "a.py:3"] == (exactly(LATENCY), [1], exactly(152))
    assert ("compute", "recv", "a.py:3") not in parts


@pytest.mark.parametrize(("cores", "end"), [(1, 400), (2, 200), (3, 400 / 3), (4, 100), (9, 100)])
def test_nodes_share_cores(cores, end):
    run = Run(4)
    for rank in range(4):
        run.work(rank, 100, True)
    assert predict(run.trace(), f"cores={cores}").predicted == exactly(end)


def test_a_node_that_waits_leaves_its_core_to_others():
    """On one core: 30 and 60 side by side take 60 and 90; then node 0 works alone."""
    run = Run(2, calls=0.0)
    run.work(0, 30, True)
    run.work(1, 60, True)
    run.send(1, 0, 0)
    run.receive(0)
    run.work(0, 10, True)
    assert predict(run.trace(), "cores=1").predicted == exactly(90 + LATENCY + 10)


def test_boxes_have_cores_of_their_own():
    built = Builder(4, 2, [0, 0, 1, 1])
    for rank in range(4):
        built.call(rank, 0, 100, "work", "a.py:1", cost=100)
    assert predict(parse(built.text()), "cores=1").predicted == exactly(200)


def test_who_starts_late_shares_no_core_before():
    built = Builder(2).call(0, 0, 50, "work", "a.py:1", cost=50).call(0, 50, 80, "work", "a.py:2", cost=30)
    built.call(1, 90, 110, "work", "a.py:1", cost=20).starting(1, 90)
    assert predict(parse(built.text()), "cores=1").predicted == exactly(110)


def test_waits_without_a_cause_keep_their_length():
    built = Builder(1).call(0, 0, 50, "send", "a.py:7", [(10, 40)])
    found = predict(parse(built.text()), "calls=0,compute=0")
    assert (found.predicted, found.unexplained) == (30, 30)
    assert "30.0 µs of waiting, over all nodes, has no recorded cause" in text("calls=0", found)


def test_the_text():
    found = predict(parse(two_nodes().text()), "compute=0.5")
    assert text("compute=0.5", found).splitlines() == [
        "what if compute=0.5",
        "  recorded    100 µs",
        "  predicted  70.0 µs  1.43 times as fast",
        "",
        "   share     time  critical path             line       nodes  if it took no time",
        "  42.9 %  30.0 µs  all meet in barrier       heat.py:9  0       60.0 µs (-14.3 %)",
        "  21.4 %  15.0 µs  computing before barrier  heat.py:9  0       55.0 µs (-21.4 %)",
        "  21.4 %  15.0 µs  computing before send     heat.py:5  0       55.0 µs (-21.4 %)",
        "  14.3 %  10.0 µs  in send                   heat.py:5  0       63.0 µs (-10.0 %)",
    ]


def refused(built, words="compute=1", change=lambda trace: trace):
    with pytest.raises(TraceError) as caught:
        predict(change(parse(built.text())), words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_cannot_be_predicted():
    built = two_nodes()
    assert "leave --from" in refused(built, change=lambda trace: cut(trace, 0, 50))
    built.other["overwritten"] = [0, 3]
    assert "no predicted times: 3 events of node 1 were overwritten; run the program" in refused(built)
    assert "in the trace; was it edited?" in refused(Builder(2).call(0, 0, 10, "barrier"))
    circle = Builder(2).message(0, 1, 20, 5).message(1, 0, 20, 5)
    assert "nodes 0-1 wait for each other in the trace" in refused(circle)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "not a setting such as cores="),
        ("cors=3", "did you mean cores=?"),
        ("compute=-1", "compute takes a number"),
        ("compute=inf", "compute takes a number"),
        ("latency=3us", "there are cores, compute, compute-R, calls"),
        ("cores=0", "cores takes a whole number from 1 on"),
        ("cores=1.5", "cores takes a whole number from 1 on"),
        ("compute-2=3", "compute-2=, and this run has nodes 0 to 1"),
        ("compute-x=3", "compute-x=, and this run has nodes 0 to 1"),
        ("compute=1,compute=2", "compute twice"),
    ],
)
def test_settings_that_make_no_sense(words, said):
    assert said in refused(two_nodes(), words)


def test_the_command(tmp_path, capsys):
    path = str(two_nodes().write(tmp_path))
    assert command.main([path, "--what-if", "compute=0.5"]) == 0
    assert "predicted  70.0 µs" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="125"):
        command.main([path, "--what-if"])
    assert "--what-if needs a value: --what-if WORLD" in capsys.readouterr().err


def test_a_trace_of_another_version(tmp_path, capsys):
    built = two_nodes()
    built.other["format"] = 99
    assert command.main([str(built.write(tmp_path)), "--what-if", "compute=0.5"]) == 1
    assert "has format 99" in capsys.readouterr().err


def test_a_replay_in_the_world_of_the_trace_has_its_times():
    trace = parse(two_nodes().text())
    world = world_of(trace, "compute=1")
    boxes = [track.box for track in trace.firsts()]
    assert Replay(pieces_of(trace, world), boxes, world).makespan == trace.end
