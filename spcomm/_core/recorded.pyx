# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Methods whose calls are in the trace: in a traced run they stand in the place of those of `Comm`.

No function here is a frame of Python's, so that the innermost frame is that of whoever calls."""

from cpython.exc cimport PyErr_ExceptionMatches
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t
from libc.string cimport memset

from spcomm._core cimport regions
from spcomm._core.collectives cimport FuzzyBarrier
from spcomm._core.handle cimport Handle
from spcomm._core.libspc cimport spc_comm_t
from spcomm._core.libtrace cimport (
    SPC_TRACE_RETURN,
    spc_comm_trace,
    spc_comm_trace_call,
    spc_trace_event_t,
    spc_trace_record,
    spc_trace_t,
)
from spcomm._core.regions cimport find_place, name_of

from operator import index

from spcomm._core.collectives import Collectives

cdef enum:  # how a call ended: in the tag of RETURN
    WELL = 0
    LEFT = 1  # by a timeout or Ctrl-C: the same call goes on with it
    RAISED = 2

cdef extern from *:
    """
    #include <stddef.h>

    /* Of a class whose instances stand among the methods of another one: the interpreter calls them with the object
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
    # NULL goes on its way as it is: a `try` would first save what is being handled, at every call.
    PyObject *PyObject_Vectorcall(object callable, PyObject **arguments, size_t count, PyObject *names)
    Py_ssize_t PyVectorcall_NARGS(size_t count)
    object PyMethod_New(object function, object instance)


cdef class Recorded:
    """A method; what it does lies between a CALL and a RETURN in the trace of its node."""

    cdef vectorcallfunc vectorcall
    cdef object method
    cdef str name
    cdef size_t at  # which argument goes with the call, the object being 0; 0: none
    cdef str keyword  # its name
    cdef uint32_t what  # the number of the name
    cdef uint32_t generation  # as long as this is that of `regions`

    def __cinit__(self, method, str name, size_t at=0, str keyword=""):
        self.vectorcall = <vectorcallfunc>call
        self.method = method
        self.name = name
        self.at = at
        self.keyword = keyword

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    @property
    def __name__(self):
        return self.method.__name__

    @property
    def __doc__(self):
        return self.method.__doc__

    @property
    def __wrapped__(self):
        return self.method


cdef uint32_t detail_of(Recorded self, PyObject **arguments, size_t count, PyObject *names) except? 0:
    """The argument that goes with the call, a whole number from 0 on; 0 stands for what is none."""
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
    if trace == NULL:  # no node's, which the method itself refuses; or the box has no ring
        return PyObject_Vectorcall(self.method, arguments, count, names)
    if self.what == 0 or self.generation != regions.generation:
        self.what = name_of(trace, self.name)
        self.generation = regions.generation
    cdef uint32_t detail = detail_of(self, arguments, count, names) if self.at else 0
    spc_comm_trace_call(core, self.what, find_place(trace), detail)
    cdef PyObject *found = PyObject_Vectorcall(self.method, arguments, count, names)
    end_call(trace, how_it_ended(found))
    return found


cdef Recorded _example = Recorded(None, "")
spc_make_method(Recorded, <size_t>(<char *>&_example.vectorcall - <char *><PyObject *>_example))


cdef class RecordedFuzzyBarrier(FuzzyBarrier):
    """A fuzzy barrier whose end is in the trace, with its number; that of a ``with`` block, too."""

    cdef uint32_t number  # of those that its communicator has entered, from 1 on
    cdef bint is_over  # and that is in the trace

    def done(self):
        """As `FuzzyBarrier.done`. Only the answer yes is recorded: a loop may ask often."""
        cdef spc_trace_t *trace
        if not self.is_over and FuzzyBarrier.done(self):
            self.is_over = True
            trace = begin_ending(self, "fuzzy_barrier.done")
            if trace != NULL:
                end_call(trace, WELL)
        return self.is_over

    def wait(self, timeout=None):
        """As `FuzzyBarrier.wait`."""
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
    """Records the CALL, if there is a trace."""
    cdef const spc_comm_t *core = NULL if barrier.handle is None else barrier.handle.core
    cdef spc_trace_t *trace = NULL if core == NULL else spc_comm_trace(core)
    if trace != NULL:
        spc_comm_trace_call(core, name_of(trace, name), find_place(trace), barrier.number)
    return trace


def fuzzy_barrier(Handle comm):
    """As `Comm.fuzzy_barrier`."""
    cdef FuzzyBarrier entered = Collectives.fuzzy_barrier(comm)
    cdef RecordedFuzzyBarrier barrier = RecordedFuzzyBarrier.__new__(RecordedFuzzyBarrier)
    comm.fuzzy_barriers += 1
    barrier.handle, barrier.phase, barrier.number = entered.handle, entered.phase, comm.fuzzy_barriers
    return barrier
