# SPDX-License-Identifier: MIT
"""Operators of reductions: SUM and its like, and those that programs define with `@spcomm.op`.

The operators of spcomm agree with the core on two values (csrc/reduce/spc_ops.h); this module defines them for the
values that the core does not combine: numbers and tuples in scans, other dtypes, long ints.
"""

import math
from collections.abc import Callable
from enum import Enum
from functools import update_wrapper
from operator import index
from typing import Any, overload

import numpy as np

from spcomm._core import error_text
from spcomm._core.arrays import combined_arrays
from spcomm._core.simtime import SimTime, is_simtimes
from spcomm.net_types.net_scalars import plain_numbers

try:  # hashlib gets it from there, but also loads OpenSSL, which each node would have to clean up at its end
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

OWN = 255  # the number of all operators that programs define


class Op:
    """Operator of a reduction, which combines two values: `SUM` and its like, or made by `op`.

    Parameters
    ----------
    left, right : object
        The two values of a call; `left` belongs to lower ranks.

    Attributes
    ----------
    name : str
        The name of the operator: ``"SUM"``.
    commutative : bool
        Whether the order of two values makes no difference. The order is kept all the same.
    elementwise : bool
        Whether it works element by element, so that parts of arrays can be combined.
    element_axes : int
        The number of an array's last axes that belong to one element.

    Notes
    -----
    Calling one combines two values here and now, on this node alone; it never waits.

    Examples
    --------
    >>> import spcomm
    >>> spcomm.SUM(2, 3), spcomm.MAX("SUM" == spcomm.SUM.name, False)
    (5, True)
    """

    name: str
    commutative: bool
    elementwise: bool
    element_axes: int
    function: Callable[[Any, Any], Any]
    number: int  # spc_operator_t, or OWN
    identity: int  # equal on all nodes for the same operator

    def __call__(self, left: Any, right: Any) -> Any:
        if self.number == OWN:
            return self.function(left, right)
        return combined(self, plain(self, "", left), plain(self, "", right))

    def __repr__(self) -> str:
        return self.name if self.number == OWN else f"spcomm.{self.name}"

    def __reduce__(self) -> str:
        return self.__qualname__


