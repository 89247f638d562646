# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""What the nodes of a run have left, after their end: messages that nobody received, barriers and cycles left open."""

from libc.stdint cimport uint32_t, uint64_t

from spcomm._core.libnotes cimport (
    SPC_CONTEXT_KINDS,
    SPC_NOTE_CYCLE,
    SPC_NOTE_FUZZY,
    SPC_REGION_MAILBOX,
    SPC_REGION_NOTE,
    spc_mailbox_shared_t,
    spc_mailbox_unread,
    spc_note_is_settled,
    spc_note_left_t,
    spc_note_read,
    spc_note_sent_t,
    spc_note_shared_t,
    spc_note_t,
    spc_unread_t,
)
from spcomm._core.libspc cimport (
    SPC_CONTEXT_USER,
    SPC_OK,
    SPC_REGION_STATUS,
    spc_segment_attach,
    spc_segment_detach,
    spc_segment_part,
    spc_segment_t,
    spc_status_process,
    spc_status_shared_t,
)

import os

from spcomm._core import errors


def find(boxes):
    """What the nodes of a run have left: all of them have ended.

    Parameters
    ----------
    boxes : list of (int, list of int)
        Of each box the descriptor of its segment, and the ranks of its nodes: of those only it is asked.

    Returns
    -------
    messages : list of tuple
        (source, destination, tag, number), of all communicators together; ranks are those of the run.
    more : int
        Messages that are not among them.
    still_open : list of tuple
        (rank, whether it is a cycle, number, file, line, function): fuzzy barriers that were never waited for, and
        cycles of coordinated messages.
    sent : dict
        (source, destination, tag) -> (file, line) of the last such message, of nodes that have noted it (--strict).
    """
    cdef dict messages = {}
    cdef list still_open = []
    cdef dict sent = {}
    cdef uint64_t more = 0
    for descriptor, ranks in boxes:
        more += add_box(descriptor, ranks, messages, still_open, sent)
    return [(*key, count) for key, count in sorted(messages.items())], more, sorted(still_open), sent


cdef uint64_t add_box(descriptor, ranks, dict messages, list still_open, dict sent) except? 1:
    """How many messages there are that are not among `messages`."""
    cdef spc_segment_t segment
    cdef uint64_t more = 0
    cdef uint32_t rank
    if spc_segment_attach(&segment, descriptor) != SPC_OK:
        raise errors.SpcommError("the run's shared memory cannot be read again")
    try:
        for rank in ranks:
            more += add_left(&segment, rank, messages)
            add_unread(&segment, rank, messages)
            add_open(&segment, rank, still_open)
            add_sent(&segment, rank, sent)
    finally:
        spc_segment_detach(&segment)
    return more


cdef spc_note_shared_t *notes_of(const spc_segment_t *self, uint32_t rank) except NULL:
    return <spc_note_shared_t *>spc_segment_part(self, SPC_REGION_NOTE, rank)


cdef uint64_t add_left(const spc_segment_t *self, uint32_t rank, dict messages) except? 1:
    """What this node has counted itself; how many more there are."""
    cdef spc_note_shared_t *notes = notes_of(self, rank)
    cdef spc_note_left_t *row
    cdef uint32_t i
    for i in range(notes.left_count):
        row = &notes.left[i]
        if row.context % SPC_CONTEXT_KINDS == SPC_CONTEXT_USER:
            key = (row.source, row.destination, row.tag)
            messages[key] = messages.get(key, 0) + row.count
    return notes.left_more


cdef int add_unread(const spc_segment_t *self, uint32_t rank, dict messages) except -1:
    """What came after it had closed, or to a node that never was one."""
    cdef spc_mailbox_shared_t *mailbox
    cdef spc_unread_t unread
    cdef uint32_t sender
    cdef uint32_t at
    status = <spc_status_shared_t *>spc_segment_part(self, SPC_REGION_STATUS, 0)
    if not spc_note_is_settled(notes_of(self, rank)) and spc_status_process(status, rank) != 0:
        return 0  # how far it has read is not known
    mailbox = <spc_mailbox_shared_t *>spc_segment_part(self, SPC_REGION_MAILBOX, rank)
    for sender in range(self.config.nodes):
        at = 0
        while spc_mailbox_unread(mailbox, sender, self.config.slots, &at, &unread):
            if unread.context % SPC_CONTEXT_KINDS == SPC_CONTEXT_USER:
                key = (<int>unread.source, rank, unread.tag)
                messages[key] = messages.get(key, 0) + 1
    return 0


cdef int add_open(const spc_segment_t *self, uint32_t rank, list still_open) except -1:
    cdef spc_note_t note
    cdef int kind
    for kind in (SPC_NOTE_FUZZY, SPC_NOTE_CYCLE):
        if spc_note_read(notes_of(self, rank), kind, &note) and note.count != 0:
            file = os.fsdecode(<bytes>(<const char *>note.file))
            function = (<bytes>(<const char *>note.function)).decode("utf-8", "replace")
            still_open.append((rank, kind == SPC_NOTE_CYCLE, note.count, file, note.line, function))
    return 0


cdef int add_sent(const spc_segment_t *self, uint32_t rank, dict sent) except -1:
    cdef const spc_note_sent_t *row
    cdef uint32_t i
    for i in range(notes_of(self, rank).sent_count):
        row = &notes_of(self, rank).sent[i]
        sent[(rank, row.destination, row.tag)] = os.fsdecode(<bytes>(<const char *>row.file)), row.line
    return 0
