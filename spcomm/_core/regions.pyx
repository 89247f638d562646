# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Trace records of a node besides messages: regions, the named parts of a program; calls; work.

In a traced run `Recorded` methods replace those of `Comm`. No function here is a Python frame, so the innermost frame
is the caller's.
"""

from cpython.exc cimport PyErr_ExceptionMatches
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdint cimport UINT32_MAX, int32_t, uint32_t, uintptr_t
from libc.string cimport memcpy, memset

from spcomm._core.collectives cimport FuzzyBarrier, enter_fuzzy_barrier
from spcomm._core.handle cimport Handle
from libspc cimport *

import os
from math import inf
from operator import index

from spcomm._core import error_text, work_sleep
from spcomm._core.call_site import is_ours

if False:  # for the stub alone
    from collections.abc import Callable
    from typing import SupportsFloat

cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    ctypedef struct PyCodeObject:
        pass
    PyFrameObject *PyEval_GetFrame()  # borrowed; the caller's frame, because functions in C have none
    int PyFrame_GetLineNumber(PyFrameObject *frame)
    PyFrameObject *PyFrame_GetBack(PyFrameObject *frame)  # a new reference, or NULL
    PyCodeObject *PyFrame_GetCode(PyFrameObject *frame)  # a new reference


cdef extern from "frameobject.h":
    int PyFrame_GetLasti(PyFrameObject *frame)

# A process is one node at a time, so its trace has one set of numbers, valid from one `forget` to the next.
generation = 0
cdef dict numbers = {}  # of texts; at most as many as the trace has room for

cdef enum:
    PLACES = 1024
cdef uint32_t OURS = UINT32_MAX


cdef struct place_t:
    PyObject *code  # NULL: free. The entry owns a reference, so that no other code object gets its address
    int instruction
    uint32_t number  # of its line; OURS: a line of spcomm, and the program's line is further out


# A program calls from few places, again and again, and finding a line takes ten times as long as this lookup. A program
# with more places, or one that creates code while it runs, finds its lines each time.
cdef place_t table[PLACES]


cdef uint32_t name_of(spc_trace_t *trace, str text) except? 0:
    """Return the number of a text."""
    found = numbers.get(text)
    if found is None:
        found = spc_trace_name(trace, text.encode("utf-8", "replace"))
        if found != SPC_TRACE_NAMES_MAX:
            numbers[text] = found
    return found


cdef uint32_t find_place(spc_trace_t *trace) except? 0:
    """Return the number of the program's calling line, or 0 if no frame belongs to the program."""
    cdef PyFrameObject *frame = PyEval_GetFrame()
    cdef uint32_t number
    while frame != NULL:
        number = place_of(trace, frame)
        if number != OURS:
            return number
        frame = PyFrame_GetBack(frame)
        Py_XDECREF(<PyObject *>frame)  # the running frame lives on
    return 0


cdef inline uint32_t place_of(spc_trace_t *trace, PyFrameObject *frame) except? 0:
    cdef PyObject *code = <PyObject *>PyFrame_GetCode(frame)
    cdef int instruction = PyFrame_GetLasti(frame)
    Py_DECREF(<object>code)  # the frame holds a reference
    cdef place_t *place = &table[((<uintptr_t>code >> 4) ^ <uintptr_t>instruction) % PLACES]
    if place.code != code or place.instruction != instruction:
        learn(trace, place, <object>code, instruction, PyFrame_GetLineNumber(frame))
    return place.number


cdef int learn(spc_trace_t *trace, place_t *place, object code, int instruction, int line) except -1:
    cdef uint32_t number = OURS
    cdef PyObject *before
    if not is_ours(code.co_filename):
        number = name_of(trace, f"{os.path.basename(code.co_filename)}:{line}")
    before = place.code  # not earlier: the lines above run Python code, and another thread may add the place, too
    Py_INCREF(code)
    place.code, place.instruction, place.number = <PyObject *>code, instruction, number
    Py_XDECREF(before)
    return 0


def forget() -> None:
    """Start another run in this process: its trace has its own numbers."""
    global generation
    cdef PyObject *code
    cdef int at
    generation += 1
    numbers.clear()
    for at in range(PLACES):
        code, table[at].code = table[at].code, NULL
        Py_XDECREF(code)


cdef void record(spc_trace_t *trace, int kind, uint32_t what, uint32_t place) noexcept:
    """Record one event that does not concern a message."""
    cdef spc_trace_event_t event
    event.ticks = 0
    event.kind = kind
    event.context = 0
    event.peer = event.tag = 0
    event.what, event.place = what, place
    event.bytes = event.number = 0
    spc_trace_record(trace, &event)


