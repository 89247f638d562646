# SPDX-License-Identifier: MIT
"""NET_INT and NET_DOUBLE in wrong hands: too large numbers, bytes that nobody wrote, references, scalars as sizes."""

import gc
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import spcomm
from net_arrays import KINDS, LIKE, foreign, own
from nodetools import refused
from spcomm import NET_DOUBLE, NET_INT, NetDouble, NetInt

both = pytest.mark.parametrize("kind", KINDS)
TOO_LARGE = [2**31, -(2**31) - 1, np.int64(2**31), np.uint64(2**63), 1e10, np.float32(1e10), 10**5000]


# ---- numbers that do not fit


@pytest.mark.parametrize("number", TOO_LARGE, ids=lambda number: type(number).__name__)
def test_what_is_too_large_for_an_int_is_never_stored(number):
    array = own("int", [1, 2])

    def item():
        array[0] = number

    for store in (
        item,
        lambda: array.fill(number),
        lambda: np.array([number], NET_INT),
        lambda: array.__setitem__(slice(None), [number, 1]),
        lambda: NetInt(number),
    ):
        with refused(OverflowError, "does not fit into a NET_INT", "-2147483648 to 2147483647"):
            store()
    assert array.tolist() == [1, 2]


@pytest.mark.parametrize("number", [float("nan"), np.float64("nan"), np.float16("inf"), NetDouble("-inf")])
def test_what_is_no_number_is_not_stored_in_an_int(number):
    array = own("int", [1])
    with pytest.raises((ValueError, OverflowError), match="cannot convert float"):
        array[0] = number
    assert array.tolist() == [1]


