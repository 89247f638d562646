# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""`SimTime`: csrc/include/spcomm/simtime.h as a Python number."""

from cpython.object cimport Py_EQ, Py_GE, Py_GT, Py_LE, Py_LT, Py_NE
from libc.stdint cimport INT32_MAX, INT32_MIN, int32_t

from spcomm._core.integers cimport as_int
from libspc cimport spcomm_simtime_compare, spcomm_simtime_from

from copyreg import __newobj__
from numbers import Real

import numpy as np

from spcomm._core import error_text

if False:  # for the stub alone
    from typing import ClassVar, SupportsFloat, SupportsIndex

    from numpy.typing import DTypeLike, NDArray

cdef enum:
    PRIORITIES = 4

# Cython drops the exception of a class check that raises if isinstance() is given a tuple in place.
cdef tuple NUMBERS = (float, int, Real)
cdef tuple RECORDS = (np.void, np.ndarray)


cdef class SimTime:
    """A time of a simulation, in seconds or the program's own unit, and four priorities that break ties.

    Parameters
    ----------
    time : float, optional
        Any real number, and plus or minus infinity ("never"), but not NaN. A `SimTime` keeps its priorities.
    p1, p2, p3, p4 : int, optional
        The priorities, of 32 bits.

    Attributes
    ----------
    time : float
        The time without the priorities, as `float` returns it.
    priorities : tuple of int
        All four.
    dtype : numpy.dtype
        The same 24 bytes in an array: the fields ``time`` (float64) and ``priorities`` (four int32).

    Raises
    ------
    ValueError
        The time is NaN, or a priority does not fit into 32 bits.
    TypeError
        The time is not a real number, or a priority is not an int.

    Notes
    -----
    A `SimTime` is immutable. Comparison uses the time first, then the priorities in order; less is earlier. So events
    with the same time still have one order, the same in every run. A number in a comparison counts as a time without
    priorities; ``SimTime(1.5) == 1.5``, and their hashes are equal.

    Adding a number advances the time and keeps the priorities. Two times cannot be added; their distance is
    ``float(a) - float(b)``.

    A `SimTime` takes 24 bytes in a message, also within tuples, lists and dicts. `Comm.global_min` and
    `Comm.global_max` find the earliest and the latest; `Comm.global_sum` adds the times, and the sum has no priorities.
    In arrays, ``np.array([SimTime(1), SimTime(2, 5)])`` has the dtype `SimTime.dtype`; `from_record` converts an
    element back.

    SpeedesComm 2.2, SpSimTime.

    Examples
    --------
    >>> from spcomm import SimTime
    >>> now = SimTime(1.5, 3)
    >>> now + 1
    SimTime(2.5, 3)
    >>> sorted([now, SimTime(1.5), SimTime(1.5, 2, 9), 0.5])
    [0.5, SimTime(1.5), SimTime(1.5, 2, 9), SimTime(1.5, 3)]
    >>> float(now), now.priorities
    (1.5, (3, 0, 0, 0))
    """

    dtype = np.dtype([("time", np.float64), ("priorities", np.int32, (PRIORITIES,))])

    # NumPy's numbers leave comparison and addition to this class.
    __array_ufunc__ = None

    # On lines of their own, because Cython warns about an annotation in the assignment.
    dtype: ClassVar[np.dtype[np.void]]
    __array_ufunc__: ClassVar[None]

    def __cinit__(
        self, time: SupportsFloat | SupportsIndex = 0.0, p1: SupportsIndex = 0, p2: SupportsIndex = 0,
        p3: SupportsIndex = 0, p4: SupportsIndex = 0
    ):
        cdef int i
        cdef tuple priorities = (p1, p2, p3, p4)
        if isinstance(time, SimTime):
            self.value = (<SimTime>time).value
            if priorities != (0, 0, 0, 0):
                raise error_text.two_priorities(time)
            return
        self.value.time = time_from(time)
        for i in range(PRIORITIES):
            self.value.priority[i] = priority_from(priorities[i], i + 1)

    @property
    def time(self) -> float:
        """The time, a float."""
        return self.value.time

    @property
    def priorities(self) -> tuple[int, int, int, int]:
        """The four priorities, a tuple of ints."""
        cdef int32_t *p = self.value.priority
        return (p[0], p[1], p[2], p[3])

    @classmethod
    def from_record(cls, record: np.void | NDArray[np.void]) -> Self:
        """Make one from an element of an array of `SimTime.dtype`.

        Parameters
        ----------
        record : numpy.void
            The element, of any byte order; also an array without dimensions.

        Returns
        -------
        SimTime

        Raises
        ------
        TypeError
            record has another type.
        ValueError
            Its time is NaN.

        Examples
        --------
        >>> import numpy as np
        >>> from spcomm import SimTime
        >>> times = np.array([SimTime(3, 1), SimTime(2)])
        >>> SimTime.from_record(times[0])
        SimTime(3.0, 1)
        """
        if not isinstance(record, RECORDS) or np.ndim(record) != 0 or (
                record.dtype.newbyteorder("=") != SimTime.dtype):
            raise error_text.no_time_record(record)
        return cls(float(record["time"]), *record["priorities"].tolist())

    def __float__(self) -> float:
        return self.value.time

    def __richcmp__(self, other: SimTime | float, int op) -> bool:
        cdef int sign
        if isinstance(other, SimTime):
            sign = spcomm_simtime_compare(self.value, (<SimTime>other).value)
        elif isinstance(other, NUMBERS):
            if other != other:
                return op == Py_NE  # NaN compares as for all numbers
            sign = compare_number(self, exactly(other))
        else:
            return NotImplemented
        return ((op == Py_LT and sign < 0) or (op == Py_LE and sign <= 0) or (op == Py_EQ and sign == 0)
                or (op == Py_NE and sign != 0) or (op == Py_GT and sign > 0) or (op == Py_GE and sign >= 0))

    def __hash__(self) -> int:
        if spcomm_simtime_compare(self.value, spcomm_simtime_from(self.value.time)) == 0:
            return hash(self.value.time)
        return hash((self.value.time, self.priorities))

    def __add__(self, other: float) -> SimTime:
        cdef SimTime result
        if isinstance(other, SimTime) or not isinstance(other, NUMBERS):
            return NotImplemented
        result = SimTime.__new__(SimTime)
        result.value = self.value
        result.value.time = time_from(self.value.time + float(other))
        return result

    def __radd__(self, other: float) -> SimTime:
        return self.__add__(other)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[np.void]:
        if copy is False:
            raise ValueError("np.asarray(SimTime(…), copy=False): an array of it is always a copy")
        if dtype is not None and dtype.names is None:
            return field_for(self, dtype)
        array = np.array((self.value.time, self.priorities), SimTime.dtype)
        return array if dtype is None else array.astype(dtype)

    def __reduce__(self):
        return __newobj__, (type(self), *arguments(self)), getattr(self, "__dict__", None) or None

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(map(repr, arguments(self)))})"


