# SPDX-License-Identifier: MIT
from spcomm._core.handle cimport Handle


cdef object reduce_globally(Handle self, int number, str function, object x)
cdef object reduce_on_root(Handle self, object x, object op, object root, object algorithm)
cdef object reduce_on_all(Handle self, object x, object op, object algorithm)
cdef object reduce_along(Handle self, int operation, str name, object op, object x)
cdef object reduce_and_divide(Handle self, object x, object op, object counts)
