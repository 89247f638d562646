# SPDX-License-Identifier: MIT
from spcomm._core.gatherings cimport Gatherings


cdef class Folds(Gatherings):
    pass
