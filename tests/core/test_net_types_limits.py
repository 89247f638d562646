# SPDX-License-Identifier: MIT
"""Limits of NumPy with a dtype of others: an error, never a wrong number or a crash; and the way round each.

Each case runs in this process: a crash fails everything.
"""

import io
import pickle
import warnings

import numpy as np
import pytest

from net_arrays import KINDS, OTHER, element, foreign, mixed, own
from spcomm import NET_DOUBLE, NET_INT

both = pytest.mark.parametrize("kind", KINDS)

NO_DOT = (TypeError, ValueError)  # a ValueError before NumPy 2.3

# name: (what NumPy refuses, the error, what to write instead); `x` is np.arange(10).
LIMITS = {
    "memoryview": (lambda a, x: memoryview(a), ValueError, lambda a, x: memoryview(a.view("u1"))),
    "bytes": (lambda a, x: bytes(a), ValueError, lambda a, x: a.tobytes()),
    "dot": (lambda a, x: a.dot(a), NO_DOT, lambda a, x: a @ a),
    "convolve": (
        lambda a, x: np.convolve(a, a),
        NO_DOT,
        lambda a, x: np.convolve(a.astype(int), a.astype(int)),
    ),
    "einsum": (lambda a, x: np.einsum("i,i->i", a, a), TypeError, lambda a, x: a * a),
    "index": (lambda a, x: x[a], IndexError, lambda a, x: x[a.astype(int)]),
    "iinfo": (lambda a, x: np.iinfo(a.dtype).max, ValueError, lambda a, x: np.iinfo(np.int32)),
    "byte order": (lambda a, x: a.dtype.newbyteorder(), TypeError, lambda a, x: a.byteswap()),
    "dlpack": (
        lambda a, x: np.from_dlpack(a),
        (BufferError, TypeError),
        lambda a, x: np.from_dlpack(a.astype(float)),
    ),
    "frompyfunc": (
        lambda a, x: np.frompyfunc(str, 1, 1)(a),
        TypeError,
        lambda a, x: np.frompyfunc(str, 1, 1)(a.astype(object)),
    ),
    "dtype of a result": (
        lambda a, x: np.add(a, a, dtype=a.dtype),
        TypeError,
        lambda a, x: (a + a).astype(a.dtype),
    ),
    "class as dtype of a result": (
        lambda a, x: np.add(a, a, dtype=type(a.dtype)),
        TypeError,
        lambda a, x: np.add(a, a, out=a.copy()),
    ),
    "sum in": (lambda a, x: np.sum(a, dtype=a.dtype), TypeError, lambda a, x: np.sum(a, dtype=float)),
    "name": (lambda a, x: np.dtype(repr(a.dtype)), TypeError, lambda a, x: np.dtype(a.dtype)),
    "save without pickle": (
        lambda a, x: np.save(io.BytesIO(), a, allow_pickle=False),
        ValueError,
        lambda a, x: np.save(io.BytesIO(), a.view("u1"), allow_pickle=False),
    ),
    "dates": (lambda a, x: a.astype("M8[s]"), TypeError, lambda a, x: a.astype("i8").astype("M8[s]")),
}
LIMITS |= {
    "masked maximum": (
        lambda a, x: np.ma.array(a, mask=x > 5).max(),
        TypeError,
        lambda a, x: np.ma.array(a.astype(float), mask=x > 5).max(),
    ),
    "vectorize": (
        lambda a, x: np.vectorize(lambda number: number)(a),
        TypeError,
        lambda a, x: np.vectorize(lambda number: number, otypes=[float])(a),
    ),
    "raw bytes": (lambda a, x: a.astype("V8"), ValueError, lambda a, x: a.view("u1")),
    "StringDType": (
        lambda a, x: a.astype(np.dtypes.StringDType()),
        TypeError,
        lambda a, x: a.astype(str).astype(np.dtypes.StringDType()),
    ),
    "read from text": (
        lambda a, x: np.fromfile(__file__, a.dtype, sep=" "),
        ValueError,
        lambda a, x: np.fromstring("1 2", a.dtype, sep=" "),
    ),
}
ONLY_DOUBLES = {
    "norm": (lambda a, x: np.linalg.norm(a), NO_DOT, lambda a, x: np.linalg.norm(a.astype(float))),
    "inv": (
        lambda a, x: np.linalg.inv(a[1:5].reshape(2, 2)),
        TypeError,
        lambda a, x: np.linalg.inv(a[1:5].astype(float).reshape(2, 2)),
    ),
    "fft": (lambda a, x: np.fft.fft(a), TypeError, lambda a, x: np.fft.fft(a.astype(float))),
}


