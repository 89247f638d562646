# SPDX-License-Identifier: MIT
"""Computing, waiting, transferring; parts of a trace; the numbers that follow, against times that are known."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import Builder, two_nodes
from spcomm.launch.supervise import stats
from spcomm.launch.supervise.stats import Spent
from spcomm.trace import matrix, raster, spans, summary, table, virtual
from spcomm.trace.counters import Counters
from spcomm.trace.errors import TraceError
from spcomm.trace.model import cut
from spcomm.trace.reader import parse


def read(built):
    return parse(built.text())


@pytest.mark.smoke
@pytest.mark.parametrize("start", [0, 123_456_789])
def test_times_of_two_nodes(start):
    found = summary.summarize(read(two_nodes(start=start)))
    times = [(t.name, t.life, t.computing, t.waiting, t.transferring) for t in found.nodes]
    assert times == [("0", 100, 60, 10, 30), ("1", 100, 20, 50, 30)]
    assert (found.elapsed, found.slowest) == (100, 0)
    assert found.imbalance == pytest.approx(60 / 40 - 1)
    assert found.efficiency == pytest.approx(0.4)
    assert found.lines == (("heat.py:6", 30), ("heat.py:9", 30))
    sent, received = found.traffic
    assert (sent.sent, sent.sent_bytes, sent.received, sent.received_bytes) == (1, 800, 0, 0)
    assert (received.sent, received.sent_bytes, received.received, received.received_bytes) == (0, 0, 1, 800)
    assert (found.contexts, found.unreceived) == ((), 0)


def test_text_says_the_same():
    text = summary.text(read(two_nodes()))
    for words in (
        "heat.py: 2 nodes, 100 µs",
        "0     60.0 µs  60.0 %        0 µs   0.0 %  10.0 µs  10.0 %  30.0 µs  30.0 %",
        "0        1  800 B         0    0 B",
        "parallel efficiency  40.0 % computing: 80.0 µs of 200 µs (2 nodes × 100 µs)",
        "load imbalance       50.0 % the slowest node computes this much more than the average\n",
        "slowest node         node 0 computes for 60.0 µs",
        "hottest line         heat.py:6 has the most waiting: 30.0 µs",
    ):
        assert words in text, text
    assert "clocks" not in text and "never received" not in text


def test_nodes_that_are_slow_in_turn_have_no_slowest_one():
    """The trace begins at 20 µs; then node 0 computes for 40 + 22 µs, and node 1 for 0 + 60."""
    built = Builder(2)
    built.call(0, 60, 80, "barrier").call(1, 20, 80, "barrier")
    built.call(0, 102, 160, "barrier").call(1, 140, 160, "barrier")
    found = summary.summarize(read(built))
    assert (found.slowest, found.imbalance) == (0, pytest.approx(62 / 61 - 1))
    text = summary.text(read(built))
    assert "slowest node   " not in text
    assert (
        "  load imbalance       1.6 % the slowest node computes this much more than the average; it may"
        in text
    )


def test_nodes_of_which_nothing_came_are_left_out():
    built = Builder(3).call(0, 50, 80).call(1, 20, 80)
    before = summary.summarize(read(built)).efficiency
    built.other["missing"] = [2]
    trace = read(built)
    found = summary.summarize(trace)
    assert found.slowest == 0 and found.efficiency > before
    work = [node.computing for node in found.nodes[:2]]
    assert (
        found.efficiency == sum(work) / 2 / trace.length
        and found.imbalance == max(work) / (sum(work) / 2) - 1
    )
    assert ("missing", "node 2") in [fact[:2] for fact in summary.gaps(trace)]
    assert "overwritten" not in summary.text(trace)
    with pytest.raises(TraceError, match="nothing of node 2"):
        virtual.replay(trace)


@pytest.mark.parametrize("missing", [2, [2], [-1], [True], ["0"], [0, 0, 0]])
def test_missing_nodes_that_cannot_be(missing):
    built = two_nodes()
    built.other["missing"] = missing
    with pytest.raises(TraceError, match="`missing`"):
        read(built)


def test_a_part():
    """From 20 to 80 µs: node 0 computes 20-30 and 40-70, node 1 40-60."""
    trace = read(two_nodes())
    part = cut(trace, 20, 80)
    times = [(t.life, t.computing, t.waiting, t.transferring) for t in summary.summarize(part).nodes]
    assert times == [(60, 40, 0, 20), (60, 20, 25, 15)]
    assert (part.begin, part.end, part.length) == (20, 80, 60)
    assert "60.0 µs, from 2e-05 s to 8e-05 s" in summary.headline(part)
    assert trace.tracks[0].calls[1].end == 100, "the trace itself stays as it is"


def test_messages_of_a_part_count_where_their_end_is():
    trace = read(two_nodes())
    sent, received = summary.summarize(cut(trace, 0, 34)).traffic
    assert (sent.sent, received.received) == (1, 0)
    sent, received = summary.summarize(cut(trace, 34, 100)).traffic
    assert (sent.sent, received.received) == (0, 1)
    assert cut(trace, 50, 60).messages == []
    assert cut(trace, min_bytes=801).messages == [] and len(cut(trace, min_bytes=800).messages) == 1


def test_lines_of_nested_calls():
    """A wait belongs to the innermost call around it that knows its line."""
    built = Builder(1).call(0, 0, 100, "outer", "a.py:1", [(10, 20)])
    built.call(0, 30, 60, "inner", "b.py:2", [(35, 40)]).call(0, 70, 80, "unknown", None, [(72, 79)])
    built.call(0, 100, 110, "next", None, [(101, 104)])
    trace = read(built)
    assert [wait.line for wait in trace.tracks[0].waits] == ["a.py:1", "b.py:2", "a.py:1", None]
    assert summary.summarize(trace).lines == (("a.py:1", 17), ("b.py:2", 5))
    assert spans.length(trace.tracks[0].transferring()) == 110 - 10 - 5 - 7 - 3


def test_lines_count_no_time_without_a_core():
    """They count what the column *waiting* counts."""
    built = Builder(1).call(0, 0, 100, "recv", "a.py:1", [(10, 50), (60, 90)])
    built.call(0, 100, 120, "recv", "b.py:2", [(100, 120)]).core(0, 30, 70)
    built.core(0, 95, 125)
    found = summary.summarize(read(built))
    assert found.lines == (("a.py:1", 20 + 20),)
    assert found.nodes[0].waiting == 40


def with_a_handler():
    """Node 0: recv 10-90, waits 20-30 and 70-80, handles a message 40-70, and calls send 50-60 there."""
    built = Builder(2).call(0, 10, 90, waits=[(20, 30), (70, 80)]).handler(0, 40, 70)
    return built.call(0, 50, 60, "send", "heat.py:4").call(1, 0, 100)


def test_handlers_compute():
    track = read(with_a_handler()).tracks[0]
    assert track.computing() == [(0, 10), (40, 50), (60, 70)]
    assert track.waiting() == [(20, 30), (70, 80)]
    assert track.transferring() == [(10, 20), (30, 40), (50, 60), (80, 90)]
    assert summary.summarize(read(with_a_handler())).nodes[0].computing == 30
    part = cut(read(with_a_handler()), 45, 65).tracks[0]
    assert (part.computing(), part.transferring()) == ([(45, 50), (60, 65)], [(50, 60)])
    rows = [row for row in with_a_handler().events if row["ph"] == "X"]
    counters = Counters([0, 0], 100)
    for rank in range(2):
        counters.node([row for row in rows if row["tid"] == rank])
    curve = [
        (row["ts"], row["args"]["number"]) for row in counters.rows() if row["name"] == "nodes computing"
    ]
    assert curve == [(0, 1), (10, 0), (40, 1), (50, 0), (60, 1), (70, 0)]


@pytest.mark.parametrize(
    ("inside", "outside", "found"),
    [
        ([], [], []),
        ([(0, 10)], [], [(0, 10)]),
        ([], [(0, 10)], []),
        ([(0, 10), (2, 4), (10, 12)], [(5, 6)], [(0, 5), (6, 12)]),
        ([(0, 10)], [(0, 10)], []),
        ([(0, 10), (3, 5)], [(2, 8), (4, 5)], [(0, 2), (3, 4), (8, 10)]),
        ([(2, 3)], [(0, 10)], [(2, 3)]),
        ([(0, 1), (5, 6)], [(2, 3)], [(0, 1), (5, 6)]),
    ],
)
def test_innermost(inside, outside, found):
    assert spans.innermost(inside, outside) == found


def test_threads_are_told_apart():
    built = two_nodes().call(1, 10, 20, "recv", "t.py:3", [(12, 18)], thread=1).call(1, 40, 50, thread=1)
    found = summary.summarize(read(built))
    assert [node.computing for node in found.nodes] == [60, 20], "a node is its first thread"
    [thread] = found.threads
    assert (thread.name, thread.life, thread.computing, thread.waiting) == ("1, thread 1", 40, 20, 6)
    assert ("t.py:3", 6) in found.lines and "1, thread 1" in summary.text(read(built))


def test_who_lost_events_begins_after_them():
    built = Builder(2).call(0, 0, 10).call(0, 90, 100).call(1, 60, 70).call(1, 90, 100)
    assert [node.life for node in summary.summarize(read(built)).nodes] == [100, 100], "it computes first"
    built.other["overwritten"] = [0, 5]
    assert [node.life for node in summary.summarize(read(built)).nodes] == [100, 40]
    assert "5 events, the oldest of node 1: the rest" in summary.text(read(built))


def test_a_node_that_starts_later_is_in_no_figure_before_that():
    built = Builder(2).call(0, 60, 100).starting(1, 40).call(1, 100, 100)
    trace = read(built)
    found = summary.summarize(trace)
    assert [(node.starting, node.life, node.computing) for node in found.nodes] == [
        (0, 100, 60),
        (40, 60, 60),
    ]
    assert (found.efficiency, found.imbalance) == (120 / 160, 0)
    part = cut(trace, 30, 90)
    assert [(track.starting, track.begin) for track in part.tracks] == [(0, 30), (10, 40)]
    assert trace.running() == [(0, 1), (40, 2), (60, 1), (100, 0)]


def test_times_are_those_of_the_statistics():
    """One run, in µs: node 0 sleeps 0-60, sends, and closes; node 1 starts at 20, waits, and then lacks a core."""
    built = Builder(2).call(0, 60, 61, "send").call(0, 70, 70, "close")
    built.starting(1, 20).call(1, 30, 61, "recv", waits=[(30, 61)]).core(1, 80, 92).call(1, 100, 100, "close")
    found = summary.summarize(read(built))
    # The supervisor's clock is 100 ahead: it forks the nodes at 0, and sees their ends at 190 and 210.
    names = ("started", "closed", "core_started", "core_closed", "waiting_since", "waited", "made")
    times = [(100, 170, 5, 5, 0, 0, 40), (120, 200, 8, 20, 0, 31, 40)]
    told = [{f"{name}_ns": time * 1000 for name, time in zip(names, node, strict=True)} for node in times]
    counted = stats.spent([(0, 190_000, 60_000), (0, 210_000, 70_000)], told)
    assert counted == [Spent(100_000, 70_000, 0, 0, 30_000), Spent(120_000, 37_000, 12_000, 31_000, 0)]
    for node, own in zip(found.nodes, counted, strict=True):
        busy = node.computing + node.transferring  # which the statistics cannot tell apart
        assert (own.computing, own.queued, own.waiting) == (
            1000 * busy,
            1000 * node.queued,
            1000 * node.waiting,
        )
    together = sum(counted, Spent())
    assert (found.present, found.efficiency) == (180, 106 / 180)
    assert together.efficiency == 107 / 180, "a microsecond of it transfers"


def test_the_efficiency_follows_from_what_is_printed():
    built = Builder(2).call(0, 60, 100).starting(1, 40).call(1, 100, 100)
    [line] = [line for line in summary.text(read(built)).splitlines() if "parallel efficiency" in line]
    assert line.split("  ")[-1].endswith(
        "75.0 % computing: 120 µs of 160 µs (2 nodes × 100 µs less 40.0 µs starting)"
    )


def test_waiting_for_a_core_is_in_no_other_state():
    """Each state loses what the kernel says: node 0 computes 0-20, is in a call 20-60, waits 30-50."""
    built = Builder(2).call(0, 20, 60, "recv", "t.py:1", [(30, 50)]).call(1, 0, 90).call(1, 100, 100)
    built.core(0, 10, 15).core(0, 22, 28).core(0, 45, 55).core(0, 70, 100)
    trace = read(built)
    node = summary.summarize(trace).nodes[0]
    assert (node.computing, node.queued, node.waiting, node.transferring) == (25, 51, 15, 9)
    assert node.computing + node.queued + node.waiting + node.transferring == node.life == 100
    assert "waiting for a core" in summary.text(trace)
    part = summary.summarize(cut(trace, 50, 80)).nodes[0]
    assert (part.computing, part.queued, part.waiting, part.transferring) == (10, 15, 0, 5)
    moments = [(0, 1), (10, 0), (15, 1), (20, 0), (60, 1), (70, 0), (90, 1), (100, 0)]
    assert trace.running() == moments, "nodes that compute have a core"


def test_nobody_computes_and_nothing_happens():
    for built in (Builder(3), Builder(2).call(0, 0, 10).call(1, 0, 10)):
        found = summary.summarize(read(built))
        assert found.imbalance is None and found.slowest is None and not found.efficiency
        assert summary.text(read(built)) and matrix.text(read(built))


def test_a_node_that_is_done_is_done():
    found = summary.summarize(read(Builder(2).call(0, 0, 10, "close").call(1, 90, 100, "close")))
    assert [(node.life, node.computing) for node in found.nodes] == [(10, 0), (100, 90)]


def test_messages_without_an_end():
    built = (
        two_nodes()
        .message(0, 1, 50, None)
        .message(1, 0, None, 60, bytes=3)
        .message(1, 1, 5, 6, context="collective")
    )
    found = summary.summarize(read(built))
    assert (found.unreceived, found.contexts) == (1, (("collective", 1),))
    text = summary.text(read(built))
    assert "never received       1 of 4 messages" in text
    assert "messages within      1 of 4 messages is of collective operations" in text


def test_messages_by_what_they_belong_to():
    """Only those of collective operations are called so."""
    built = two_nodes()
    for context in ("handled", "collective", "coordinated", "handled", "of tomorrow"):
        built.message(0, 1, 10, 20, context=context)
    trace = read(built)
    assert summary.summarize(trace).contexts == (
        ("collective", 1), ("coordinated", 1), ("handled", 2), ("of tomorrow", 1),
    )  # fmt: skip
    text = summary.text(trace)
    for words in (
        "messages within      1 of 6 messages is of collective operations\n",
        "coordinated          1 of 6 messages is of coordinated cycles\n",
        "for handlers         2 of 6 messages are for handlers\n",
        "other messages       1 of 6 messages is of another kind, 'of tomorrow'\n",
    ):
        assert words in text, text


def test_the_headline_names_the_part():
    trace = read(two_nodes())
    assert summary.headline(trace) == "heat.py: 2 nodes, 100 µs"
    assert summary.headline(cut(trace, None, 60)) == "heat.py: 2 nodes, 60.0 µs, from 0 s to 6e-05 s"
    assert summary.headline(cut(trace, 0, 100)) == summary.headline(trace), "all of it is no part"
    assert (
        summary.headline(cut(cut(trace, 20), 20, 100))
        == "heat.py: 2 nodes, 80.0 µs, from 2e-05 s to 0.0001 s"
    )


def test_one_is_not_many():
    built = Builder(1).call(0, 0, 10).message(0, 0, 1, None, bytes=1)
    built.other["overwritten"] = [1]
    texts = summary.text(read(built)) + matrix.text(read(built))
    assert not re.search(r"\b1 (nodes|messages|events|pairs|bytes)\b", texts), texts
    built = Builder(40).message(0, 1, 1, 2)
    assert "the only 1 pair with messages" in matrix.text(read(built))
    assert all(matrix.text(read(Builder(nodes))).endswith("\n\nno messages\n") for nodes in (2, 40))


def test_clocks_of_two_boxes_elsewhere():
    """Each is compared with the launcher's, so that between them both errors count."""
    built = Builder(3, boxes=3, map=[0, 1, 2])
    built.other["clock_error_us"] = [0.0, 2.5, 4.0]
    assert "clocks of boxes      ±6.50 µs between them" in summary.text(read(built))


