# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Reductions of arrays by the core (csrc/collect): where a result lies in a block, the array is that block.

A short array is combined by the reducer in one step, as numbers are; all nodes know that from its type and length.
"""

cimport cython
cimport numpy as cnp
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

from spcomm._core.fold cimport Fold, new_fold
from spcomm._core.handle cimport Handle, fail
from spcomm._core.libblock cimport spc_block_shared_t
from spcomm._core.libcollect cimport (
    SPC_COLLECT_DEFAULT,
    SPC_COLLECT_FLAT,
    SPC_COLLECT_TREE,
    SPC_OPERATION_ARRAY_ALLREDUCE,
    SPC_OPERATION_ARRAY_REDUCE,
    SPC_TYPE_BOOL,
    SPC_TYPE_COMPLEX64,
    SPC_TYPE_COMPLEX128,
    SPC_TYPE_PAIR_FLOAT32,
    SPC_TYPE_PAIR_FLOAT64,
    SPC_TYPE_PAIR_INT8,
    SPC_TYPE_PAIR_INT16,
    SPC_TYPE_PAIR_INT32,
    SPC_TYPE_PAIR_INT64,
    SPC_TYPE_PAIR_UINT8,
    SPC_TYPE_PAIR_UINT16,
    SPC_TYPE_PAIR_UINT32,
    SPC_TYPE_PAIR_UINT64,
    spc_collect_call_t,
    spc_collect_choose,
    spc_collect_create,
    spc_collect_destroy,
    spc_collect_memory_bytes,
    spc_collect_run,
    spc_collect_t,
    spc_collect_take_result,
    spc_ops_has,
)
from spcomm._core.libspc cimport (
    ARRAY,
    SPC_EINTERRUPTED,
    SPC_EMISMATCH,
    SPC_ENOMEM,
    SPC_NO_DEADLINE,
    SPC_OK,
    SPC_STORED_ARENA,
    SPC_TYPE_NONE,
    SPC_TYPE_SIMTIME,
    layout_of,
    spc_comm_scratch_bytes,
    spc_field_t,
    spc_signature_t,
)
from spcomm._core.memory cimport owned_bytes
from spcomm._core.reductions cimport combine, empty_like
from spcomm._core.stepwise cimport core_type, mix_array, set_signature

import numpy as np

from spcomm._core import operators
from spcomm._core.stepwise import is_simtimes

cnp.import_array()

cdef dict PAIRS = {"i1": SPC_TYPE_PAIR_INT8, "i2": SPC_TYPE_PAIR_INT16, "i4": SPC_TYPE_PAIR_INT32,
                   "i8": SPC_TYPE_PAIR_INT64, "u1": SPC_TYPE_PAIR_UINT8, "u2": SPC_TYPE_PAIR_UINT16,
                   "u4": SPC_TYPE_PAIR_UINT32, "u8": SPC_TYPE_PAIR_UINT64, "f4": SPC_TYPE_PAIR_FLOAT32,
                   "f8": SPC_TYPE_PAIR_FLOAT64}


cdef uint32_t type_of(cnp.ndarray array) except? 0xffffffff:
    """The core's type of its elements; SPC_TYPE_NONE: it has none. The array is one that operators.plain_array made."""
    cdef int number = cnp.PyArray_TYPE(array)
    if number == cnp.NPY_BOOL:
        return SPC_TYPE_BOOL
    if number == cnp.NPY_COMPLEX64:
        return SPC_TYPE_COMPLEX64
    if number == cnp.NPY_COMPLEX128:
        return SPC_TYPE_COMPLEX128
    if number != cnp.NPY_VOID:
        return core_type(number)
    if is_simtimes(array.dtype):
        return SPC_TYPE_SIMTIME
    return PAIRS[array.dtype["value"].str[1:]]


cdef bint is_known(Fold fold, object array):
    """Can the core combine arrays like this one?"""
    cdef uint32_t type_number = type_of(<cnp.ndarray>array)
    return type_number != SPC_TYPE_NONE and spc_ops_has(fold.number, type_number)


