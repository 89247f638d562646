# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t, int64_t

from spcomm._core.messages cimport Messages


cdef class Comm(Messages):
    cdef int64_t start_ns
    cdef int32_t group
