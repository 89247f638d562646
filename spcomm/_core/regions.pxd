# SPDX-License-Identifier: MIT
"""Records of a traced node besides messages: declarations for other modules that record calls."""

from libc.stdint cimport int32_t, uint32_t

from libspc cimport spc_trace_t

cdef uint32_t generation  # numbers of an earlier generation are invalid

cdef uint32_t find_place(spc_trace_t *trace) except? 0
cdef uint32_t name_of(spc_trace_t *trace, str text) except? 0
cdef void record(spc_trace_t *trace, int kind, uint32_t what, uint32_t place) noexcept
cdef void record_handling(spc_trace_t *trace, int kind, int32_t source, int32_t tag) noexcept
