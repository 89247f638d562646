# SPDX-License-Identifier: MIT
from spcomm._core.libspc cimport spcomm_destination_t


cdef class RankSet:
    cdef spcomm_destination_t bits