cdef void record_handling(spc_trace_t *trace, int kind, int32_t source, int32_t tag) noexcept:
    """Record the begin or end of a handler; `source` is a rank in the run."""
    cdef spc_trace_event_t event
    event.ticks = 0
    event.kind = kind
    event.context = 0
    event.peer, event.tag = source, tag
    event.what = event.place = 0
    event.bytes = event.number = 0
    spc_trace_record(trace, &event)


cdef class Region:
    """A named part of a program in traces. Made by `Comm.region`.

    A region is only a context manager, and may be entered any number of times. Without a node it records nothing.
    """

    cdef Handle handle
    cdef str name
    cdef uint32_t what  # the number of the name
    cdef uint32_t numbered  # valid while it equals `generation`

    def __cinit__(self, handle: Handle | None = None, name: str | None = None):
        self.handle = handle
        self.name = name

    cdef spc_trace_t *trace(self) noexcept:
        return NULL if self.handle is None else spc_comm_trace(self.handle.core)

    cdef uint32_t number(self, spc_trace_t *trace) except? 0:
        if self.what == 0 or self.numbered != generation:
            self.what = name_of(trace, self.name)
            self.numbered = generation
        return self.what

    def __enter__(self) -> Self:
        cdef spc_trace_t *trace = self.trace()
        if trace != NULL:
            record(trace, SPC_TRACE_ENTER, self.number(trace), find_place(trace))
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        cdef spc_trace_t *trace = self.trace()
        if trace != NULL:
            record(trace, SPC_TRACE_LEAVE, self.number(trace), 0)


# ---- calls


cdef enum:  # outcome of a call: in the tag of RETURN
    WELL = 0
    LEFT = 1  # by a timeout or Ctrl-C: the same call resumes it
    RAISED = 2

cdef extern from *:
    """
    #include <stddef.h>

    /* For a class whose instances stand among the methods of another one: the interpreter calls them with the object
     * before the arguments, as it calls functions, and nothing is packed on the way (PEP 590). */
    static void spc_make_method(PyObject *type, size_t vectorcall_offset) {
        PyTypeObject *made = (PyTypeObject *)type;
        made->tp_vectorcall_offset = (Py_ssize_t)vectorcall_offset;
        made->tp_call = PyVectorcall_Call;
        made->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
        PyType_Modified(made);
    }
    """
    ctypedef PyObject *(*vectorcallfunc)(PyObject *, PyObject **arguments, size_t count, PyObject *names) except NULL
    void spc_make_method(object type, size_t vectorcall_offset)
    # NULL passes through unchanged: a `try` would first save the exception being handled, at every call.
    PyObject *PyObject_Vectorcall(object callable, PyObject **arguments, size_t count, PyObject *names)
    Py_ssize_t PyVectorcall_NARGS(size_t count)
    object PyMethod_New(object function, object instance)


cdef class Recorded:
    """A method whose work lies between a CALL and a RETURN in the trace of its node."""

    cdef vectorcallfunc vectorcall
    cdef object method
    cdef str name
    cdef size_t at  # index of the argument recorded with the call, the object being 0; 0: none
    cdef str keyword  # its name
    cdef uint32_t what  # the number of the name
    cdef uint32_t generation  # valid while it equals the module's

    def __cinit__(self, method: Callable[..., Any] | None, str name, size_t at=0, str keyword=""):
        self.vectorcall = <vectorcallfunc>call
        self.method = method
        self.name = name
        self.at = at
        self.keyword = keyword

    def __get__(self, instance: object, owner: type | None) -> Any:
        return self if instance is None else PyMethod_New(self, instance)

    @property
    def __name__(self) -> str:
        return self.method.__name__

    @property
    def __doc__(self):
        return self.method.__doc__

    @property
    def __wrapped__(self) -> Any:
        return self.method


cdef uint32_t detail_of(Recorded self, PyObject **arguments, size_t count, PyObject *names) except? 0:
    """Return the argument recorded with the call, a whole number from 0 on; 0 stands for any other value."""
    cdef size_t given = PyVectorcall_NARGS(count)
    cdef object found = 0
    if self.at < given:
        found = <object>arguments[self.at]
    elif names != NULL and self.keyword in <tuple>names:
        found = <object>arguments[given + <size_t>(<tuple>names).index(self.keyword)]
    try:
        return index(found)
    except (TypeError, OverflowError):
        return 0  # the method will refuse it


cdef void end_call(spc_trace_t *trace, int how) noexcept:
    cdef spc_trace_event_t event
    memset(&event, 0, sizeof(event))
    event.kind = SPC_TRACE_RETURN
    event.tag = how
    spc_trace_record(trace, &event)


cdef int how_it_ended(PyObject *found) noexcept:
    if found != NULL:
        return WELL
    return LEFT if PyErr_ExceptionMatches((TimeoutError, KeyboardInterrupt)) else RAISED


