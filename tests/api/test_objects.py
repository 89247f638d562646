# SPDX-License-Identifier: MIT
"""Whatever can be pickled travels, and arrives as exactly what it was."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import pathlib
import pickle
import uuid

import numpy as np
import pytest

from nodetools import neighbours, pass_on, refused, same


class Integer(int):
    pass


class Real(float):
    pass


class Text(str):
    __slots__ = ()


class Octets(bytes):
    pass


class Pair(tuple):
    __slots__ = ()


class Colour(enum.IntEnum):
    RED = 3


class Letter(enum.StrEnum):
    A = "a"


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Record:
    name: str
    values: list


def nested(depth):
    value = ()
    for level in range(depth):
        value = (level, value)
    return value


# Those made of plain things are drawn in tests/core/test_codec.py; these lie at borders of the formats, or are pickled.
OBJECTS = {
    "int-31": 2**31,
    "int-63-1": 2**63 - 1,
    "int-63": 2**63,
    "int-64": 2**64,
    "int-minus-63": -(2**63),
    "int-minus-63-1": -(2**63) - 1,
    "int-huge": 7**5000,
    "int-minus-huge": -(7**5000),
    "str-astral": "\U0001f600 \u4f60",
    "str-surrogate": "a\ud800b\udfff",
    "str-surrogate-pair": "\ud83d\ude00",
    "str-nul": "a\0b\0",
    "str-inline": "x" * 40,
    "str-beyond-inline": "x" * 41,
    "str-long": "é" * 100_000,
    "bytearray": bytearray(b"abc"),
    "bytearray-long": bytearray(300_000),
    "tuple-huge-int": (2**100, -(2**100), 1),
    "tuple-surrogate": ("\udc80", b""),
    "tuple-of-list": ([1, 2], {"a": (1,)}),
    "tuple-long": tuple(range(5000)),
    "tuple-of-long": ("x" * 50_000, b"y" * 70_000),
    "tuple-deep": nested(60),
    "tuple-subclass-inside": (Integer(3), Pair((1, 2)), Colour.RED),
    "set": {1, 2, 3},
    "frozenset": frozenset("ab"),
    "complex": complex(-0.0, 2),
    "range": range(3, 30, 4),
    "ellipsis": Ellipsis,
    "date": datetime.datetime(2000, 2, 29, 1, 2, 3, 4, tzinfo=datetime.UTC),
    "delta": datetime.timedelta(days=-1, microseconds=1),
    "decimal": decimal.Decimal("1.10"),
    "fraction": fractions.Fraction(-1, 3),
    "path": pathlib.PurePosixPath("/a/b"),
    "uuid": uuid.UUID(int=5),
    "int-subclass": Integer(7),
    "float-subclass": Real(7.5),
    "str-subclass": Text("seven"),
    "bytes-subclass": Octets(b"seven"),
    "tuple-subclass": Pair((7, 8)),
    "int-enum": Colour.RED,
    "str-enum": Letter.A,
    "namedtuple": Point(1, (2, 3)),
    "ordered": collections.OrderedDict(b=1, a=2),
    "deque": collections.deque([1, 2], maxlen=3),
    "dataclass": Record("r", [1, 2]),
    "class": Record,
    "function": nested,
    "builtin": len,
    "numpy-float64": np.float64(0.1),
    "numpy-float32": np.float32(0.1),
    "numpy-int64": np.int64(-5),
    "numpy-uint8": np.uint8(200),
    "numpy-bool": np.True_,
    "numpy-str": np.str_("text"),
    "numpy-bytes": np.bytes_(b"bytes"),
    "numpy-datetime": np.datetime64("2020-01-01", "D"),
    "numpy-complex": np.complex128(1 - 2j),
    "dtype": np.dtype([("a", "i4"), ("b", ">f8")]),
    "dict-of-arrays": {"a": np.arange(5), "b": np.ones((300, 300)), "c": np.array(3, dtype="i2")},
    "list-of-arrays": [np.arange(100_000), np.zeros(0), np.asfortranarray(np.eye(3))],
    "tuple-of-arrays": (np.arange(3), np.arange(200_000.0).reshape(400, 500), "end"),
}


@pytest.mark.parametrize("length", [0, 1, 39, 40, 41, 1023, 1024, 8191, 8192, 8193, 65_536, 1_000_003])
def test_bytes_of_every_way_of_travelling(comm, length):
    value = np.random.default_rng(length).bytes(length)
    assert same(pass_on(comm, value), value)


@pytest.mark.smoke
@pytest.mark.slow
def test_many_different_ones_in_a_row(comm):
    following, previous = neighbours(comm)
    for value in OBJECTS.values():
        comm.send(value, following)
    for key, value in OBJECTS.items():
        assert same(comm.recv(previous), value), key


def test_what_arrives_is_new(comm):
    """Not even a node's message to itself is the same object."""
    value = [1, [2]]
    comm.send(value, comm.rank)
    arrived = comm.recv(comm.rank)
    arrived[1].append(3)
    assert value == [1, [2]]


@pytest.mark.smoke
def test_shared_parts_stay_shared(comm):
    part = np.arange(100_000)
    arrived = pass_on(comm, {"a": part, "b": part})
    assert arrived["a"] is arrived["b"] and np.array_equal(arrived["a"], part)


def test_deep_tuples_do_not_crash(comm):
    """As deep as Python's own recursion limit allows, and an exception beyond; never a crash."""
    assert same(pass_on(comm, nested(150)), nested(150))
    with pytest.raises((RecursionError, ValueError, TypeError, pickle.PicklingError)):
        comm.send(nested(200_000), comm.rank)


@pytest.mark.parametrize("wrap", ["alone", "in-tuple", "in-list", "beside-array"])
def test_what_cannot_be_pickled_is_refused_and_nothing_is_sent(comm, wrap):
    def local():
        pass

    value = {
        "alone": local,
        "in-tuple": (1, local),
        "in-list": [local],
        "beside-array": {"a": np.ones(9), "f": local},
    }
    with refused((TypeError, pickle.PicklingError, AttributeError), "pickle"):
        comm.send(value[wrap], comm.rank)
    with refused((TypeError, pickle.PicklingError, AttributeError), "lambda"):
        comm.send(lambda: 1, list(range(comm.size)))
    comm.send("after", comm.rank)
    assert comm.recv(comm.rank) == "after"


def test_pickling_may_call_spcomm(comm):
    """A __reduce__ that sends something itself: no lock is held while objects are pickled."""

    class Chatty:
        def __reduce__(self):
            comm.send("from inside", comm.rank, tag=1)
            return (str, ("outside",))

    comm.send(Chatty(), comm.rank, tag=2)
    assert comm.recv(comm.rank, tag=2) == "outside"
    assert comm.recv(comm.rank, tag=1) == "from inside"
