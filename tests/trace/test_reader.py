# SPDX-License-Identifier: MIT
"""A file that is no trace is refused with one sentence; a trace is read whatever else is in it."""

import json
import tracemalloc

import pytest

from builder import Builder, two_nodes
from spcomm.trace.errors import TraceError
from spcomm.trace.reader import parse, read


def complaint(text):
    with pytest.raises(TraceError) as caught:
        parse(text, "t.json")
    words = str(caught.value)
    assert "\n" not in words and len(words) < 400, words
    assert words.startswith("t.json ") and ("spcomm run --trace" in words or "once more" in words), words
    return words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("hello", "is not JSON (line 1, column 1"),
        ("[1, 2]", "no list `traceEvents`"),
        ("3", "no list `traceEvents`"),
        ('{"traceEvents": {}}', "no list `traceEvents`"),
        ('{"traceEvents": []}', "trace of something else"),
        ('{"traceEvents": [], "otherData": {"version": "V8"}}', "trace of something else"),
        ('{"traceEvents": [NaN]}', "has NaN for a number"),
        ("[" * 100_000, "nested deeper"),
        ("1" * 10_000, "thousands of digits"),
    ],
)
def test_no_traces(text, said):
    assert said in complaint(text)


def test_cut_off_anywhere():
    whole = two_nodes().text()
    for length in range(20, len(whole) - 1, 7):
        assert f"is cut off after {len(whole[:length])} characters" in complaint(whole[:length]) or whole[
            :length
        ].endswith("}")
    assert parse(whole).nodes == 2


@pytest.mark.parametrize("number", [2, 0, "1", None, True, 1.5, [1]])
def test_other_formats(number):
    built = two_nodes()
    built.other["format"] = number
    words = complaint(built.text())
    assert f"has format {number!r}, written by spcomm '0.1.0'" in words and "reads format 1" in words


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("nodes", None), ("nodes", 0), ("nodes", "2"), ("nodes", 10**9), ("nodes", True), ("nodes", 3),
        ("boxes", 0), ("boxes", 1.0), ("map", [0]), ("map", [0, 1]), ("map", ["0", 0]), ("map", None),
        ("overwritten", [0]), ("overwritten", [0, -1]), ("overwritten", [0, 0.5]), ("clock_error_us", []),
        ("clock_error_us", [-1.0]), ("clock_error_us", ["0"]), ("clock_error_us", [10**400]),
    ],
)  # fmt: skip
def test_what_is_said_of_the_run_is_checked(key, value):
    built = two_nodes()
    built.other[key] = value
    assert "(`otherData`: " in complaint(built.text())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ts": None}, "its `ts` is None, not a number of microseconds"),
        ({"ts": "5"}, "its `ts` is '5'"),
        ({"ts": 10**400}, "its `ts` is 1000"),
        ({"dur": 1e300}, "its `dur` is 1e+300"),
        ({"dur": -1}, "it lasts -1"),
        ({"dur": True}, "its `dur` is True"),
        ({"tid": 2}, "it is of track 2, which none of 2 nodes has"),
        ({"tid": -1}, "track -1"),
        ({"tid": 1026}, "track 1026"),
        ({"tid": "0"}, "track '0'"),
        ({"tid": [0]}, "track [0]"),
        ({"tid": [{"a": {"b": ["long"] * 9}}] * 9}, "track [{'a': {'b': ['long', 'long',"),
        ({"args": []}, "its `args` are no object"),
    ],
)
def test_calls_are_checked(change, said):
    built = Builder(2).call(0, 0, 10)
    built.events[-1].update(change)
    assert said in complaint(built.text())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": 5}, "id is 5"),
        ({"args": None}, "without `args`"),
        ({"args": {"from": 0, "to": 1, "tag": 0}}, "its `bytes` is None"),
        ({"args": {"from": 0, "to": 2, "tag": 0, "bytes": 1}}, "from node 0 to 2"),
        ({"args": {"from": 0, "to": 1, "tag": 0, "bytes": -1}}, "of -1 bytes"),
        ({"ts": None}, "its `ts`"),
    ],
)
def test_messages_are_checked(change, said):
    built = Builder(2).message(0, 1, 5, None)
    built.events[-1].update(change)
    assert said in complaint(built.text())


def test_events_that_are_none():
    built = Builder(2)
    built.events.append(7)
    assert f"event {len(built.events) - 1}: it is no object" in complaint(built.text())


def test_files(tmp_path):
    for path, said in ((tmp_path / "none.json", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(TraceError, match=f"^cannot read .*{said}.*spcomm run --trace"):
            read(path)
    (tmp_path / "binary").write_bytes(b"\x1f\x8b\x08\xff\xfe")
    with pytest.raises(TraceError, match=r"is not text, and a trace is JSON"):
        read(tmp_path / "binary")


def test_all_of_it_is_read(tmp_path):
    built = two_nodes(boxes=2, map=[0, 1], program="späte.py", start=500)
    built.call(1, 110, 150, "recv", "x.py:1", open=True).region(0, 0, 30, "interior").region(0, 2, 5, "inner")
    built.call(0, 50, 60, thread=2)
    built.events.append({"ph": "C", "name": "a counter", "ts": 3, "pid": 0, "args": {}})  # of somebody else
    trace = read(built.write(tmp_path))
    assert (trace.program, trace.version, trace.nodes, trace.boxes) == ("späte.py", "0.1.0", 2, 2)
    assert (trace.begin, trace.end) == (0, 150)
    assert [(track.name, track.box, track.number) for track in trace.tracks] == [
        ("0", 0, 0), ("0, thread 2", 0, 2048), ("1", 1, 1),
    ]  # fmt: skip
    assert [call.name for call in trace.tracks[2].calls if call.open] == ["recv"]
    assert [region.name for region in trace.tracks[0].regions] == ["interior", "inner"]
    [message] = trace.messages
    assert (message.source, message.dest, message.tag) == (0, 1, 7)
    assert (message.bytes, message.context) == (800, "user")
    assert (message.sent, message.received, message.sender, message.receiver) == (32, 36, 0, 1)


def test_events_in_any_order():
    built = two_nodes().message(1, 0, 60, 70)
    turned = built.content() | {"traceEvents": built.events[::-1]}
    assert parse(json.dumps(turned)) == parse(built.text())


def as_written(content):
    """As `spcomm run --trace` puts it into the file."""
    events, about = json.dumps(content["traceEvents"]), json.dumps(content["otherData"])
    return f'{{"traceEvents": {events}, "displayTimeUnit": "ns", "otherData": {about}}}\n'


def peak(text):
    tracemalloc.start()
    try:
        parse(text)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_is_as_it_was_written_is_read_event_by_event():
    """Into less than half of the memory that all events take as Python has them. Line breaks make it something else."""
    built = two_nodes()
    for begin in range(3000):
        built.call(0, 100 + begin, 101 + begin)
    text = as_written(built.content())
    otherwise = json.dumps(built.content(), indent=1)
    assert parse(text) == parse(otherwise)
    assert peak(text) < peak(otherwise) / 2
    assert parse(as_written(built.content() | {"traceEvents": []})).messages == []


@pytest.mark.parametrize("instead", ["NaN", "[" * 100_000, "1" * 10_000, "7", "{}}", '], "otherData": 3', ""])
def test_complaints_are_the_same_however_it_is_read(instead):
    content = two_nodes().content()
    text = as_written(content | {"traceEvents": [*content["traceEvents"], "HERE"]}).replace('"HERE"', instead)
    assert complaint(text) == complaint(text.replace(', "displayTimeUnit"', ',  "displayTimeUnit"'))
