# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Reductions by any operator, underneath reduce, allreduce, scan, exscan and reduce_scatter of `Comm`.

The core combines arrays (csrc/comm/spc_collect.h); where a result lies in a block, the array is that block. The reducer
combines a short array in one step, like numbers; all nodes derive that from its type and length.

Python combines values, and arrays whose operator or dtype the core does not support: in rounds (fold_rounds.py), or in
one step, in which each node that needs a result gets all values and combines them, also along the core's tree. Each
round is a gathering (collectives.pyx) under the signature of the reduction, which has the operator's identity and,
where all values must be alike, a description of this one.
"""

cimport cython
cimport numpy as cnp
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

from spcomm._core.arguments cimport root_from
from spcomm._core.arrays cimport owned_bytes
from spcomm._core.collectives cimport Gathering, as_items, begin_step, is_new
from spcomm._core.handle cimport Handle, fail
from libspc cimport *
from libspc cimport (
    SPC_KIND_ARRAY as ARRAY,
    spc_layout_mix as mix,
    spc_layout_of as layout_of,
)
from spcomm._core.reductions cimport combine, core_type, empty_like, mix_array, reduce_value

import math
from functools import partial
from operator import index

import numpy as np

from spcomm._core import error_text, fold_rounds, operators
from spcomm._core.reductions import is_simtimes
from spcomm._core.simtime import SimTime

cnp.import_array()

cdef dict ALGORITHMS = {None: SPC_COLLECT_DEFAULT, "tree": SPC_COLLECT_TREE, "flat": SPC_COLLECT_FLAT,
                        "slices": SPC_COLLECT_SLICES, "binary-swap": SPC_COLLECT_BINARY_SWAP}
cdef dict HASHES = {
    type(value): operators.hashed(error_text.described("", value)) for value in (0, 0.5, True, 0j, SimTime(0))
}
cdef dict ROUNDS = {SPC_COLLECT_TREE: fold_rounds.tree, SPC_COLLECT_SLICES: fold_rounds.slices,
                    SPC_COLLECT_BINARY_SWAP: fold_rounds.binary_swap}
cdef dict PATTERNS = {"alltoall": SPC_OPERATION_DATA_ALLTOALL, "allgather": SPC_OPERATION_DATA_ALLGATHER,
                      "gather": SPC_OPERATION_DATA_GATHER, "bcast": SPC_OPERATION_DATA_BCAST}
cdef int OWN = operators.OWN

cdef enum:
    SLICES_FROM = 1 << 16  # bytes of an array


cdef uint64_t hash_of(object value) except? 0:
    """Return the kind of a value: operators of spcomm need values of one kind."""
    cdef object hash = HASHES.get(type(value))
    return operators.hashed(error_text.described("", value)) if hash is None else hash


cdef class Fold:
    cdef bint has_result(self) noexcept:
        if self.operation == SPC_OPERATION_ARRAY_REDUCE:
            return self.handle.rank_number == self.root
        return self.operation != SPC_OPERATION_ARRAY_EXSCAN or self.handle.rank_number != 0

    cdef str words_of(self, object value):
        """Return the call with its value, for mismatches. Operators of programs take any value."""
        return self.name if self.number == OWN else error_text.described(self.name, value)

    cdef int fill_signature(self, spc_signature_t *signature, uint64_t hash, int step) except -1:
        memset(signature, 0, sizeof(spc_signature_t))
        signature.operation = self.operation
        signature.op = self.number
        signature.root = self.root
        signature.layout = layout_of(0, mix(mix(hash, self.op.identity), self.algorithm), step)
        return 0

    cdef list gather(self, int pattern, object given, object error, uint64_t hash, int step):
        """Run one step; with `error`, this node contributes nothing. Return the values that came; None: missing."""
        cdef spc_signature_t signature
        cdef Gathering gathering
        cdef bint copy
        self.fill_signature(&signature, hash, step)
        gathering = begin_step(self.handle, pattern, &signature, self.name, self.doing or self.words_of(given))
        self.gathering = gathering
        if is_new(gathering):
            if error is not None:
                gathering.fail_with(error)
            elif pattern == SPC_OPERATION_DATA_ALLTOALL:
                gathering.give_each(given)
            elif pattern != SPC_OPERATION_DATA_BCAST or self.handle.rank_number == self.root:
                gathering.give(given)
        gathering.run()
        if pattern == SPC_OPERATION_DATA_BCAST:
            return [gathering.own_value if self.handle.rank_number == self.root else gathering.part_of(self.root, True)]
        # The last round of an array joins parts, and so copies them: views suffice.
        copy = pattern != SPC_OPERATION_DATA_ALLGATHER or step == 0
        return gathering.parts(copy) if pattern != SPC_OPERATION_DATA_GATHER or self.has_result() else None

    cdef object fold_values(self, object value):
        """Run rounds over whole values."""
        cdef uint64_t hash = 0
        if self.number != OWN:
            value = operators.plain(self.op, self.function, value)
            hash = hash_of(value)
        return self.fold_by_rounds(value, hash)

    cdef object fold_gathered(self, object value, uint64_t hash):
        """Run one step: each node that needs a result gets the values and combines them."""
        cdef list values
        cdef int pattern = SPC_OPERATION_DATA_ALLGATHER
        if self.operation == SPC_OPERATION_ARRAY_REDUCE:
            pattern = SPC_OPERATION_DATA_GATHER
        values = self.gather(pattern, value, None, hash, 0)
        if not self.has_result():
            return None
        if self.operation == SPC_OPERATION_ARRAY_SCAN:
            del values[self.handle.rank_number + 1:]
        elif self.operation == SPC_OPERATION_ARRAY_EXSCAN:
            del values[self.handle.rank_number:]
        return self.along_tree(values)

    cdef object fold_items(self, list items):
        """Run rounds over an item for each node: reduce_scatter."""
        cdef uint64_t hash = 0
        if self.number != OWN:
            items = [operators.plain(self.op, self.function, item) for item in items]
            for item in items:
                hash = mix(hash, hash_of(item))
        return self.along_tree(self.gather(SPC_OPERATION_DATA_ALLTOALL, items, None, hash, 0))

    cdef object fold_array(self, object array):
        """Combine an array element by element: by the rounds of an algorithm, or whole."""
        cdef tuple shape = np.shape(array)
        cdef Py_ssize_t axes = len(shape) - self.op.element_axes  # the axes that count elements
        cdef object made
        cdef object elements
        if axes < 0:
            raise error_text.no_element(self.name, self.op.name, self.op.element_axes, shape)
        self.doing = error_text.described(self.name, array)
        elements = np.ascontiguousarray(array).reshape(math.prod(shape[:axes]), *shape[axes:])
        made = self.fold_by_rounds(elements, operators.hashed(error_text.described("", array)))
        return None if made is None else made.reshape(shape)

    cdef object fold_by_rounds(self, object value, uint64_t hash):
        """Run the algorithm of fold_rounds.py; values for which rounds do not pay are gathered and combined."""
        cdef object rounds
        cdef object root = self.root if self.operation == SPC_OPERATION_ARRAY_REDUCE else None
        cdef tuple key = (self.name, hash, self.algorithm)
        cdef int algorithm = self.algorithm
        if algorithm == SPC_COLLECT_DEFAULT and self.doing is not None and value.nbytes >= SLICES_FROM:
            algorithm = SPC_COLLECT_SLICES
        rounds = ROUNDS.get(algorithm)
        if algorithm != SPC_COLLECT_TREE and (self.doing is None or len(value) == 0):
            rounds = None
        if rounds is None or self.handle.node_count == 1 or (
                self.operation != SPC_OPERATION_ARRAY_ALLREDUCE and self.operation != SPC_OPERATION_ARRAY_REDUCE):
            return self.fold_gathered(value, hash)
        if self.handle.folded is not None and self.handle.folded[0] == key:
            state, self.handle.folded = self.handle.folded, None
            return self.go_through(state)
        rounds = rounds(self.handle.rank_number, self.handle.node_count, root, value, self.combiner())
        return self.go_through((key, rounds, next(rounds), 0))

    cdef object go_through(self, tuple state):
        """Run from this round on. If interrupted, the handle keeps the state, and the same call resumes here."""
        cdef list came
        key, rounds, current, number = state
        while True:
            try:
                came = self.gather(PATTERNS[current.pattern], current.given, current.error, key[1], number)
            except BaseException:
                if self.handle.gathering is not None and self.handle.gathering is self.gathering:
                    self.handle.folded = (key, rounds, current, number)
                raise
            number += 1
            try:
                current = rounds.send(came)
            except StopIteration as end:
                return end.value

    cdef object combiner(self):
        """Return the function of two values."""
        cdef object op = self.op
        if self.number != OWN:
            return partial(operators.combined, op)
        return partial(operators.combined_elements, op) if self.doing is not None else op.function

    cdef object along_tree(self, list values):
        cdef object made = fold_rounds.along_tree(values, self.combiner())
        return made if self.number == OWN else operators.alone(self.op, made)


cdef Fold new_fold(Handle handle, int operation, str function, object op, int32_t root, object algorithm):
    """Check operator and algorithm; `root` is one, or 0."""
    cdef Fold self = Fold.__new__(Fold)
    if type(op) is not operators.Op:
        raise error_text.bad_operator(function, op)
    if (algorithm is not None and type(algorithm) is not str) or algorithm not in ALGORITHMS:
        raise error_text.bad_algorithm(function, algorithm)
    if (algorithm == "slices" or algorithm == "binary-swap") and not op.elementwise:
        raise error_text.not_elementwise(function, algorithm, op.name)
    self.handle, self.operation, self.function, self.op, self.root = handle, operation, function, op, root
    self.number = op.number
    self.algorithm = ALGORITHMS[algorithm]
    self.name = f"{function}(op={op.name}"
    if operation == SPC_OPERATION_ARRAY_REDUCE:
        self.name += f", root={root}"
    self.name += ")" if algorithm is None else f', algorithm="{algorithm}")'
    return self


# ---- arrays by the core


cdef dict PAIRS = {"i1": SPC_TYPE_PAIR_INT8, "i2": SPC_TYPE_PAIR_INT16, "i4": SPC_TYPE_PAIR_INT32,
                   "i8": SPC_TYPE_PAIR_INT64, "u1": SPC_TYPE_PAIR_UINT8, "u2": SPC_TYPE_PAIR_UINT16,
                   "u4": SPC_TYPE_PAIR_UINT32, "u8": SPC_TYPE_PAIR_UINT64, "f4": SPC_TYPE_PAIR_FLOAT32,
                   "f8": SPC_TYPE_PAIR_FLOAT64}


cdef uint32_t type_of(cnp.ndarray array) except? 0xffffffff:
    """Return the core's type of the elements, or SPC_TYPE_NONE. The array comes from operators.plain_array."""
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
    """Whether the core can combine arrays like this one."""
    cdef uint32_t type_number = type_of(<cnp.ndarray>array)
    return type_number != SPC_TYPE_NONE and spc_ops_has(<spc_operator_t>fold.number, type_number)


