# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Reductions by SUM, MIN and MAX: of numbers, times, tuples of them, and arrays.

One operation covers the values that the core can combine in place. Any other value takes several: it is a list of
items, packed into steps that fit the scratch memory of a node, and the core combines each step. Values that it cannot
combine (other dtypes; ints beyond 64 bits, which it detects) are gathered, and every node combines all of them, along
the same tree. Both ways describe equal values by equal signatures, so each node may choose either one.
"""

cimport numpy as cnp
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from spcomm._core.handle cimport Handle, fail
from libspc cimport *
from libspc cimport (
    SPC_KIND_ARRAY as ARRAY,
    SPC_KIND_BOOL as BOOL,
    SPC_KIND_COMPLEX as COMPLEX,
    SPC_KIND_FLOAT as FLOAT,
    SPC_KIND_INT as INT,
    SPC_KIND_SCALAR as SCALAR,
    SPC_KIND_SIMTIME as SIMTIME,
    SPC_KIND_TUPLE as TUPLE,
    spc_layout_mix as mix,
    spc_layout_mix_shape as mix_shape,
    spc_layout_of as layout_of,
    spc_layout_of_one as layout_of_one,
)
from spcomm._core.simtime cimport SimTime, new_simtime

from enum import Enum
from operator import add, index
from pickle import dumps, loads

import numpy as np

from spcomm._core import error_text
from spcomm.net_types.net_scalars import plain_numbers
from spcomm._core.diagnose import TYPES

cnp.import_array()

cdef extern from *:
    """
    #define spcpy_empty_like(descr, nd, dims) \\
        PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)(descr), nd, dims, NULL, NULL, 0, NULL)
    """
    object spcpy_empty_like(void *descr, int nd, const cnp.npy_intp *dims)
    void *descr_of "PyArray_DESCR"(cnp.ndarray array)

cdef enum:
    OPERATORS = 3
    WORDS_MAX = 3  # of 8 bytes each, for an item of a tuple

cdef spc_signature_t int_signature[OPERATORS]
cdef spc_signature_t float_signature[OPERATORS]
cdef spc_signature_t time_signature[OPERATORS]


cdef void prepare_signatures() noexcept:
    cdef int op
    for op in range(OPERATORS):
        set_signature(&int_signature[op], op, SPC_TYPE_INT, 1, 8, layout_of_one(INT))
        set_signature(&float_signature[op], op, SPC_TYPE_FLOAT64, 1, 8, layout_of_one(FLOAT))
        set_signature(&time_signature[op], op, SPC_TYPE_SIMTIME, 1, sizeof(spcomm_simtime_t),
                      layout_of_one(SIMTIME))


prepare_signatures()


cdef int combine(Handle handle, const spc_signature_t *signature, const spc_field_t *fields,
                 const void *value, uint64_t length, void *result) noexcept:
    """Run one collective operation: first briefly with the interpreter's lock, then without."""
    cdef int status = spc_comm_collective_poll(handle.core, signature, fields, value, length, result)
    if status == SPC_EAGAIN:
        with nogil:
            status = spc_comm_collective(handle.core, signature, fields, value, length, result,
                                         SPC_NO_DEADLINE)
    return status


