# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t, int64_t

from spcomm._core.handle cimport Handle
from spcomm._core.libspc cimport spc_message_t, spc_sink_t

cdef int transmit(Handle self, str name, object value, object dest, object tag, int64_t timeout_ns) except -1
cdef int transmit_and_wait(Handle self, object value, object dest, object tag, int64_t timeout_ns) except -1
cdef int receive(Handle self, str name, object source, object tag, int64_t timeout_ns,
                 spc_message_t *message, spc_sink_t *sink=*) except -1
cdef object receive_data(Handle self, str name, object source, object tag, object out, int64_t timeout_ns,
                         bint copy)
cdef object as_message(Handle self, spc_message_t *message, bint copy)
cdef int before_receive(Handle self, str name, int32_t tag) except -1
cdef int run_handlers(Handle self) except -1
cdef int check_receive(Handle self, object source, object tag, object out) except -1
cdef int fail_receive(Handle self, int status, int32_t source, int32_t tag, object call) except -1
