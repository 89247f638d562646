# SPDX-License-Identifier: MIT
cimport numpy as cnp
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from spcomm._core.handle cimport Handle
from libspc cimport SPC_OPERATION_REDUCE, spc_field_t, spc_signature_t

cdef enum:
    CORE_TYPES = 24  # NumPy type numbers that the core may support


cdef inline void set_signature(spc_signature_t *signature, int op, uint32_t core, uint32_t fields,
                               uint64_t length, uint64_t layout) noexcept:
    memset(signature, 0, sizeof(signature[0]))
    signature.operation = SPC_OPERATION_REDUCE
    signature.op = op
    signature.type = core
    signature.field_count = fields
    signature.length_bytes = length
    signature.layout = layout


cdef object reduce_value(Handle handle, int op, object value, str name, int operation, uint32_t root)
cdef cnp.ndarray empty_like(cnp.ndarray array)
cdef int combine(Handle handle, const spc_signature_t *signature, const spc_field_t *fields,
                 const void *value, uint64_t length, void *result) noexcept
cdef uint32_t core_type(int number) noexcept
cdef uint64_t mix_array(uint64_t hash, int kind, uint32_t core, cnp.ndarray array) except? 0


cdef class Item:
    cdef int kind
    cdef uint32_t core      # the core's type of each element of `flat`; SPC_TYPE_NONE: it has none
    cdef object number      # the value of an INT or BOOL
    cdef object array
    cdef object flat        # the same memory in one dimension; for complex numbers, their parts
    cdef object dtype       # the dtype of the result; None: unchanged

    cdef int set_int(self, number, int kind) except -1
    cdef int set_array(self, value, int kind) except -1
    cdef int prepare(self, int op) except -1
    cdef uint64_t mix_into(self, uint64_t hash) except? 0
    cdef object result(self, str name)


cpdef bint is_simtimes(object dtype) except -1
cpdef object combined_times(int op, object left, object right)


cdef class Reduction:
    cdef Handle handle
    cdef int op
    cdef int operation         # SPC_OPERATION_REDUCE, or an array operation that also serves numbers
    cdef uint32_t root
    cdef int kind
    cdef str name
    cdef object value          # the original argument
    cdef uint64_t hash
    cdef uint64_t total        # bytes
    cdef list items
    cdef list steps            # lists of (item, start, stop); the core combines each step as a whole
    cdef Py_ssize_t at         # index of the next step
    cdef Py_ssize_t room       # bytes that fit in a step
    cdef bytearray buffer
    cdef bint exact            # this step is repeated with Python's ints
    cdef bytes mine            # in the exact exchange: this node's values,
    cdef object longest        # the bytes of the longest values of all nodes, or None,
    cdef list parts            # and the parts of each received so far

    cdef int plan(self) except -1
    cdef bint call(self, spc_signature_t *signature, spc_field_t *fields, void *value, uint64_t length,
                   void *result) except -1
    cdef bint reduce(self, list step) except -1
    cdef int gather(self, list step) except -1
    cdef void name_gather(self, spc_signature_t *signature) noexcept
    cdef list contributions(self)
    cdef int reduce_exactly(self, list step) except -1
    cdef int exchange(self) except -1
