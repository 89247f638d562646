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

# name: what NumPy refuses, the error, what to write instead; `a` is an array of one of the two, `x` is np.arange(10).
LIMITS = {
    "memoryview": ("memoryview(a)", ValueError, 'memoryview(a.view("u1"))'),
    "bytes": ("bytes(a)", ValueError, "a.tobytes()"),
    "dot": ("a.dot(a)", NO_DOT, "a @ a"),
    "convolve": ("np.convolve(a, a)", NO_DOT, "np.convolve(a.astype(int), a.astype(int))"),
    "einsum": ('np.einsum("i,i->i", a, a)', TypeError, "a * a"),
    "index": ("x[a]", IndexError, "x[a.astype(int)]"),
    "iinfo": ("np.iinfo(a.dtype).max", ValueError, "np.iinfo(np.int32)"),
    "byte order": ("a.dtype.newbyteorder()", TypeError, "a.byteswap()"),
    "dlpack": ("np.from_dlpack(a)", (BufferError, TypeError), "np.from_dlpack(a.astype(float))"),
    "frompyfunc": ("np.frompyfunc(str, 1, 1)(a)", TypeError, "np.frompyfunc(str, 1, 1)(a.astype(object))"),
    "dtype of a result": ("np.add(a, a, dtype=a.dtype)", TypeError, "(a + a).astype(a.dtype)"),
    "class as dtype of a result": ("np.add(a, a, dtype=type(a.dtype))", TypeError, "np.add(a, a, out=a.copy())"),
    "sum in": ("np.sum(a, dtype=a.dtype)", TypeError, "np.sum(a, dtype=float)"),
    "name": ("np.dtype(repr(a.dtype))", TypeError, "np.dtype(a.dtype)"),
    "save without pickle": ("np.save(io.BytesIO(), a, allow_pickle=False)", ValueError,
        'np.save(io.BytesIO(), a.view("u1"), allow_pickle=False)'),
    "dates": ('a.astype("M8[s]")', TypeError, 'a.astype("i8").astype("M8[s]")'),
    "masked maximum": ("np.ma.array(a, mask=x > 5).max()", TypeError,
        "np.ma.array(a.astype(float), mask=x > 5).max()"),
    "vectorize": ("np.vectorize(lambda number: number)(a)", TypeError,
        "np.vectorize(lambda number: number, otypes=[float])(a)"),
    "raw bytes": ('a.astype("V8")', ValueError, 'a.view("u1")'),
    "StringDType": ("a.astype(np.dtypes.StringDType())", TypeError, "a.astype(str).astype(np.dtypes.StringDType())"),
    "read from text": ('np.fromfile(__file__, a.dtype, sep=" ")', ValueError,
        'np.fromstring("1 2", a.dtype, sep=" ")'),
}  # fmt: skip
ONLY_DOUBLES = {
    "norm": ("np.linalg.norm(a)", NO_DOT, "np.linalg.norm(a.astype(float))"),
    "inv": ("np.linalg.inv(a[1:5].reshape(2, 2))", TypeError, "np.linalg.inv(a[1:5].astype(float).reshape(2, 2))"),
    "fft": ("np.fft.fft(a)", TypeError, "np.fft.fft(a.astype(float))"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"),
    [*((kind, name) for kind in KINDS for name in LIMITS), *(("double", n) for n in ONLY_DOUBLES)],
)
def test_a_limit_is_an_error_and_has_a_way_round(kind, name):
    call, error, instead = (LIMITS | ONLY_DOUBLES)[name]
    for array in (own(kind, range(10)), foreign(kind, range(10))):
        names = {"np": np, "io": io, "a": array, "x": np.arange(10), "__file__": __file__}
        with pytest.raises(error) as caught:
            eval(call, names)
        assert str(caught.value)
        eval(instead, names)


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
