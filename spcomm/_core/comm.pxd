# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t, int64_t

from spcomm._core.handle cimport Handle


cdef class Comm(Handle):
    cdef int64_t start_ns
    cdef int32_t group
