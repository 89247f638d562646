# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Regions, the parts of a program that have a name in traces; and the numbers of names and lines in a node's trace."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint32_t, uintptr_t
from libc.string cimport memset

from spcomm._core.handle cimport Handle
from spcomm._core.libframe cimport (
    PyEval_GetFrame,
    PyFrame_GetCode,
    PyFrame_GetLasti,
    PyFrame_GetLineNumber,
    PyFrameObject,
)
from spcomm._core.libtrace cimport (
    SPC_TRACE_ENTER,
    SPC_TRACE_LEAVE,
    spc_comm_trace,
    spc_trace_event_t,
    spc_trace_name,
    spc_trace_record,
    spc_trace_t,
)

import os

# A process is one node at a time: its trace has one set of numbers. They count from `forget` to `forget`.
generation = 0
cdef dict numbers = {}  # of texts; of lines, by code object and instruction
cdef list codes = []  # so that no other one gets the address of one that has a number


cdef struct place_t:
    PyObject *code  # NULL: free
    int instruction
    uint32_t number


# Where a program calls from is few places, again and again; to find a line takes ten times as long as this.
cdef place_t places[256]


cdef uint32_t name_of(spc_trace_t *trace, str text) except? 0:
    """The number of a text."""
    found = numbers.get(text)
    if found is None:
        found = numbers[text] = spc_trace_name(trace, text.encode("utf-8", "replace"))
    return found


cdef uint32_t find_place(spc_trace_t *trace) except? 0:
    """The number of the caller's line."""
    cdef PyFrameObject *frame = PyEval_GetFrame()
    if frame == NULL:
        return 0
    cdef PyObject *code = <PyObject *>PyFrame_GetCode(frame)
    cdef int instruction = PyFrame_GetLasti(frame)
    Py_DECREF(<object>code)  # the frame has it
    cdef place_t *place = &places[((<uintptr_t>code >> 4) ^ <uintptr_t>instruction) % 256]
    if place.code != code or place.instruction != instruction:
        place.number = look_up(trace, <object>code, instruction, frame)
        place.code, place.instruction = code, instruction
    return place.number


cdef uint32_t look_up(spc_trace_t *trace, object code, int instruction, PyFrameObject *frame) except? 0:
    key = id(code), instruction
    if key not in numbers:
        codes.append(code)
        line = f"{os.path.basename(code.co_filename)}:{PyFrame_GetLineNumber(frame)}"
        numbers[key] = name_of(trace, line)
    return numbers[key]


def forget():
    """Another run begins in this process: its trace has numbers of its own."""
    global generation
    generation += 1
    numbers.clear()
    codes.clear()
    memset(places, 0, sizeof(places))


cdef void record(spc_trace_t *trace, int kind, uint32_t what, uint32_t place) noexcept:
    """One event that is about no message."""
    cdef spc_trace_event_t event
    event.time_ns = 0
    event.kind = kind
    event.context = 0
    event.peer = event.tag = 0
    event.what, event.place = what, place
    event.bytes = event.number = 0
    spc_trace_record(trace, &event)


cdef class Region:
    """A part of a program that has a name in traces. Made by `Comm.region`.

    A context manager, and nothing else; it may be entered as often as one likes. Without a node it records nothing.
    """

    cdef Handle handle
    cdef str name

    def __cinit__(self, handle=None, name=None):
        self.handle = handle
        self.name = name

    cdef spc_trace_t *trace(self) noexcept:
        return NULL if self.handle is None else spc_comm_trace(self.handle.core)

    def __enter__(self):
        cdef spc_trace_t *trace = self.trace()
        if trace != NULL:
            record(trace, SPC_TRACE_ENTER, name_of(trace, self.name), find_place(trace))
        return self

    def __exit__(self, kind, error, traceback):
        cdef spc_trace_t *trace = self.trace()
        if trace != NULL:
            record(trace, SPC_TRACE_LEAVE, name_of(trace, self.name), 0)
