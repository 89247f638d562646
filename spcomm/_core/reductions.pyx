# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Reductions: numbers, tuples of them, and arrays that the core can combine where they lie, in one operation.

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
    SPC_TYPE_WIDE,
    spc_comm_collective,
    spc_comm_collective_poll,
    spc_comm_config,
    spc_field_t,
    spc_signature_t,
)
from spcomm._core.stepwise cimport (
    ARRAY,
    FLOAT,
    INT,
    TUPLE,
    Reduction,
    core_type,
    layout_of,
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

cdef spc_signature_t int_signature[OPERATORS]
cdef spc_signature_t float_signature[OPERATORS]


cdef void prepare_signatures() noexcept:
    cdef int op
    for op in range(OPERATORS):
        set_signature(&int_signature[op], op, SPC_TYPE_INT, 1, 8, layout_of(INT, mix(0, INT), 0))
        set_signature(&float_signature[op], op, SPC_TYPE_FLOAT64, 1, 8, layout_of(FLOAT, mix(0, FLOAT), 0))


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


cdef object reduce_value(Handle handle, int op, object value, str name):
    cdef spc_field_t field
    cdef int64_t number
    cdef double real
    cdef int overflow = 0
    cdef int status
    field.count = 1
    if handle.pending is not None:
        return resume(handle, op, value, name)
    if type(value) is float:
        field.type = SPC_TYPE_FLOAT64
        real = PyFloat_AS_DOUBLE(value)
        status = combine(handle, &float_signature[op], &field, &real, 8, &real)
        if status != SPC_OK:
            fail(handle, status, f"{name}()")
        return real
    if type(value) is int:
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        field.type = SPC_TYPE_INT if overflow == 0 else SPC_TYPE_WIDE
        status = combine(handle, &int_signature[op], &field, &number, 8, &number)
        if status == SPC_EWIDE:
            return Reduction(handle, op, value, name, True).run()
        if status != SPC_OK:
            fail(handle, status, f"{name}()")
        return number
    if cnp.PyArray_CheckExact(value) and is_direct(handle, <cnp.ndarray>value):
        return reduce_direct(handle, op, <cnp.ndarray>value, name)
    if type(value) is tuple and 0 < len(<tuple>value) <= SPC_FIELDS_MAX:
        return reduce_tuple(handle, op, <tuple>value, name)
    return Reduction(handle, op, value, name, False).run()


cdef object reduce_tuple(Handle handle, int op, tuple values, str name):
    """Numbers in one step; a tuple with anything else in it is for Reduction, with the same signature."""
    cdef spc_field_t fields[SPC_FIELDS_MAX]
    cdef int64_t numbers[SPC_FIELDS_MAX]
    cdef spc_signature_t signature
    cdef uint32_t count = <uint32_t>len(values)
    cdef uint64_t hash = mix(mix(0, TUPLE), count)
    cdef double real
    cdef uint32_t i
    cdef int overflow = 0
    cdef int status
    for i in range(count):
        fields[i].count = 1
        if type(values[i]) is float:
            fields[i].type = SPC_TYPE_FLOAT64
            real = PyFloat_AS_DOUBLE(values[i])
            memcpy(&numbers[i], &real, 8)
            hash = mix(hash, FLOAT)
        elif type(values[i]) is int:
            numbers[i] = PyLong_AsLongLongAndOverflow(values[i], &overflow)
            fields[i].type = SPC_TYPE_INT if overflow == 0 else SPC_TYPE_WIDE
            hash = mix(hash, INT)
        else:
            return Reduction(handle, op, values, name, False).run()
    set_signature(&signature, op, SPC_TYPE_INT if fields[0].type == SPC_TYPE_WIDE else fields[0].type, count,
                  8 * count, layout_of(TUPLE, hash, 0))
    status = combine(handle, &signature, fields, numbers, 8 * count, numbers)
    if status == SPC_EWIDE:
        return Reduction(handle, op, values, name, True).run()
    if status != SPC_OK:
        fail(handle, status, f"{name}()")
    return tuple([as_number(fields[i].type, &numbers[i]) for i in range(count)])


cdef object as_number(uint32_t core, const int64_t *number):
    cdef double real
    if core == SPC_TYPE_INT:
        return number[0]
    memcpy(&real, number, 8)
    return real


cdef bint is_direct(Handle handle, cnp.ndarray array) noexcept:
    """Can the core combine it in one step, where it lies?"""
    cdef int number = cnp.PyArray_TYPE(array)
    cdef uint64_t length = cnp.PyArray_NBYTES(array)
    return (core_type(number) != SPC_TYPE_NONE and cnp.PyArray_ISCARRAY_RO(array)
            and length % 8 == 0 and 0 < length <= spc_comm_config(handle.core).scratch_bytes)


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
    Py_INCREF(array.dtype)
    result = <cnp.ndarray>spcpy_empty_like(descr_of(array), cnp.PyArray_NDIM(array), cnp.PyArray_DIMS(array))
    status = combine(handle, &signature, &field, cnp.PyArray_DATA(array), length, cnp.PyArray_DATA(result))
    if status != SPC_OK:
        fail(handle, status, f"{name}()")
    return result


cdef object resume(Handle handle, int op, object value, str name):
    """After an interrupted reduction: the same call goes on with it, another one is refused by the core."""
    cdef Reduction asked = Reduction(handle, op, value, name, False)
    cdef Reduction pending = <Reduction>handle.pending
    if pending.op == asked.op and pending.kind == asked.kind and pending.hash == asked.hash:
        return pending.run()
    return asked.run()