cdef object reduce_value(Handle handle, int op, object value, str name, int operation, uint32_t root):
    """Reduce by SUM, MIN or MAX. `operation` is SPC_OPERATION_REDUCE, or one of arrays, perhaps with a root."""
    cdef spc_signature_t signature
    cdef spc_field_t field
    cdef int64_t number
    cdef double real
    cdef int overflow = 0
    cdef int status
    field.count = 1
    if handle.pending is not None:
        return resume(handle, op, value, name, operation, root)
    if type(value) is float:
        signature = float_signature[op]
        signature.operation, signature.root = operation, root
        field.type = SPC_TYPE_FLOAT64
        real = PyFloat_AS_DOUBLE(value)
        status = combine(handle, &signature, &field, &real, 8, &real)
        if status != SPC_OK:
            fail(handle, status, call_of(name))
        return real
    if type(value) is int:
        signature = int_signature[op]
        signature.operation, signature.root = operation, root
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        field.type = SPC_TYPE_INT if overflow == 0 else SPC_TYPE_WIDE
        status = combine(handle, &signature, &field, &number, 8, &number)
        if status == SPC_EWIDE:
            return Reduction(handle, op, value, name, True, operation, root).run()
        if status != SPC_OK:
            fail(handle, status, call_of(name))
        return number
    if type(value) is SimTime:
        return reduce_time(handle, op, <SimTime>value, name, operation, root)
    if cnp.PyArray_CheckExact(value) and is_direct(handle, <cnp.ndarray>value):
        return reduce_direct(handle, op, <cnp.ndarray>value, name)
    if type(value) is tuple and 0 < len(<tuple>value) <= SPC_FIELDS_MAX:
        return reduce_tuple(handle, op, <tuple>value, name, operation, root)
    return Reduction(handle, op, value, name, False, operation, root).run()


cdef object reduce_time(Handle handle, int op, SimTime time, str name, int operation, uint32_t root):
    cdef spcomm_simtime_t value = time.value
    cdef spc_signature_t signature = time_signature[op]
    cdef spc_field_t field
    cdef int status
    field.type, field.count = SPC_TYPE_SIMTIME, 1
    signature.operation, signature.root = operation, root
    status = combine(handle, &signature, &field, &value, sizeof(value), &value)
    if status != SPC_OK:
        fail(handle, status, call_of(name))
    return as_simtime(&value, name)


cdef struct Values:
    # A tuple: its fields, their hash, and their values one behind the other, `words` of 8 bytes.
    spc_field_t fields[SPC_FIELDS_MAX]
    int64_t memory[SPC_FIELDS_MAX * WORDS_MAX]
    uint32_t count
    uint32_t words
    uint64_t hash


cdef bint add_value(Values *values, object item) except -1:
    """Append an item; False: it does not qualify."""
    cdef spc_field_t *field = &values.fields[values.count]
    cdef int64_t *place = &values.memory[values.words]
    cdef double real
    cdef int overflow = 0
    field.count = 1
    if type(item) is float:
        field.type = SPC_TYPE_FLOAT64
        real = PyFloat_AS_DOUBLE(item)
        memcpy(place, &real, 8)
        values.hash = mix(values.hash, FLOAT)
    elif type(item) is int:
        place[0] = PyLong_AsLongLongAndOverflow(item, &overflow)
        field.type = SPC_TYPE_INT if overflow == 0 else SPC_TYPE_WIDE
        values.hash = mix(values.hash, INT)
    elif type(item) is SimTime:
        field.type = SPC_TYPE_SIMTIME
        memcpy(place, &(<SimTime>item).value, sizeof(spcomm_simtime_t))
        values.hash = mix(values.hash, SIMTIME)
    else:
        return False
    values.count += 1
    values.words += words_of(field.type)
    return True


cdef uint32_t words_of(uint32_t core) noexcept:
    return sizeof(spcomm_simtime_t) // 8 if core == SPC_TYPE_SIMTIME else 1


cdef object reduce_tuple(Handle handle, int op, tuple items, str name, int operation, uint32_t root):
    """Reduce numbers and times in one step; other tuples go to Reduction, with the same signature."""
    cdef Values values
    cdef spc_signature_t signature
    cdef uint64_t length
    cdef uint32_t first
    cdef int status
    values.count = values.words = 0
    values.hash = mix(mix(0, TUPLE), len(items))
    for item in items:
        if not add_value(&values, item):
            return Reduction(handle, op, items, name, False, operation, root).run()
    length = 8 * values.words
    first = SPC_TYPE_INT if values.fields[0].type == SPC_TYPE_WIDE else values.fields[0].type
    set_signature(&signature, op, first, values.count, length, layout_of(TUPLE, values.hash, 0))
    signature.operation, signature.root = operation, root
    status = combine(handle, &signature, values.fields, values.memory, length, values.memory)
    if status == SPC_EWIDE:
        return Reduction(handle, op, items, name, True, operation, root).run()
    if status != SPC_OK:
        fail_with(handle, status, name, items)
    return results_of(&values, name)


