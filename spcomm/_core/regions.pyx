# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Regions, the parts of a program that have a name in traces; and the numbers of names and lines in a node's trace."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport UINT32_MAX, int32_t, uint32_t, uintptr_t

from spcomm._core.handle cimport Handle
from spcomm._core.libframe cimport (
    PyEval_GetFrame,
    PyFrame_GetBack,
    PyFrame_GetCode,
    PyFrame_GetLasti,
    PyFrame_GetLineNumber,
    PyFrameObject,
)
from spcomm._core.libtrace cimport (
    SPC_TRACE_ENTER,
    SPC_TRACE_LEAVE,
    SPC_TRACE_NAMES_MAX,
    spc_comm_trace,
    spc_trace_event_t,
    spc_trace_name,
    spc_trace_record,
    spc_trace_t,
)

import os

from spcomm._core.places import is_ours

# A process is one node at a time: its trace has one set of numbers. They count from `forget` to `forget`.
generation = 0
cdef dict numbers = {}  # of texts; no more than there is room for in the trace

cdef enum:
    PLACES = 1024
cdef uint32_t OURS = UINT32_MAX


cdef struct place_t:
    PyObject *code  # NULL: free. Ours, so that no other one gets its address
    int instruction
    uint32_t number  # of its line; OURS: it is a line of spcomm, and the program's is further out


# Where a program calls from is few places, again and again; to find a line takes ten times as long as this. A program
# that has more, or makes code as it goes, finds its lines anew.
cdef place_t table[PLACES]


cdef uint32_t name_of(spc_trace_t *trace, str text) except? 0:
    """The number of a text."""
    found = numbers.get(text)
    if found is None:
        found = spc_trace_name(trace, text.encode("utf-8", "replace"))
        if found != SPC_TRACE_NAMES_MAX:
            numbers[text] = found
    return found


cdef uint32_t find_place(spc_trace_t *trace) except? 0:
    """The number of the line of the program that calls. 0: none of it does."""
    cdef PyFrameObject *frame = PyEval_GetFrame()
    cdef uint32_t number
    while frame != NULL:
        number = place_of(trace, frame)
        if number != OURS:
            return number
        frame = PyFrame_GetBack(frame)
        Py_XDECREF(<PyObject *>frame)  # it is being run, and lives on
    return 0


cdef inline uint32_t place_of(spc_trace_t *trace, PyFrameObject *frame) except? 0:
    cdef PyObject *code = <PyObject *>PyFrame_GetCode(frame)
    cdef int instruction = PyFrame_GetLasti(frame)
    Py_DECREF(<object>code)  # the frame has it
    cdef place_t *place = &table[((<uintptr_t>code >> 4) ^ <uintptr_t>instruction) % PLACES]
    if place.code != code or place.instruction != instruction:
        learn(trace, place, <object>code, instruction, PyFrame_GetLineNumber(frame))
    return place.number


cdef int learn(spc_trace_t *trace, place_t *place, object code, int instruction, int line) except -1:
    cdef uint32_t number = OURS
    cdef PyObject *before = place.code
    if not is_ours(code.co_filename):
        number = name_of(trace, f"{os.path.basename(code.co_filename)}:{line}")
    Py_INCREF(code)
    place.code, place.instruction, place.number = <PyObject *>code, instruction, number
    Py_XDECREF(before)
    return 0


def forget():
    """Another run begins in this process: its trace has numbers of its own."""
    global generation
    cdef PyObject *code
    cdef int at
    generation += 1
    numbers.clear()
    for at in range(PLACES):
        code, table[at].code = table[at].code, NULL
        Py_XDECREF(code)


cdef void record(spc_trace_t *trace, int kind, uint32_t what, uint32_t place) noexcept:
    """One event that is about no message."""
    cdef spc_trace_event_t event
    event.ticks = 0
    event.kind = kind
    event.context = 0
    event.peer = event.tag = 0
    event.what, event.place = what, place
    event.bytes = event.number = 0
    spc_trace_record(trace, &event)


cdef void record_handling(spc_trace_t *trace, int kind, int32_t source, int32_t tag) noexcept:
    """A handler begins or ends; `source` is a rank in the run."""
    cdef spc_trace_event_t event
    event.ticks = 0
    event.kind = kind
    event.context = 0
    event.peer, event.tag = source, tag
    event.what = event.place = 0
    event.bytes = event.number = 0
    spc_trace_record(trace, &event)


cdef class Region:
    """A part of a program that has a name in traces. Made by `Comm.region`.

    A context manager, and nothing else; it may be entered as often as one likes. Without a node it records nothing.
    """

    cdef Handle handle
    cdef str name
    cdef uint32_t what  # the number of the name
    cdef uint32_t numbered  # as long as this is `generation`

    def __cinit__(self, handle=None, name=None):
        self.handle = handle
        self.name = name

    cdef spc_trace_t *trace(self) noexcept:
        return NULL if self.handle is None else spc_comm_trace(self.handle.core)

    cdef uint32_t number(self, spc_trace_t *trace) except? 0:
        if self.what == 0 or self.numbered != generation:
            self.what = name_of(trace, self.name)
            self.numbered = generation
        return self.what

    def __enter__(self):
        cdef spc_trace_t *trace = self.trace()
        if trace != NULL:
            record(trace, SPC_TRACE_ENTER, self.number(trace), find_place(trace))
        return self

    def __exit__(self, kind, error, traceback):
        cdef spc_trace_t *trace = self.trace()
        if trace != NULL:
            record(trace, SPC_TRACE_LEAVE, self.number(trace), 0)
