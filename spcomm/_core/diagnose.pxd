# SPDX-License-Identifier: MIT
"""Waits of nodes and their texts: declarations."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport FILE

from spcomm._core.libspc cimport spc_board_entry_t, spc_comm_t, spc_segment_t, spc_signature_t


cdef extern from "stdbool.h":
    ctypedef unsigned char c_bool "bool"


cdef extern from "stdio.h":
    FILE *open_memstream(char **text, size_t *length_bytes)


cdef extern from "segment/spc_board.h":
    enum:
        SPC_BOARD_GATHERING


cdef extern from "diagnose/spc_waits.h":
    ctypedef struct spc_waits_t:
        uint32_t known_count
        c_bool *known
        spc_board_entry_t *entry
        c_bool *needed
    int spc_waits_create(uint32_t nodes, spc_waits_t *waits)
    bint spc_waits_read_board(const spc_segment_t *segment, uint32_t rank, spc_board_entry_t *entry, c_bool *needed)
    void spc_waits_free(spc_waits_t *waits)


cdef extern from "diagnose/spc_deadlock_report.h":
    ctypedef struct spc_deadlock_report_options_t:
        const char *group
        c_bool in_vain
        const char *advice
        uint64_t waited_s
        c_bool has_launcher
    int spc_deadlock_report_write(const spc_waits_t *waits, const spc_deadlock_report_options_t *options, FILE *out)
    int spc_deadlock_report_rows(
        const spc_waits_t *waits,
        int (*row)(void *argument, const c_bool *ranks, const char *call, const char *place) noexcept,
        void *argument)


cdef extern from "comm/spc_comm.h":
    int spc_comm_report_wait(const spc_comm_t *comm, const char *advice, FILE *out)


cdef extern from "diagnose/spc_call_text.h":
    char *spc_call_text_collective(const spc_signature_t *call)
    const char *spc_call_text_type(uint32_t type)


cdef object read_wait(const spc_segment_t *segment, uint32_t rank)
