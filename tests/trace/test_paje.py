# SPDX-License-Identifier: MIT
"""The Pajé file, read again by its own header."""

import shlex

import pytest

from builder import Builder, two_nodes
from spcomm.trace.model import cut
from spcomm.trace.paje import paje
from spcomm.trace.reader import parse


def events(trace):
    """(name, {field: value}) of each event; checks that each has the fields that the header gave it."""
    known, found, name = {}, [], None
    for line in "".join(paje(trace)).splitlines():
        words = shlex.split(line.removeprefix("%"))
        if not line.startswith("%"):
            name, fields = known[words[0]]
            assert len(words) == 1 + len(fields), line
            found.append((name, dict(zip(fields, words[1:], strict=True))))
        elif words[0] == "EventDef":
            number = words[2]
            assert number not in known
            known[number] = (words[1].removeprefix("Paje"), [])
        elif words[0] != "EndEventDef":
            field, kind = words
            assert kind in ("string", "date", "double", "color")
            known[number][1].append(field)
    return found


def of(found, name, **fields):
    return [f for n, f in found if n == name and all(f.get(key) == value for key, value in fields.items())]


@pytest.mark.smoke
def test_states_calls_and_links():
    found = events(parse(two_nodes().text()))
    states = [(round(float(f["Time"]) * 1e6, 3), f["Value"]) for f in of(found, "SetState", Container="n1")]
    expected = [(0, "T"), (5, "W"), (35, "T"), (40, "C"), (60, "T"), (70, "W"), (90, "T"), (100, "E")]
    assert states == expected
    names = {f["Alias"]: f["Name"] for f in of(found, "DefineEntityValue")}
    calls = [names[f["Value"]] for f in of(found, "PushState", Container="n0")]
    assert calls == ["send", "barrier"] and len(of(found, "PopState", Container="n0")) == 2
    [start], [end] = of(found, "StartLink"), of(found, "EndLink")
    assert (start["StartContainer"], end["EndContainer"]) == ("n0", "n1") and start["Key"] == end["Key"]
    assert start["Value"] == end["Value"] == "tag 7, 800 bytes"


def check_order(found):
    """What a reader of the format insists on."""
    times = [float(f["Time"]) for _name, f in found if "Time" in f]
    assert times == sorted(times)
    known, open_links, depth = {"0"}, {}, {}
    for name, f in found:
        if "Alias" in f:
            assert f["Alias"] not in known
            known.add(f["Alias"])
        for field in ("Type", "Container", "StartContainer", "EndContainer"):
            if field in f:
                assert f[field] in known, (name, f)
        if name in ("SetState", "PushState"):
            assert f["Value"] in known
        if name in ("PushState", "PopState"):
            key = f["Type"], f["Container"]
            depth[key] = depth.get(key, 0) + (1 if name == "PushState" else -1)
            assert depth[key] >= 0
        if name == "StartLink":
            open_links[f["Key"]] = f
        if name == "EndLink":
            del open_links[f["Key"]]
    assert not open_links and not any(depth.values())


def odd():
    built = two_nodes(boxes=2, map=[0, 1], program='a "quoted"\nname')
    built.call(0, 5, 25, "outer").call(0, 10, 20, 'in"ner').call(0, 26, 26, "none").call(0, 40, 40, "none")
    built.region(1, 0, 50, "a b").region(1, 10, 50, "c").call(1, 20, 30, thread=1)
    built.message(0, 1, 50, None).message(0, 1, None, 50)
    return built.message(1, 0, 60, 55, threads=(1, 0))  # received before it was sent: two clocks


@pytest.mark.parametrize("built", [two_nodes(), odd(), Builder(3)])
def test_readers_accept_its_order(built):
    check_order(events(parse(built.text())))


@pytest.mark.parametrize(("begin", "end"), [(0, 100), (33, 34), (10, 57), (52, 58)])
def test_parts(begin, end):
    trace = cut(parse(odd().text()), begin, end)
    found = events(trace)
    check_order(found)
    assert all(begin - 0.01 <= float(f["Time"]) * 1e6 <= end + 0.01 for _name, f in found if "Time" in f)
