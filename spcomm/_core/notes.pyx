# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""What a node leaves written for others: where it ended, its line in a mismatch, what it has left open.

Imported when something ends or goes wrong; nothing here is on the way of a call that goes well.
"""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from spcomm._core.handle cimport Handle
from spcomm._core.libnotes cimport (
    SPC_NOTE_CYCLE,
    SPC_NOTE_END,
    SPC_NOTE_FILE_BYTES,
    SPC_NOTE_FUNCTION_BYTES,
    SPC_NOTE_FUZZY,
    SPC_NOTE_LEFT_MAX,
    SPC_NOTE_SENT_FILE_BYTES,
    SPC_NOTE_WORDS_BYTES,
    spc_comm_call_of,
    spc_comm_end_of,
    spc_comm_has_note,
    spc_comm_near,
    spc_comm_note,
    spc_comm_note_call,
    spc_comm_note_failure,
    spc_comm_note_raised,
    spc_comm_note_sent,
    spc_note_sent_t,
    spc_note_t,
)
from spcomm._core.libspc cimport (
    SPC_ANY_SOURCE,
    SPC_ANY_TAG,
    SPC_CONTEXT_USER,
    SPC_OPERATION_COORDINATED,
    SPC_OPERATION_FUZZY,
    spc_clock_deadline_ns,
    spc_comm_mismatch,
    spc_comm_rank_in_run,
    spc_signature_t,
)

import os

from spcomm._core import endings, places

cdef int64_t AT_ONCE_NS = 500_000_000  # for nodes that wait in the operation, and so have heard of it
cdef int64_t LATER_NS = 50_000_000  # for those who are told when they ask


cdef int put(char *room, int room_bytes, bytes text) except -1:
    text = text[:room_bytes - 1]
    memset(room, 0, room_bytes)
    memcpy(room, <const char *>text, len(text))
    return 0


cdef int fill(spc_note_t *note, str words, str file, int line, str function) except -1:
    memset(note, 0, sizeof(spc_note_t))
    put(note.words, SPC_NOTE_WORDS_BYTES, words.encode())
    put(note.function, SPC_NOTE_FUNCTION_BYTES, function.encode())
    put(note.file, SPC_NOTE_FILE_BYTES, places.tail(file, SPC_NOTE_FILE_BYTES - 1))
    note.line = line
    return 0


cdef object as_note(const spc_note_t *note):
    return endings.Note(
        (<bytes>note.words).decode("utf-8", "replace"),
        os.fsdecode(<bytes>note.file),
        note.line,
        (<bytes>note.function).decode("utf-8", "replace"),
    )


def end(Handle handle, str words, str file, int line, str function, int code):
    """Say how and where this node ends, and with which exit code. What is said first stays."""
    cdef spc_note_t note
    if not spc_comm_has_note(handle.core, SPC_NOTE_END):
        fill(&note, words, file, line, function)
        spc_comm_note(handle.core, SPC_NOTE_END, &note)
        if code != 0:
            spc_comm_note_failure(handle.core, code)


def raised(Handle handle, int change):
    """One more error, or one less (-1), is alive in this node of which it tells others."""
    spc_comm_note_raised(handle.core, change)


def end_of(Handle handle, int32_t rank):
    """How and where a node has ended, as a `Note`; None: that is not known."""
    cdef spc_note_t note
    return as_note(&note) if rank >= 0 and spc_comm_end_of(handle.core, rank, &note) else None


def leave_open(Handle handle, fuzzy, cycle):
    """Say where what is left open was begun: (file, line, function), or None."""
    cdef spc_note_t note
    for kind, place in ((SPC_NOTE_FUZZY, fuzzy), (SPC_NOTE_CYCLE, cycle)):
        if place is not None:
            fill(&note, "", place[0], place[1], place[2])
            spc_comm_note(handle.core, kind, &note)


def tell_sent(Handle handle):
    """Say where this node's messages were sent, the last first, if it was told to remember."""
    cdef spc_note_sent_t sent
    if not handle.sent:
        return
    for (rank, tag), (file, line, _function) in list(handle.sent.items())[:-SPC_NOTE_LEFT_MAX - 1:-1]:
        memset(&sent, 0, sizeof(sent))
        sent.destination, sent.tag, sent.line = spc_comm_rank_in_run(handle.core, rank), tag, line
        put(sent.file, SPC_NOTE_SENT_FILE_BYTES, places.tail(file, SPC_NOTE_SENT_FILE_BYTES - 1))
        spc_comm_note_sent(handle.core, &sent)


def mismatch(Handle handle, str words):
    """Of the operation that did not match: its number, what each node called, and the `Note` of each one.

    The others are told this node's line, and theirs are waited for, but not for long: a node that is elsewhere,
    since it does not wait in that operation, or whose program is not Python, says none.
    """
    cdef spc_signature_t found
    cdef spc_note_t note
    cdef uint64_t phase = 0
    cdef int64_t limit
    cdef int32_t rank
    cdef bint known
    called, notes = {}, {}
    for rank in range(handle.node_count):
        if spc_comm_mismatch(handle.core, rank, &found, &phase):
            called[rank] = (found.operation, found.op, found.type, found.field_count, found.length_bytes,
                            found.layout, found.root)
    if len(set(called.values())) < 2:
        return phase, by_rank_in_run(handle, called), notes
    file, line, function = places.of_caller()
    fill(&note, words, file, line, function)
    spc_comm_note_call(handle.core, phase, &note)
    for rank in called:
        limit = LATER_NS if called[rank][0] in (SPC_OPERATION_FUZZY, SPC_OPERATION_COORDINATED) else AT_ONCE_NS
        with nogil:
            known = spc_comm_call_of(handle.core, rank, phase, spc_clock_deadline_ns(limit), &note)
        if known:
            notes[rank] = as_note(&note)
    return phase, by_rank_in_run(handle, called), by_rank_in_run(handle, notes)


cdef dict by_rank_in_run(Handle handle, dict found):
    return {<int>spc_comm_rank_in_run(handle.core, rank): what for rank, what in found.items()}


def near(Handle handle, source, tag):
    """A message that is here and nearly the one asked for: its source, its tag, how many there are; or None."""
    cdef int32_t found_source = 0
    cdef int32_t found_tag = 0
    cdef int32_t wanted_source = SPC_ANY_SOURCE if source < 0 else source
    cdef int32_t wanted_tag = SPC_ANY_TAG if tag < 0 else tag
    cdef uint32_t count = spc_comm_near(handle.core, SPC_CONTEXT_USER, wanted_source, wanted_tag,
                                        &found_source, &found_tag)
    return (found_source, found_tag, count) if count else None
