# SPDX-License-Identifier: MIT
"""Integers from user arguments."""

cdef extern from "Python.h":
    bint PyIndex_Check(object value) noexcept
    object PyNumber_Index(object value)


cdef inline object as_int(object value):
    """Return an exact int from any integer type (NumPy's, IntEnum), else None. A bool is not a number here."""
    if type(value) is int:
        return value
    if type(value) is bool or not PyIndex_Check(value):
        return None
    try:
        return PyNumber_Index(value) + 0  # an IntEnum is its own index
    except TypeError:
        return None  # an array of several elements
