# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Reductions: numbers, times, tuples of them, and arrays that the core can combine where they lie, in one operation.

All else is for stepwise.pyx. Both describe equal values by equal signatures: which way a node takes is its
own affair.
"""

cimport numpy as cnp
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from spcomm._core.handle cimport Handle, fail
from spcomm._core.libspc cimport (
    SPC_EAGAIN,
    SPC_EWIDE,
    SPC_FIELDS_MAX,
    SPC_NO_DEADLINE,
    SPC_OK,
    SPC_TYPE_FLOAT64,
    SPC_TYPE_INT,
    SPC_TYPE_NONE,
    SPC_TYPE_SIMTIME,
    SPC_TYPE_WIDE,
    spc_comm_collective,
    spc_comm_collective_poll,
    spc_comm_scratch_bytes,
    spc_field_t,
    spc_signature_t,
    spcomm_simtime_t,
)
from spcomm._core.simtime cimport SimTime
from spcomm._core.stepwise cimport (
    ARRAY,
    FLOAT,
    INT,
    SIMTIME,
    TUPLE,
    Reduction,
    as_simtime,
    call_of,
    fail_with,
    core_type,
    layout_of,
    layout_of_one,
    mix,
    mix_array,
    set_signature,
)

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
    WORDS_MAX = 3  # of 8 bytes, for an item of a tuple

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
    """One collective operation: a moment with the interpreter's lock, then without."""
    cdef int status = spc_comm_collective_poll(handle.core, signature, fields, value, length, result)
    if status == SPC_EAGAIN:
        with nogil:
            status = spc_comm_collective(handle.core, signature, fields, value, length, result,
                                         SPC_NO_DEADLINE)
    return status


cdef object reduce_value(Handle handle, int op, object value, str name, int operation, uint32_t root):
    """Of SUM, MIN or MAX, for everybody. `operation` is SPC_OPERATION_REDUCE, or one of arrays, maybe with a root."""
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
    # A tuple: its fields, what they hash to, and their values one behind the other, `words` of 8 bytes.
    spc_field_t fields[SPC_FIELDS_MAX]
    int64_t memory[SPC_FIELDS_MAX * WORDS_MAX]
    uint32_t count
    uint32_t words
    uint64_t hash


cdef bint add_value(Values *values, object item) except -1:
    """Append an item; False: it is nothing for here."""
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
    """Numbers and times in one step; a tuple with anything else is for Reduction, with the same signature."""
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
    """Can the core combine it in one step, where it lies?"""
    cdef int number = cnp.PyArray_TYPE(array)
    cdef uint64_t length = cnp.PyArray_NBYTES(array)
    return (core_type(number) != SPC_TYPE_NONE and cnp.PyArray_ISCARRAY_RO(array)
            and length % 8 == 0 and 0 < length <= spc_comm_scratch_bytes(handle.core))


cdef cnp.ndarray empty_like(cnp.ndarray array):
    """A new one in C order."""
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
    """After an interrupted reduction: the same call goes on with it, another one is refused by the core."""
    cdef Reduction asked = Reduction(handle, op, value, name, False, operation, root)
    cdef Reduction pending = <Reduction>handle.pending
    cdef bint is_same = pending.op == op and pending.operation == operation and pending.root == root
    if is_same and pending.kind == asked.kind and pending.hash == asked.hash:
        return pending.run()
    return asked.run()