def test_an_error_while_an_int_is_refused_comes_out():
    class Unmeasured(int):
        def bit_length(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        NetInt(Unmeasured(2**40))


@both
def test_times_are_not_numbers(kind):
    for number in (np.timedelta64(3, "ns"), np.datetime64(3, "ns")):
        with pytest.raises(TypeError):
            np.array([number], KINDS[kind])


def test_ranges_and_texts_beyond_32_bits():
    assert np.arange(2**31 - 3, 2**31, dtype=NET_INT).tolist() == list(range(2**31 - 3, 2**31))
    assert np.arange(-(2**31) + 2, -(2**31) - 1, -1, dtype=NET_INT)[-1] == -(2**31)
    for make in (
        lambda: np.arange(2**31 - 2, 2**31 + 3, dtype=NET_INT),
        lambda: np.arange(0, -(2**33), -(2**30), dtype=NET_INT),
        lambda: np.fromstring("1 2 3000000000", NET_INT, sep=" "),
        lambda: np.fromstring("1 -99999999999999999999999 2", NET_INT, sep=" "),
    ):
        with refused(OverflowError, "does not fit into a NET_INT"):
            make()


def test_whole_arrays_wrap_as_numpys_do():
    """astype is asked for by name; np.full is one."""
    assert np.array([2**31, -1]).astype(NET_INT).tolist() == [-(2**31), -1]
    assert np.full(1, 2**31, NET_INT).tolist() == [-(2**31)]
    with pytest.warns(RuntimeWarning, match="invalid value"):
        np.full(1, np.nan, NET_INT)


@both
def test_an_imaginary_part_is_not_lost_silently(kind):
    for source in (np.array([1 + 2j]), np.array([1 + 2j] * 3, ">c8")[::-2]):
        with pytest.warns(np.exceptions.ComplexWarning, match="imaginary"):
            assert source.astype(KINDS[kind])[0] == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(np.exceptions.ComplexWarning):
                source.astype(KINDS[kind])
    with pytest.raises(TypeError):
        own(kind, [1])[0] = 1j


def test_a_half_that_overflows_warns():
    for number, warns in (
        (65520.0, True),
        (-1e300, True),
        (65519.0, False),
        (np.inf, False),
        (np.nan, False),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            own("double", [number]).astype(np.float16)
        assert [str(warning.message) for warning in caught] == ["overflow encountered in cast"] * warns


# ---- scalars where NumPy asks whether they are sequences


@both
def test_a_scalar_is_no_sequence(kind):
    scalar = KINDS[kind].type(3)
    assert not np.iterable(scalar) and scalar[()] == 3
    for look in (iter, list, lambda number: 3 in number):
        with pytest.raises(TypeError, match="not iterable"):
            look(scalar)


def test_an_int_is_a_size():
    number = foreign("int", [3])[0]
    assert np.zeros(number).shape == np.empty(number).shape == np.broadcast_to(1, number).shape == (3,)
    assert np.ones((number, 2)).reshape(NetInt(6)).shape == (6,)
    with pytest.raises(TypeError):
        np.zeros(NetDouble(3))


# ---- np.finfo


def test_what_numpy_knows_of_floats():
    for given in (NET_DOUBLE, NetDouble, NetDouble(1.0)):
        assert np.finfo(given).max == np.finfo(float).max and np.finfo(given).eps == 2.0**-52
    for array in (own("double", [1, np.nan, np.inf]), foreign("double", [1, np.nan, np.inf])):
        found = np.nan_to_num(array)
        assert found.dtype is NET_DOUBLE and found.tolist() == [1, 0, np.finfo(float).max]
        assert np.isnan(array[1])
    assert np.nan_to_num(own("int", [1, 2])).tolist() == [1, 2]
    with pytest.raises(ValueError, match="not inexact"):
        np.finfo(NET_INT)


# ---- references


class Counted:
    """A number that is summed as an object."""

    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Counted(self.value)

    def __int__(self):
        return int(self.value)

    def __float__(self):
        return float(self.value)


def living():
    gc.collect()
    return sum(isinstance(item, Counted) for item in gc.get_objects())


@pytest.mark.slow
@both
def test_objects_that_are_stored_as_numbers_end(kind):
    """With out= NumPy leaves the objects of its buffer to the cast."""
    objects, found = np.array([Counted(7) for _ in range(10_000)]), np.zeros(10_000, KINDS[kind])
    before = living()
    np.add(objects, objects, out=found, casting="unsafe")
    np.add(objects[:5], objects[:5], out=found[:5], casting="unsafe")
    np.copyto(found[::-1], objects, casting="unsafe")
    assert found.sum() == 70_000 and living() == before
    wrong = objects.copy()
    wrong[5000] = Counted("x")
    with pytest.raises(ValueError, match="'x'"):
        np.add(wrong, wrong, out=found, casting="unsafe")
    del wrong
    assert living() == before


FLEETING = """
import numpy as np
import spcomm

class Fleeting:
    def drop(self):
        array[0] = None  # the last reference but that of this call

    def __int__(self):
        self.drop()
        return 2**40

    def __float__(self):
        self.drop()
        return "no float"

array = np.array([Fleeting()], object)
try:
    array.astype({kind})
except {error} as error:
    assert "Fleeting" in str(error), error
else:
    raise AssertionError
"""


@pytest.mark.parametrize(
    "kind, error", [("spcomm.NET_INT", "OverflowError"), ("spcomm.NET_DOUBLE", "TypeError")]
)
def test_an_object_may_leave_its_array_while_it_is_converted(kind, error):
    """In an interpreter of its own that overwrites freed memory: the message names the object."""
    answer = subprocess.run(
        [sys.executable, "-c", FLEETING.format(kind=kind, error=error)],
        env={**os.environ, "PYTHONMALLOC": "debug"},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr


# ---- without memory


def without_memory(call, times):
    """Fails the first allocation of Python in `call`, then the second, and so on; returns how many calls failed."""
    testcapi = pytest.importorskip("_testcapi")
    failed = 0
    for number in range(times):
        testcapi.set_nomemory(number, number + 1)
        try:
            call()
        except MemoryError:
            failed += 1
        finally:
            testcapi.remove_mem_hooks()
    return failed


@both
def test_without_memory_there_is_a_memory_error(kind):
    """Only calls in which NumPy itself raises one."""
    array, objects = foreign(kind, range(40)), np.arange(40).astype(object)
    calls = {
        "localize": lambda: spcomm.localize(array.copy()),
        "foreign_count": lambda: spcomm.foreign_count(array),
        "getitem": lambda: array[7],
        "objects": lambda: objects.astype(KINDS[kind]),
        "tolist": array.tolist,
        "scalar": lambda: KINDS[kind].type("12"),
        "bytes": KINDS[kind].type(3).tobytes,
        "dtype": lambda: repr(KINDS[kind]),
        "add": lambda: array[:3] + 1,
    }
    for name, call in calls.items():
        call()
        assert without_memory(call, 60) > 0, name


IMPORT = """
import importlib.util, os, sys, _testcapi
import numpy.exceptions
from spcomm.net_types import net_scalars
spec = importlib.util.find_spec("spcomm.net_types.net_types")
for number in range(100):
    if os.fork() == 0:
        _testcapi.set_nomemory(number, number + 1)
        try:
            spec.loader.create_module(spec)
        except (MemoryError, ImportError):
            os._exit(0)
        except SystemError as error:
            os._exit("exception set" in str(error))  # where Python itself has no memory it may forget the error
        os._exit(sys.version_info >= (3, 11, 7))  # older ones may make a class without some of its memory
    assert os.wait()[1] == 0, number
"""


def test_an_import_without_memory_is_a_memory_error():
    pytest.importorskip("_testcapi")
    answer = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


# ---- bytes that nobody wrote


@both
@pytest.mark.parametrize("status", [0, 1, 2, 0x0E, 0x46, 0x4E, 0xFF, ord("?"), ord("b"), ord("l")])
def test_a_status_that_is_none_counts_as_this_machines(kind, status):
    numbers = list(range(-300, 300))
    array = own(kind, numbers)
    array.view("u1")[:: array.itemsize] = status
    assert array.tolist() == numbers and array.sum() == sum(numbers) and (array + 0).tolist() == numbers
    assert np.sort(array[::-1]).tolist() == numbers and spcomm.foreign_count(array) == 0
    assert spcomm.foreign_count(array.byteswap()) == 600 and array.byteswap().tolist() == numbers


@both
def test_the_rest_of_the_status_is_not_looked_at(kind):
    for array in (own(kind, range(600)), foreign(kind, range(600))):
        for at in range(1, array.itemsize - LIKE[kind].itemsize):
            array.view("u1")[at :: array.itemsize] = 0xFF
        assert array.sum() == 600 * 599 // 2 and array.tolist() == list(range(600))


@both
def test_overlapping_memory(kind):
    array, plain = foreign(kind, range(2000)), np.arange(2000, dtype=LIKE[kind])
    for target in (array, plain):
        np.subtract(target[1:], target[:-1], out=target[1:])
        target[::-1] = target
        target[:1000] = target[5:1005]
        np.add.at(target, [0, 0, 1], target[:3].copy())
    assert array.tolist() == plain.tolist()
    size = KINDS[kind].itemsize
    raw = np.zeros(10 * size, "u1")
    left, right = raw[1 : 1 + 8 * size].view(KINDS[kind]), raw[4 : 4 + 8 * size].view(KINDS[kind])
    left[:] = range(8)
    expected = right.tobytes()
    left[:] = right
    assert left.tobytes() == expected