@pytest.mark.parametrize(
    ("microseconds", "words"),
    [(0, "0 µs"), (-1e-9, "0 µs"), (0.8, "0.80 µs"), (9.996, "10.0 µs"), (99.96, "100 µs"), (999.4, "999 µs"),
     (999.6, "1.00 ms"), (999_960, "1.00 s"), (1.5e6, "1.50 s"), (3.6e9, "3600 s")],
)  # fmt: skip
def test_seconds(microseconds, words):
    assert table.seconds(microseconds) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (999_400, "999 kB"), (999_700, "1.00 MB"), (1500, "1.50 kB")],
)  # fmt: skip
def test_sizes(count, words):
    assert table.size(count) == words


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((1, 1, 1), ["33.4 %", "33.3 %", "33.3 %"]),
        ((10_000, 4, 0), [">99.9 %", "<0.1 %", "0.0 %"]),
        ((7, 0, 0), ["100.0 %", "0.0 %", "0.0 %"]),
        ((99_996, 4, 0), [">99.9 %", "<0.1 %", "0.0 %"]),
        ((0, 0, 0), ["-", "-", "-"]),
    ],
)
def test_shares(parts, words):
    assert table.shares(parts, sum(parts)) == words


@given(st.lists(st.integers(0, 10**6), min_size=3, max_size=3).filter(any))
def test_shares_add_up(parts):
    found = table.shares(parts, sum(parts))
    assert all(text[0] in "<>" for text, part in zip(found, parts, strict=True)
               if part and text.strip("<>") in ("0.0 %", "100.0 %") and part != sum(parts))  # fmt: skip
    if not any(text[0] in "<>" for text in found):
        assert sum(round(10 * float(text[:-2])) for text in found) == 1000


