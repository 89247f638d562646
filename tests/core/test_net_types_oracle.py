# SPDX-License-Identifier: MIT
"""NumPy with NET_INT and NET_DOUBLE, against int64 and float64: the same numbers, and of those dtypes.

What only moves elements keeps the dtype. Each expression runs on elements of this machine, foreign ones and in between.
Casts: test_net_types_casts.py.
"""

import operator
import warnings

import numpy as np
import pytest

from net_arrays import KINDS, LIKE, NUMBERS, NUMPYS, WAYS, foreign, mixed, native, own
from spcomm import NET_INT

both = pytest.mark.parametrize("kind", KINDS)
ways = pytest.mark.parametrize("way", WAYS)
UFUNCS = {
    name: ufunc for name, ufunc in vars(np).items() if isinstance(ufunc, np.ufunc) and ufunc.signature is None
}


def agree(found, expected, keeps=None):
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            agree(one, other, keeps)
        return
    if keeps is not None and isinstance(found, np.ndarray) and found.dtype == keeps:
        found = native(found)
    found, expected = np.asarray(found), np.asarray(expected)
    if keeps is None:
        assert found.dtype == expected.dtype
    assert found.shape == expected.shape and np.array_equal(
        found, expected, equal_nan=found.dtype.kind in "fc"
    )


def outcome(call):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(), None
        except (TypeError, ValueError, OverflowError, IndexError) as error:
            return None, type(error)


def compare(call, *arguments, keeps=None):
    expected, error = outcome(lambda: call(*native(list(arguments))))
    found, raised = outcome(lambda: call(*arguments))
    if error is not None or raised is not None:
        assert (error is None) == (raised is None), f"{error} and {raised}"
        return
    agree(found, expected, keeps)


# ---- ufuncs


@both
@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_each_ufunc(kind, name):
    ufunc = UFUNCS[name]
    for way in ("own", "foreign", "strided"):
        array = WAYS[way](kind, NUMBERS[kind])
        if ufunc.nin == 1:
            compare(ufunc, array)
            continue
        arrays = (
            array[::-1],
            native(array),
            mixed("double", [1.5] * 10),
            foreign("int", [2] * 10),
            np.array([1], ">i4"),
        )
        for other in (*arrays, 3, 2.5, True, np.int8(3), np.float32(2.5), np.uint64(3)):
            compare(ufunc, array, other)
            compare(ufunc, other, array)


@both
@ways
def test_each_reduction(kind, way):
    for ufunc in (ufunc for ufunc in UFUNCS.values() if ufunc.nin == 2 and ufunc.nout == 1):
        array = WAYS[way](kind, NUMBERS[kind])
        compare(ufunc.reduce, array)
        compare(ufunc.accumulate, array)
        compare(lambda a, ufunc=ufunc: ufunc.reduceat(a, [0, 3, 5]), array)
        compare(lambda a, ufunc=ufunc: ufunc.outer(a[:3], a[3:5]), array)
        compare(lambda a, ufunc=ufunc: ufunc.reduce(a.reshape(2, 5), axis=1, keepdims=True), array)


NAMES = "add sub mul truediv floordiv mod pow lt le eq ne gt ge and_ or_ xor lshift rshift"


@both
@pytest.mark.parametrize("op", [*(getattr(operator, name) for name in NAMES.split()), divmod])
def test_operators_with_every_number(kind, op):
    array = mixed(kind, [5, 3, 0, 7])
    numbers = [*(number(2) for number in NUMPYS), *(np.full(4, 2, number) for number in NUMPYS)]
    for other in (2, 2.5, True, array, *numbers):
        # NumPy has short cuts of its own for ** with a float, which some versions take for ints alone.
        keeps = KINDS[kind] if op is operator.pow and np.asarray(other).dtype.kind == "f" else None
        compare(op, array, other, keeps=keeps)
        compare(op, other, array)


@both
@ways
def test_in_place_stays_what_it_is(kind, way):
    array = WAYS[way](kind, [5, -3, 0, 7]).copy()
    plain = array.astype(LIKE[kind])
    for name in "iadd isub imul ifloordiv imod ipow".split():
        change = getattr(operator, name)
        array, plain = change(array, 2), change(plain, 2)
        assert array.dtype is KINDS[kind] and array.tolist() == plain.tolist()
    if kind == "int":
        for change in (operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift):
            array, plain = change(array, 3), change(plain, 3)
            assert array.dtype is NET_INT and array.tolist() == plain.tolist()
        with pytest.raises(TypeError, match="same_kind"):
            array += 1.5
    np.add(array, 1, out=array)
    np.add.at(array, [0, 0], 1)
    assert array.tolist() == [plain[0] + 3, *(plain[1:] + 1)]


def test_an_int_of_32_bits_wraps_where_it_is_stored():
    array = foreign("int", [2**31 - 1])
    assert (array + 1).tolist() == [2**31] and (array * array).tolist() == [(2**31 - 1) ** 2]
    array += 1
    assert array.tolist() == [-(2**31)]
    assert np.array([2**32 + 5, -1]).astype(NET_INT).tolist() == [5, -1]


# ---- functions


