# SPDX-License-Identifier: MIT
"""Whatever a file has in it: it is refused with one sentence, or it is a trace of which everything can be made."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import two_nodes
from spcomm.trace import matrix, raster, summary
from spcomm.trace.errors import TraceError
from spcomm.trace.model import Trace, cut
from spcomm.trace.page import page
from spcomm.trace.reader import parse

numbers = st.one_of(
    st.integers(-5, 5),
    st.integers(),
    st.floats(),
    st.sampled_from([1024, 2048, 10**18, 2**63 - 1, 1e18, 1e-9, -0.0]),
)
texts = st.one_of(
    st.text(max_size=6), st.sampled_from(["X", "s", "f", "call", "wait", "region", "\ud800", "</script>"])
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=4,
)


def whole():
    built = two_nodes(boxes=2, map=[0, 1], program="heat.py", start=500)
    built.region(0, 0, 30, "interior").region(0, 2, 5, "inner").call(0, 50, 60, thread=2, open=True)
    built.message(1, 0, None, 60).message(1, 0, 50, None, context="collective").message(
        0, 0, 55, 57, threads=(2, 0)
    )
    built.other["cores"] = 2
    return built.content()


def places(content):
    """Where something can be changed: containers, with keys of theirs."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        yield content, key
        if isinstance(value, (dict, list)):
            yield from places(value)


@st.composite
def mutated(draw):
    content = copy.deepcopy(whole())
    for _ in range(draw(st.integers(1, 4))):
        found = list(places(content))
        holder, key = found[draw(st.integers(0, len(found) - 1))]
        what = draw(st.sampled_from(["change", "change", "remove", "double", "swap"]))
        if what == "change":
            holder[key] = draw(values)
        elif what == "remove":
            del holder[key]
        elif what == "double" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        else:
            other, its = found[draw(st.integers(0, len(found) - 1))]
            holder[key] = copy.deepcopy(other.get(its) if isinstance(other, dict) else None)
    return json.dumps(content)


def show(trace):
    """Everything that needs no more than Python; returns how long it is."""
    texts = [summary.text(trace), matrix.text(trace), page(trace)]
    for text in texts:
        text.encode("utf-8")
    for track in trace.tracks:
        if trace.length > 0:
            raster.runs(trace, track, 50)
    return sum(map(len, texts))


def check(text):
    try:
        trace = parse(text, "t.json")
    except TraceError as error:
        assert "\n" not in str(error) and len(str(error)) < 500, error
        return False
    assert isinstance(trace, Trace) and show(trace)
    assert show(cut(trace, trace.end / 4, trace.end / 2)) or trace.end == 0
    return True


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(mutated())
def test_mutations(text):
    check(text)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(["traceEvents", "otherData", "displayTimeUnit"]), values))
def test_other_json(content):
    assert not check(json.dumps(content))


def test_what_is_not_mutated_is_shown():
    assert check(json.dumps(whole()))


@pytest.mark.parametrize("part", range(1, 50))
def test_cut_off(part):
    text = json.dumps(whole())
    with pytest.raises(TraceError, match=r"^t\.json (is cut off after|is not JSON)"):
        parse(text[: len(text) * part // 50], "t.json")


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_bytes_that_are_turned(data):
    text = json.dumps(whole())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text = text[:at] + data.draw(st.characters()) + text[at + 1 :]
    check(text)
