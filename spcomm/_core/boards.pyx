# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""What a node's status board says, as a Python object. Imports no NumPy."""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from spcomm._core.libspc cimport (
    SPC_BOARD_IN_C,
    SPC_BOARD_RENDEZVOUS,
    SPC_REGION_BOARD,
    spc_board_entry_t,
    spc_board_is_phase,
    spc_board_is_stuck,
    spc_board_pair_t,
    spc_board_read,
    spc_board_read_pair,
    spc_board_shared_t,
    spc_board_stuck,
    spc_reduce_line_arrived,
    spc_reduce_line_shared_t,
    spc_segment_address,
    spc_segment_part,
    spc_segment_t,
    spc_signature_t,
)

import os

from spcomm._core import waits


cdef object read_wait(const spc_segment_t *segment, uint32_t nodes, uint32_t rank):
    """What a node waits for; None: its board is not published."""
    cdef spc_board_entry_t entry
    cdef const spc_board_shared_t *board = <const spc_board_shared_t *>spc_segment_part(
        segment, SPC_REGION_BOARD, rank)
    cdef uint32_t stuck = spc_board_stuck(board)
    if not spc_board_is_stuck(stuck) or not spc_board_read(board, stuck, &entry):
        return None
    return make_wait(segment, nodes, board, &entry)


cdef object make_wait(const spc_segment_t *segment, uint32_t nodes, const spc_board_shared_t *board,
                      const spc_board_entry_t *entry):
    cdef spc_board_pair_t pair
    cdef const spc_reduce_line_shared_t *lines
    cdef spc_signature_t call
    cdef uint32_t rank
    cdef dict needs = {}
    cdef list full = []
    is_phase = spc_board_is_phase(entry)
    lines = <const spc_reduce_line_shared_t *>spc_segment_address(segment, entry.lines_offset)
    for rank in range(nodes):
        pair = spc_board_read_pair(board, rank)
        if pair.lent != 0:
            full.append(rank)
        if pair.needed == 0 or (is_phase and spc_reduce_line_arrived(&lines[pair.needed - 1], entry.phase)):
            continue
        needs[rank] = pair.needed - 1
    memcpy(&call, entry.call, sizeof(call))
    near = (entry.near_source, entry.near_tag, entry.near_count) if entry.near_count else None
    return waits.Wait(
        kind=waits.KINDS[entry.kind],
        doubts=entry.doubts,
        communicator=entry.communicator,
        rank=entry.rank,
        size=entry.size,
        source=entry.source,
        tag=entry.tag,
        near=near,
        file=os.fsdecode(<bytes>(<const char *>entry.file)),
        line=entry.line,
        function=(<bytes>(<const char *>entry.function)).decode("utf-8", "replace"),
        since_ns=entry.since_ns,
        number=entry.phase,
        call=(call.operation, call.op, call.type, call.field_count, call.length_bytes, call.layout, call.root),
        needs=needs,
        full=tuple(full),
        by_rendezvous=(entry.flags & SPC_BOARD_RENDEZVOUS) != 0,
        in_c=(entry.flags & SPC_BOARD_IN_C) != 0,
    )
