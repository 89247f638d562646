# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Methods whose calls are in the trace: in a traced run they stand in the place of those of `Comm`."""

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from spcomm._core cimport regions
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


cdef uint64_t detail_of(Recorded self, PyObject **arguments, size_t count, PyObject *names) except? 0:
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


cdef object call(object callable, PyObject **arguments, size_t count, PyObject *names):
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
    cdef uint64_t detail = detail_of(self, arguments, count, names) if self.at else 0
    cdef int how = RAISED
    spc_comm_trace_call(core, self.what, find_place(trace), detail)
    try:
        found = PyObject_Vectorcall(self.method, arguments, count, names)
        how = WELL
        return found
    except (TimeoutError, KeyboardInterrupt):
        how = LEFT
        raise
    finally:
        end_call(trace, how)


cdef Recorded _example = Recorded(None, "")
spc_make_method(Recorded, <size_t>(<char *>&_example.vectorcall - <char *><PyObject *>_example))
