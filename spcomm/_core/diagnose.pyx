# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Waits, deadlock reports, texts for collective operations, and unmatched operations, read from the memory of a run.

The core has the texts (csrc/diagnose). Imports no NumPy.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport FILE, fclose
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from libspc cimport *

import os
from collections import namedtuple

from spcomm._core import errors

if False:  # for the stub alone
    from collections.abc import Iterable, Mapping
    from typing import NamedTuple

    class Wait(NamedTuple):
        entry: bytes
        needs: tuple[int, ...]
        since_ns: int
        doubts: int

    _Messages = list[tuple[int, int, int, int]]
    _Open = list[tuple[int, str, int, str, int, str]]

# ---- waits, and the report of a deadlock


# Reasons why a wait may end without any action of a node: bits of `Wait.doubts`, as in spc_board.h.
TIMED, THREADS, TIMER, HANDLER, UNKNOWN, UNCOUNTED, AT_END = 1, 2, 4, 8, 16, 32, 64

# A wait that has lasted at least some milliseconds: the node's status board entry as it is in memory, and the ranks of
# the run that it waits for; for a send, the ranks that keep messages of it.
Wait = namedtuple("Wait", "entry needs since_ns doubts")

cdef enum:
    TRIES = 3  # attempts on a board that changes during the read


cdef object read_wait(const spc_segment_t *segment, uint32_t rank):
    """Return the wait of a node, or None if its board is unpublished."""
    cdef spc_board_entry_t entry
    cdef spc_bool[SPC_NODES_MAX] needed
    cdef uint32_t other
    for _ in range(TRIES):
        memset(needed, 0, sizeof(needed))
        if spc_waits_read_board(segment, rank, &entry, needed):
            needs = tuple([other for other in range(<uint32_t>SPC_NODES_MAX) if needed[other]])
            return Wait((<char *>&entry)[:sizeof(entry)], needs, entry.since_ns, entry.doubts)
    return None


def packed(waits: Mapping[int, Wait]) -> list[Any]:
    """Return the waits by rank as lists, numbers and texts, which can pass through a pipe."""
    return [[rank, wait.entry.hex(), list(wait.needs)] for rank, wait in waits.items()]


def unpacked(rows: Iterable[Any]) -> dict[int, Wait]:
    """Restore the waits. `ValueError` or `TypeError`: the rows are malformed."""
    cdef spc_board_entry_t entry
    cdef const char *bytes_of
    found = {}
    for rank, text, needs in rows:
        data = bytes.fromhex(text)
        if len(data) != sizeof(entry) or not all(type(number) is int for number in (rank, *needs)):
            raise ValueError("a wait is malformed")
        if not 0 <= rank < SPC_NODES_MAX:
            raise ValueError("a wait of no node")
        bytes_of = data
        memcpy(&entry, bytes_of, sizeof(entry))
        if entry.kind > SPC_BOARD_GATHERING:
            raise ValueError("a wait has an unknown kind")
        entry.file[SPC_BOARD_FILE_BYTES - 1] = entry.function[SPC_BOARD_FUNCTION_BYTES - 1] = 0
        (<char *>&entry)[sizeof(entry) - 1] = 0  # the end of `more`
        found[rank] = Wait((<char *>&entry)[:sizeof(entry)], tuple(needs), entry.since_ns, entry.doubts)
    return found


cdef int fill(spc_waits_t *known, object waits, uint32_t size) except -1:
    """Copy the waits. The caller frees them; after an exception there is nothing to free."""
    if spc_waits_create(size, known) != SPC_OK:
        raise MemoryError
    try:
        copy_waits(known, waits, size)
    except BaseException:
        spc_waits_free(known)
        raise
    return 0


cdef int copy_waits(spc_waits_t *known, object waits, uint32_t size) except -1:
    cdef const char *entry
    for rank, wait in waits.items():
        if not 0 <= rank < size:
            continue
        entry = wait.entry
        memcpy(&known.entry[<uint32_t>rank], entry, sizeof(spc_board_entry_t))
        known.known[<uint32_t>rank] = True
        known.known_count += 1
        for other in wait.needs:
            if 0 <= other < size:
                known.needed[<uint64_t>rank * size + <uint32_t>other] = True
    return 0


