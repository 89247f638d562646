# SPDX-License-Identifier: MIT
"""Arrays for the tests of NET_INT and NET_DOUBLE: the same numbers in all the ways that memory can have."""

import struct
import sys

import numpy as np

import spcomm

KINDS = {"int": spcomm.NET_INT, "double": spcomm.NET_DOUBLE}
LIKE = {"int": np.dtype(np.int32), "double": np.dtype(np.float64)}
WIDE = {"int": np.dtype(np.int64), "double": np.dtype(np.float64)}
OWN, OTHER = ("<", ">") if sys.byteorder == "little" else (">", "<")
LETTER = {"<": b"L", ">": b"B"}


def element(kind, order, number):
    """The bytes that a machine of this order writes; from the documentation, not from the code."""
    if kind == "int":
        return LETTER[order] + bytes(3) + struct.pack(f"{order}i", number)
    return LETTER[order] + bytes(7) + struct.pack(f"{order}d", number)


def written(kind, order, numbers):
    """A writable array of what such a machine has written."""
    data = bytearray().join(element(kind, order, number) for number in numbers)
    return np.frombuffer(data, KINDS[kind])


def own(kind, numbers):
    return written(kind, OWN, numbers)


def foreign(kind, numbers):
    return written(kind, OTHER, numbers)


def mixed(kind, numbers):
    numbers = list(numbers)
    data = b"".join(element(kind, "<>"[i % 3 == 1], number) for i, number in enumerate(numbers))
    return np.frombuffer(bytearray(data), KINDS[kind])


def strided(kind, numbers):
    numbers = list(numbers)
    return foreign(kind, [n for number in numbers for n in (number, 99)])[::2]


def unaligned(kind, numbers):
    numbers = list(numbers)
    packed = np.zeros(len(numbers), [("gap", "u1"), ("number", KINDS[kind])])
    packed["number"] = foreign(kind, numbers)
    assert not packed["number"].flags.aligned
    return packed["number"]


def read_only(kind, numbers):
    data = b"".join(element(kind, OTHER, number) for number in numbers)
    array = np.frombuffer(data, KINDS[kind])
    assert not array.flags.writeable
    return array


WAYS = {way.__name__: way for way in (own, foreign, mixed, strided, unaligned, read_only)}

NUMBERS = {
    "int": [5, -3, 0, 7, 7, -128, 2**31 - 1, -(2**31), 1, 60],
    "double": [5.5, -3.0, 0.0, 7.0, 7.0, -0.25, 1e300, 2.0, 1e-9, 60.0],
}
NUMPYS = [np.dtype(letter).type for letter in "bBhHiIlL?qQefdgFDG"]


def native(value):
    """The oracle's form of an argument or a result: our arrays become plain ones."""
    if isinstance(value, np.ndarray) and value.dtype in KINDS.values():
        return value.astype(WIDE["int" if value.dtype is spcomm.NET_INT else "double"])
    if isinstance(value, (tuple, list)):
        return type(value)(native(item) for item in value)
    return value