@cython.no_gc_clear  # __dealloc__ needs the handle, which may hold this object
cdef class Collect:
    """One node's part of one call. If interrupted, the handle keeps it and it can resume."""
    cdef Fold fold
    cdef Handle handle
    cdef spc_collect_call_t call
    cdef spc_collect_t *core
    cdef object array      # the input
    cdef object result     # memory for the result; None: there is none, or it will be a block
    cdef object shape      # shape of the result
    cdef object counts     # elements for each node, or None

    def __init__(self):
        raise TypeError("Collect(): it is made by comm.allreduce() and its like")

    def __dealloc__(self):
        if self.handle is not None:
            spc_collect_destroy(self.core)

    cdef void *make_result(self) except NULL:
        self.result = np.empty(self.shape, self.array.dtype)
        return cnp.PyArray_DATA(<cnp.ndarray>self.result)

    cdef int prepare(self) except -1:
        cdef int status
        if self.fold.has_result() and spc_collect_memory_bytes(self.handle.core, &self.call) != 0:
            self.call.memory = self.make_result()
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
        """Continue here on all nodes when the arena of one of them is full."""
        spc_collect_use_no_blocks(self.core, self.make_result() if self.fold.has_result() else NULL)
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
    """Reduce an array of a known type; `counts`: rows for each node, of reduce_scatter."""
    cdef cnp.ndarray source = <cnp.ndarray>array
    cdef spc_collect_call_t call
    cdef object numbers = None
    cdef int status = SPC_OK
    if not cnp.PyArray_ISCARRAY_RO(source) or type(array) is not np.ndarray:
        source = np.array(array, order="C", copy=True, subok=False)
    memset(&call, 0, sizeof(call))
    call.operation, call.algorithm = <spc_operation_t>fold.operation, <spc_collect_algorithm_t>fold.algorithm
    call.op, call.root = <spc_operator_t>fold.number, fold.root
    call.type = type_of(source)
    call.count = cnp.PyArray_SIZE(source)
    call.kind = ARRAY
    call.hash = mix_array(0, ARRAY, call.type, source)
    call.input = cnp.PyArray_DATA(source)
    if counts is not None:
        row = call.count // len(array) if len(array) else 0
        numbers = np.array([count * row for count in counts], np.uint64)
        call.counts = <const uint64_t *>cnp.PyArray_DATA(<cnp.ndarray>numbers)
    elif spc_collect_is_short(fold.handle.core, &call):
        result = collect_short(fold.handle, &call, source, &status)
        if status != SPC_OK:
            fail_fold(fold, status, source)
        return result if fold.has_result() else None
    return collect_long(fold, &call, source, counts, numbers)


