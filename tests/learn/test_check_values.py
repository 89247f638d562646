# SPDX-License-Identifier: MIT
"""Values as text and back; whatever else comes is refused, and never run."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spcomm.learn import values
from spcomm.learn.case import same, short

GOOD = [
    None,
    True,
    0,
    -(2**200),
    1.5,
    -0.0,
    math.inf,
    math.nan,
    1 + 2j,
    "a\nb\ud800\0",
    b"\0\xff",
    [1, (2, [3.0]), {}],
    {"a": {1: (None,)}, (1, 2): {3}},
    set(),
    np.float32(1.25),
    np.bool_(True),
    np.arange(6).reshape(2, 3),
    np.zeros((0, 3), ">f8"),
    np.array(7),
    np.array(["x", "yz"]),
    np.array(["2020-01-01"], "M8[D]"),
    np.arange(10)[::-2],
]
BAD = [
    "",
    "[",
    "[" * 100_000,
    "{}",
    "7",
    "[]",
    '["x", 1]',
    '[["i"], 1]',
    '["i", 7]',
    '["i", "seven"]',
    '["f", "nan("]',
    '["l", 7]',
    '["d", [[["l", []], 1]]]',
    '["s", [["d", []]]]',
    '["b", "?"]',
    '["a", "|O8", [1], "AAAAAAAAAAA="]',
    '["a", "<f8", [2], "AAAAAAAAAAA="]',
    '["a", "<f8", [-1], "AAAAAAAAAAA="]',
    '["a", "<f8", [true], "AAAAAAAAAAA="]',
    '["a", "|S0", [1099511627775], ""]',
    '["a", "<f8", [99999999999999], ""]',
    '["a", "<V8", [1], "AAAAAAAAAAA="]',
    '["a", 7, [1], "AAAAAAAAAAA="]',
    '["n", "<f8", "AAAAAAAAAAAAAAAAAAAAAA=="]',
    '["l", [' * 60 + "]]" * 60,
    json.dumps(["l", [None] * (values.MOST_ITEMS + 1)]),
    " " * (values.MOST_BYTES + 1),
]


@pytest.mark.parametrize("value", GOOD, ids=short)
def test_there_and_back(value):
    found = values.from_text(values.to_text(value))
    assert type(found) is type(value)
    if isinstance(value, np.ndarray):
        assert found.dtype == value.dtype
        assert found.shape == value.shape
        assert found.tobytes() == np.ascontiguousarray(value).tobytes()
        assert found.flags.writeable
    elif isinstance(value, set):
        assert found == value
    else:
        assert same(found, value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
        max_leaves=20,
    )
)
def test_any_value(value):
    assert same(values.from_text(values.to_text(value)), value)


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:40] or "nothing")
def test_what_is_no_value(text):
    with pytest.raises(values.ValueProblem):
        values.from_text(text)


@given(st.text())
def test_any_text(text):
    try:
        values.from_text(text)
    except values.ValueProblem:
        pass


@pytest.mark.parametrize("value", [object(), len, np.array([None]), np.zeros(1, "i4,f8"), [[object()]]])
def test_what_cannot_be_told(value):
    with pytest.raises(values.ValueProblem, match="the judge compares None, bool, int"):
        values.to_text(value)


def test_too_large():
    with pytest.raises(values.ValueProblem, match="more than 8 MiB"):
        values.to_text(np.zeros(values.MOST_BYTES))
    with pytest.raises(values.ValueProblem, match="more than 8 MiB"):
        values.to_text("x" * values.MOST_BYTES)