def test_an_imbalance_is_no_share_of_a_whole():
    found = [summary._excess(value) for value in (-1e-17, 0.9999, 1.0, 2.5)]
    assert found == ["0.0 %", "100.0 %", "100.0 %", "250.0 %"]


def test_the_tables_fit_into_80_columns():
    built = Builder(12)
    for node in range(12):
        built.call(node, 123456.7, 345678.9, "recv", "t.py:1", [(200000, 300000)]).call(node, 999999, 999999)
    lines = summary.text(read(built)).splitlines()
    assert max(len(line) for line in lines[1 : 1 + 2 * 14]) <= 80


def test_messages_between_boxes_are_counted():
    built = Builder(3, boxes=2, map=[0, 0, 1]).message(0, 1, 1, 2, bytes=5)
    assert "between boxes" not in summary.text(read(built))
    built.message(1, 2, 3, 4, bytes=100).message(2, 0, 5, None, bytes=20)
    assert "between boxes        2 of 3 messages, 120 B, by way of gateways" in summary.text(read(built))


def test_matrix():
    built = two_nodes().message(1, 0, 50, 55, bytes=1500).message(1, 0, 51, None, bytes=1500)
    assert matrix.matrix(read(built)) == ([[0, 1], [2, 0]], [[0, 800], [3000, 0]])
    lines = matrix.text(read(built)).splitlines()
    assert [line.split() for line in lines[2:7]] == [
        ["messages"], ["from\\to", "0", "1", "all"], ["0", ".", "1", "1"], ["1", "2", ".", "2"], ["all", "2", "1", "3"],
    ]  # fmt: skip
    assert "1        3.00 kB      .  3.00 kB" in matrix.text(read(built))