COMPUTING = {
    "sum": lambda a: a.sum(),
    "mean": lambda a: a.mean(),
    "var": lambda a: a.var(),
    "prod": lambda a: a[:3].prod(),
    "cumsum": lambda a: a.cumsum(),
    "any": np.any,
    "all": np.all,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "max": np.max,
    "min": np.min,
    "matmul": lambda a: a @ a,
    "matmul 2-d": lambda a: a[:6].reshape(2, 3) @ a[:6].reshape(3, 2),
    "outer": np.outer,
    "argsort": lambda a: np.argsort(a, kind="stable"),
    "lexsort": lambda a: np.lexsort((a, a[::-1])),
    "diff": np.diff,
    "nonzero": lambda a: a.nonzero(),
    "searchsorted": lambda a: np.sort(a).searchsorted([-1, 5, 7, 100]),
    "searchsorted plain": lambda a: np.searchsorted([-1, 5, 70], a),
    "clip": lambda a: a.clip(-2, 6),
    "clip arrays": lambda a: np.clip(a, a - 1, a[::-1]),
    "where number": lambda a: np.where(a > 1, a, 0),
    "where array": lambda a: np.where(a > 1, np.zeros(10, np.int64), a),
    "isin": lambda a: np.isin(a, [7, 60]),
    "array_equal": lambda a: np.array_equal(a, a),
    "quantile": lambda a: np.quantile(a, 0.3),
    "histogram": lambda a: np.histogram(a[:5]),
    "interp": lambda a: np.interp([1.5], [1, 2], a[:2]),
    "bitwise": lambda a: a.astype(np.int64) & 7,
    "argwhere": np.argwhere,
    "concatenate": lambda a: np.concatenate([a, np.arange(3, dtype=np.int64)]),
    "max initial": lambda a: a.max(initial=3),
    "sum where": lambda a: a.sum(where=a > 0),
    "cov": lambda a: np.cov(a[:5], a[1:6]),
    "minmax axis": lambda a: (a.reshape(2, 5).min(0), a.reshape(5, 2).argmax(1)),
    "sign": np.sign,
    "negative": operator.neg,
    "abs": abs,
}

MOVING = {
    "sort": np.sort,
    "sort stable": lambda a: np.sort(a, kind="stable"),
    "unique": np.unique,
    "unique all": lambda a: np.unique(a, return_index=True, return_inverse=True, return_counts=True),
    "partition": lambda a: np.sort(np.partition(a, 4)[:5]),
    "slice": lambda a: a[2:8:3],
    "reversed": lambda a: a[::-1],
    "fancy": lambda a: a[[3, 1, -1]],
    "mask": lambda a: a[a > 2],
    "take": lambda a: a.take([1, 5]),
    "compress": lambda a: a.compress([1, 0, 1]),
    "repeat": lambda a: a.repeat(2),
    "concatenate": lambda a: np.concatenate([a, a]),
    "pad": lambda a: np.pad(a, 2),
    "delete": lambda a: np.delete(a, 2),
    "where": lambda a: np.where(a > 1, a, a[::-1]),
    "transpose": lambda a: a.reshape(2, 5).T.copy(),
    "flat": lambda a: a.flat[3],
    "flat slice": lambda a: a.flat[2:4],
    "item": lambda a: a.item(3),
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    "diag": lambda a: np.diag(a[:3]),
    "choose": lambda a: np.choose([0, 1], [a[:2], a[2:4]]),
    "fromiter": lambda a: np.fromiter(iter(a), a.dtype),
    "array of list": lambda a: np.array([a, a]),
    "ma": lambda a: np.ma.array(a, mask=a < 0).compressed(),
    "broadcast": lambda a: np.broadcast_to(a, (2, 10)),
    "gradient": np.gradient,
}


@both
@ways
def test_functions_that_compute(kind, way):
    for function in COMPUTING.values():
        compare(function, WAYS[way](kind, NUMBERS[kind]))


@both
@ways
def test_functions_that_move(kind, way):
    for function in MOVING.values():
        compare(function, WAYS[way](kind, NUMBERS[kind]), keeps=KINDS[kind])


@both
def test_setting_of_every_kind(kind):
    array, plain = foreign(kind, range(12)).reshape(3, 4), np.arange(12, dtype=LIKE[kind]).reshape(3, 4)
    for target in (array, plain):
        target[0, 1] = 50
        target[1] = [9, 8, 7, 6]
        target[:, 0] = np.array([1, 2, 3], np.int64)
        target[target == 7] = -7
        target[[0, 2], [3, 3]] = np.float32(4.0), True
        target[2, 1:3] = own(kind, [20, 21])
        target.flat[5] = "17"
        np.put(target, [0], 33)
        np.place(target, target == 6, [66])
        np.putmask(target, target == 66, 67)
        np.copyto(target[2], 5, where=[True, False, False, False])
        target.sort(axis=1)
    assert array.tolist() == plain.tolist()
    array.fill(3)
    assert array.sum() == 36
    array.resize((2, 2), refcheck=False) if array.flags.owndata else None
    full = np.full(3, 7, KINDS[kind])
    assert full.tolist() == [7, 7, 7] and np.ones(2, KINDS[kind]).tolist() == [1, 1]
    assert np.eye(2, dtype=KINDS[kind]).tolist() == [[1, 0], [0, 1]]
    assert np.arange(2, 9, 3).astype(KINDS[kind]).tolist() == [2, 5, 8]
    assert np.arange(2, 9, 3, dtype=KINDS[kind]).tolist() == [2, 5, 8]