cdef object collect_short(Handle handle, const spc_collect_call_t *call, cnp.ndarray array, int *status):
    """Reduce in one step; return the result on each node that needs it."""
    cdef spc_signature_t signature
    cdef spc_field_t field
    cdef cnp.ndarray result = empty_like(array)
    spc_collect_describe_short(call, &signature, &field)
    status[0] = combine(handle, &signature, &field, call.input, signature.length_bytes, cnp.PyArray_DATA(result))
    return result


cdef object collect_at_once(Handle handle, int operation, str function, object op, int32_t root, cnp.ndarray array):
    """Take the fast path of the common case, a real-number array in C order. None: the array does not qualify."""
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
    call.operation, call.root = <spc_operation_t>operation, root
    call.count = cnp.PyArray_SIZE(array)
    if not spc_collect_is_short(handle.core, &call):
        return None
    call.kind = ARRAY
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
    collect.prepare()
    return collect.run()


cdef bint is_same(Collect left, Fold fold, const spc_collect_call_t *call, object numbers) except -1:
    """Whether this is the call that was interrupted."""
    if left.fold.name != fold.name or left.call.type != call.type or left.call.hash != call.hash:
        return False
    return numbers is None or bool((numbers == left.counts).all())


# ---- the calls


cdef object SUM = operators.SUM
cdef object MIN = operators.MIN
cdef object MAX = operators.MAX