def report(waits: Mapping[int, Wait], uint32_t size, str group="", bint in_vain=False) -> str:
    """Return the report of a proven deadlock (SP101), with its final line break.

    Parameters
    ----------
    waits : dict
        The nodes that are proven to wait for ever: rank in the run -> `Wait`.
    size : int
        Number of nodes of the run (or of its group).
    group : str
        `" of group 2"` if there are several groups.
    in_vain : bool
        Report a warning: none of these waits can ever succeed, but other nodes still run, and may end.
    """
    cdef spc_waits_t known
    cdef spc_deadlock_report_options_t options
    cdef char *text = NULL
    cdef size_t length_bytes = 0
    cdef FILE *out
    cdef int status
    cdef bytes encoded = group.encode()
    fill(&known, waits, size)
    options.group = <const char *>encoded if group else NULL
    options.advice = NULL
    options.waited_s = 0
    options.in_vain, options.has_launcher = in_vain, True
    out = open_memstream(&text, &length_bytes)
    if out == NULL:
        spc_waits_free(&known)
        raise MemoryError
    status = spc_deadlock_report_write(&known, &options, out)
    if fclose(out) != 0 or text == NULL:
        status = SPC_ENOMEM
    spc_waits_free(&known)
    try:
        if status != SPC_OK:
            raise MemoryError
        return os.fsdecode(text[:length_bytes])  # file names may be undecodable
    finally:
        free(text)


cdef int add_row(void *argument, const spc_bool *ranks, const char *call, const char *place) noexcept with gil:
    try:
        found, size = <object>argument
        nodes = [rank for rank in range(<uint32_t>size) if ranks[<uint32_t>rank]]
        found.append((nodes, call.decode(), os.fsdecode(place)))
    except Exception:
        return SPC_ENOMEM
    return SPC_OK


def rows(waits: Mapping[int, Wait]) -> list[tuple[list[int], str, str]]:
    """Return a row for all nodes that do the same: their ranks, the call, and the place or an empty text."""
    cdef spc_waits_t known
    cdef int status
    size = max(waits, default=-1) + 1
    if not size:
        return []
    found = []
    argument = (found, size)
    fill(&known, waits, size)
    status = spc_deadlock_report_rows(&known, add_row, <void *>argument)
    spc_waits_free(&known)
    if status != SPC_OK:
        raise MemoryError
    return found


# ---- texts for collective operations


# NumPy dtype names, by the core's number for the dtype.
TYPES: dict[int, str] = {
    number: spc_call_text_type(number).decode() for number in range(SPC_TYPE_INT8, SPC_TYPE_SIMTIME + 1)
}


def worded(signature: tuple[int, ...]) -> str:
    """Return a text such as `barrier()` or `global_sum() of an array of float64, 80 bytes`.

    Parameters
    ----------
    signature : tuple
        Operation, operator, type, fields, length, layout and root of a call, as numbers: a spc_signature_t. Reductions
        have no root; the field holds the letter of the NumPy dtype if the core does not know the type.
    """
    cdef spc_signature_t call
    call.operation, call.op, call.type, call.field_count, call.length_bytes, call.layout, call.root = signature
    cdef char *text = spc_call_text_collective(&call)
    if text == NULL:
        raise MemoryError
    try:
        return (<bytes> text).decode()
    finally:
        free(text)


# ---- messages and barriers left at the end


def unmatched(
    boxes: list[tuple[int, list[int]]]
) -> tuple[_Messages, int, _Open, dict[tuple[int, int, int], tuple[str, int]]]:
    """Return the messages and fuzzy barriers left by the nodes of a run; all nodes have ended.

    Parameters
    ----------
    boxes : list of (int, list of int)
        For each box, the descriptor of its segment and the ranks of its nodes, to which the result is limited.

    Returns
    -------
    messages : list of tuple
        (source, destination, tag, number, whether the destination has a handler for them), over all communicators;
        ranks are those of the run.
    more : int
        The number of messages beyond those listed.
    still_open : list of tuple
        (rank, what, number, file, line, function): "barrier" of fuzzy barriers that were never waited for, "cycle" of
        cycles of coordinated messages, "request" of the MPI library's, which has named their lines itself.
    sent : dict
        (source, destination, tag) -> (file, line) of the last such message, for nodes that recorded it (--strict).
    """
    cdef dict messages = {}
    cdef list still_open = []
    cdef dict sent = {}
    cdef uint64_t more = 0
    for descriptor, ranks in boxes:
        more += add_box(descriptor, ranks, messages, still_open, sent)
    return [(*key, count) for key, count in sorted(messages.items())], more, sorted(still_open), sent