cdef tuple results_of(Values *values, str name):
    cdef list results = []
    cdef const int64_t *at = values.memory
    cdef uint32_t i
    for i in range(values.count):
        results.append(result_of(values.fields[i].type, at, name))
        at += words_of(values.fields[i].type)
    return tuple(results)


cdef object result_of(uint32_t core, const int64_t *at, str name):
    cdef double real
    if core == SPC_TYPE_INT:
        return at[0]
    if core == SPC_TYPE_SIMTIME:
        return as_simtime(<const spcomm_simtime_t *>at, name)
    memcpy(&real, at, 8)
    return real


cdef bint is_direct(Handle handle, cnp.ndarray array) noexcept:
    """Whether the core can combine it in place, in one step."""
    cdef int number = cnp.PyArray_TYPE(array)
    cdef uint64_t length = cnp.PyArray_NBYTES(array)
    return (core_type(number) != SPC_TYPE_NONE and cnp.PyArray_ISCARRAY_RO(array)
            and length % 8 == 0 and 0 < length <= spc_comm_scratch_bytes(handle.core))


cdef cnp.ndarray empty_like(cnp.ndarray array):
    """Return a new array in C order."""
    Py_INCREF(array.dtype)
    return <cnp.ndarray>spcpy_empty_like(descr_of(array), cnp.PyArray_NDIM(array), cnp.PyArray_DIMS(array))


cdef object reduce_direct(Handle handle, int op, cnp.ndarray array, str name):
    cdef spc_signature_t signature
    cdef spc_field_t field
    cdef uint64_t length = cnp.PyArray_NBYTES(array)
    cdef uint64_t hash = mix_array(0, ARRAY, core_type(cnp.PyArray_TYPE(array)), array)
    cdef cnp.ndarray result
    cdef int status
    field.type = core_type(cnp.PyArray_TYPE(array))
    field.count = <uint32_t>cnp.PyArray_SIZE(array)
    set_signature(&signature, op, field.type, 1, length, layout_of(ARRAY, hash, 0))
    result = empty_like(array)
    status = combine(handle, &signature, &field, cnp.PyArray_DATA(array), length, cnp.PyArray_DATA(result))
    if status != SPC_OK:
        fail_with(handle, status, name, array)
    return result


cdef object resume(Handle handle, int op, object value, str name, int operation, uint32_t root):
    """Continue after an interrupted reduction: the same call resumes it, and the core refuses any other."""
    cdef Reduction asked = Reduction(handle, op, value, name, False, operation, root)
    cdef Reduction pending = <Reduction>handle.pending
    cdef bint is_same = pending.op == op and pending.operation == operation and pending.root == root
    if is_same and pending.kind == asked.kind and pending.hash == asked.hash:
        return pending.run()
    return asked.run()


# ---- in steps


cdef enum:
    EXACT = 0x45584143  # mixed into the layout of an exchange of long ints

cdef uint32_t core_types[CORE_TYPES]
cdef object SIMTIME_DTYPE = SimTime.dtype
cdef tuple PYTHON_OPERATORS = (add, min, max)
cdef tuple NUMPY_OPERATORS = (np.add, np.minimum, np.maximum)
# Cython drops the exception of a class check that raises if isinstance() is given a tuple in place.
cdef tuple BOOLS = (bool, np.bool_)
cdef tuple INTS = (int, np.integer)
cdef tuple ARRAYS = (np.ndarray, np.generic)
cdef tuple NUMBERS = (np.ndarray, int, float, complex, SimTime)
cdef frozenset PLAIN_CLASSES = frozenset(
    {np.ndarray, np.memmap, bool, int, float, complex, SimTime, *np.sctypeDict.values()})


