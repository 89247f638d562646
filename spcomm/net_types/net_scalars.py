# SPDX-License-Identifier: MIT
"""NET_INT and NET_DOUBLE as NumPy's own numbers: the attributes of numpy.generic, and arrays to reduce.

NumPy's own methods read the bytes of a scalar as its dtype, which they look up by the type; NumPy 2.0 does not find it
for foreign dtypes, and would read arbitrary bytes. So `forward` makes methods that go through an array of one
element.
"""

from typing import Any

import numpy as np

SPECIAL = ("__array__", "__array_interface__", "__array_struct__", "__array_wrap__", "__getitem__")


def forward(scalar: type, number: type) -> None:
    """Give the type all attributes of numpy.generic that neither it nor Python's number has. For net_types.c, once."""
    for name, original in vars(np.generic).items():
        if (name.startswith("_") and name not in SPECIAL) or name in vars(scalar) or hasattr(number, name):
            continue
        made = method(name, number) if callable(original) else attribute(name, number)
        made.__doc__ = getattr(original, "__doc__", None)
        setattr(scalar, name, made)
    scalar.__iter__ = None  # type: ignore[attr-defined]    # with __getitem__ alone it were an empty sequence
    scalar.__copy__ = lambda self: self  # type: ignore[attr-defined]
    scalar.__deepcopy__ = lambda self, _memo: self  # type: ignore[attr-defined]


def teach_finfo(scalar: type, dtype: Any) -> None:
    """Register NET_DOUBLE with np.finfo: it equals float64. For net_types.c, once.

    NumPy has no public way before 2.4. If a later one stores its table elsewhere, np.finfo is an error as before.
    """
    known = getattr(np.finfo, "_finfo_cache", None)
    if isinstance(known, dict):
        known[scalar] = known[dtype] = np.finfo(np.float64)


def plain_numbers(array: Any) -> Any:
    """Return an array of NET_INT or NET_DOUBLE as NumPy's own int64 or float64; others as they are."""
    dtype = array.dtype
    if dtype.kind == "V" and issubclass(dtype.type, np.number):
        return array.astype(np.result_type(dtype, np.bool_))
    return array


def is_alike(dtype: Any, other: Any) -> bool:
    """Return the same dtype without its byte order, which not every dtype has."""
    if dtype == other:
        return True
    try:
        return bool(dtype.newbyteorder("=") == other.newbyteorder("="))
    except TypeError:
        return False


def array_of(scalar, number):
    return np.array(number(scalar), dtype=scalar.dtype)


def method(name, number):
    def call(self, /, *arguments, **keywords):
        found = getattr(array_of(self, number), name)(*arguments, **keywords)
        if isinstance(found, np.ndarray) and found.ndim == 0 and name != "__array__":
            return found[()]
        return found

    call.__name__ = name
    return call


def attribute(name, number):
    return property(lambda self: getattr(array_of(self, number), name))
