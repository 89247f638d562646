# SPDX-License-Identifier: MIT
from spcomm._core.collectives cimport Collectives


cdef class Messages(Collectives):
    pass
