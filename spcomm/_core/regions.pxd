# SPDX-License-Identifier: MIT
"""What a node of a traced run records of its own: who else records calls finds it here."""

from libc.stdint cimport int32_t, uint32_t

from spcomm._core.libspc cimport spc_trace_t

cdef uint32_t generation  # numbers of an earlier one are not to be used any more

cdef uint32_t find_place(spc_trace_t *trace) except? 0
cdef uint32_t name_of(spc_trace_t *trace, str text) except? 0
cdef void record(spc_trace_t *trace, int kind, uint32_t what, uint32_t place) noexcept
cdef void record_handling(spc_trace_t *trace, int kind, int32_t source, int32_t tag) noexcept