@cython.no_gc_clear  # __dealloc__ needs the handle, which may hold this
cdef class Collect:
    """One node's part of one call. Interrupted, it is kept in the handle and can go on."""
    cdef Fold fold
    cdef Handle handle
    cdef spc_collect_call_t call
    cdef spc_collect_t *core
    cdef object array      # the input
    cdef object result     # memory for the result; None: there is none, or it will be a block
    cdef object shape      # of the result
    cdef object counts     # elements for each node, or None

    def __init__(self):
        raise TypeError("Collect(): it is made by comm.allreduce() and its like")

    def __dealloc__(self):
        if self.handle is not None:
            spc_collect_destroy(self.core)

    cdef int prepare(self, int algorithm) except -1:
        cdef int status
        self.call.algorithm = algorithm
        self.result = None
        self.call.memory = NULL
        if self.fold.has_result() and spc_collect_memory_bytes(self.handle.core, &self.call) != 0:
            self.result = np.empty(self.shape, self.array.dtype)
            self.call.memory = cnp.PyArray_DATA(<cnp.ndarray>self.result)
        status = spc_collect_create(self.handle.core, &self.call, &self.core)
        return 0 if status == SPC_OK else fail(self.handle, status, self.fold.name)

    cdef object run(self):
        cdef int status
        with nogil:
            status = spc_collect_run(self.core, SPC_NO_DEADLINE)
        if status == SPC_EINTERRUPTED:
            self.handle.folding = self
        elif self.handle.folding is self:
            self.handle.folding = None
        if status == SPC_ENOMEM:
            return self.run_without_blocks()
        if status != SPC_OK:
            fail_fold(self.fold, status, self.array)
        return self.take() if self.fold.has_result() else None

    cdef object run_without_blocks(self):
        """Somebody's arena has no room: all nodes come here."""
        cdef int operation = self.call.operation
        cdef bint is_whole = operation == SPC_OPERATION_ARRAY_ALLREDUCE or operation == SPC_OPERATION_ARRAY_REDUCE
        spc_collect_destroy(self.core)
        self.core = NULL
        self.prepare(SPC_COLLECT_TREE if is_whole else SPC_COLLECT_FLAT)
        return self.run()

    cdef object take(self):
        cdef spc_block_shared_t *block = NULL
        cdef void *data = spc_collect_take_result(self.core, &block)
        cdef object hidden
        if block == NULL:
            return np.empty(self.shape, self.array.dtype) if self.result is None else self.result
        hidden = owned_bytes(self.handle, SPC_STORED_ARENA, block, data, self.array.nbytes)
        return np.ndarray(self.shape, self.array.dtype, hidden)


cdef int fail_fold(Fold fold, int status, object array) except -1:
    if status == SPC_EMISMATCH:
        fold.handle.doing = fold.words_of(array)
    return fail(fold.handle, status, fold.name)


cdef object collect_array(Fold fold, object array, object counts):
    """Of an array that is known; `counts`: rows for each node, of reduce_scatter."""
    cdef cnp.ndarray source = <cnp.ndarray>array
    cdef spc_collect_call_t call
    cdef object numbers = None
    cdef int status = SPC_OK
    if not cnp.PyArray_ISCARRAY_RO(source) or type(array) is not np.ndarray:
        source = np.array(array, order="C", copy=True, subok=False)
    memset(&call, 0, sizeof(call))
    call.operation, call.algorithm, call.op, call.root = fold.operation, fold.algorithm, fold.number, fold.root
    call.type = type_of(source)
    call.count = cnp.PyArray_SIZE(source)
    call.kind = ARRAY
    call.hash = mix_array(0, ARRAY, call.type, source)
    call.input = cnp.PyArray_DATA(source)
    if counts is not None:
        row = call.count // len(array) if len(array) else 0
        numbers = np.array([count * row for count in counts], np.uint64)
        call.counts = <const uint64_t *>cnp.PyArray_DATA(<cnp.ndarray>numbers)
    elif is_short(fold.handle, &call, cnp.PyArray_NBYTES(source)):
        result = collect_short(fold.handle, &call, source, &status)
        if status != SPC_OK:
            fail_fold(fold, status, source)
        return result if fold.has_result() else None
    return collect_long(fold, &call, source, counts, numbers)


