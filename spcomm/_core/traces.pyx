# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Recorded events of the nodes of a run, for the process that started them. Imports no NumPy."""

from libc.stdint cimport uint32_t, uint64_t

from libspc cimport *

from collections import namedtuple

from spcomm._core import errors

if False:  # for the stub alone
    from typing import NamedTuple

    class Event(NamedTuple):
        time_ns: int
        kind: int
        context: int
        peer: int
        tag: int
        what: str
        line: str
        thread: int
        bytes: int
        number: int

CALL, RETURN, SEND, RECEIVE = SPC_TRACE_CALL, SPC_TRACE_RETURN, SPC_TRACE_SEND, SPC_TRACE_RECEIVE
WAIT, GO_ON, ENTER, LEAVE = SPC_TRACE_WAIT, SPC_TRACE_GO_ON, SPC_TRACE_ENTER, SPC_TRACE_LEAVE
WORK, START, CORE = SPC_TRACE_WORK, SPC_TRACE_START, SPC_TRACE_CORE
HANDLE, HANDLED = SPC_TRACE_HANDLE, SPC_TRACE_HANDLED
NO_ROOM: str = SPC_TRACE_NO_ROOM.decode()  # stands for a name or a line for which a node had no room left
NAMES_MAX = SPC_TRACE_NAMES_MAX - 1
Event = namedtuple("Event", "time_ns kind context peer tag what line thread bytes number")
Event.__doc__ = "One event of csrc/segment/spc_trace.h, with its texts in place of their numbers."


cdef object text_of(const spc_trace_shared_t *shared, uint32_t number, dict texts):
    cdef char text[SPC_TRACE_NAME_BYTES]
    found = texts.get(number)
    if found is None:
        spc_trace_text(shared, number, text)
        found = texts[number] = (<bytes>text).decode("utf-8", "replace")
    return found


cdef list read_events(const spc_trace_reader_t *reader):
    cdef spc_trace_event_t event
    cdef dict texts = {}
    cdef list found = []
    cdef uint64_t number, time_ns
    for number in range(reader.first, reader.count + 1):
        if spc_trace_read(reader, number, &event, &time_ns):
            found.append(Event(
                time_ns, event.kind, event.context, event.peer, event.tag,
                text_of(reader.shared, event.what, texts), text_of(reader.shared, event.place, texts),
                event.thread, event.bytes, event.number,
            ))
    return found


cdef bint is_written(const spc_trace_reader_t *reader, uint64_t number):
    cdef spc_trace_event_t event
    cdef uint64_t time_ns
    return spc_trace_read(reader, number, &event, &time_ns)


def read(fd, rank):
    """Return the events that a node has recorded, in order, and the number of older ones overwritten.

    Parameters
    ----------
    fd : int
        The segment of the node's box.
    rank : int
        The node's rank.

    Returns
    -------
    list of Event, int
        The list is empty and the number 0 if the run is not traced or the node is in another box.
    """
    cdef spc_segment_t segment
    cdef const spc_trace_shared_t *shared
    cdef spc_trace_reader_t reader
    if spc_segment_attach(&segment, fd) != SPC_OK:
        raise errors.SpcommError(f"read({fd}, {rank}): descriptor {fd} is no segment of this version")
    try:
        shared = <const spc_trace_shared_t *>spc_segment_part(&segment, SPC_REGION_TRACE, rank)
        if shared == NULL:
            return [], 0
        spc_trace_look(&reader, shared, spc_segment_stride(&segment, SPC_REGION_TRACE))
        return read_events(&reader), reader.first - 1
    finally:
        spc_segment_detach(&segment)


def read_after(fd, rank, after, most):
    """Return the latest events of a node of a run that goes on, in order, and the number of the last one.

    Parameters
    ----------
    fd, rank : int
        As `read` takes them.
    after : int
        Only events with larger numbers are read; 0: all.
    most : int
        Of these only the latest ones, at most so many.

    Returns
    -------
    list of Event, int
        The number is the one to continue `after`. If it has grown by more than the length of the list, there were
        events that are not in it.
    """
    cdef spc_segment_t segment
    cdef const spc_trace_shared_t *shared
    cdef spc_trace_reader_t reader
    if spc_segment_attach(&segment, fd) != SPC_OK:
        raise errors.SpcommError(f"read_after({fd}, {rank}): descriptor {fd} is no segment of this version")
    try:
        shared = <const spc_trace_shared_t *>spc_segment_part(&segment, SPC_REGION_TRACE, rank)
        if shared == NULL:
            return [], after
        spc_trace_look(&reader, shared, spc_segment_stride(&segment, SPC_REGION_TRACE))
        while reader.count > after and not is_written(&reader, reader.count):
            reader.count -= 1  # it is being written: the next call finds it
        reader.first = max(reader.first, after + 1, reader.count - min(reader.count, most) + 1)
        return read_events(&reader), max(after, reader.count)
    finally:
        spc_segment_detach(&segment)