@both
@pytest.mark.parametrize("name", [*LIMITS, *ONLY_DOUBLES])
def test_a_limit_is_an_error_and_has_a_way_round(kind, name):
    if name in ONLY_DOUBLES and kind == "int":
        name, (call, error, instead) = (
            name,
            (lambda a, x: memoryview(a), ValueError, lambda a, x: a.view("u1")),
        )
    else:
        call, error, instead = {**LIMITS, **ONLY_DOUBLES}[name]
    plain = np.arange(10)
    for array in (own(kind, range(10)), foreign(kind, range(10))):
        with pytest.raises(error) as caught:
            call(array, plain)
        assert str(caught.value)
        instead(array, plain)


@both
def test_limits_of_some_versions(kind):
    """Refused by NumPy 2.4 and before; where it works, it is right."""
    array = foreign(kind, range(10))
    try:
        found = np.lib.stride_tricks.sliding_window_view(array, 2)
    except TypeError as error:
        assert repr(array.dtype) in str(error)
    else:
        assert found.tolist() == [[i, i + 1] for i in range(9)]
    assert np.einsum("i,i", array, np.arange(10)) == 285  # both become NumPy's own type first


def test_an_int_beyond_64_bits_is_no_operand():
    array = foreign("int", [1])
    for compute in (lambda: array < 2**70, lambda: array == 2**70, lambda: array + 2**70):
        with pytest.raises(OverflowError, match="too large"):
            compute()
    assert (array.astype("i8") < 2**70).all() and (array < 2**40).all()


@both
def test_masked_arrays_are_filled_with_a_number_of_ones_own(kind):
    """By default np.ma fills with what it has for raw bytes, which no number is."""
    masked = np.ma.array(foreign(kind, [1, 2]), mask=[False, True])
    assert masked.filled().dtype == object and masked.filled(9).tolist() == [1, 9]
    assert masked.sum() == 1 and masked.compressed().tolist() == [1] and (masked + 1).tolist() == [2, None]


@both
def test_the_ways_round_give_the_right_numbers(kind):
    array, plain = mixed(kind, range(10)), np.arange(10)
    assert array @ array == plain @ plain and (array * plain).sum() == plain @ plain
    assert plain[array.astype(int)].tolist() == plain.tolist()
    assert np.frombuffer(memoryview(array.view("u1")), KINDS[kind]).tolist() == plain.tolist()
    assert np.linalg.norm(array.astype(float)) == np.linalg.norm(plain)
    file = io.BytesIO()
    np.save(file, array.view("u1"), allow_pickle=False)
    file.seek(0)
    assert np.load(file).view(KINDS[kind]).tobytes() == array.tobytes()


@both
def test_a_file_of_structures_never_gives_wrong_numbers(kind):
    """NumPy writes it, but not so that it can read it: raw bytes come back, or an error."""
    array = np.zeros(3, [("number", KINDS[kind]), ("plain", "f4")])
    array["number"] = foreign(kind, [1, 2, 3])
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.save(file, array)
    file.seek(0)
    try:
        found = np.load(file)
    except ValueError as error:
        assert "pickle" in str(error) or "descriptor" in str(error)
    else:
        assert found.dtype["number"].kind == "V"
        assert found["number"].tobytes() == array["number"].tobytes()
    assert pickle.loads(pickle.dumps(array))["number"].tolist() == [1, 2, 3]


@both
def test_an_element_of_a_structure_taken_out_is_a_copy_of_numpys(kind):
    """np.void has memory of its own or not, which it does not tell: reading it converts, without writing."""
    array = np.zeros(2, [("number", KINDS[kind])])
    array["number"] = foreign(kind, [258, 7])
    record = array[0]
    assert record["number"] == 258 and record.item()[0] == 258 and array.tolist() == [(258,), (7,)]


@both
def test_only_the_instance_is_a_dtype(kind):
    assert np.dtype(KINDS[kind]) is KINDS[kind] and np.zeros(1, type(KINDS[kind])).dtype is KINDS[kind]
    assert type(KINDS[kind])() is KINDS[kind]
    with pytest.raises(TypeError, match="takes no arguments"):
        type(KINDS[kind])(3)


@both
def test_rounding_to_digits(kind):
    """NumPy would multiply ints, which may wrap: refused."""
    array = own(kind, [12345, 2**31 - 1])
    if kind == "double":
        assert own("double", [1.26, 2.5]).round(1).tolist() == [1.3, 2.5]
        return
    with pytest.raises(TypeError):
        array.round(-2)
    assert array.astype("i8").round(-2).tolist() == [12300, 2147483600]
    assert array.round().tolist() == [12345, 2**31 - 1]


def test_kinds_that_numpy_sees():
    for dtype in (NET_INT, NET_DOUBLE):
        assert dtype.kind == "V" and dtype.num == 2**31 - 1 and not dtype.hasobject
    assert np.issubdtype(NET_INT, np.integer) and np.issubdtype(NET_DOUBLE, np.inexact)
    assert element("int", OTHER, 1) != own("int", [1]).tobytes()