def hashed(text: str) -> int:
    """Return the same number in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _builtin(name: str, number: int, meaning: str) -> Op:
    self = Op()
    self.__doc__ = f"{meaning} Bitwise the same on all nodes and in every run."
    self.name, self.number, self.commutative = name, number, True
    self.elementwise, self.element_axes = True, 0
    self.__module__, self.__qualname__ = "spcomm", name
    self.identity, self.function = number, lambda left, right: self(left, right)
    return self


# In the order of spc_operator_t. Of two values, a belongs to lower ranks.
_MEANINGS = {
    "SUM": "``a + b``; bools are counted, as ints. SpeedesComm 2.2, GlobalSum.",
    "MIN": "The lesser of two; NaN if one is NaN. Of times the earlier. SpeedesComm 2.2, GlobalMin.",
    "MAX": "The greater of two; NaN if one is NaN. Of times the later. SpeedesComm 2.2, GlobalMax.",
    "PROD": "``a * b``; bools are counted, as ints.",
    "LAND": "Logical and: 1 or 0 of the values' type.",
    "LOR": "Logical or: 1 or 0 of the values' type.",
    "LXOR": "Whether one of the two is true: 1 or 0 of the values' type.",
    "BAND": "And, bit by bit, of ints and bools.",
    "BOR": "Or, bit by bit, of ints and bools.",
    "BXOR": "Exclusive or, bit by bit, of ints and bools.",
    "MINLOC": "Of two pairs (value, index) that with the lesser value; of equal ones the lower index.",
    "MAXLOC": "Of two pairs (value, index) that with the greater value; of equal ones the lower index.",
}
SUM, MIN, MAX, PROD, LAND, LOR, LXOR, BAND, BOR, BXOR, MINLOC, MAXLOC = tuple(
    _builtin(name, number, meaning) for number, (name, meaning) in enumerate(_MEANINGS.items())
)


@overload
def op(
    function: Callable[[Any, Any], Any],
    /,
    *,
    commutative: bool = False,
    elementwise: bool = False,
    element_axes: int = 0,
) -> Op: ...
@overload
def op(
    function: None = None, /, *, commutative: bool = False, elementwise: bool = False, element_axes: int = 0
) -> Callable[[Callable[[Any, Any], Any]], Op]: ...


def op(
    function: "Callable[[Any, Any], Any] | None" = None,
    /,
    *,
    commutative: bool = False,
    elementwise: bool = False,
    element_axes: int = 0,
) -> "Op | Callable[[Callable[[Any, Any], Any]], Op]":
    """Make a function an operator for reductions: a decorator.

    Parameters
    ----------
    function : callable
        Takes two values and returns their combination; the left one belongs to lower ranks. It must be associative,
        ``f(f(a, b), c) == f(a, f(b, c))``, and may change its arguments. All nodes must use the same one: its name and
        module are compared. A NumPy ufunc of two arrays, such as ``np.hypot``, is elementwise even without that
        argument.
    commutative : bool, optional
        Whether ``f(a, b) == f(b, a)``. For readers: the order of the ranks is kept in any case.
    elementwise : bool, optional
        Whether it combines arrays element by element: the result has the shape of the operands, and each element
        depends only on those at the same place, not on where that is. Then large arrays are combined in parts, each
        node some; it gets arrays of shape (count,), of any count, whatever the shape was, and nodes must contribute
        arrays of the same shape and dtype. False: it gets whole ones.
    element_axes : int, optional
        For elementwise operators: the number of an array's last axes that belong to one element. 1 for pictures of
        shape (rows, columns, 4) whose pixels are combined, not the numbers in them: the parts have shape (count, 4).

    Returns
    -------
    Op or callable
        The operator; without a function a decorator that makes it.

    Raises
    ------
    TypeError
        It cannot be called, or `element_axes` is not an int.
    ValueError
        `element_axes` is negative, or given for an operator that is not elementwise.

    Notes
    -----
    Local, and never waits. `Comm.allreduce` lists the cost of using one. ACLMPL 4 (any function).

    Examples
    --------
    >>> import numpy as np, spcomm
    >>> @spcomm.op
    ... def longest(left, right):
    ...     return right if len(right) > len(left) else left
    >>> longest("ab", "abc")
    'abc'
    >>> comm = spcomm.startup()
    >>> len(comm.allreduce("x" * comm.rank, op=longest)) == comm.size - 1
    True
    >>> @spcomm.op(elementwise=True, element_axes=1)
    ... def over(front, back):  # pixels (red, green, blue, opacity)
    ...     return front + (1 - front[..., 3:]) * back
    >>> comm.allreduce(np.ones((48, 64, 4)), over, algorithm="binary-swap").shape
    (48, 64, 4)
    """
    axes = error_text.checked_axes(element_axes, elementwise)
    if function is None:
        return lambda function: _own(function, commutative, elementwise, axes)
    return _own(function, commutative, elementwise, axes)


def _own(function: Callable[[Any, Any], Any], commutative: bool, elementwise: bool, element_axes: int) -> Op:
    if not callable(function):
        raise error_text.not_callable(function)
    self = Op()
    update_wrapper(self, function)
    name = getattr(function, "__qualname__", getattr(function, "__name__", type(function).__qualname__))
    module = getattr(function, "__module__", "")
    self.name, self.number, self.commutative = name.rpartition(".")[2], OWN, bool(commutative)
    self.elementwise = bool(elementwise) or (isinstance(function, np.ufunc) and function.signature is None)
    self.element_axes = element_axes
    elements = f" of elements with {element_axes} axes" if self.elementwise else ""
    self.function, self.identity = function, hashed(f"{module}.{name}{elements}")
    self.__qualname__ = name
    return self


def combined_elements(operator: Op, left: Any, right: Any) -> Any:
    """Combine two arrays with a program's operator; they must stay arrays of that shape."""
    shape = left.shape  # the operator may change even that
    try:
        made = operator.function(left, right)
    except Exception as error:
        error.add_note(error_text.elements_it_got(operator.name, operator.element_axes, shape))
        raise
    if not isinstance(made, np.ndarray) or made.shape != shape:
        raise error_text.wrong_shape(operator.name, made, shape)
    return made


# ---- values of the operators of spcomm

# Kinds of dtypes, "T" for SimTime.
_KINDS = {
    SUM: "biufcmT",
    PROD: "biufc",
    **dict.fromkeys((MIN, MAX), "biufmMT"),
    **dict.fromkeys((LAND, LOR, LXOR), "biuf"),
    **dict.fromkeys((BAND, BOR, BXOR), "biu"),
}
_COUNTING = (SUM, PROD)  # of bools
_LOGICAL = (LAND, LOR, LXOR)
_LOCATING = (MINLOC, MAXLOC)


