# SPDX-License-Identifier: MIT
"""NET_INT and NET_DOUBLE made of NumPy's other types and turned into them, printed and sorted: as int32 and float64."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from net_arrays import KINDS, LIKE, NUMBERS, NUMPYS, WAYS, element, foreign, mixed, native, own
from spcomm import NET_DOUBLE, NET_INT

both = pytest.mark.parametrize("kind", KINDS)
ways = pytest.mark.parametrize("way", WAYS)


# ---- casts


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@both
@ways
def test_casts_to_and_from_every_number(kind, way):
    values = [0, 1, 100, 2, 3.0]
    array, plain = WAYS[way](kind, map(int, values)), np.array(values, LIKE[kind])
    for number in NUMPYS:
        found = array.astype(number)
        assert found.dtype == number and found.tolist() == plain.astype(number).tolist()
        assert array.astype(np.dtype(number).newbyteorder()).tolist() == plain.astype(number).tolist()
        back = np.array([1, 0, 1, 100], number)
        for source in (back, back[::-1][::-1], back.astype(back.dtype.newbyteorder())):
            assert source.astype(KINDS[kind]).tobytes() == own(kind, back.astype(LIKE[kind])).tobytes()
        for casting in ("safe", "same_kind", "unsafe"):
            for one, other, ours in (
                (KINDS[kind], number, (LIKE[kind], number)),
                (number, KINDS[kind], (number, LIKE[kind])),
            ):
                assert np.can_cast(one, other, casting) == np.can_cast(*ours, casting)


@given(st.lists(st.floats(width=64), min_size=1, max_size=50))
def test_every_double_to_a_half_and_back(numbers):
    """Half floats are made here and not by NumPy: rounding, overflow and the smallest ones as there."""
    with np.errstate(all="ignore"):
        expected = np.array(numbers).astype(np.float16)
        found = own("double", numbers).astype(np.float16)
    assert (
        np.array_equal(found, expected, equal_nan=True) and (np.signbit(found) == np.signbit(expected)).all()
    )
    assert np.array_equal(expected.astype(NET_DOUBLE).astype(float), expected.astype(float), equal_nan=True)


def test_every_half_there_and_back():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    there = halves.astype(NET_DOUBLE)
    assert np.array_equal(there.astype(float), halves.astype(float), equal_nan=True)
    numbers = ~np.isnan(halves)
    assert there.astype(np.float16)[numbers].tobytes() == halves[numbers].tobytes()
    between = np.concatenate(
        [np.nextafter(halves[numbers].astype(float), way) for way in (-math.inf, math.inf)]
    )
    with np.errstate(all="ignore"):
        assert between.astype(NET_DOUBLE).astype(np.float16).tobytes() == between.astype(np.float16).tobytes()


@both
@ways
def test_casts_to_and_from_objects_and_text(kind, way):
    array, plain = WAYS[way](kind, NUMBERS[kind]), np.array(NUMBERS[kind], LIKE[kind])
    objects = array.astype(object)
    assert [type(item) for item in objects] == [
        type(item) for item in plain.astype(object)
    ] and objects.tolist() == plain.tolist()
    assert objects.astype(KINDS[kind]).tolist() == plain.tolist()
    for letter in "US":
        assert array.astype(letter).tolist() == plain.astype(letter).tolist()
        assert array.astype(letter).astype(KINDS[kind]).tolist() == plain.tolist()
        assert array.astype(f"{letter}3").tolist() == plain.astype(letter).astype(f"{letter}3").tolist()
        assert np.array(["12", " 7 "], letter).astype(KINDS[kind]).tolist() == [12, 7]
    assert array.astype(">U40").tolist() == plain.astype(">U40").tolist()
    for bad in (np.array(["x"]), np.array([None]), np.array([b"\xff"])):
        with pytest.raises((TypeError, ValueError)):
            bad.astype(KINDS[kind])


def test_casts_between_the_two():
    for ints, doubles in ((own, foreign), (foreign, own), (mixed, mixed)):
        assert ints("int", [1, -2, 3]).astype(NET_DOUBLE).tolist() == [1.0, -2.0, 3.0]
        assert doubles("double", [1.9, -2.9, 3.0]).astype(NET_INT).tolist() == [1, -2, 3]
        assert (ints("int", [1, 2]) + doubles("double", [0.5, 1])).dtype == np.float64
    assert np.can_cast(NET_INT, NET_DOUBLE) and not np.can_cast(NET_DOUBLE, NET_INT, "same_kind")
    assert np.result_type(NET_INT, NET_DOUBLE) == np.float64 and np.result_type(NET_INT, np.int8) == np.int64


@pytest.mark.parametrize("number", [*NUMPYS, int, float, complex])
def test_where_and_arithmetic_agree_on_the_dtype(number):
    for kind in KINDS:
        array, other = own(kind, [1, 2]), np.ones(2, number) if number in NUMPYS else number(1)
        expected = (native(array) + other).dtype
        assert (array + other).dtype == np.where([True, False], array, other).dtype == expected
        if number in NUMPYS:
            assert np.concatenate([array, other]).dtype == np.result_type(array, other) == expected


@both
@ways
def test_printing(kind, way):
    array = WAYS[way](kind, [1, 20, 300])
    numbers = "1, 20, 300" if kind == "int" else "1.0, 20.0, 300.0"
    text = repr(array).replace("  ", " ").replace("  ", " ").replace("[ ", "[")
    assert text == f"array([{numbers}], dtype={KINDS[kind]!r})"
    assert str(array).split() == str(np.array([1, 20, 300], LIKE[kind]).tolist()).replace(",", "").replace(
        "[", "[ "
    ).split()[1:] or "300" in str(array)


# ---- sorting


@both
@given(data=st.data())
def test_sorting_is_stable_and_right(kind, data):
    few = st.integers(-3, 3) if kind == "int" else st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf, -2.0])
    numbers = data.draw(st.lists(few, max_size=100))
    plain, array = (
        np.array(numbers, LIKE[kind]),
        mixed(kind, numbers) if numbers else np.zeros(0, KINDS[kind]),
    )
    assert np.array_equal(np.argsort(array, kind="stable"), np.argsort(plain, kind="stable"))
    assert np.array_equal(native(np.sort(array)), np.sort(plain), equal_nan=kind == "double")
    if numbers:
        assert (array.argmax(), array.argmin()) == (plain.argmax(), plain.argmin())
    assert element(kind, "<", 1)[:1] == b"L"
