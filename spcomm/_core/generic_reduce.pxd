# SPDX-License-Identifier: MIT
from libc.stdint cimport int32_t, uint64_t

from spcomm._core.handle cimport Handle
from libspc cimport spc_signature_t


cdef class Fold:
    # A call of reduce, allreduce, scan, exscan or reduce_scatter, without its values.
    cdef Handle handle
    cdef int operation     # SPC_OPERATION_ARRAY_…
    cdef int32_t root      # of reduce, else 0
    cdef int algorithm     # SPC_COLLECT_…
    cdef int number        # spc_operator_t, or the number for operators of the program
    cdef object op
    cdef str name          # in words, with its arguments
    cdef str doing         # the same with the value, if all values must be alike
    cdef str function      # the name without its arguments
    cdef object gathering  # the last step

    cdef bint has_result(self) noexcept
    cdef str words_of(self, object value)
    cdef int fill_signature(self, spc_signature_t *signature, uint64_t hash, int step) except -1
    cdef list gather(self, int pattern, object given, object error, uint64_t hash, int step)
    cdef object fold_values(self, object value)
    cdef object fold_items(self, list items)
    cdef object fold_array(self, object array)
    cdef object fold_by_rounds(self, object value, uint64_t hash)
    cdef object fold_gathered(self, object value, uint64_t hash)
    cdef object go_through(self, tuple state)
    cdef object combiner(self)
    cdef object along_tree(self, list values)


cdef object reduce_on_root(Handle self, object x, object op, object root, object algorithm)
cdef object reduce_on_all(Handle self, object x, object op, object algorithm)
cdef object reduce_along(Handle self, int operation, str name, object op, object x)
cdef object reduce_and_divide(Handle self, object x, object op, object counts)