def is_locating(operator: Op) -> bool:
    return operator in _LOCATING


_PLAIN_CLASSES = frozenset(
    {np.ndarray, np.memmap, bool, int, float, complex, SimTime, *np.sctypeDict.values()}
)
_NUMBERS = (np.ndarray, int, float, complex, SimTime)


def is_more_than_numbers(value: Any) -> bool:
    """Whether the class of a number or an array may add something to it: a unit, a mask. The core sees numbers only."""
    kind = type(value)
    if kind in _PLAIN_CLASSES or isinstance(value, Enum):  # members of IntEnum add up as ints in Python, too
        return False
    if isinstance(value, np.generic):
        return value.dtype.type is not kind  # other packages have scalars, too: bfloat16
    if kind is getattr(getattr(value, "dtype", None), "type", None):  # NET_INT, NET_DOUBLE
        return False
    return isinstance(value, _NUMBERS)


def plain(operator: Op, call: str, value: Any) -> Any:
    """Return the value as it is combined: bools as ints where they are counted, NumPy's numbers as Python's.

    TypeError if the operator does not support its type.
    """
    if is_locating(operator):
        return _pair(operator, call, value)
    if type(value) is tuple:
        return tuple(plain(operator, call, item) for item in value)
    _check_class(operator, call, value)
    if isinstance(value, (bool, np.bool_)):
        return int(value) if operator in _COUNTING else bool(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64):
        return int(bool(value)) if operator in _LOGICAL else index(value)
    if isinstance(value, SimTime):
        _check(operator, call, "T", value)
        return SimTime(float(value)) if operator is SUM else value
    if isinstance(value, (np.ndarray, np.generic)) and not isinstance(value, (float, complex)):
        return plain_array(operator, call, value)
    if isinstance(value, (float, complex)):
        _check(operator, call, "f" if isinstance(value, float) else "c", value)
        if operator in _LOGICAL:
            return float(bool(value))
        return float(value) if isinstance(value, float) else complex(value)
    raise error_text.not_foldable(call, operator.name, value)


