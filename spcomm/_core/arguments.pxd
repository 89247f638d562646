# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t, uint32_t

from spcomm._core.handle cimport Handle
from libspc cimport spcomm_destination_t

cdef extern from *:
    """
    #define SPCPY_NOBODY INT32_MIN
    """
    int32_t NOBODY "SPCPY_NOBODY"  # PROC_NULL as a rank

cdef object ANY
cdef object PROC_NULL


cdef struct Targets:
    # The targets of a message: `ranks` points to `one`, into the handle, or into the result of find_targets().
    const int32_t *ranks
    uint32_t count
    int32_t one


cdef object find_targets(Handle handle, object dest, Targets *targets, str call)
cdef int32_t one_target(Handle handle, object dest, str call) except? -2147483647
cdef int32_t root_from(Handle handle, object root, str call) except -1
cdef int32_t source_from(Handle handle, object source, str call) except? -2147483647
cdef int32_t send_tag(object tag, str call, str argument) except -1
cdef int32_t tag_or_any(object tag, str call, str argument) except? -2147483647


cdef class RankSet:
    cdef spcomm_destination_t bits