def test_matrix_of_many_nodes_is_its_busiest_pairs():
    built = Builder(40)
    for rank in range(40):
        built.message(rank, (rank + 1) % 40, rank, rank + 1, bytes=10 * rank)
    lines = matrix.text(read(built)).splitlines()
    assert lines[2].startswith("the 32 busiest of 40 pairs")
    assert lines[4].split() == ["39", "0", "1", "390", "B"] and len(lines) == 4 + 32


def test_running():
    trace = read(two_nodes())
    # Node 0 computes 0-30, 40-70; node 1 40-60.
    assert trace.running() == [(0, 1), (30, 0), (40, 2), (60, 1), (70, 0)]
    assert read(Builder(1).call(0, 0, 10).call(0, 20, 30)).running() == [(0, 0), (10, 1), (20, 0)]


pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted).map(tuple), max_size=12)


def moments(found):
    """The unit intervals that are covered: the oracle of all that spans do."""
    return {at for begin, end in found for at in range(begin, end)}


@given(pairs, pairs)
def test_spans_are_sets_of_moments(some, others):
    a, b = spans.union(some), spans.union(others)
    assert moments(a) == moments(some) and spans.length(a) == len(moments(some))
    assert all(first[1] < second[0] for first, second in itertools.pairwise(a)), "disjoint, and sorted"
    left = spans.without(a, b)
    assert moments(left) == moments(some) - moments(others)
    assert left == spans.union(left), "disjoint, sorted, none without length"
    counts = dict.fromkeys(range(60), 0)
    for at in (*moments(a), *moments(b)):
        counts[at] += 1
    steps = spans.steps([a, b])
    for at in range(60):
        assert next((count for since, count in reversed(steps) if since <= at), 0) == counts[at]