cdef void fill_table() except *:
    memset(core_types, 0, sizeof(core_types))  # SPC_TYPE_NONE
    for core, name in TYPES.items():
        if core != SPC_TYPE_SIMTIME:  # to NumPy it is an ordinary structure
            core_types[<int>np.dtype(name).num] = core
    same = (cnp.NPY_LONGLONG, cnp.NPY_ULONGLONG) if sizeof(long) == 8 else (cnp.NPY_INT, cnp.NPY_UINT)
    for one, other in ((<int>cnp.NPY_LONG, <int>same[0]), (<int>cnp.NPY_ULONG, <int>same[1])):
        core_types[one] = core_types[other] = core_types[one] or core_types[other]  # one of them is NumPy's int64


fill_table()


cdef uint32_t core_type(int number) noexcept:
    """Return the core's type for this NumPy type, or SPC_TYPE_NONE."""
    return core_types[number] if 0 <= number < CORE_TYPES else SPC_TYPE_NONE


cdef uint64_t mix_array(uint64_t hash, int kind, uint32_t core, cnp.ndarray array) except? 0:
    hash = mix(mix(hash, kind), core)
    if core == SPC_TYPE_NONE:
        for letter in array.dtype.str.encode():
            hash = mix(hash, letter)
    return mix_shape(hash, cnp.PyArray_NDIM(array), <const int64_t *>cnp.PyArray_DIMS(array))


cdef int fail_with(Handle handle, int status, str name, object value) except -1:
    """Raise as `fail` does; if another node called something else, the text shows the value to be combined."""
    if status == SPC_EMISMATCH:

        handle.doing = error_text.described(name, value)
    return fail(handle, status, call_of(name))


cdef str call_of(str name):
    """Return the call as messages show it; names of calls with arguments have them already."""
    return name if name.endswith(")") else f"{name}()"


cdef class Item:
    """One number or array of a reduction. `array` is private, and becomes the result."""

    def __init__(self, int op, value, str name):
        self.number = None
        self.dtype = None
        if is_more_than_numbers(value):
            raise error_text.not_reducible(name, value, error_text.more_than_numbers(value))
        if isinstance(value, BOOLS):
            self.set_int(bool(value), INT if op == SPC_SUM else BOOL)
        elif isinstance(value, INTS) and not isinstance(value, np.timedelta64):
            self.set_int(index(value), INT)
        elif isinstance(value, float):
            self.set_array(np.array(value, np.float64), FLOAT)
        elif isinstance(value, SimTime):
            self.set_array(np.asarray(value), SIMTIME)
        elif isinstance(value, complex):
            self.set_array(np.array(value, np.complex128), COMPLEX)
        elif isinstance(value, ARRAYS):
            value = plain_numbers(value)
            check_kind(op, value, name, value)  # not every dtype can be copied as below
            self.set_array(value, SCALAR if isinstance(value, np.generic) else ARRAY)
        else:
            raise error_text.not_reducible(name, value)
        check_kind(op, self.array, name, value)
        self.prepare(op)

    cdef int set_int(self, number, int kind) except -1:
        self.kind = kind
        self.number = int(number) + 0
        self.core = SPC_TYPE_INT if -2**63 <= self.number < 2**63 else SPC_TYPE_WIDE
        self.array = np.array([self.number if self.core == SPC_TYPE_INT else 0], np.int64)
        return 0

    cdef int set_array(self, value, int kind) except -1:
        self.kind = kind
        if not value.dtype.isnative:
            self.dtype = value.dtype
        self.array = np.array(value, dtype=value.dtype.newbyteorder("="), order="C", copy=True, subok=False)
        return 0

    cdef int prepare(self, int op) except -1:
        """Determine how the core treats the elements."""
        if is_simtimes(self.array.dtype):
            self.flat = self.array.reshape(-1)
            if op == SPC_SUM:
                self.flat["priorities"] = 0  # as in the core; steps combined here clear it here
        elif self.array.dtype == np.bool_:
            self.array = self.array.astype(np.int64) if op == SPC_SUM else self.array
            self.flat = self.array.reshape(-1).view(np.int64 if op == SPC_SUM else np.uint8)
        elif self.array.dtype == np.complex128 or self.array.dtype == np.complex64:
            self.flat = self.array.reshape(-1).view(np.float64 if self.array.itemsize == 16 else np.float32)
        else:
            self.flat = self.array.reshape(-1)
        if self.number is None:
            self.core = (SPC_TYPE_SIMTIME if is_simtimes(self.array.dtype)
                         else core_type(self.flat.dtype.num))
        return 0

    cdef uint64_t mix_into(self, uint64_t hash) except? 0:
        if self.kind != ARRAY and self.kind != SCALAR:
            return mix(hash, self.kind)
        if self.array.dtype.kind == "c" or self.array.dtype.kind == "b":
            hash = mix(hash, ord(self.array.dtype.kind))
        return mix_array(hash, self.kind, self.core, self.array)

    cdef object result(self, str name):
        if self.kind == SIMTIME:
            return as_simtime(<const spcomm_simtime_t *>cnp.PyArray_DATA(<cnp.ndarray>self.array), name)
        if self.kind == INT:
            return self.number
        if self.kind == BOOL:
            return bool(self.number)
        if self.kind == FLOAT or self.kind == COMPLEX:
            return self.array.item()
        if self.dtype is not None:
            self.array = self.array.astype(self.dtype)
        return self.array if self.kind == ARRAY else self.array[()]


