# SPDX-License-Identifier: MIT
"""SimTime as a number: its order against tuples, Python's and NumPy's ways of keeping it, and its bytes."""

import copy
import math
import operator
import pickle
import struct
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spcomm
from naming import name_of
from nodetools import refused
from spcomm import SimTime

COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]

# Few different ones, so that ties are common; and all others.
reals = st.sampled_from([0.0, -0.0, 1.0, 1.5, math.inf, -math.inf]) | st.floats(allow_nan=False)
priorities = st.tuples(*[st.sampled_from([0, 1, -1]) | st.integers(-(2**31), 2**31 - 1)] * 4)
parts = st.tuples(reals, priorities)
numbers = (
    reals
    | st.integers()
    | st.booleans()
    | st.fractions()
    | st.sampled_from([2**53, 2**53 + 1, 10**400])
    | reals.map(np.float64)
    | st.floats(allow_nan=False, width=32).map(np.float32)
    | st.integers(-(2**31), 2**31 - 1).map(np.int32)
)


def made(part):
    return SimTime(part[0], *part[1])


class Event(SimTime):
    """A subclass may have attributes; it is pickled."""


# ---- order


@given(parts, parts)
def test_the_order_is_that_of_tuples(left, right):
    for compare in COMPARISONS:
        assert compare(made(left), made(right)) is compare(left, right)
    assert left != right or hash(made(left)) == hash(made(right))


@given(st.lists(parts, min_size=1))
def test_sorting_and_extremes(several):
    times = [made(part) for part in several]
    expected = [made(part) for part in sorted(several)]
    assert repr(sorted(times)) == repr(expected)  # stable, so even -0.0 and 0.0 keep their places
    assert min(times) == made(min(several)) and max(times) == made(max(several))


@given(parts, numbers)
def test_a_number_is_a_time_without_priorities(part, number):
    """Exactly, as Python compares a float with an int: nothing is rounded, by NumPy neither."""
    time = made(part)
    exact = number.item() if isinstance(number, np.generic) else number
    for compare in COMPARISONS:
        assert compare(time, number) is compare((part[0], part[1]), (exact, (0, 0, 0, 0)))
    if time == number:
        assert hash(time) == hash(number)
    for compare, mirrored in [(operator.lt, operator.gt), (operator.le, operator.ge), (operator.eq,) * 2]:
        assert bool(compare(number, time)) == mirrored(time, number)


def test_numbers_that_numpy_would_round():
    assert SimTime(16777217) > np.float32(16777216) and np.float32(16777216) < SimTime(16777217)
    assert SimTime(2**53) < np.int64(2**53 + 1) and np.int64(2**53 + 1) > SimTime(2**53)
    assert SimTime(0.5) == np.longdouble(0.5) and SimTime(0.5) < np.longdouble(0.75)


def test_nan_is_neither_before_nor_after():
    for nan in (math.nan, np.float64("nan"), np.float32("nan")):
        for compare in COMPARISONS:
            assert compare(SimTime(1), nan) is (compare is operator.ne)


@pytest.mark.parametrize("other", ["1.5", None, (1.5,), 1.5 + 0j, [1.5], object()], ids=name_of)
def test_other_things_are_not_times(other):
    assert (SimTime(1.5) == other) is False and (SimTime(1.5) != other) is True
    with pytest.raises(TypeError, match="not supported between"):
        assert SimTime(1.5) < other


@pytest.mark.smoke
def test_keys_and_members():
    found = {SimTime(1.5): "a", SimTime(1.5, 1): "b"}
    assert found[1.5] == "a" and found[SimTime(1.5, 1, 0)] == "b"
    assert 2 in {SimTime(2)} and SimTime(2) in {2.0} and SimTime(2, 1) not in {2}
    assert hash(SimTime(-0.0)) == hash(SimTime(0))


# ---- making one


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ((), 0.0), ((3,), 3.0), ((True,), 1.0), ((math.inf,), math.inf), ((2**60,), 2.0**60), ((Fraction(1, 4),), 0.25),
        ((np.float32(0.5),), 0.5), ((np.int8(-3),), -3.0), ((SimTime(4, 5),), 4.0),
    ],
    ids=repr,
)  # fmt: skip
def test_what_a_time_can_be(time, expected):
    made = SimTime(*time)
    assert type(made.time) is float and made.time == expected == float(made)


def test_a_simtime_is_taken_whole():
    assert SimTime(SimTime(1, 2, 3)).priorities == (2, 3, 0, 0)
    assert type(SimTime(Event(1, 2))) is SimTime and type(Event(SimTime(1, 2))) is Event
    with refused(TypeError, "SimTime(1.0, 2)", "float(t)"):
        SimTime(SimTime(1, 2), 3)