@given(pairs, st.integers(1, 70))
def test_coverage_of_columns_is_the_length_in_them(some, columns):
    covered = raster.coverage(spans.union(some), 0, 60 / columns, columns)
    assert sum(covered) * 60 / columns == pytest.approx(spans.length(spans.union(some)))
    assert all(-1e-9 <= cell <= 1 + 1e-9 for cell in covered)
    if columns == 60:
        assert covered == [float(at in moments(some)) for at in range(60)]


# One node's life: for each step how long it computes, how long it is in a call, how much of that it waits.
lives = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=8)


@given(st.lists(lives, min_size=1, max_size=4), st.integers(0, 40), st.integers(1, 40))
def test_states_of_random_lives_add_up(nodes, begin, width):
    built = Builder(len(nodes), start=1000)
    expected, ends = [], []
    for rank, life in enumerate(nodes):
        built.call(rank, 0, 1, "startup")
        now, states = 1, ["t"]
        for computes, calls, waits in life:
            states += "c" * computes + "w" * min(waits, calls) + "t" * max(0, calls - waits)
            now += computes
            built.call(rank, now, now + calls, waits=[(now, now + min(waits, calls))] if waits else [])
            now += calls
        expected.append("".join(states))
        ends.append(now)
    trace = read(built)
    assert trace.length == max(ends)
    check(trace, expected)
    begin = min(begin, max(ends) - 1)
    end = min(begin + width, max(ends))
    check(cut(trace, begin, end), [states[begin:end] for states in expected])


def check(trace, expected):
    found = [(t.computing, t.transferring, t.waiting) for t in summary.summarize(trace).nodes]
    assert found == [tuple(states.count(kind) for kind in "ctw") for states in expected]
    assert sum(count * length for count, length in stretches(trace)) == sum(
        states.count("c") for states in expected
    )


def stretches(trace):
    """(how many compute, for how long)"""
    steps = [*trace.running(), (trace.end, 0)]
    return [(count, then - since) for (since, count), (then, _next) in itertools.pairwise(steps)]
