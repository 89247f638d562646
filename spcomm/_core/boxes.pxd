# SPDX-License-Identifier: MIT
"""Which node is in which box: what the launcher writes into each box's segment."""

from libc.stdint cimport uint16_t, uint32_t

from spcomm._core.libboxes cimport (
    SPC_BOXES_MAX,
    SPC_REGION_EVENT,
    spc_event_shared_t,
    spc_event_stand_in,
    spc_segment_is_here,
    spc_segment_set_boxes,
)
from spcomm._core.libspc cimport spc_segment_detach, spc_segment_part, spc_segment_t


cdef inline int check_places(nodes, boxes, box, places) except -1:
    """The box of each node, and this one, are among those that there are."""
    from spcomm._core import errors

    most = min(nodes, SPC_BOXES_MAX)
    if not 1 <= boxes <= most or not 0 <= box < boxes:
        raise errors.ConfigError(f"boxes={boxes}, box={box}: allowed are 1 to {most}, and one of them")
    if boxes > 1 and (len(places) != nodes or set(places) != set(range(boxes))):
        raise errors.ConfigError(f"places={places!r}: needed is the box of each of {nodes} nodes, 0 to {boxes - 1}")
    return 0


cdef inline int divide(const spc_segment_t *segment, uint32_t box, places) except -1:
    """Write down who is where. This box's agent looks for whoever is in another one."""
    from sys import byteorder

    cdef spc_event_shared_t *events = <spc_event_shared_t *>spc_segment_part(segment, SPC_REGION_EVENT, 0)
    cdef bytes by_rank = b"".join([int(place).to_bytes(2, byteorder) for place in places])
    cdef uint32_t rank
    spc_segment_set_boxes(segment, <const uint16_t *><const char *>by_rank)
    for rank in range(segment.config.nodes):
        if places[rank] != box:
            spc_event_stand_in(&events[rank], &events[segment.config.nodes])
    return 0


cdef inline int count_here(spc_segment_t *segment) except -1:
    """How many nodes are in this box. Gives up the mapping."""
    cdef uint32_t rank
    cdef int found = 0
    for rank in range(segment.config.nodes):
        found += spc_segment_is_here(segment, rank)
    spc_segment_detach(segment)
    return found
