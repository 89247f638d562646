# SPDX-License-Identifier: MIT
from spcomm._core.fold cimport Fold

cdef bint is_known(Fold fold, object array)
cdef object collect_array(Fold fold, object array, object counts)