cdef object reduce_on_root(Handle self, object x, object op, object root, object algorithm):
    cdef int32_t rank = root_from(self, root, "reduce")
    cdef object result
    cdef Fold fold
    if algorithm is None and isinstance(x, np.ndarray):
        result = collect_at_once(self, SPC_OPERATION_ARRAY_REDUCE, "reduce", op, rank, x)
        if result is not None:
            return result if rank == self.rank_number else None
    fold = new_fold(self, SPC_OPERATION_ARRAY_REDUCE, "reduce", op, rank, algorithm)
    if is_direct(fold, x, algorithm):
        x = reduce_directly(fold, x)
        return x if rank == self.rank_number else None
    return combine_all(fold, x)


cdef object reduce_on_all(Handle self, object x, object op, object algorithm):
    cdef object result
    cdef Fold fold
    if algorithm is None and op is SUM and (type(x) is float or type(x) is int):
        return reduce_value(self, SPC_SUM, x, "allreduce(op=SUM)", SPC_OPERATION_ARRAY_ALLREDUCE, 0)
    if algorithm is None and isinstance(x, np.ndarray):
        result = collect_at_once(self, SPC_OPERATION_ARRAY_ALLREDUCE, "allreduce", op, 0, x)
        if result is not None:
            return result
    fold = new_fold(self, SPC_OPERATION_ARRAY_ALLREDUCE, "allreduce", op, 0, algorithm)
    return reduce_directly(fold, x) if is_direct(fold, x, algorithm) else combine_all(fold, x)


