# SPDX-License-Identifier: MIT
from spcomm._core.coordinated cimport Coordinated


cdef class Gatherings(Coordinated):
    pass
