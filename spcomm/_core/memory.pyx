# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Memory that arrays lie in: a block of an arena, or of the heap.

Such an array's base is a hidden array of bytes, whose base is a `Memory`. NumPy gives views the first base that is not
an array of their own type: so slices and reshapes refer to the hidden array, not to the one the user has, and its
reference count tells `move` whether there are any.
"""

cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint64_t

from spcomm._core.handle cimport Handle
from spcomm._core.libspc cimport SPC_STORED_HEAP, spc_comm_release_stored, spc_message_t

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    int PyArray_SetBaseObject(cnp.ndarray array, PyObject *base) except -1

cdef extern from *:
    """
    #define spcpy_new_bytes(dims, data, flags) \
        PyArray_New(&PyArray_Type, 1, dims, NPY_UINT8, NULL, data, 0, flags, NULL)
    """
    cnp.ndarray spcpy_new_bytes(const cnp.npy_intp *dims, void *data, int flags)

cdef enum:
    ALIGNMENT = 64
    ROOM_MIN = 128       # for the description of an array with 14 dimensions


@cython.final
@cython.freelist(64)
@cython.no_gc  # it refers to the handle only, and the handle to nothing that leads back here
cdef class Memory:
    """Owns what an array lies in; the base of that array's base."""

    def __dealloc__(self):
        if self.stored != NULL:
            spc_comm_release_stored(self.handle.core, self.storage, self.stored)


cdef Memory take_over(Handle handle, spc_message_t *message):
    """What the message lies in, block or heap: the message loses it."""
    cdef Memory memory = Memory.__new__(Memory)
    memory.handle = handle
    memory.storage = message.storage
    memory.is_sole = message.storage == SPC_STORED_HEAP or message.sole
    memory.stored = message.handle
    message.handle = NULL
    return memory


cdef object owned_bytes(Handle handle, int storage, void *stored, void *data, Py_ssize_t length):
    """A hidden array of bytes in memory that this node alone uses, and that goes with it."""
    cdef Memory memory = Memory.__new__(Memory)
    memory.handle = handle
    memory.storage = storage
    memory.is_sole = True
    memory.stored = stored
    return hidden_array(memory, data, length, True)


cdef object hidden_array(Memory memory, void *data, Py_ssize_t length, bint writable):
    """An array of bytes that refers to `memory`, for users' arrays to refer to."""
    cdef cnp.npy_intp dims = length
    cdef int flags = cnp.NPY_ARRAY_C_CONTIGUOUS | cnp.NPY_ARRAY_F_CONTIGUOUS | cnp.NPY_ARRAY_ALIGNED
    if writable:
        flags |= cnp.NPY_ARRAY_WRITEABLE
    cdef cnp.ndarray hidden = spcpy_new_bytes(&dims, data, flags)
    set_base(hidden, memory)
    return hidden


cdef int set_base(cnp.ndarray array, object base) except -1:
    Py_INCREF(base)  # for the array
    return PyArray_SetBaseObject(array, <PyObject *>base)


cdef uint64_t room_for_meta(uint64_t meta_bytes) noexcept:
    """How many bytes to leave in a block before the data of an array, so that it can be moved."""
    cdef uint64_t room = (meta_bytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    return min(max(<uint64_t>ROOM_MIN, room), <uint64_t>ROOM_MAX)
