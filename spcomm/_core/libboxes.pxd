# SPDX-License-Identifier: MIT
"""C declarations: which nodes are in which box."""

from libc.stdint cimport uint16_t, uint32_t

from spcomm._core.libspc cimport spc_segment_t

cdef extern from "segment/spc_segment.h" nogil:
    enum:
        SPC_BOXES_MAX
        SPC_REGION_EVENT
    bint spc_segment_is_here(const spc_segment_t *segment, uint32_t rank)
    void spc_segment_set_boxes(const spc_segment_t *segment, const uint16_t *box_by_rank)


cdef extern from "segment/spc_event.h" nogil:
    ctypedef struct spc_event_shared_t:
        pass
    void spc_event_stand_in(spc_event_shared_t *event, const spc_event_shared_t *agent)
