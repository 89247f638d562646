# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t, int64_t

from spcomm._core.handle cimport Handle
from libspc cimport spc_message_t, spc_sink_t


cdef class CoordinatedMessages:
    cdef Handle handle
    cdef int64_t timeout_ns
    cdef bint copy
    cdef bint over


cdef int transmit(Handle self, str name, object value, object dest, object tag, int64_t timeout_ns) except -1
cdef int transmit_and_wait(Handle self, object value, object dest, object tag, int64_t timeout_ns) except -1
cdef int receive(Handle self, str name, object source, object tag, int64_t timeout_ns,
                 spc_message_t *message, spc_sink_t *sink=*) except -1
cdef object receive_data(Handle self, str name, object source, object tag, object out, int64_t timeout_ns,
                         bint copy)
cdef object receive_message(Handle self, object source, object tag, int64_t timeout_ns, bint copy)
cdef object try_receive(Handle self, object source, object tag, bint copy)
cdef object take_received(Handle self, object tag)
cdef object poll_messages(Handle self)
cdef object probe_message(Handle self, object source, object tag, int64_t timeout_ns)
cdef object exchange(Handle self, object value, object dest, object source, object tag, object recv_tag, object out,
                     int64_t timeout_ns)
cdef int register_handler(Handle self, int32_t tag, object function) except -1
cdef int forget_handlers(Handle handle) except -1
cdef int coordinated_send(Handle self, object value, object dest, object timeout) except -1
cdef object coordinated_receive(Handle self, int64_t timeout_ns, bint copy)
cdef CoordinatedMessages iterate_cycle(Handle self, int64_t timeout_ns, bint copy)
