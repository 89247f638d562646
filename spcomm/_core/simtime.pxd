# SPDX-License-Identifier: MIT
from libspc cimport spcomm_simtime_t


cdef class SimTime:
    cdef spcomm_simtime_t value  # never NaN, never changed


cdef object new_simtime(const spcomm_simtime_t *value)
cpdef bint is_simtimes(object dtype) except -1
