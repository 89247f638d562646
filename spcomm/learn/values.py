# SPDX-License-Identifier: MIT
"""Values as text and back, without pickle: a solution's results come from a process that is not trusted.

Each value is JSON's null, true, false or a string, or a list whose first item gives its type: ``["i", "0x2a"]``,
``["l", [...]]``, ``["a", "<f8", [2, 3], base64]``. The reader first checks its input: depth, items, sizes, dtypes.
"""

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DEEPEST = 40
MOST_ITEMS = 100_000
MOST_BYTES = 8 << 20  # of text
KINDS = "None, bool, int, float, complex, str, bytes, list, tuple, dict, set and NumPy arrays of numbers"
_DTYPE = re.compile(r"[<>|=][biufcSUmM]\d{1,6}(\[\w{1,8}\])?")


class ValueProblem(Exception):
    """A value cannot be told, or a text is none; a phrase that goes on after `returned`."""


def to_text(value: object) -> str:
    """Return a value as text. Raises `ValueProblem` for a value that is not one of `KINDS`, too deep or too large."""
    text = json.dumps(_Writer().write(value, 0), separators=(",", ":"))
    if len(text) > MOST_BYTES:
        raise ValueProblem(f"a value of more than {MOST_BYTES >> 20} MiB")
    return text


def from_text(text: str) -> object:
    """Return the value of a text from any source. Raises `ValueProblem` if it is not of `to_text`."""
    if len(text) > MOST_BYTES:
        raise ValueProblem(f"a value of more than {MOST_BYTES >> 20} MiB")
    try:
        return _Reader().read(json.loads(text), 0)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, MemoryError, RecursionError):
        raise ValueProblem("something that cannot be read") from None  # binascii.Error is a ValueError


class _Counter:
    def __init__(self) -> None:
        self._left = MOST_ITEMS

    def count(self, depth: int) -> None:
        self._left -= 1
        if depth > DEEPEST:
            raise ValueProblem(f"a value that is nested deeper than {DEEPEST} levels, or contains itself")
        if self._left < 0:
            raise ValueProblem(f"a value with more than {MOST_ITEMS} parts")


class _Writer(_Counter):
    def write(self, value: object, depth: int) -> object:
        self.count(depth)
        if value is None or value is True or value is False:
            return value
        write = _WRITERS.get(type(value))
        if write is not None:
            return write(self, value, depth + 1)
        if _of_numpy(value):
            return _numpy_text(value)
        for kind, write in _WRITERS.items():
            if isinstance(value, kind):
                return write(self, value, depth + 1)
        raise ValueProblem(
            f"an object of type {type(value).__name__[:80]}, and the judge compares {KINDS} only"
        )

    def _int(self, value: int, _depth: int) -> list:
        return ["i", hex(value)]

    def _float(self, value: float, _depth: int) -> list:
        return ["f", float(value).hex()]

    def _complex(self, value: complex, _depth: int) -> list:
        return ["c", float(value.real).hex(), float(value.imag).hex()]

    def _str(self, value: str, _depth: int) -> str:
        return str(value)

    def _bytes(self, value: bytes, _depth: int) -> list:
        return ["b", _base64(bytes(value))]

    def _list(self, value: list, depth: int) -> list:
        return ["l", [self.write(item, depth) for item in value]]

    def _tuple(self, value: tuple, depth: int) -> list:
        return ["t", [self.write(item, depth) for item in value]]

    def _set(self, value: "set | frozenset", depth: int) -> list:
        return ["s", [self.write(item, depth) for item in value]]

    def _dict(self, value: dict, depth: int) -> list:
        return ["d", [[self.write(key, depth), self.write(item, depth)] for key, item in value.items()]]


_WRITERS: "dict[type, Callable]" = {
    int: _Writer._int,
    float: _Writer._float,
    complex: _Writer._complex,
    str: _Writer._str,
    bytes: _Writer._bytes,
    bytearray: _Writer._bytes,
    list: _Writer._list,
    tuple: _Writer._tuple,
    set: _Writer._set,
    frozenset: _Writer._set,
    dict: _Writer._dict,
}


class _Reader(_Counter):
    def read(self, told: object, depth: int) -> object:
        self.count(depth)
        if told is None or isinstance(told, (bool, str)):
            return told
        if not isinstance(told, list) or not told:
            raise ValueError("no value")
        kind, *rest = told
        return _READERS[kind](self, rest, depth + 1)

    def _items(self, rest: list, depth: int) -> list:
        [items] = rest
        if not isinstance(items, list):
            raise TypeError("no items")
        return [self.read(item, depth) for item in items]

    def _tuple(self, rest: list, depth: int) -> tuple:
        return tuple(self._items(rest, depth))

    def _set(self, rest: list, depth: int) -> set:
        return set(self._items(rest, depth))

    def _dict(self, rest: list, depth: int) -> dict:
        [pairs] = rest
        return {self.read(key, depth): self.read(value, depth) for key, value in pairs}

    def _int(self, rest: list, _depth: int) -> int:
        [text] = rest
        return int(text, 16)

    def _float(self, rest: list, _depth: int) -> float:
        [text] = rest
        return float.fromhex(text)

    def _complex(self, rest: list, _depth: int) -> complex:
        real, imaginary = rest
        return complex(float.fromhex(real), float.fromhex(imaginary))

    def _bytes(self, rest: list, _depth: int) -> bytes:
        [text] = rest
        return base64.b64decode(text, validate=True)

    def _array(self, rest: list, _depth: int) -> object:
        dtype, shape, text = rest
        array = _array(dtype, text)
        if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
            raise ValueError("no shape")
        return array.reshape(shape).copy()

    def _scalar(self, rest: list, _depth: int) -> object:
        dtype, text = rest
        return _array(dtype, text).reshape(())[()]


# By the first item of the list.
_READERS: "dict[str, Callable]" = {
    "i": _Reader._int,
    "f": _Reader._float,
    "c": _Reader._complex,
    "b": _Reader._bytes,
    "l": _Reader._items,
    "t": _Reader._tuple,
    "s": _Reader._set,
    "d": _Reader._dict,
    "a": _Reader._array,
    "n": _Reader._scalar,
}


def _array(dtype: object, text: object) -> object:
    import numpy as np

    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise ValueError("no dtype")
    kind = np.dtype(dtype)
    if not kind.itemsize:
        raise ValueError("an empty dtype")
    return np.frombuffer(base64.b64decode(text, validate=True), kind)


def _of_numpy(value: object) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "dtype")


def _numpy_text(value: object) -> list:
    import numpy as np

    array = np.asarray(value)
    dtype = array.dtype.str
    if not _DTYPE.fullmatch(dtype) or not array.dtype.itemsize:
        raise ValueProblem(f"an array of dtype {array.dtype}, and the judge compares {KINDS} only")
    if array.nbytes > MOST_BYTES:
        raise ValueProblem(f"a value of more than {MOST_BYTES >> 20} MiB")
    data = _base64(np.ascontiguousarray(array).tobytes())
    return ["a", dtype, list(array.shape), data] if isinstance(value, np.ndarray) else ["n", dtype, data]


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")
