# SPDX-License-Identifier: MIT
cimport numpy as cnp
from libc.stdint cimport uint32_t, uint64_t

from spcomm._core.handle cimport Handle
from spcomm._core.libspc cimport spc_field_t, spc_signature_t

cdef object reduce_value(Handle handle, int op, object value, str name, int operation, uint32_t root)
cdef cnp.ndarray empty_like(cnp.ndarray array)
cdef int combine(Handle handle, const spc_signature_t *signature, const spc_field_t *fields,
                 const void *value, uint64_t length, void *result) noexcept