cdef bint is_short(Handle handle, const spc_collect_call_t *call, uint64_t length) noexcept:
    """Goes it through the reducer in one step?"""
    if length == 0 or length % 8 != 0 or length > spc_comm_scratch_bytes(handle.core):
        return False
    if call.operation != SPC_OPERATION_ARRAY_ALLREDUCE and call.operation != SPC_OPERATION_ARRAY_REDUCE:
        return False
    if call.algorithm != SPC_COLLECT_DEFAULT:
        return False
    return handle.node_count == 1 or spc_collect_choose(handle.core, call) == SPC_COLLECT_TREE


cdef object collect_short(Handle handle, const spc_collect_call_t *call, cnp.ndarray array, int *status):
    """In one step; the result, whoever wants it."""
    cdef spc_signature_t signature
    cdef spc_field_t field
    cdef uint64_t length = cnp.PyArray_NBYTES(array)
    cdef cnp.ndarray result = empty_like(array)
    field.type, field.count = call.type, <uint32_t>call.count
    set_signature(&signature, call.op, call.type, 1, length, layout_of(ARRAY, call.hash, 0))
    signature.operation, signature.root = call.operation, call.root
    status[0] = combine(handle, &signature, &field, call.input, length, cnp.PyArray_DATA(result))
    return result


cdef object collect_at_once(Handle handle, int operation, str function, object op, int32_t root, cnp.ndarray array):
    """The shortest way for what is most common: an array of real numbers in C order. None: it is not one for here."""
    cdef spc_collect_call_t call
    cdef int status = SPC_OK
    cdef object result
    if not cnp.PyArray_CheckExact(array) or not cnp.PyArray_ISCARRAY_RO(array) or type(op) is not operators.Op:
        return None
    memset(&call, 0, sizeof(call))
    call.op = op.number
    call.type = core_type(cnp.PyArray_TYPE(array))
    if call.type == SPC_TYPE_NONE or not spc_ops_has(call.op, call.type):
        return None
    call.operation, call.root = operation, root
    call.count = cnp.PyArray_SIZE(array)
    if not is_short(handle, &call, cnp.PyArray_NBYTES(array)):
        return None
    call.hash = mix_array(0, ARRAY, call.type, array)
    call.input = cnp.PyArray_DATA(array)
    result = collect_short(handle, &call, array, &status)
    if status != SPC_OK:
        fail_fold(new_fold(handle, operation, function, op, root, None), status, array)
    return result


cdef object collect_long(Fold fold, const spc_collect_call_t *call, cnp.ndarray array, object counts, object numbers):
    cdef Collect collect
    if fold.handle.folding is not None:
        collect = <Collect>fold.handle.folding
        if is_same(collect, fold, call, numbers):
            return collect.run()
    collect = Collect.__new__(Collect)
    collect.fold, collect.handle, collect.call = fold, fold.handle, call[0]
    collect.array, collect.counts = array, numbers
    collect.shape = np.shape(array)
    if counts is not None:
        collect.shape = (counts[fold.handle.rank_number], *collect.shape[1:])
    collect.prepare(fold.algorithm)
    return collect.run()


cdef bint is_same(Collect left, Fold fold, const spc_collect_call_t *call, object numbers) except -1:
    """Is this the call that was left in the middle?"""
    if left.fold.name != fold.name or left.call.type != call.type or left.call.hash != call.hash:
        return False
    return numbers is None or bool((numbers == left.counts).all())
