# SPDX-License-Identifier: MIT
"""The timeline of a run that goes on: its pieces together are the page of the whole trace, whenever one looks."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recorded import Group, call, event
from spcomm._core import segments, traces
from spcomm._core.errors import SpcommError
from spcomm.trace import live, page, reader, writing

KINDS = ("calls", "waits", "regions", "queued", "handling")


class Recording:
    """The rings of a run's nodes, in which more and more events are; and the run's clock."""

    def __init__(self, *nodes):
        self.nodes = nodes
        self.now_us = 0

    def read(self, _fd, rank, after, most):
        known = [found for found in self.nodes[rank] if found.time_ns <= self.now_us * 1000]
        return known[max(after, len(known) - most) :], max(after, len(known))

    def feed(self):
        places = [0] * len(self.nodes)
        return live.Feed(dict.fromkeys(range(len(places)), 0), places, lambda: self.now_us * 1000, self.read)


class Page:
    """The pieces as live.js puts them together."""

    def __init__(self):
        self.texts, self.messages, self.tracks, self.running = [], [], {}, []

    def add(self, piece):
        self.texts += piece["texts"]
        self.until = piece["until"]
        self.messages += zip(*piece["messages"], strict=True)
        self.running += zip(*piece["running"], strict=True)
        for found in piece["tracks"]:
            track = self.tracks.setdefault(found["number"], {kind: [] for kind in (*KINDS, "shares")})
            track.update(about=found, open=found["open"])
            for kind in (*KINDS, "shares"):
                track[kind] += zip(*found.get(kind, []), strict=True)

    def spans(self, number, kind):
        track = self.tracks[number]
        return sorted([*track[kind], *zip(*track["open"].get(kind, []), strict=True)])


def whole(nodes, folder):
    """The data of the page of the trace that is written of the same records."""
    path = str(folder / "t.json")
    assert writing.write(path, Group(*nodes), "heat.py", "0.1.0") is None
    return page.content(reader.read(path))


def named(rows, texts):
    return [
        tuple(texts[value] if at in (2, 3) and value >= 0 else value for at, value in enumerate(row))
        for row in rows
    ]


def run_of(draws):
    """Two nodes that call, wait, are without a core, handle and exchange messages, one step after the other."""
    nodes, time, number = ([event(traces.START, 0)], [event(traces.START, 3)]), 5, 0
    for rank, kind, length in draws:
        mine, end = nodes[rank], time + length
        if kind == "wait":
            mine += [event(traces.CALL, time, "recv", line="a.py:1"), event(traces.WAIT, time + 1)]
            mine += [event(traces.GO_ON, end - 1), event(traces.RETURN, end)]
        elif kind == "region":
            mine += [
                event(traces.ENTER, time, "step"),
                *call(time + 1, time + 2, "send"),
                event(traces.LEAVE, end, "step"),
            ]
        elif kind == "core":
            mine.append(event(traces.CORE, end, bytes=1000 * (length - 1)))
        elif kind == "work":
            mine += [
                event(traces.CALL, time, "work"),
                event(traces.WORK, time + 1, bytes=0),
                event(traces.RETURN, end),
            ]
        else:
            number += 1
            mine.append(event(traces.SEND, time, peer=1 - rank, number=number))
            nodes[1 - rank].append(event(traces.RECEIVE, end - 1, peer=rank, number=number))
        time = end + 1
    return nodes, time


STEPS = st.tuples(
    st.integers(0, 1), st.sampled_from(["wait", "region", "core", "work", "message"]), st.integers(4, 9)
)


@given(st.lists(STEPS, min_size=1, max_size=12), st.sets(st.integers(1, 99), max_size=5))
def test_pieces_are_the_page_of_the_trace(tmp_path_factory, draws, shares):
    nodes, end = run_of(draws)
    recording, shown = Recording(*nodes), Page()
    feed = recording.feed()
    for now in sorted({end * share // 100 for share in shares} | {end}):
        recording.now_us = now
        shown.add(feed.look())
    expected = whole(nodes, tmp_path_factory.mktemp("trace"))
    for number, track in enumerate(expected["tracks"]):
        for kind in ("calls", "waits", "regions", "queued"):
            there = named(zip(*track[kind], strict=True), expected["texts"])
            # Lines of nodes that are made elsewhere are not there: the file has no others.
            assert named(shown.spans(number, kind), shown.texts) == sorted(there), kind
        assert shown.tracks[number]["about"]["starting"] == track["starting"]
    there = [row[:6] for row in zip(*expected["messages"], strict=True) if None not in row[:2]]
    assert sorted(row[:6] for row in shown.messages) == sorted(there)


def steps_of(rows, end):
    """The time for which so many nodes compute."""
    rows = sorted(rows)
    found = {}
    for (moment, count), (following, _count) in zip(rows, [*rows[1:], (end, 0)], strict=True):
        found[count] = found.get(count, 0) + following - moment
    return {count: time for count, time in found.items() if time}


def test_the_curve_is_that_of_the_page(tmp_path):
    nodes = [event(traces.START, 0), *call(10, 40)], [event(traces.START, 5), *call(20, 30), *call(35, 50)]
    recording, shown = Recording(*nodes), Page()
    feed = recording.feed()
    for recording.now_us in (1, 15, 22, 38, 49):
        shown.add(feed.look({0} if recording.now_us > 40 else ()))
    expected = whole(nodes, tmp_path)
    found = [(moment, count) for moment, count in shown.running if moment < 49_000]
    assert steps_of(found, 49_000) == steps_of(zip(*expected["running"], strict=True), 49_000)


def test_a_call_that_goes_on_is_open_until_it_returns():
    recording = Recording([event(traces.CALL, 10, "recv"), event(traces.RETURN, 90)])
    feed, shown = recording.feed(), Page()
    for recording.now_us, is_open in ((20, 1), (50, 1), (95, 0), (99, 0)):
        shown.add(feed.look())
        [(begin, end, name, _line, open, _cost)] = shown.spans(0, "calls")
        assert (begin, end, shown.texts[name]) == (0, min(recording.now_us - 10, 80) * 1000, "recv")
        assert open == is_open == len(shown.tracks[0]["open"]["calls"] and [1])


def test_nothing_recorded_is_nothing_to_show():
    recording = Recording([event(traces.START, 10)])
    feed = recording.feed()
    assert feed.look() is None
    recording.now_us = 10
    assert feed.look()["until"] == 1


def calls(count, length=10):
    """Calls without a pause, each of which waits for half of its time."""
    found = []
    for at in range(0, count * length, length):
        found += [event(traces.CALL, at, "recv"), event(traces.WAIT, at + length // 2)]
        found += [event(traces.GO_ON, at + length), event(traces.RETURN, at + length)]
    return found


@pytest.mark.parametrize("count", [100, 5000])
def test_many_calls_are_shown_as_shares(count):
    """Fewer than a look reads, and more: then the latest ones stand for all."""
    recording = Recording(calls(count))
    feed, shown = recording.feed(), Page()
    recording.now_us = count * 10
    shown.add(feed.look())
    assert shown.spans(0, "calls") == [] and len(shown.tracks[0]["shares"]) == 8
    for begin, end, transferring, waiting, queued in shown.tracks[0]["shares"]:
        assert begin < end and waiting == pytest.approx(0.5, abs=0.05)
        assert (transferring, queued) == (pytest.approx(0.5, abs=0.05), 0)
    assert all(count == pytest.approx(0, abs=0.01) for _moment, count in shown.running)
    assert shown.tracks[0]["shares"][0][0] == 0 and shown.tracks[0]["shares"][-1][1] == shown.until


def test_spans_do_not_overlap_the_shares_before_them():
    events = [*calls(100), event(traces.CALL, 1000, "barrier"), event(traces.RETURN, 2000)]
    recording, shown = Recording(events), Page()
    feed = recording.feed()
    for recording.now_us in (1500, 2500):
        shown.add(feed.look())
    [(begin, end, *_rest)] = shown.spans(0, "calls")
    assert (begin, end) == (shown.tracks[0]["shares"][-1][1], 2_000_000)


def test_what_began_before_a_gap_is_forgotten():
    """Its end may be among the events that were left out."""
    events = [event(traces.CALL, 1, "barrier"), *calls(5000)[1:]]
    recording, shown = Recording(events), Page()
    feed = recording.feed()
    for recording.now_us in (1, 50_000, 60_000):
        shown.add(feed.look())
    assert shown.spans(0, "calls") == []


def test_a_run_without_a_trace_has_no_events():
    with contextlib.closing(segments.Segment(1)) as segment:
        assert traces.read_after(segment.fd, 0, 0, 10) == ([], 0)
    with pytest.raises(SpcommError, match="no segment"):
        traces.read_after(0, 0, 0, 10)
