# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Methods whose calls are in the trace: in a traced run they stand in the place of those of `Comm`.

No function here is a frame of Python's, so that the innermost frame is that of whoever calls."""

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from spcomm._core cimport regions
from spcomm._core.collectives cimport FuzzyBarrier
from spcomm._core.handle cimport Handle
from spcomm._core.libtrace cimport SPC_TRACE_CALL, SPC_TRACE_RETURN, spc_comm_trace, spc_trace_t
from spcomm._core.regions cimport find_place, name_of, record

from spcomm._core.collectives import Collectives

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
    ctypedef object (*vectorcallfunc)(object callable, PyObject **arguments, size_t count, PyObject *names)
    void spc_make_method(object type, size_t vectorcall_offset)
    object PyObject_Vectorcall(object callable, PyObject **arguments, size_t count, PyObject *names)
    Py_ssize_t PyVectorcall_NARGS(size_t count)
    object PyMethod_New(object function, object instance)


cdef class Recorded:
    """A method; what it does lies between a CALL and a RETURN in the trace of its node."""

    cdef vectorcallfunc vectorcall
    cdef object method
    cdef str name
    cdef uint32_t what  # the number of the name
    cdef uint32_t generation  # as long as this is that of `regions`

    def __cinit__(self, method, str name):
        self.vectorcall = <vectorcallfunc>call
        self.method = method
        self.name = name

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


cdef object call(object callable, PyObject **arguments, size_t count, PyObject *names):
    cdef Recorded self = <Recorded>callable
    cdef spc_trace_t *trace = NULL
    if PyVectorcall_NARGS(count) != 0 and isinstance(<object>arguments[0], Handle):
        trace = spc_comm_trace((<Handle><object>arguments[0]).core)
    if trace == NULL:  # no node's, which the method itself refuses; or the box has no ring
        return PyObject_Vectorcall(self.method, arguments, count, names)
    if self.what == 0 or self.generation != regions.generation:
        self.what = name_of(trace, self.name)
        self.generation = regions.generation
    record(trace, SPC_TRACE_CALL, self.what, find_place(trace))
    try:
        return PyObject_Vectorcall(self.method, arguments, count, names)
    finally:
        record(trace, SPC_TRACE_RETURN, 0, 0)


cdef Recorded _example = Recorded(None, "")
spc_make_method(Recorded, <size_t>(<char *>&_example.vectorcall - <char *><PyObject *>_example))


cdef class RecordedFuzzyBarrier(FuzzyBarrier):
    """A fuzzy barrier whose waiting is in the trace, that at the end of a ``with`` block, too."""

    def wait(self, timeout=None):
        """As `FuzzyBarrier.wait`."""
        cdef spc_trace_t *trace = NULL if self.handle is None else spc_comm_trace(self.handle.core)
        if trace == NULL:
            FuzzyBarrier.wait(self, timeout)
            return
        record(trace, SPC_TRACE_CALL, name_of(trace, "fuzzy_barrier.wait"), find_place(trace))
        try:
            FuzzyBarrier.wait(self, timeout)
        finally:
            record(trace, SPC_TRACE_RETURN, 0, 0)


def fuzzy_barrier(Handle comm):
    """As `Comm.fuzzy_barrier`."""
    cdef FuzzyBarrier entered = Collectives.fuzzy_barrier(comm)
    cdef RecordedFuzzyBarrier barrier = RecordedFuzzyBarrier.__new__(RecordedFuzzyBarrier)
    barrier.handle, barrier.phase = entered.handle, entered.phase
    return barrier
