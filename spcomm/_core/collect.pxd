# SPDX-License-Identifier: MIT
cimport numpy as cnp
from libc.stdint cimport int32_t

from spcomm._core.fold cimport Fold
from spcomm._core.handle cimport Handle

cdef bint is_known(Fold fold, object array)
cdef object collect_at_once(Handle handle, int operation, str function, object op, int32_t root, cnp.ndarray array)
cdef object collect_array(Fold fold, object array, object counts)
