# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t

from spcomm._core.arrays cimport Encoded
from spcomm._core.handle cimport Handle
from libspc cimport spc_message_t

cdef object encode(object value, Encoded *encoded, object call)
cdef object decode(Handle handle, spc_message_t *message, bint copy)
cdef object copy_pickle(object kept, int32_t source)
