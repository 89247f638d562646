# SPDX-License-Identifier: MIT
from spcomm._core.blocks cimport Blocks


cdef class Handlers(Blocks):
    pass
