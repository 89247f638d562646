# SPDX-License-Identifier: MIT
from libc.stdint cimport uint32_t

from spcomm._core.libspc cimport spc_board_entry_t, spc_board_shared_t, spc_segment_t


cdef object make_wait(const spc_segment_t *segment, uint32_t nodes, const spc_board_shared_t *board,
                      const spc_board_entry_t *entry)