cdef object as_simtime(const spcomm_simtime_t *value, str name):
    """Return the combined times; sums of infinite ones may be NaN, alike on all nodes."""
    cdef object result = new_simtime(value)
    if result is None:
        raise error_text.nan_result(name)
    return result


cpdef bint is_simtimes(object dtype) except -1:
    return dtype is SIMTIME_DTYPE or (
        dtype.names == SIMTIME_DTYPE.names and dtype.newbyteorder("=") == SIMTIME_DTYPE)


cpdef bint is_more_than_numbers(object value) except -1:
    """Whether the class of a number or an array may add something to it: a unit, a mask. The core sees numbers only."""
    cdef object kind = type(value)
    if kind in PLAIN_CLASSES or isinstance(value, Enum):  # members of IntEnum add up as ints in Python, too
        return False
    if isinstance(value, np.generic):
        return value.dtype.type is not kind  # other packages have scalars, too: bfloat16
    if kind is getattr(getattr(value, "dtype", None), "type", None):  # NET_INT, NET_DOUBLE
        return False
    return isinstance(value, NUMBERS)


cdef int check_kind(int op, object array, str name, object value) except -1:
    cdef str kind = array.dtype.kind
    if is_simtimes(array.dtype):
        return 0
    if kind not in "biufcmM" or array.dtype.names is not None:
        raise error_text.not_reducible(name, value, "it is not made of numbers")
    if kind == "c" and op != SPC_SUM:
        raise error_text.not_reducible(name, value, "complex numbers have no order")
    if kind == "M" and op == SPC_SUM:
        raise error_text.not_reducible(name, value, "points in time cannot be added")
    return 0


