# SPDX-License-Identifier: MIT
"""Runs in another world: predicted from a trace, and made anew in that world by a second model, which must agree."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import Builder, two_nodes
from spcomm.model.loggp import Estimate, Fit, LogGP
from spcomm.trace import command
from spcomm.trace.errors import TraceError
from spcomm.trace.model import cut
from spcomm.trace.reader import parse
from spcomm.trace.what_if import Link, Replay, pieces_of, predict, text, worlds

exactly = pytest.approx
# Sums of them have no rounding, so that no call of a made-up trace begins before the one before it has ended.
INSIDE, BETWEEN = Link(0.5, 0.125), Link(32.0, 0.0)
NARROW = Link(32.0, 0.25, 4.0)  # messages wait for each other


def fit_of(inside, between):
    def loggp(link):
        numbers = (0.0, 0.0, 1000 * link.latency, 1000 * link.gap, 1000 * link.byte)
        return LogGP(*(Estimate(value, value, value) for value in numbers))

    return Fit({"memory": loggp(inside), "tcp": loggp(between)})


FIT = fit_of(INSIDE, BETWEEN)


class Run:
    """A program that runs in a world of its own making: every call takes 2 µs, and waits for what it needs."""

    def __init__(self, nodes, boxes=None, inside=INSIDE, between=BETWEEN, compute=None, calls=1.0):
        self.nodes = nodes
        self.boxes = boxes or [0] * nodes
        self.inside, self.between, self.calls = inside, between, calls
        self.factors = compute or [1.0] * nodes
        self.built = Builder(nodes, max(self.boxes) + 1, self.boxes)
        self.clock = [0.0] * nodes
        self.under_way = []
        self.links = {}  # by boxes: busy until then
        for rank in range(nodes):
            self.built.call(rank, 0, 0, "layout")  # the life of all begins here

    def message(self, source, dest, size):
        return (self.inside if self.boxes[source] == self.boxes[dest] else self.between).time(size)

    def turn(self, source, dest, size, now):
        """Return when a message gets the link. Sends of a box happen in the order in which they are made."""
        pair = self.boxes[source], self.boxes[dest]
        if pair[0] == pair[1]:
            return now
        begin = max(now, self.links.get(pair, 0.0))
        self.links[pair] = begin + self.between.gap + size * self.between.byte
        return begin

    def work(self, rank, length, is_declared):
        begin, self.clock[rank] = self.clock[rank], self.clock[rank] + length * self.factors[rank]
        if is_declared:
            self.built.call(rank, begin, self.clock[rank], "work", "a.py:1", cost=length)

    def send(self, source, dest, size):
        begin = self.clock[source]
        sent = begin + self.calls
        self.clock[source] = begin + 2 * self.calls
        self.built.call(source, begin, self.clock[source], "send", "a.py:2")
        self.under_way.append((source, dest, sent, size, self.turn(source, dest, size, sent)))

    def receive(self, which):
        source, dest, sent, size, leaves = self.under_way.pop(which)
        begin = self.clock[dest]
        waits_from = begin + self.calls
        arrived = max(waits_from, leaves + self.message(source, dest, size))
        self.clock[dest] = arrived + self.calls
        waits = [(waits_from, arrived)] if arrived > waits_from else []
        self.built.call(dest, begin, self.clock[dest], "recv", "a.py:3", waits)
        self.built.message(source, dest, sent, arrived, size)

    def together(self, name, root):
        begun = list(self.clock)
        for rank in range(self.nodes):
            whom = [root] if name == "bcast" else range(self.nodes)
            ways = [self.message(other, rank, 0) for other in whom if other != rank]
            waits_from = begun[rank] + self.calls
            end = max(waits_from, max(begun[other] for other in whom) + max(ways, default=0.0))
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
    """(nodes, recorded in boxes of so many, links between them, the settings, the same for `Run`).

    Where messages wait for links, a box has one node, so that the order of its sends is known.
    """
    nodes, is_narrow = draw(st.integers(1, 6)), draw(st.booleans())
    per_boxes = st.sampled_from([1, 6]) if is_narrow else st.integers(1, 6)
    recorded_per_box, per_box = draw(per_boxes), draw(per_boxes)
    recorded = [rank // recorded_per_box for rank in range(nodes)]
    boxes = [rank // per_box for rank in range(nodes)]
    latency = draw(st.sampled_from([0.0, 2.0, 500.0]))
    byte, gap = (
        draw(st.sampled_from([0.0, 0.5, 30.0])) if is_narrow or max(boxes) == 0 else 0.0 for _ in "bg"
    )
    compute, slow, calls = (draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])) for _factor in range(3))
    changed, between = Link(latency, byte, gap), NARROW if is_narrow else BETWEEN
    is_apart = len(set(boxes)) > 1
    words = f"nodes-per-box={per_box},latency={latency}us,byte={byte}us,gap={gap}us,"
    words += f"compute={compute},compute-0={slow},calls={calls}"
    world = {
        "boxes": boxes,
        "inside": INSIDE if is_apart else changed,
        "between": changed if is_apart else between,
        "compute": [compute * slow] + [compute] * (nodes - 1),
        "calls": calls,
    }
    return nodes, recorded, between, words, world


@pytest.mark.smoke
@given(other_worlds(), st.integers(0, 60), st.integers())
def test_it_predicts_the_run_that_takes_place_there(case, steps, seed):
    nodes, boxes, between, words, world = case
    there = Run(nodes, **world).run(seed, steps)
    here = Run(nodes, boxes, between=between).run(seed, steps)
    found = predict(here.trace(), words, fit_of(INSIDE, between))
    assert found.predicted == exactly(max(there.clock), abs=1e-6)
    assert [track.end for track in found.trace.tracks] == exactly(there.clock, abs=1e-6)
    # Calls that take no time share their moments with others, and a trace does not tell their order.
    tracks = zip(found.trace.tracks, there.trace().tracks, strict=True) if world["calls"] else ()
    for track, same in tracks:
        for name in ("work", "send", "recv", "barrier", "allreduce", "bcast"):
            here, made = (
                [call for call in calls if call.name == name] for calls in (track.calls, same.calls)
            )
            assert sorted(call.begin for call in here) == exactly(
                sorted(call.begin for call in made), abs=1e-6
            )
            assert sorted(call.end for call in here) == exactly(sorted(call.end for call in made), abs=1e-6)
    assert sum(took for _key, took, _ranks, _free in found.path) <= found.predicted + 1e-6
    assert found.unexplained == 0


@given(st.integers(1, 6), st.integers(0, 80), st.integers(), st.booleans())
def test_a_world_without_a_difference_repeats_the_run(nodes, steps, seed, is_apart):
    """Nor with one core for each, where no gateways use them; nor if the model's times are not those of the run."""
    boxes = [rank % 2 for rank in range(nodes)]
    run = Run(nodes, boxes if is_apart else None, inside=BETWEEN, between=NARROW, calls=3.5)
    trace = run.run(seed, steps).trace()
    found = predict(
        trace, "compute=1" if is_apart else f"cores={nodes}", fit_of(INSIDE, Link(9.0, 0.125, 7.0))
    )
    assert found.predicted == exactly(trace.end)
    assert found.trace.messages == [
        type(m)(
            m.source,
            m.dest,
            m.tag,
            m.bytes,
            m.context,
            exactly(m.sent),
            exactly(m.received),
            m.sender,
            m.receiver,
        )
        for m in trace.messages
    ]