def _pair(operator: Op, call: str, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return plain_array(operator, call, value)
    if type(value) is tuple and len(value) == 2:
        first, second = value
        real = isinstance(first, (bool, int, float, np.bool_, np.integer, np.floating))
        if real and isinstance(second, (int, np.integer)) and not isinstance(first, np.timedelta64):
            return plain(MIN, call, first), index(second)
    raise error_text.no_pair(call, operator.name, value)


def _check_class(operator: Op, call: str, value: Any) -> None:
    """Refuse classes that may know more than their numbers: only a program's own operator can keep that."""
    if is_more_than_numbers(value):
        name = operator.name if operator in _KINDS else "MIN"  # of the pairs of MINLOC and MAXLOC
        raise error_text.not_foldable(call, name, value, error_text.more_than_numbers(value))


def _check(operator: Op, call: str, kind: str, value: Any) -> None:
    if kind not in _KINDS.get(operator, ""):
        raise error_text.not_foldable(call, operator.name, value, error_text.why_not(operator.name, kind))


def pairs_dtype(dtype: Any) -> Any:
    """Return NumPy's aligned dtype of pairs for this one, which may be packed; None: it is not a dtype of pairs."""
    if dtype.names != ("value", "index") or dtype["index"].newbyteorder("=") != np.int64:
        return None
    value = dtype["value"].newbyteorder("=")
    if value.char not in "bhilqBHILQfd" or value.shape:
        return None
    return np.dtype([("value", value), ("index", np.int64)], align=True)


def plain_array(operator: Op, call: str, array: Any) -> Any:
    """Convert to the machine's byte order, and counted bools to int64; return the array itself if it fits."""
    _check_class(operator, call, array)
    array = plain_numbers(array)
    dtype = array.dtype
    if is_locating(operator):
        aligned = pairs_dtype(dtype)
        if aligned is None:
            raise error_text.no_pair(call, operator.name, array)
        return array if dtype == aligned and dtype.itemsize == 16 else array.astype(aligned)
    if is_simtimes(dtype):
        _check(operator, call, "T", array)
    else:
        kind = "U" if dtype.kind == "T" else dtype.kind  # T: NumPy's strings of any length
        _check(operator, call, kind if dtype.names is None else "V", array)
    if dtype.kind == "b" and operator in _COUNTING:
        return array.astype(np.int64)
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _least(left: float, right: float) -> float:
    if left != left or right != right:
        return left if left != left else right
    if left == right:  # -0.0 is less than 0.0
        return left if math.copysign(1, left) < 0 else right
    return min(left, right)


def _scalars(operator: Op, left: Any, right: Any) -> Any:
    """Combine ints, bools, floats and complex numbers."""
    if isinstance(left, float) and operator in (MIN, MAX):
        return _least(left, right) if operator is MIN else -_least(-left, -right)
    made = _PYTHON[operator](left, right)
    return type(left)(made) if operator in _LOGICAL else made


_PYTHON: dict[Op, Callable[[Any, Any], Any]] = {
    SUM: lambda left, right: left + right,
    PROD: lambda left, right: left * right,
    MIN: min,
    MAX: max,
    LAND: lambda left, right: bool(left) and bool(right),
    LOR: lambda left, right: bool(left) or bool(right),
    LXOR: lambda left, right: bool(left) != bool(right),
    BAND: lambda left, right: left & right,
    BOR: lambda left, right: left | right,
    BXOR: lambda left, right: left ^ right,
}
_NUMPY: dict[Op, Callable[[Any, Any], Any]] = {
    SUM: np.add,
    PROD: np.multiply,
    MIN: np.minimum,
    MAX: np.maximum,
    LAND: np.logical_and,
    LOR: np.logical_or,
    LXOR: np.logical_xor,
    BAND: np.bitwise_and,
    BOR: np.bitwise_or,
    BXOR: np.bitwise_xor,
}


def _times(operator: Op, left: SimTime, right: SimTime) -> SimTime:
    if operator is SUM:
        return SimTime(float(left) + float(right))
    later = right < left if operator is MIN else left < right
    return right if later else left


def _located(operator: Op, left: Any, right: Any) -> Any:
    if isinstance(left, tuple):
        one, other = (float(pair[0]) if isinstance(pair[0], float) else pair[0] for pair in (left, right))
        if (one != one) != (other != other):  # NaN wins, as in numpy.argmin
            return left if one != one else right
        if one == other or one != one:
            return left if left[1] <= right[1] else right
        return left if (one < other) == (operator is MINLOC) else right
    one, other = left["value"], right["value"]
    better = one < other if operator is MINLOC else one > other
    nan, other_nan = one != one, other != other
    alike = (one == other) | (nan & other_nan)
    first = np.where(alike, left["index"] <= right["index"], (better | nan) & ~(other_nan & ~nan))
    return np.where(first, left, right)


def combined(operator: Op, left: Any, right: Any) -> Any:
    """Combine two values returned by `plain`.

    Where the core has a kernel it combines arrays: for it -0.0 is less than 0.0, and NumPy's choice of the two depends
    on the machine.
    """
    if is_locating(operator):
        return _located(operator, left, right)
    if isinstance(left, tuple):
        return tuple(combined(operator, one, other) for one, other in zip(left, right, strict=True))
    if isinstance(left, SimTime):
        return _times(operator, left, right)
    if isinstance(left, (np.ndarray, np.generic)):
        made = combined_arrays(operator.number, left, right)
        if made is not None:
            return made
        with np.errstate(all="ignore"):
            made = _NUMPY[operator](left, right)
            made = made.astype(left.dtype, copy=False)
        return (
            np.asarray(made) if isinstance(left, np.ndarray) else made
        )  # without axes NumPy turns them into numbers
    return _scalars(operator, left, right)


def alone(operator: Op, value: Any) -> Any:
    """Convert a value for an operator, beyond what `plain` does: logical ones give 0 or 1."""
    if isinstance(value, tuple) and not is_locating(operator):
        return tuple(alone(operator, item) for item in value)
    if not isinstance(value, (np.ndarray, np.generic)):
        return value
    if operator in _LOGICAL:
        made = (value != 0).astype(value.dtype)
        return np.asarray(made) if isinstance(value, np.ndarray) else made
    if operator is SUM and is_simtimes(value.dtype):
        value = value.copy()
        value["priorities"] = 0
    return value
