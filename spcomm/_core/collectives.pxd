# SPDX-License-Identifier: MIT
from libc.stdint cimport uint64_t

from spcomm._core.handle cimport Handle


cdef class Collectives(Handle):
    pass


cdef class FuzzyBarrier:
    cdef Handle handle
    cdef uint64_t phase
    cdef object outcome  # None while it is open, then True or the exception that ended it