def test_the_critical_path_and_what_its_parts_are_worth():
    """Node 0 works 100, sends to node 1, which has worked 70, and then works 50 more."""
    run = Run(2)
    run.work(0, 100, True)
    run.work(1, 70, False)
    run.send(0, 1, 8)
    run.receive(0)
    run.work(1, 50, True)
    found = predict(run.trace(), "latency=10us", FIT)
    latency = 10 + 8 * INSIDE.byte
    assert found.predicted == exactly(100 + 1 + latency + 1 + 50)
    parts = {key: (took, ranks, free) for key, took, ranks, free in found.path}
    assert parts["work", "work", "a.py:1"] == (exactly(150), [0, 1], exactly(70 + 1 + 1))
    assert parts["message", "recv", "a.py:3"] == (exactly(latency), [1], exactly(152))
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
    found = predict(run.trace(), "cores=1", FIT)
    assert [track.end for track in found.trace.tracks] == [exactly(90 + INSIDE.latency + 10), exactly(90)]


def test_boxes_have_cores_of_their_own():
    run = Run(4)
    for rank in range(4):
        run.work(rank, 100, True)
    assert predict(run.trace(), "cores=1,nodes-per-box=2").predicted == exactly(200)


def crossing(messages, size, calls=0.0):
    """Nodes 0, 1, … send one message each, to nodes of the second half."""
    run = Run(2 * messages, calls=calls)
    for rank in range(messages):
        run.send(rank, messages + rank, size)
    for _message in range(messages):
        run.receive(0)
    return run.trace()


@pytest.mark.parametrize("messages", [1, 2, 3])
def test_messages_share_the_link_of_their_boxes(messages):
    """One takes 1000 µs of bytes; two that use the link at once take twice as long, three three times."""
    world = "latency=0us,byte=1us,gap=0us,nodes-per-box="
    found = predict(crossing(messages, 1000), f"{world}{messages}", FIT)
    assert found.predicted == exactly(1000 * messages)
    apart = predict(crossing(messages, 1000), f"{world}1", FIT)  # each has a link of its own
    assert apart.predicted == exactly(1000)