cdef double time_from(object value) except? -1:
    cdef double time
    try:
        if isinstance(value, (str, bytes, bytearray)):
            raise TypeError  # float() would parse them
        time = float(value)
    except OverflowError as error:
        raise error_text.bad_time(value, "it is too large for a float") from error
    except (TypeError, ValueError) as error:
        raise error_text.bad_time_type(value) from error
    if time != time:
        raise error_text.bad_time(value, "NaN is neither earlier nor later than anything; never is math.inf")
    return time


cdef int32_t priority_from(object value, int number) except? -1:
    cdef object priority = as_int(value)
    if priority is None:
        raise error_text.bad_priority_type(number, value)
    if not INT32_MIN <= priority <= INT32_MAX:
        raise error_text.bad_priority(number, value)
    return priority


cdef object exactly(object number):
    """Prevent NumPy from rounding the time to the type of its number before it compares."""
    if isinstance(number, np.integer):
        return int(number)
    if isinstance(number, np.floating) and number.itemsize <= 8:
        return float(number)
    return number


cdef int compare_number(SimTime self, object number) except -2:
    """Compare exactly, as Python compares a float: a large int is not rounded. Priorities break ties."""
    cdef object time = self.value.time
    if time == number:
        return spcomm_simtime_compare(self.value, spcomm_simtime_from(self.value.time))
    return -1 if time < number else 1


cdef object field_for(SimTime self, object dtype):
    """Support NumPy, which fills an element of a structure field by field, and requests each in its own dtype."""
    if dtype.kind == "i" and dtype.itemsize == sizeof(int32_t):
        return np.array(self.priorities, dtype)
    if dtype.kind == "f":
        return np.array(self.value.time, dtype)
    if dtype.kind == "O":
        array = np.empty((), object)
        array[()] = self
        return array
    raise TypeError(f"np.asarray(SimTime(…), {dtype.name}): a SimTime is an element of SimTime.dtype, or a float")


cdef tuple arguments(SimTime self):
    """Return arguments that make an equal one, without trailing zeros."""
    cdef int count = PRIORITIES
    while count > 0 and self.value.priority[count - 1] == 0:
        count -= 1
    return (self.value.time, *self.priorities[:count])


cdef object new_simtime(const spcomm_simtime_t *value):
    """Make one from untrusted data; None: its time is NaN."""
    cdef SimTime result
    if value.time != value.time:
        return None
    result = SimTime.__new__(SimTime)
    result.value = value[0]
    return result


cpdef bint is_simtimes(object dtype) except -1:
    """Whether it is SimTime.dtype, of any byte order."""
    return dtype is SIMTIME_DTYPE or (
        dtype.names == SIMTIME_DTYPE.names and dtype.newbyteorder("=") == SIMTIME_DTYPE)


cdef object SIMTIME_DTYPE = SimTime.dtype