cdef uint64_t add_box(descriptor, ranks, dict messages, list still_open, dict sent) except? 1:
    """Return the number of messages beyond those in `messages`."""
    cdef spc_segment_t segment
    cdef uint64_t more = 0
    cdef uint32_t rank
    if spc_segment_attach(&segment, descriptor) != SPC_OK:
        raise errors.SpcommError("the run's shared memory cannot be read again")
    try:
        for rank in range(segment.config.nodes):  # the gateway has noted what it dropped as left by nodes elsewhere
            more += add_left(&segment, rank, rank in ranks, messages)
        for rank in ranks:
            add_unread(&segment, rank, messages)
            add_open(&segment, rank, still_open)
            add_sent(&segment, rank, sent)
    finally:
        spc_segment_detach(&segment)
    return more


cdef spc_note_shared_t *notes_of(const spc_segment_t *self, uint32_t rank) except NULL:
    return <spc_note_shared_t *>spc_segment_part(self, SPC_REGION_NOTE, rank)


cdef uint64_t add_left(const spc_segment_t *self, uint32_t rank, bint is_here, dict messages) except? 1:
    """Read the counts of a node, or of the gateway for a node elsewhere; return the number of further ones."""
    cdef spc_note_shared_t *notes = notes_of(self, rank)
    cdef spc_note_shared_t *receiver
    cdef spc_note_left_t *row
    cdef uint32_t i
    for i in range(notes.left_count):
        row = &notes.left[i]
        if row.context % SPC_CONTEXT_KINDS == SPC_CONTEXT_USER:
            receiver = notes_of(self, row.destination)
            is_handled = (row.destination == rank or not is_here) and spc_note_is_handled(
                receiver, row.context, row.tag
            )
            key = (row.source, row.destination, row.tag, is_handled)
            messages[key] = messages.get(key, 0) + row.count
    return notes.left_more


cdef int add_unread(const spc_segment_t *self, uint32_t rank, dict messages) except -1:
    """Count messages that arrived after the node had closed, or at a node that never started."""
    cdef spc_mailbox_shared_t *mailbox
    cdef spc_unread_t unread
    cdef uint32_t sender
    cdef uint32_t at
    status = <spc_status_shared_t *>spc_segment_part(self, SPC_REGION_STATUS, 0)
    if not spc_note_is_settled(notes_of(self, rank)) and spc_status_process(status, rank) != 0:
        return 0  # its read position is unknown
    mailbox = <spc_mailbox_shared_t *>spc_segment_part(self, SPC_REGION_MAILBOX, rank)
    for sender in range(self.config.nodes):
        at = 0
        while spc_mailbox_unread(mailbox, sender, self.config.slots, &at, &unread):
            if unread.context % SPC_CONTEXT_KINDS == SPC_CONTEXT_USER:
                is_handled = spc_note_is_handled(notes_of(self, rank), unread.context, unread.tag)
                key = (<int>unread.source, rank, unread.tag, is_handled)
                messages[key] = messages.get(key, 0) + 1
    return 0


cdef int add_open(const spc_segment_t *self, uint32_t rank, list still_open) except -1:
    cdef spc_note_t note
    cdef spc_note_kind_t kind
    for kind, what in ((SPC_NOTE_FUZZY, "barrier"), (SPC_NOTE_CYCLE, "cycle"), (SPC_NOTE_REQUEST, "request")):
        if spc_note_read(notes_of(self, rank), kind, &note) and note.count != 0:
            file = os.fsdecode(<bytes>(<const char *>note.file))
            function = (<bytes>(<const char *>note.function)).decode("utf-8", "replace")
            still_open.append((rank, what, note.count, file, note.line, function))
    return 0


cdef int add_sent(const spc_segment_t *self, uint32_t rank, dict sent) except -1:
    cdef const spc_note_sent_t *row
    cdef uint32_t i
    for i in range(notes_of(self, rank).sent_count):
        row = &notes_of(self, rank).sent[i]
        sent[(rank, row.destination, row.tag)] = os.fsdecode(<bytes>(<const char *>row.file)), row.line
    return 0
