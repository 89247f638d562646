# SPDX-License-Identifier: MIT
"""What a node leaves written for others to read: declarations."""

from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t

from spcomm._core.libspc cimport spc_comm_t, spc_segment_t


cdef extern from "segment/spc_note.h" nogil:
    enum:
        SPC_NOTE_WORDS_BYTES
        SPC_NOTE_FUNCTION_BYTES
        SPC_NOTE_FILE_BYTES
        SPC_NOTE_SENT_FILE_BYTES
        SPC_NOTE_LEFT_MAX
        SPC_NOTE_END
        SPC_NOTE_CALL
        SPC_NOTE_FUZZY
        SPC_NOTE_CYCLE
    ctypedef struct spc_note_t:
        uint32_t count
        uint32_t line
        char words[136]
        char function[64]
        char file[256]
    ctypedef struct spc_note_left_t:
        uint32_t source
        uint32_t destination
        int32_t tag
        uint32_t context
        uint64_t count
    ctypedef struct spc_note_sent_t:
        uint32_t destination
        int32_t tag
        uint32_t line
        char file[112]
    ctypedef struct spc_note_shared_t:
        uint32_t left_count
        uint64_t left_more
        spc_note_left_t left[32]
        uint32_t sent_count
        spc_note_sent_t sent[32]
    bint spc_note_read(const spc_note_shared_t *notes, int kind, spc_note_t *note)
    bint spc_note_is_settled(const spc_note_shared_t *notes)


cdef extern from "comm/spc_comm.h" nogil:
    enum:
        SPC_CONTEXT_KINDS
    void spc_comm_note(spc_comm_t *comm, int kind, const spc_note_t *note)
    void spc_comm_note_sent(spc_comm_t *comm, const spc_note_sent_t *sent)
    void spc_comm_note_failure(spc_comm_t *comm, int32_t exit_code)
    void spc_comm_note_raised(spc_comm_t *comm, int32_t change)
    bint spc_comm_has_note(const spc_comm_t *comm, int kind)
    bint spc_comm_end_of(const spc_comm_t *comm, uint32_t rank, spc_note_t *note)
    void spc_comm_note_call(spc_comm_t *comm, uint64_t phase, spc_note_t *note)
    bint spc_comm_call_of(const spc_comm_t *comm, uint32_t rank, uint64_t phase, uint64_t deadline_ns,
                          spc_note_t *note)
    uint32_t spc_comm_near(const spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                           int32_t *near_source, int32_t *near_tag)


cdef extern from "segment/spc_segment.h" nogil:
    enum:
        SPC_REGION_MAILBOX
        SPC_REGION_NOTE


cdef extern from "message/spc_mailbox.h" nogil:
    ctypedef struct spc_mailbox_shared_t:
        pass
    ctypedef struct spc_unread_t:
        uint16_t source
        uint16_t context
        int32_t tag
    bint spc_mailbox_unread(spc_mailbox_shared_t *mailbox, uint32_t sender, uint32_t slots, uint32_t *at,
                            spc_unread_t *unread)


cdef extern from "diagnose/spc_leftovers.h" nogil:
    bint spc_leftovers_any(const spc_segment_t *segment)