@pytest.mark.parametrize(
    ("messages", "words", "end"),
    [
        (
            1,
            "machine-cores=1,gap=1us",
            100,
        ),  # alone: the time of the link, which contains that of the gateways
        (1, "cores=1,gap=1us", 100),
        (3, "cores=1,gap=1us", 102),  # they wait for each other at the link
        (3, "cores=1,gap=5us", 110),
        (9, "cores=1,gap=0us,gateway=50us", 108),  # and for gateways that take 1 µs more for each
    ],
)
def test_gateways_pass_messages_one_after_another(messages, words, end):
    world = f"nodes-per-box={messages},latency=100us,byte=0us"
    found = predict(crossing(messages, 0), f"{world},{words}", FIT)
    assert found.predicted == exactly(end)


def test_gateways_use_the_cores_of_the_nodes():
    """Node 0 sends and computes 100 µs on the core of its gateway, which takes 10 µs: both have half a core."""
    run = Run(2, calls=0.0)
    run.send(0, 1, 0)
    run.work(0, 100, True)
    run.receive(0)
    world = "nodes-per-box=1,latency=20us,byte=0us,gateway=10us"
    ends = {
        words: [track.end for track in predict(run.trace(), world + words, FIT).trace.tracks]
        for words in ("", ",cores=1", ",cores=2", ",machine-cores=1")
    }
    assert ends[""] == ends[",cores=2"] == exactly([100, 20])
    assert ends[",cores=1"] == exactly([110, 20 + 10])
    assert ends[",machine-cores=1"] == exactly([120, 40])  # two gateways and the server, 20/3 µs each


def test_waits_without_a_cause_keep_their_length():
    built = Builder(1).call(0, 0, 50, "send", "a.py:7", [(10, 40)])
    found = predict(parse(built.text()), "calls=0,compute=0")
    assert (found.predicted, found.unexplained) == (30, 30)
    assert "30.0 µs of waiting, over all nodes, has no recorded cause" in text("calls=0", found)


def test_times_of_a_fit():
    fit = fit_of(Link(1.0, 0.001), Link(50.0, 0.002))
    _recorded, world = worlds(parse(two_nodes().text()), "nodes-per-box=1,byte=3ns", fit)
    assert world.message(0, 1, 1000) == exactly(50 + 3)
    assert world.message(1, 1, 1000) == exactly(1 + 1)


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
        ("", "not a setting such as latency="),
        ("latncy=3us", "did you mean latency=?"),
        ("latency=3", "latency takes a time such as 500ns or 10us"),
        ("compute=-1", "compute takes a number"),
        ("compute=inf", "compute takes a number"),
        ("nodes-per-box=0", "nodes-per-box takes a whole number from 1 on"),
        ("cores=1.5", "cores takes a whole number from 1 on"),
        ("compute-2=3", "compute-2=, and this run has nodes 0 to 1"),
        ("compute-x=3", "compute-x=, and this run has nodes 0 to 1"),
        ("compute=1,compute=2", "compute twice"),
        ("cores=2,machine-cores=2", "give one of them"),
    ],
)
def test_settings_that_make_no_sense(words, said):
    assert said in refused(two_nodes(), words)


def test_the_command(tmp_path, capsys):
    path = str(two_nodes().write(tmp_path))
    assert command.main([path, "--what-if", "compute=0.5", "--html"]) == 0
    assert "predicted  70.0 µs" in capsys.readouterr().out
    assert (tmp_path / "t.html").exists()
    assert command.main([path, "--what-if=compute=0.5", "--fit", str(tmp_path / "none.json")]) == 1
    assert "cannot read" in capsys.readouterr().err
    assert command.main([path, "--fit", "f.json"]) == 125
    assert command.main([path, "--what-if"]) == 125
    assert "needs a world" in capsys.readouterr().err


@pytest.mark.leaves("matplotlib keeps the files of its fonts open")
def test_the_picture_of_both(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path = str(two_nodes().write(tmp_path))
    assert command.main([path, "--what-if", "latency=1ms", "--png=" + str(tmp_path / "both.svg")]) == 0
    assert "latency=1ms" in capsys.readouterr().out
    assert "recorded" in (tmp_path / "both.svg").read_text() or (tmp_path / "both.svg").stat().st_size > 10000


def test_a_trace_of_another_version(tmp_path, capsys):
    built = two_nodes()
    built.other["format"] = 99
    assert command.main([str(built.write(tmp_path)), "--what-if", "compute=0.5"]) == 1
    assert "has format 99" in capsys.readouterr().err


def test_a_replay_in_the_world_of_the_trace_has_its_times():
    trace = parse(two_nodes().text())
    recorded, _world = worlds(trace, "compute=1")
    assert Replay(pieces_of(trace, recorded), recorded, recorded).makespan == trace.end
