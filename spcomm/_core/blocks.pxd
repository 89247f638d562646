# SPDX-License-Identifier: MIT
from spcomm._core.messages cimport Messages


cdef class Blocks(Messages):
    pass