cdef object reduce_along(Handle self, int operation, str name, object op, object x):
    """Run scan or exscan."""
    return combine_all(new_fold(self, operation, name, op, 0, None), x)


cdef object reduce_and_divide(Handle self, object x, object op, object counts):
    cdef Fold fold = new_fold(self, SPC_OPERATION_ARRAY_REDUCE_SCATTER, "reduce_scatter", op, 0, None)
    if not isinstance(x, np.ndarray):
        if counts is not None:
            raise error_text.counts_of_objects()
        return fold.fold_items(as_items("reduce_scatter", "x", x, self.node_count))
    if x.ndim == 0:
        raise error_text.no_axis(x)
    counts = as_counts(self, counts, len(x))
    if fold.number != OWN:
        x = operators.plain_array(op, "reduce_scatter", x)
        if is_known(fold, x):
            return collect_array(fold, x, counts)
    return fold.fold_items(np.split(x, np.cumsum(counts)[:self.node_count - 1]))


cdef bint is_direct(Fold fold, object x, object algorithm) noexcept:
    """Whether the core combines it as for global_sum, in one step if it is short."""
    cdef object op = fold.op
    return algorithm is None and (op is SUM or op is MIN or op is MAX) and not isinstance(x, np.ndarray)


cdef object reduce_directly(Fold fold, object x):
    if type(x) is not float and type(x) is not int:
        x = operators.plain(fold.op, fold.function, x)
    return reduce_value(fold.handle, fold.number, x, fold.name, fold.operation, fold.root)


cdef object combine_all(Fold fold, object x):
    if not isinstance(x, np.ndarray):
        return fold.fold_values(x)
    if fold.number != OWN:
        x = operators.plain_array(fold.op, fold.function, x)
        return collect_array(fold, x, None) if is_known(fold, x) else fold.fold_array(x)
    # Other kinds of arrays may hold more than elements: a mask, or their own meaning of "*".
    return fold.fold_array(x) if fold.op.elementwise and type(x) in (np.ndarray, np.memmap) else fold.fold_values(x)


cdef list as_counts(Handle self, object counts, Py_ssize_t length):
    cdef Py_ssize_t size = self.node_count
    cdef list numbers
    if counts is None:
        return [length // size + (rank < length % size) for rank in range(size)]
    try:
        numbers = [index(count) for count in counts]
    except TypeError:
        raise error_text.bad_counts_type(counts) from None
    if len(numbers) != size:
        raise error_text.wrong_number_of_counts(len(numbers), size)
    for rank, count in enumerate(numbers):
        if count < 0:
            raise error_text.negative_count(count, rank)
    if sum(numbers) != length:
        raise error_text.wrong_sum(sum(numbers), length)
    return numbers
