# SPDX-License-Identifier: MIT
cimport numpy as cnp

from libc.stdint cimport uint32_t

from spcomm._core.handle cimport Handle
from libspc cimport spc_message_t, spc_payload_t

cdef enum:
    ROOM_MAX = 65472         # the most that a message can have before the data in a block
    META_ROOM = 16 + 64 * 8  # an array's meta without description: header and at most 64 lengths
    DATA_ROOM = 1024         # numbers and small containers are assembled here
    NOGIL_BYTES = 32768      # copies of at least this much are made without the interpreter's lock


cdef struct Encoded:
    # An outgoing message: on the caller's stack, valid while the object and the result of encode() are alive.
    spc_payload_t payload
    unsigned char meta[META_ROOM]
    unsigned char data[DATA_ROOM]


cdef class Memory:
    # Owns the memory of arrays.
    cdef Handle handle
    cdef void *stored    # a block or heap memory; NULL: none, or given away
    cdef int storage
    cdef bint is_sole    # no other node sees the memory


cdef Memory take_over(Handle handle, spc_message_t *message)
cdef object owned_bytes(Handle handle, int storage, void *stored, void *data, Py_ssize_t length)
cdef object hidden_array(Memory memory, void *data, Py_ssize_t length, bint writable)
cdef bint is_adoptable(Handle handle, spc_message_t *message, bint copy) noexcept
cdef bint is_array(object value) noexcept
cdef object writable_alias(cnp.ndarray array)
cdef object encode_array(object array, Encoded *encoded)
cdef object decode_array(Handle handle, spc_message_t *message, bint copy)
cdef int check_out(object out) except -1
cdef object receive_into(Handle handle, spc_message_t *message, object out)
cdef object make_array(Handle self, object shape, object dtype, object order)
cdef int move_array(Handle self, object a, Py_ssize_t found, object dest, object tag, object timeout) except -1
cdef uint32_t core_type(int number) noexcept
cdef uint32_t type_of(cnp.ndarray array) except? 0xffffffff
cdef cnp.ndarray empty_like(cnp.ndarray array)
cpdef object combined_arrays(int op, object left, object right)
