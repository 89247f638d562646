# SPDX-License-Identifier: MIT
from libc.stdint cimport uint32_t

from spcomm._core.libspc cimport spc_segment_t


cdef object read_wait(const spc_segment_t *segment, uint32_t rank)
