# SPDX-License-Identifier: MIT
cimport numpy as cnp
from libc.stdint cimport uint64_t

from spcomm._core.handle cimport Handle
from spcomm._core.libspc cimport spc_message_t

cdef enum:
    ROOM_MAX = 65472         # what a message can have before the data in a block


cdef class Memory:
    # Owns what arrays lie in.
    cdef Handle handle
    cdef void *stored    # a block or heap memory; NULL: nothing (any more)
    cdef int storage
    cdef bint is_sole    # no other node sees it


cdef Memory take_over(Handle handle, spc_message_t *message)
cdef object owned_bytes(Handle handle, int storage, void *stored, void *data, Py_ssize_t length)
cdef object hidden_array(Memory memory, void *data, Py_ssize_t length, bint writable)
cdef int set_base(cnp.ndarray array, object base) except -1
cdef uint64_t room_for_meta(uint64_t meta_bytes) noexcept