def test_names_of_the_arguments():
    assert SimTime(time=2, p1=1, p4=-4).priorities == (1, 0, 0, -4)
    assert SimTime(1, np.int64(7), np.uint8(200)).priorities == (7, 200, 0, 0)
    assert all(type(number) is int for number in SimTime(1, np.int64(7)).priorities)
    limits = SimTime(0, 2**31 - 1, -(2**31))
    assert limits.priorities == (2**31 - 1, -(2**31), 0, 0)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ((math.nan,), ValueError, ["SimTime(nan)", "math.inf"]),
        ((10**400,), ValueError, ["too large"]),
        (("1.5",), TypeError, ["'1.5'", "real number", "str"]),
        ((b"1.5",), TypeError, ["real number", "bytes"]),
        ((None,), TypeError, ["None", "real number"]),
        ((1j,), TypeError, ["complex"]),
        (([1.0],), TypeError, ["list"]),
        ((1, 2**31), ValueError, ["p1=2147483648", "from -2147483648 to 2147483647"]),
        ((1, 0, -(2**31) - 1), ValueError, ["p2=-2147483649"]),
        ((1, 0, 0, 1.0), TypeError, ["p3=1.0", "not a float"]),
        ((1, 0, 0, 0, True), TypeError, ["p4=True", "not a bool"]),
        ((1, "2"), TypeError, ["p1='2'", "not a str"]),
    ],
    ids=repr,
)
def test_what_it_cannot_be(arguments, kind, words):
    with refused(kind, "SimTime(", *words):
        SimTime(*arguments)


