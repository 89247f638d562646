# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Declared work: computing that a program says it does, so that its costs are known, and the same anywhere."""

from libc.string cimport memcpy, memset

from spcomm._core.handle cimport Handle
from spcomm._core.libtrace cimport (
    SPC_TRACE_WORK,
    spc_comm_trace,
    spc_trace_event_t,
    spc_trace_record,
    spc_trace_t,
)

from math import inf

from spcomm._core import value_errors, working

UNIT_S = 1e-3


cdef void record(spc_trace_t *trace, double cost) noexcept:
    cdef spc_trace_event_t event
    memset(&event, 0, sizeof(event))
    event.kind = SPC_TRACE_WORK
    memcpy(&event.bytes, &cost, sizeof(cost))
    spc_trace_record(trace, &event)


def units(cost):
    """A cost as a float, or the sentence about what is none."""
    if isinstance(cost, (bool, str, bytes, complex)) or getattr(cost, "shape", ()) != ():
        raise value_errors.bad_cost(cost)
    try:
        found = float(cost)
    except (TypeError, ValueError, OverflowError):
        raise value_errors.bad_cost(cost) from None
    if not 0 <= found < inf or getattr(cost, "dtype", None) == bool:
        raise value_errors.bad_cost(cost)
    return found + 0.0  # -0.0 becomes 0.0: its sign would be a bit that no cost has


def work(Handle handle, cost):
    """Record it, and let its time pass."""
    cdef double declared = units(cost)
    cdef spc_trace_t *trace = spc_comm_trace(handle.core)
    if trace != NULL:
        record(trace, declared)
    working.pass_time(declared * UNIT_S)
