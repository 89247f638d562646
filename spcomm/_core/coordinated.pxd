# SPDX-License-Identifier: MIT
from libc.stdint cimport int64_t

from spcomm._core.handle cimport Handle
from spcomm._core.handlers cimport Handlers


cdef class Coordinated(Handlers):
    pass


cdef class CoordinatedMessages:
    cdef Handle handle
    cdef int64_t timeout_ns
    cdef bint copy
    cdef bint over
