# SPDX-License-Identifier: MIT
from spcomm._core.handle cimport Handle

cdef object reduce_value(Handle handle, int op, object value, str name)