def test_it_cannot_be_changed():
    time = SimTime(1, 2)
    for name in ("time", "priorities", "value", "p1", "new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(time, name, 5)
    time.__init__(7, 8)
    assert time == SimTime(1, 2)


@given(parts)
def test_repr_is_how_to_make_it(part):
    again = eval(repr(made(part)), {"SimTime": SimTime, "inf": math.inf})
    assert again == made(part) and repr(again) == repr(made(part))


# ---- adding


@given(parts, reals)
def test_adding_a_number_advances_the_time(part, number):
    if math.isnan(part[0] + number):
        with refused(ValueError, "NaN"):
            made(part) + number
        return
    for later in (made(part) + number, number + made(part)):
        assert type(later) is SimTime and (later.time, later.priorities) == (part[0] + number, part[1])


def test_numpy_and_subclasses_add_too():
    assert np.float64(1.5) + SimTime(1, 2) == SimTime(2.5, 2) == SimTime(1, 2) + np.int64(1) + Fraction(1, 2)
    assert type(Event(1) + 1) is SimTime
    time = SimTime(1, 2)
    time += 4
    assert time == SimTime(5, 2)


@pytest.mark.parametrize("other", [SimTime(1), "1", None, 1j], ids=repr)
def test_nothing_else_can_be_added(other):
    for left, right in [(SimTime(1), other), (other, SimTime(1))]:
        with pytest.raises(TypeError):
            left + right


class Classless:
    @property
    def __class__(self):
        raise ZeroDivisionError


def test_an_error_of_the_other_objects_class_comes_out():
    for compute in (*COMPARISONS, operator.add):
        with pytest.raises(ZeroDivisionError):
            compute(SimTime(1), Classless())
    with pytest.raises(ZeroDivisionError):
        SimTime.from_record(Classless())


# ---- keeping it


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_and_copy(protocol):
    for time in (SimTime(1.5), SimTime(-0.0, 0, 0, 0, 5), SimTime(math.inf, 2**31 - 1), Event(2, 3)):
        for other in (pickle.loads(pickle.dumps(time, protocol)), copy.copy(time), copy.deepcopy(time)):
            assert type(other) is type(time) and other == time and repr(other) == repr(time)


def test_attributes_of_a_subclass_are_kept():
    event = Event(1, 2)
    event.name = "arrival"
    for other in (pickle.loads(pickle.dumps(event)), copy.copy(event)):
        assert (other, other.name) == (SimTime(1, 2), "arrival") and type(other) is Event
    assert repr(event) == "Event(1.0, 2)"


# ---- NumPy


def test_the_dtype_is_the_structure_of_c():
    dtype = SimTime.dtype
    assert (dtype.itemsize, dtype.names) == (24, ("time", "priorities"))
    assert dtype["time"] == np.float64 and dtype["priorities"] == np.dtype((np.int32, (4,)))
    assert [dtype.fields[name][1] for name in dtype.names] == [0, 8]


@given(st.lists(parts, max_size=5), st.sampled_from(["=", "<", ">"]))
def test_arrays_there_and_back(several, order):
    times = [made(part) for part in several]
    array = np.array(times, SimTime.dtype.newbyteorder(order))
    assert array.shape == (len(times),)
    assert array["time"].tolist() == [part[0] for part in several]
    assert [tuple(row) for row in array["priorities"].tolist()] == [part[1] for part in several]
    assert repr([SimTime.from_record(record) for record in array]) == repr(times)


def test_numpy_knows_the_dtype_by_itself():
    array = np.array([[SimTime(1), SimTime(2, 3)]])
    assert array.dtype == SimTime.dtype and array.shape == (1, 2)
    assert array.tobytes() == struct.pack("=d4id4i", 1, 0, 0, 0, 0, 2, 3, 0, 0, 0)
    assert SimTime.from_record(np.asarray(SimTime(2, 3))) == SimTime(2, 3)


def test_elements_can_be_set():
    array = np.zeros(4, SimTime.dtype)
    array[1] = SimTime(4, 1, 2, 3, 4)
    array[2:] = SimTime(math.inf, -1)
    assert [repr(SimTime.from_record(record)) for record in array] == [
        "SimTime(0.0)",
        "SimTime(4.0, 1, 2, 3, 4)",
        "SimTime(inf, -1)",
        "SimTime(inf, -1)",
    ]


def test_other_dtypes():
    times = [SimTime(1.5, 2), SimTime(3)]
    assert np.array(times, float).tolist() == [1.5, 3.0]
    assert [type(time) for time in np.array(times, object)] == [SimTime, SimTime]
    for dtype in (np.int64, bool, complex, str):
        with pytest.raises(TypeError):
            np.array(times, dtype)
    with pytest.raises(ValueError, match="copy"):
        np.asarray(times[0], copy=False)


@pytest.mark.parametrize(
    "record",
    [1.5, (1.5, (0, 0, 0, 0)), None, np.float64(1), np.zeros(2, SimTime.dtype), np.zeros((), [("time", "f8")])],
    ids=repr,
)  # fmt: skip
def test_what_is_no_record(record):
    with refused(TypeError, "SimTime.from_record(", "one element"):
        SimTime.from_record(record)


def test_a_record_of_nan():
    record = np.zeros(1, SimTime.dtype)
    record["time"] = math.nan
    with refused(ValueError, "NaN"):
        SimTime.from_record(record[0])


# ---- as a message


@pytest.fixture(scope="module")
def alone():
    return spcomm.startup()


@given(parts)
def test_it_travels_alone_and_in_containers(part):
    comm, time = spcomm.startup(), made(part)
    for sent in (time, (time, 1), [time, [time]], {time: time, "a": (time,)}, (time,) * 35, [time] * 100):
        comm.send(sent, comm.rank)
        arrived = comm.recv(timeout=60)
        assert type(arrived) is type(sent) and repr(arrived) == repr(sent)


def test_a_subclass_is_pickled(alone):
    event = Event(1, 2)
    event.name = "arrival"
    alone.send((event, SimTime(3)), alone.rank)
    arrived, time = alone.recv(timeout=60)
    assert type(arrived) is Event and arrived.name == "arrival" and type(time) is SimTime


def mapped():
    """The beginning of this process's segment, where its mailbox lies."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    found = [line for line in lines if "/memfd:spcomm" in line]
    if not found:
        pytest.skip("the segment of this process is not to be found in /proc/self/maps")
    with open("/proc/self/mem", "rb") as memory:
        memory.seek(int(found[0].partition("-")[0], 16))
        return memory.read(1 << 22)


def item(format, data):
    return bytes([format]) + struct.pack("=I", len(data)) + data


def test_the_bytes_of_a_message(alone):
    """spc_format.h: format 7, a double and four int32; within a tuple an item like any other. Below 40 bytes both
    lie in the slot, behind its 24 bytes of sequence, tag, source, context, meta, format, flags and length."""
    time = SimTime(1.25, -1, 2, 2**31 - 1, -(2**31))
    data = struct.pack("=d4i", 1.25, -1, 2, 2**31 - 1, -(2**31))
    assert sys.byteorder == "big" or data == struct.pack("<d4i", time.time, *time.priorities)
    for tag, sent, format, expected in [(77, time, 7, data), (78, (time,), 9, item(7, data))]:
        alone.send(sent, alone.rank, tag=tag)
        memory = mapped()
        slots = [at for at in range(0, len(memory), 64) if memory.startswith(expected, at + 24)]
        headers = [struct.unpack("=IiHHHBBQ", memory[at : at + 24]) for at in slots]
        assert [(head[1], head[4], head[5], head[7]) for head in headers] == [(tag, 0, format, len(expected))]
        assert alone.recv(timeout=60) == sent
