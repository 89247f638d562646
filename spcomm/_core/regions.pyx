# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""What a node of a traced run records beside messages and waits: its calls, with lines, and the program's regions."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint32_t

from spcomm._core.handle cimport Handle
from spcomm._core.libtrace cimport (
    SPC_TRACE_CALL,
    SPC_TRACE_ENTER,
    SPC_TRACE_LEAVE,
    SPC_TRACE_RETURN,
    spc_comm_trace,
    spc_trace_event_t,
    spc_trace_name,
    spc_trace_record,
    spc_trace_t,
)

import os

cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    PyFrameObject *PyEval_GetFrame()  # borrowed; the caller's, for functions in C have none
    int PyFrame_GetLineNumber(PyFrameObject *frame)
    ctypedef struct PyCodeObject:
        pass
    PyCodeObject *PyFrame_GetCode(PyFrameObject *frame)  # a new reference


cdef extern from "frameobject.h":
    int PyFrame_GetLasti(PyFrameObject *frame)


# Texts and lines that have a number already, by what they are: one node a process.
cdef dict numbers = {}
cdef list codes = []
cdef uint32_t last_place = 0
cdef PyObject *last_code = NULL  # `codes` holds it
cdef int last_instruction = -1


cdef uint32_t number_of(spc_trace_t *trace, object key, str text):
    found = numbers.get(key)
    if found is None:
        found = numbers[key] = spc_trace_name(trace, text.encode("utf-8", "replace"))
    return found


cdef uint32_t find_place(spc_trace_t *trace):
    """The number of the caller's line. A loop calls from the same instruction again."""
    global last_code, last_instruction, last_place
    cdef PyFrameObject *frame = PyEval_GetFrame()
    if frame == NULL:
        return 0
    cdef PyObject *code = <PyObject *>PyFrame_GetCode(frame)
    cdef int instruction = PyFrame_GetLasti(frame)
    Py_DECREF(<object>code)  # the frame has it
    if code != last_code or instruction != last_instruction:
        last_place = look_up(trace, <object>code, instruction, PyFrame_GetLineNumber(frame))
        last_code, last_instruction = code, instruction
    return last_place


cdef uint32_t look_up(spc_trace_t *trace, object code, int instruction, int line):
    key = id(code), instruction
    if key not in numbers:
        codes.append(code)  # so that no other one gets its address
        number_of(trace, key, f"{os.path.basename(code.co_filename)}:{line}")
    return numbers[key]


def forget():
    """Another run begins in this process: its trace has numbers of its own."""
    global last_code
    numbers.clear()
    codes.clear()
    last_code = NULL


cdef int record(spc_trace_t *trace, int kind, uint32_t what, uint32_t place) noexcept:
    cdef spc_trace_event_t event
    event.kind = kind
    event.context = 0
    event.peer = event.tag = 0
    event.what, event.place = what, place
    event.bytes = event.number = 0
    spc_trace_record(trace, &event)
    return 0


cdef class Region:
    """A part of a program that has a name in traces. Made by `Comm.region`.

    A context manager, and nothing else; it may be entered as often as one likes.
    """

    cdef Handle handle
    cdef str name

    def __cinit__(self, handle=None, name=None):
        self.handle = handle
        self.name = name

    def __enter__(self):
        cdef spc_trace_t *trace = spc_comm_trace(self.handle.core)
        if trace != NULL:
            record(trace, SPC_TRACE_ENTER, number_of(trace, self.name, self.name), find_place(trace))
        return self

    def __exit__(self, kind, error, traceback):
        cdef spc_trace_t *trace = spc_comm_trace(self.handle.core)
        if trace != NULL:
            record(trace, SPC_TRACE_LEAVE, number_of(trace, self.name, self.name), 0)


def recorded(method, str name):
    """The same method; what it does lies between a CALL and a RETURN in the trace."""

    def call(Handle self, *arguments, **named):
        cdef spc_trace_t *trace = spc_comm_trace(self.core)
        record(trace, SPC_TRACE_CALL, number_of(trace, name, name), find_place(trace))
        try:
            return method(self, *arguments, **named)
        finally:
            record(trace, SPC_TRACE_RETURN, 0, 0)

    call.__name__, call.__doc__ = method.__name__, method.__doc__
    return call
