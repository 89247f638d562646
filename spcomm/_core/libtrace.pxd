# SPDX-License-Identifier: MIT
"""C declarations: the ring of events in which a node records what it does."""

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t

from spcomm._core.libspc cimport spc_comm_t, spc_segment_t

cdef extern from "segment/spc_trace.h" nogil:
    enum:
        SPC_TRACE_CALL
        SPC_TRACE_RETURN
        SPC_TRACE_SEND
        SPC_TRACE_RECEIVE
        SPC_TRACE_WAIT
        SPC_TRACE_GO_ON
        SPC_TRACE_ENTER
        SPC_TRACE_LEAVE
        SPC_TRACE_WORK
        SPC_TRACE_HANDLE
        SPC_TRACE_HANDLED
        SPC_TRACE_NAMES_MAX
        SPC_TRACE_NAME_BYTES
    const char *SPC_TRACE_NO_ROOM
    ctypedef struct spc_trace_event_t:
        uint64_t ticks
        uint8_t kind
        uint16_t context
        int32_t peer
        int32_t tag
        uint32_t what
        uint32_t place
        uint32_t number
        uint64_t thread
        uint64_t bytes
    ctypedef struct spc_trace_shared_t:
        pass
    ctypedef struct spc_trace_t:
        pass
    void spc_trace_record(spc_trace_t *trace, const spc_trace_event_t *event)
    uint32_t spc_trace_name(spc_trace_t *trace, const char *text)
    ctypedef struct spc_trace_reader_t:
        const spc_trace_shared_t *shared
        uint64_t first
        uint64_t count
    void spc_trace_look(spc_trace_reader_t *reader, const spc_trace_shared_t *shared, uint64_t bytes)
    bint spc_trace_read(const spc_trace_reader_t *reader, uint64_t number, spc_trace_event_t *event,
                        uint64_t *time_ns)
    void spc_trace_text(const spc_trace_shared_t *shared, uint32_t number, char *text)


cdef extern from "segment/spc_segment.h" nogil:
    enum:
        SPC_REGION_TRACE


cdef extern from "comm/spc_comm.h" nogil:
    spc_trace_t *spc_comm_trace(const spc_comm_t *comm)
    void spc_comm_trace_call(const spc_comm_t *comm, uint32_t what, uint32_t place, uint32_t detail)
