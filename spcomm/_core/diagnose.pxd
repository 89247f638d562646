# SPDX-License-Identifier: MIT
"""Waits of nodes and their texts: declarations."""

from libc.stdint cimport uint32_t
from libc.stdio cimport FILE

from libspc cimport spc_segment_t


cdef extern from "stdio.h":
    FILE *open_memstream(char **text, size_t *length_bytes)


cdef object read_wait(const spc_segment_t *segment, uint32_t rank)
