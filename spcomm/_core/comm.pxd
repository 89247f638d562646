# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t, int64_t

from spcomm._core.folds cimport Folds


cdef class Comm(Folds):
    cdef int64_t start_ns
    cdef int32_t group
