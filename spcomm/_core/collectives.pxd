# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t, uint64_t

from spcomm._core.arrays cimport Encoded
from spcomm._core.handle cimport Handle
from libspc cimport spc_gathering_t, spc_payload_t, spc_signature_t


cdef class FuzzyBarrier:
    cdef Handle handle
    cdef uint64_t phase
    cdef object outcome  # None while the barrier is open, then True or the exception that ended it


cdef class Gathering:
    cdef Handle handle
    cdef str name
    cdef object doing             # for a step of another call: that call in words, or a function and its arguments
    cdef spc_gathering_t call
    cdef Encoded *encoded         # this node's contribution, by rank or one for all
    cdef spc_payload_t *payloads
    cdef int32_t own              # the index of this node's own; -1: none
    cdef object own_value
    cdef list kept                # objects that `encoded` points into
    cdef object error             # why this node contributes nothing
    cdef bytes failure            # the same for the other nodes
    cdef bint bulk                # copies so much that the interpreter's lock is released at once

    cdef int make_room(self, Py_ssize_t count) except -1
    cdef int give(self, object value) except -1
    cdef int give_each(self, object values) except -1
    cdef int encode_all(self, list values) except -1
    cdef int fail_with(self, object error) except -1
    cdef int run(self) except -1
    cdef object own_copy(self)
    cdef object part_of(self, int32_t rank, bint copy)
    cdef list parts(self, bint copy)


cdef int wait_at_barrier(Handle self, object timeout) except -1
cdef FuzzyBarrier enter_fuzzy_barrier(Handle self)
cdef list as_items(str name, str parameter, object values, int32_t size)
cdef Gathering begin_step(Handle handle, int operation, const spc_signature_t *signature, str name, object doing)
cdef bint is_new(Gathering gathering) noexcept
cdef object broadcast(Handle self, object value, object root, bint copy)
cdef object gather_on_root(Handle self, object value, object root)
cdef list gather_on_all(Handle self, object value, bint copy)
cdef object scatter_items(Handle self, object values, object root)
cdef list exchange_items(Handle self, object values)