cdef PyObject *call(PyObject *callable, PyObject **arguments, size_t count, PyObject *names) except NULL:
    cdef Recorded self = <Recorded>callable
    cdef spc_trace_t *trace = NULL
    cdef const spc_comm_t *core = NULL
    if PyVectorcall_NARGS(count) != 0 and isinstance(<object>arguments[0], Handle):
        core = (<Handle><object>arguments[0]).core
        trace = spc_comm_trace(core)
    if trace == NULL:  # without a node, which the method itself refuses; or the box has no ring
        return PyObject_Vectorcall(self.method, arguments, count, names)
    if self.what == 0 or self.generation != generation:
        self.what = name_of(trace, self.name)
        self.generation = generation
    cdef uint32_t detail = detail_of(self, arguments, count, names) if self.at else 0
    spc_comm_trace_call(core, self.what, find_place(trace), detail)
    cdef PyObject *found = PyObject_Vectorcall(self.method, arguments, count, names)
    end_call(trace, how_it_ended(found))
    return found


cdef Recorded _example = Recorded(None, "")
spc_make_method(Recorded, <size_t>(<char *>&_example.vectorcall - <char *><PyObject *>_example))


cdef class RecordedFuzzyBarrier(FuzzyBarrier):
    """A fuzzy barrier whose end is in the trace, with its number, also that of a ``with`` block."""

    cdef uint32_t number  # among those that its communicator has entered, from 1 on
    cdef bint is_over  # over, and recorded as such

    def done(self) -> bool:
        """Call `FuzzyBarrier.done`. Only the answer yes is recorded, because a loop may ask often."""
        cdef spc_trace_t *trace
        if not self.is_over and FuzzyBarrier.done(self):
            self.is_over = True
            trace = begin_ending(self, "fuzzy_barrier.done")
            if trace != NULL:
                end_call(trace, WELL)
        return self.is_over

    def wait(self, timeout: SupportsFloat | None = None) -> None:
        """Call `FuzzyBarrier.wait`, and record its end."""
        cdef spc_trace_t *trace = begin_ending(self, "fuzzy_barrier.wait")
        cdef int how = RAISED
        try:
            FuzzyBarrier.wait(self, timeout)
            how = WELL
        except (TimeoutError, KeyboardInterrupt):
            how = LEFT
            raise
        finally:
            if trace != NULL:
                end_call(trace, how)


cdef spc_trace_t *begin_ending(RecordedFuzzyBarrier barrier, str name) except? NULL:
    """Record the CALL, if there is a trace."""
    cdef const spc_comm_t *core = NULL if barrier.handle is None else barrier.handle.core
    cdef spc_trace_t *trace = NULL if core == NULL else spc_comm_trace(core)
    if trace != NULL:
        spc_comm_trace_call(core, name_of(trace, name), find_place(trace), barrier.number)
    return trace


def fuzzy_barrier(Handle comm) -> RecordedFuzzyBarrier:
    """Call `Comm.fuzzy_barrier`."""
    cdef FuzzyBarrier entered = enter_fuzzy_barrier(comm)
    cdef RecordedFuzzyBarrier barrier = RecordedFuzzyBarrier.__new__(RecordedFuzzyBarrier)
    comm.fuzzy_barriers += 1
    barrier.handle, barrier.phase, barrier.number = entered.handle, entered.phase, comm.fuzzy_barriers
    return barrier


# ---- work: computing time that a program declares, so that its costs are known and the same on every machine


UNIT_S: float = 1e-3


cdef void record_work(spc_trace_t *trace, double cost) noexcept:
    cdef spc_trace_event_t event
    memset(&event, 0, sizeof(event))
    event.kind = SPC_TRACE_WORK
    memcpy(&event.bytes, &cost, sizeof(cost))
    spc_trace_record(trace, &event)


def units(cost: SupportsFloat) -> float:
    """Return a cost as a float, or an error sentence."""
    if isinstance(cost, (bool, str, bytes, complex)) or getattr(cost, "shape", ()) != ():
        raise error_text.bad_cost(cost)
    try:
        found = float(cost)
    except (TypeError, ValueError, OverflowError):
        raise error_text.bad_cost(cost) from None
    if not 0 <= found < inf or getattr(cost, "dtype", None) == bool:
        raise error_text.bad_cost(cost)
    return found + 0.0  # -0.0 becomes 0.0: no cost has a sign


def work(Handle handle, cost: SupportsFloat) -> None:
    """Record the work, and let its time pass."""
    cdef double declared = units(cost)
    cdef spc_trace_t *trace = spc_comm_trace(handle.core)
    if trace != NULL:
        record_work(trace, declared)
    work_sleep.pass_time(declared * UNIT_S)