cdef class Reduction:
    """A reduction of several steps. If interrupted, the handle keeps it and it can resume."""

    def __init__(self, Handle handle, int op, value, str name, bint exact, int operation, uint32_t root):
        cdef Item item
        self.handle, self.op, self.name, self.exact, self.value = handle, op, name, exact, value
        self.operation, self.root = operation, root
        self.items = [Item(op, x, name) for x in (value if type(value) is tuple else (value,))]
        self.room = <Py_ssize_t>spc_comm_scratch_bytes(handle.core)
        self.kind = TUPLE if type(value) is tuple else (<Item>self.items[0]).kind
        self.hash = mix(mix(0, TUPLE), len(self.items)) if self.kind == TUPLE else 0
        for item in self.items:
            self.hash = item.mix_into(self.hash)
            self.total += item.flat.nbytes
        self.steps = []
        self.plan()

    cdef int plan(self) except -1:
        """Divide the items into steps of at most `room` bytes and SPC_FIELDS_MAX pieces; at least one."""
        cdef Item item
        cdef list step = []
        cdef Py_ssize_t left = self.room
        for item in self.items:
            size = item.flat.itemsize
            start = 0
            while start < item.flat.size:
                alone = item.core == SPC_TYPE_NONE
                if step and (alone or left < 8 or left < size or len(step) == SPC_FIELDS_MAX
                             or (<Item>step[0][0]).core == SPC_TYPE_NONE):
                    self.steps.append(step)
                    step, left = [], self.room
                stop = min(item.flat.size, start + left // size)
                step.append((item, start, stop))
                left -= (size * (stop - start) + 7) // 8 * 8
                start = stop
        if step or not self.steps:
            self.steps.append(step)
        return 0

    def run(self) -> Any:
        while self.at < len(self.steps):
            if not self.exact:
                step = self.steps[self.at]
                if step and (<Item>step[0][0]).core != SPC_TYPE_NONE:
                    self.exact = self.reduce(step)
                else:
                    self.gather(step)
            if self.exact:
                self.reduce_exactly(self.steps[self.at])
                self.exact, self.mine, self.longest = False, None, None
            self.at += 1
        results = tuple([(<Item>item).result(self.name) for item in self.items])
        return results if self.kind == TUPLE else results[0]

    cdef bint call(self, spc_signature_t *signature, spc_field_t *fields, void *value, uint64_t length,
                   void *result) except -1:
        """Run one collective operation. True: a sum of ints exceeds 64 bits."""
        cdef int status
        cdef spc_comm_t *core
        self.handle.pending = None
        status = spc_comm_collective_poll(self.handle.core, signature, fields, value, length, result)
        if status == SPC_EAGAIN:
            core = self.handle.core
            with nogil:
                status = spc_comm_collective(core, signature, fields, value, length, result, SPC_NO_DEADLINE)
        if status == SPC_EWIDE:
            return True
        if status == SPC_EINTERRUPTED:
            self.handle.pending = self
        if status != SPC_OK:
            fail_with(self.handle, status, self.name, self.value)
        return False

    cdef bint reduce(self, list step) except -1:
        """Let the core combine the pieces of a step."""
        cdef spc_signature_t signature
        cdef spc_field_t fields[SPC_FIELDS_MAX]
        cdef uint32_t count = 0
        cdef Item item
        cdef uint64_t length = 0
        cdef char *data
        if self.buffer is None:
            self.buffer = bytearray(self.room)
        for item, start, stop in step:
            fields[count].type = item.core
            fields[count].count = stop - start
            piece = item.flat[start:stop]
            np.frombuffer(self.buffer, item.flat.dtype, stop - start, length)[:] = piece
            length += (piece.nbytes + 7) // 8 * 8
            count += 1
        first = SPC_TYPE_INT if fields[0].type == SPC_TYPE_WIDE else fields[0].type
        set_signature(&signature, self.op, first, count, self.total,
                      layout_of(self.kind, self.hash, self.at))
        signature.operation, signature.root = self.operation, self.root
        data = self.buffer
        if self.call(&signature, fields, data, length, data):
            return True
        length = 0
        for item, start, stop in step:
            piece = item.flat[start:stop]
            piece[:] = np.frombuffer(self.buffer, item.flat.dtype, stop - start, length)
            length += (piece.nbytes + 7) // 8 * 8
            if item.number is not None:
                item.number = int(piece[0])
        return False

    cdef int gather(self, list step) except -1:
        """Combine a piece of a dtype that the core does not know. An empty step only compares the layouts."""
        cdef spc_signature_t signature
        cdef Item item
        cdef bytes mine = b""
        cdef list parts
        set_signature(&signature, self.op, SPC_TYPE_NONE, 0, self.total,
                      layout_of(self.kind, self.hash, self.at))
        self.name_gather(&signature)
        if step:
            item, start, stop = step[0]
            mine = item.flat[start:stop].tobytes()
            if self.operation == SPC_OPERATION_REDUCE:
                signature.root = ord(item.flat.dtype.char)
        self.call(&signature, NULL, <char *>mine, len(mine), NULL)
        if step:
            parts = [np.frombuffer(part, item.flat.dtype) for part in self.contributions()]
            item.flat[start:stop] = along_tree(parts, NUMPY_OPERATORS[self.op])
        return 0

    cdef void name_gather(self, spc_signature_t *signature) noexcept:
        """Run a step in which the core combines nothing."""
        signature.operation = SPC_OPERATION_GATHER if self.operation == SPC_OPERATION_REDUCE else self.operation
        signature.root = self.root

    cdef list contributions(self):
        cdef const void *data
        cdef uint64_t length
        cdef int32_t rank
        cdef list parts = []
        for rank in range(self.handle.node_count):
            spc_comm_contribution(self.handle.core, rank, &data, &length)
            parts.append((<const char *>data)[:length])
        return parts

    cdef int reduce_exactly(self, list step) except -1:
        """Exchange the values of a step as Python objects, and combine them here."""
        cdef Item item
        cdef Py_ssize_t i
        if self.mine is None:
            self.mine = dumps([item.number if item.number is not None else item.flat[start:stop]
                               for item, start, stop in step], 5)
            self.parts = [b""] * self.handle.node_count
        self.exchange()
        values = [loads(part) for part in self.parts]
        for i in range(len(step)):
            item, start, stop = step[i]
            column = [value[i] for value in values]
            if item.number is not None:
                item.number = along_tree(column, PYTHON_OPERATORS[self.op])
            else:
                operators = SIMTIME_OPERATORS if item.core == SPC_TYPE_SIMTIME else NUMPY_OPERATORS
                item.flat[start:stop] = along_tree(column, operators[self.op])
        return 0

    cdef int exchange(self) except -1:
        """Send each node's `mine` to all nodes, in pieces as long as the scratch."""
        cdef spc_signature_t signature
        cdef spc_field_t field
        cdef int64_t longest = len(self.mine)
        cdef uint64_t hash = mix(mix(self.hash, EXACT), self.at)
        cdef bytes piece
        if self.longest is None:
            field.type, field.count = SPC_TYPE_INT, 1
            set_signature(&signature, SPC_MAX, SPC_TYPE_INT, 1, 8, layout_of(self.kind, hash, 0))
            signature.operation, signature.root = self.operation, self.root
            self.call(&signature, &field, &longest, 8, &longest)
            self.longest = longest
        while len(max(self.parts, key=len)) < self.longest:
            done = len(max(self.parts, key=len))
            piece = self.mine[done:done + self.room]
            set_signature(&signature, self.op, SPC_TYPE_NONE, 0, 0, layout_of(self.kind, hash, 1 + done))
            self.name_gather(&signature)
            self.call(&signature, NULL, <char *>piece, len(piece), NULL)
            self.parts = [old + new for old, new in zip(self.parts, self.contributions())]
        return 0


cpdef object combined_times(int op, object left, object right):
    """Combine two arrays of SimTime.dtype in the core: NumPy has no operators for structures."""
    cdef cnp.ndarray result = left.copy()
    cdef cnp.ndarray other = np.ascontiguousarray(right)
    cdef spc_field_t field
    field.type, field.count = SPC_TYPE_SIMTIME, <uint32_t>cnp.PyArray_SIZE(result)
    spc_ops_combine(<spc_operator_t>op, &field, 1, cnp.PyArray_DATA(result), cnp.PyArray_DATA(other))
    return result


cdef tuple SIMTIME_OPERATORS = (
    lambda left, right: combined_times(SPC_SUM, left, right),
    lambda left, right: combined_times(SPC_MIN, left, right),
    lambda left, right: combined_times(SPC_MAX, left, right),
)


cdef object along_tree(list values, object op):
    """The single association order of spcomm: v[i] = v[i] op v[i + 2^k], for growing k."""
    cdef Py_ssize_t step = 1
    cdef Py_ssize_t i
    with np.errstate(all="ignore"):
        while step < len(values):
            for i in range(0, len(values) - step, 2 * step):
                values[i] = op(values[i], values[i + step])
            step *= 2
    return values[0]
