# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t

from spcomm._core.arrays cimport Encoded
from spcomm._core.handle cimport Handle
from spcomm._core.libgathering cimport spc_gathering_t
from spcomm._core.libspc cimport spc_payload_t, spc_signature_t


cdef class Gathering:
    cdef Handle handle
    cdef str name
    cdef str doing                # if it is a step of another call, that one in words
    cdef spc_gathering_t call
    cdef Encoded *encoded         # of what this node gives, by rank or one for all
    cdef spc_payload_t *payloads
    cdef int32_t own              # which of them is this node's own; -1: none
    cdef object own_value
    cdef list kept                # what `encoded` points to
    cdef object error             # why this node gives nothing
    cdef bytes failure            # the same for the others
    cdef bint bulk                # it copies so much that the interpreter's lock is given up at once

    cdef int make_room(self, Py_ssize_t count) except -1
    cdef int give(self, object value) except -1
    cdef int give_each(self, object values) except -1
    cdef int encode_all(self, list values) except -1
    cdef int fail_with(self, object error) except -1
    cdef int run(self) except -1
    cdef object own_copy(self)
    cdef object part_of(self, int32_t rank, bint copy)
    cdef list parts(self, bint copy)


cdef Gathering begin(Handle handle, int operation, int32_t root, str name)
cdef Gathering begin_step(Handle handle, int operation, const spc_signature_t *signature, str name, str doing)
cdef bint is_new(Gathering gathering) noexcept
