# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Waits of nodes, and the report of a deadlock, which the core writes (spc_deadlock_report.h). Imports no NumPy."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport FILE, fclose
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from spcomm._core.libdiagnose cimport (
    SPC_BOARD_GATHERING,
    c_bool,
    open_memstream,
    spc_deadlock_report_options_t,
    spc_deadlock_report_rows,
    spc_deadlock_report_write,
    spc_waits_create,
    spc_waits_free,
    spc_waits_read_board,
    spc_waits_t,
)
from spcomm._core.libspc cimport (
    SPC_BOARD_FILE_BYTES,
    SPC_BOARD_FUNCTION_BYTES,
    SPC_ENOMEM,
    SPC_NODES_MAX,
    SPC_OK,
    spc_board_entry_t,
    spc_segment_t,
)

import os
from collections import namedtuple

# Why the wait may end without anything that a node does: bits of `Wait.doubts`, as in spc_board.h.
TIMED, THREADS, TIMER, HANDLER, UNKNOWN = 1, 2, 4, 8, 16

# A wait that has lasted for some milliseconds at least: the entry of the node's status board as it is in memory, and
# the ranks of the run that it waits for; of a send those that keep messages of it.
Wait = namedtuple("Wait", "entry needs since_ns doubts")

cdef enum:
    TRIES = 3  # at a board that changes while it is read


cdef object read_wait(const spc_segment_t *segment, uint32_t rank):
    """Return the wait of a node; None: its board is not published."""
    cdef spc_board_entry_t entry
    cdef c_bool[SPC_NODES_MAX] needed
    cdef uint32_t other
    for _ in range(TRIES):
        memset(needed, 0, sizeof(needed))
        if spc_waits_read_board(segment, rank, &entry, needed):
            needs = tuple([other for other in range(<uint32_t>SPC_NODES_MAX) if needed[other]])
            return Wait((<char *>&entry)[:sizeof(entry)], needs, entry.since_ns, entry.doubts)
    return None


def packed(waits):
    """Waits by rank as lists, numbers and texts, which go through a pipe."""
    return [[rank, wait.entry.hex(), list(wait.needs)] for rank, wait in waits.items()]


def unpacked(rows):
    """Return the waits again. `ValueError` or `TypeError`: the rows are malformed."""
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
        found[rank] = Wait((<char *>&entry)[:sizeof(entry)], tuple(needs), entry.since_ns, entry.doubts)
    return found


cdef int fill(spc_waits_t *known, object waits, uint32_t size) except -1:
    """Copy the waits. The caller frees them; after an exception nothing is left to free."""
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


def report(waits, uint32_t size, str group="", bint in_vain=False):
    """The report of a proven deadlock (SP101), with its last line break.

    Parameters
    ----------
    waits : dict
        Of the nodes that are proven to wait for ever: rank in the run -> `Wait`.
    size : int
        Number of nodes of the run (or of its group).
    group : str
        `" of group 2"` where there are several groups.
    in_vain : bool
        A warning: none of these ever gets what it waits for, but some of the others still run, and may end.
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
        return os.fsdecode(text[:length_bytes])  # names of files may be no text
    finally:
        free(text)


cdef int add_row(void *argument, const c_bool *ranks, const char *call, const char *place) noexcept:
    try:
        found, size = <object>argument
        nodes = [rank for rank in range(<uint32_t>size) if ranks[<uint32_t>rank]]
        found.append((nodes, call.decode(), os.fsdecode(place)))
    except Exception:
        return SPC_ENOMEM
    return SPC_OK


def rows(waits):
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
