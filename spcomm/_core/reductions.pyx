# SPDX-License-Identifier: MIT
# cython: boundscheck=False, wraparound=False, cdivision=True, autotestdict=False, auto_pickle=False
"""Reductions, underneath global_sum and its like, reduce, allreduce, scan, exscan and reduce_scatter of `Comm`.

spc_collect_way decides who combines a value. The core combines numbers, times and tuples of them in one step, and
arrays (csrc/comm/spc_collect.h): short ones like numbers; where the result of a long one lies in a block, the array is
that block. In a tuple with arrays, these are combined one by one, then the other items.

Python combines everything else: other values, ints beyond 64 bits, which the core detects, and arrays whose operator or
dtype the core does not support. It does so in rounds (fold_rounds.pyx), or in one step, in which each node that needs a
result gets all values and combines them, also along the core's tree. Each round is a gathering (collectives.pyx) under
the signature of the reduction, which has the operator's identity and, where all values must be alike, a description of
this one.
"""

cimport cython
cimport numpy as cnp
from cpython.float cimport PyFloat_AS_DOUBLE
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from spcomm._core.arguments cimport root_from
from spcomm._core.arrays cimport core_type, empty_like, owned_bytes, type_of
from spcomm._core.collectives cimport Gathering, as_items, begin_step, is_new
from spcomm._core.handle cimport Handle, fail
from libspc cimport *
from libspc cimport (
    SPC_KIND_ARRAY as ARRAY,
    SPC_KIND_BOOL as BOOL,
    SPC_KIND_COMPLEX as COMPLEX,
    SPC_KIND_FLOAT as FLOAT,
    SPC_KIND_INT as INT,
    SPC_KIND_SCALAR as SCALAR,
    SPC_KIND_SIMTIME as SIMTIME,
    SPC_KIND_TUPLE as TUPLE,
    spc_layout_mix as mix,
    spc_layout_mix_shape as mix_shape,
    spc_layout_of as layout_of,
)
from spcomm._core.simtime cimport SimTime, new_simtime

import math
from functools import partial
from operator import index

import numpy as np

from spcomm._core import error_text, errors, fold_rounds, operators
from spcomm.net_types.net_scalars import plain_numbers

cnp.import_array()


# ---- numbers, in one step


cdef enum:
    WORDS_MAX = 3  # of 8 bytes each, for a number or a time


cdef struct Values:
    # Numbers and times: their fields and kinds, and their values one after the other, `words` words of 8 bytes.
    spc_field_t fields[SPC_FIELDS_MAX]
    uint8_t kinds[SPC_FIELDS_MAX]
    int64_t memory[SPC_FIELDS_MAX * WORDS_MAX]
    uint32_t count
    uint32_t words


cdef bint add_value(Values *values, int op, object item) except -1:
    """Append a number; False: the core does not know its type."""
    cdef spc_field_t *field = &values.fields[values.count]
    cdef int64_t *place = &values.memory[values.words]
    cdef int kind
    cdef double real
    cdef int overflow = 0
    if type(item) is float:
        kind, field.type = FLOAT, SPC_TYPE_FLOAT64
        real = PyFloat_AS_DOUBLE(item)
        memcpy(place, &real, 8)
    elif type(item) is int or type(item) is bool:
        kind = BOOL if type(item) is bool and op != SPC_SUM else INT
        place[0] = PyLong_AsLongLongAndOverflow(item, &overflow)
        field.type = SPC_TYPE_INT if overflow == 0 else SPC_TYPE_WIDE
    elif type(item) is SimTime:
        kind, field.type = SIMTIME, SPC_TYPE_SIMTIME
        memcpy(place, &(<SimTime>item).value, sizeof(spcomm_simtime_t))
    else:
        return False
    field.count = 1
    values.kinds[values.count] = kind
    values.count += 1
    values.words += word_count(kind)
    return True


cdef uint32_t word_count(int kind) noexcept:
    return sizeof(spcomm_simtime_t) // 8 if kind == SIMTIME else 1


cdef bint read_values(Values *values, int op, object value) except -1:
    """Whether the core combines it in one step: a number, a time, or a tuple of these."""
    values.count = values.words = 0
    if type(value) is not tuple:
        return add_value(values, op, value)
    if not 0 < len(<tuple>value) <= SPC_FIELDS_MAX:
        return False
    for item in <tuple>value:
        if not add_value(values, op, item):
            return False
    return True


cdef spc_signature_t signature_of(const Values *values, int op, bint is_tuple, uint64_t within) noexcept:
    cdef spc_signature_t signature
    cdef uint64_t hash = mix(mix(within, TUPLE), values.count) if is_tuple else within
    cdef uint32_t i
    for i in range(values.count):
        hash = mix(hash, values.kinds[i])
    memset(&signature, 0, sizeof(signature))
    signature.op = op
    signature.type = SPC_TYPE_INT if values.fields[0].type == SPC_TYPE_WIDE else values.fields[0].type
    signature.field_count = values.count
    signature.length_bytes = 8 * values.words
    signature.layout = layout_of(TUPLE if is_tuple else values.kinds[0], hash, 0)
    return signature


cdef int combine(Handle handle, const spc_signature_t *signature, const spc_field_t *fields,
                 const void *value, uint64_t length, void *result) noexcept:
    """Run one collective operation: first briefly with the interpreter's lock, then without."""
    cdef int status = spc_comm_collective_poll(handle.core, signature, fields, value, length, result)
    if status == SPC_EAGAIN:
        with nogil:
            status = spc_comm_collective(handle.core, signature, fields, value, length, result,
                                         SPC_NO_DEADLINE)
    return status


cdef object combine_numbers(Handle handle, int op, object value, int operation, uint32_t root, uint64_t within,
                            int *status):
    """Reduce by SUM, MIN or MAX in one step, on all nodes. None: it has failed, or with SPC_EWIDE the core cannot.

    `operation` is SPC_OPERATION_REDUCE, or one of arrays, perhaps with a root. `within`: a hash of the larger tuple
    that these numbers are of, or 0.
    """
    cdef Values values
    cdef spc_signature_t signature
    status[0] = SPC_EWIDE
    # After an interruption this may be the same call, in the gathering that follows when the core cannot.
    if handle.gathering is not None or not read_values(&values, op, value):
        return None
    signature = signature_of(&values, op, type(value) is tuple, within)
    signature.operation, signature.root = operation, root
    status[0] = combine(handle, &signature, values.fields, values.memory, signature.length_bytes, values.memory)
    if status[0] != SPC_OK:
        return None
    return results_of(&values) if type(value) is tuple else result_of(values.kinds[0], values.memory)


cdef tuple results_of(Values *values):
    """Return the numbers; None: one is NaN and should be a time."""
    cdef list results = []
    cdef const int64_t *at = values.memory
    cdef uint32_t i
    for i in range(values.count):
        results.append(result_of(values.kinds[i], at))
        if results[i] is None:
            return None
        at += word_count(values.kinds[i])
    return tuple(results)


cdef object result_of(int kind, const int64_t *at):
    cdef double real
    if kind == INT:
        return at[0]
    if kind == BOOL:
        return at[0] != 0
    if kind == SIMTIME:
        return new_simtime(<const spcomm_simtime_t *>at)
    memcpy(&real, at, 8)
    return real


cdef int fail_numbers(Fold fold, int status, object value) except -1:
    if status == SPC_OK:  # inf and -inf are among the times, alike on all nodes
        raise error_text.nan_result(fold.name)
    return fail_fold(fold, status, value)


# ---- values that Python combines


cdef dict ALGORITHMS = {None: SPC_COLLECT_DEFAULT, "tree": SPC_COLLECT_TREE, "flat": SPC_COLLECT_FLAT,
                        "slices": SPC_COLLECT_SLICES, "binary-swap": SPC_COLLECT_BINARY_SWAP}
cdef dict HASHES = {kind: operators.hashed(kind.__name__) for kind in (int, float, bool, complex, SimTime)}
cdef dict KINDS = {int: INT, float: FLOAT, bool: BOOL, complex: COMPLEX, SimTime: SIMTIME, tuple: TUPLE}
cdef dict ROUNDS = {SPC_COLLECT_TREE: fold_rounds.tree, SPC_COLLECT_SLICES: fold_rounds.slices,
                    SPC_COLLECT_BINARY_SWAP: fold_rounds.binary_swap}
cdef dict PATTERNS = {"alltoall": SPC_OPERATION_DATA_ALLTOALL, "allgather": SPC_OPERATION_DATA_ALLGATHER,
                      "gather": SPC_OPERATION_DATA_GATHER, "bcast": SPC_OPERATION_DATA_BCAST}
cdef int OWN = operators.OWN


cdef uint64_t hash_of(object value) except? 0:
    """Return a hash of what all values of an operator of spcomm must have alike."""
    cdef object hash = HASHES.get(type(value))
    return operators.hashed(type_text(value)) if hash is None else hash


cdef str type_text(object value):
    if type(value) is tuple:
        return f"({', '.join([type_text(item) for item in value])})"
    if not isinstance(value, ARRAYS):
        return type(value).__name__
    dtype = value.dtype.str if value.dtype.names is None else value.dtype  # the latter takes longer
    return f"{'array' if isinstance(value, np.ndarray) else 'scalar'} {dtype} {value.shape}"


cdef uint64_t bytes_of(object value) except? 0:
    """Return the number of bytes that the core would take for it, for reports."""
    if type(value) is tuple:
        return sum([bytes_of(item) for item in value])
    if isinstance(value, ARRAYS):
        return value.nbytes
    return sizeof(spcomm_simtime_t) if type(value) is SimTime else 16 if type(value) is complex else 8


# Cython drops the exception of a class check that raises if isinstance() is given a tuple in place.
cdef tuple ARRAYS = (np.ndarray, np.generic)


cdef class Fold:
    """A call of global_sum and its like, reduce, allreduce, scan, exscan or reduce_scatter, without its values."""
    cdef Handle handle
    cdef int operation     # SPC_OPERATION_ARRAY_…, or SPC_OPERATION_REDUCE
    cdef int32_t root      # of reduce, else 0
    cdef int algorithm     # SPC_COLLECT_…
    cdef int number        # spc_operator_t, or the number for operators of the program
    cdef bint at_once      # the core combines numbers in one step
    cdef uint64_t within   # a hash of the tuple whose items are combined, and of the place in it; or 0
    cdef bint by_element   # the value is an array of elements
    cdef spc_signature_t signature  # of each step; its layout is the kind alone
    cdef object op
    cdef object shown      # the value as messages show it; None: as it is combined
    cdef str name          # in words, with its arguments
    cdef str function      # the name without its arguments
    cdef object gathering  # the last step

    cdef bint has_result(self) noexcept:
        if self.operation == SPC_OPERATION_ARRAY_REDUCE:
            return self.handle.rank_number == self.root
        return self.operation != SPC_OPERATION_ARRAY_EXSCAN or self.handle.rank_number != 0

    cdef spc_collect_call_t call(self) noexcept:
        """Return the call as the core describes it, without a value."""
        cdef spc_collect_call_t call
        memset(&call, 0, sizeof(call))
        call.operation, call.algorithm = <spc_operation_t>self.operation, <spc_collect_algorithm_t>self.algorithm
        call.op, call.root = <spc_operator_t>self.number, self.root
        return call

    cdef tuple words_of(self, object value):
        """Return what describes the call and its value, for mismatches. Operators of programs take any value."""
        if self.number == OWN and self.shown is None:
            return str, self.name
        return error_text.described, self.name, value if self.shown is None else self.shown

    cdef int show(self, object value) except -1:
        """Let signatures describe the value as where the core combines: that depends on the value alone."""
        self.signature.length_bytes = bytes_of(value)
        self.signature.layout = KINDS.get(type(value), ARRAY if isinstance(value, np.ndarray) else SCALAR)
        if isinstance(value, ARRAYS):
            self.signature.type = type_of(np.asarray(value))
            if self.signature.type == SPC_TYPE_NONE and self.operation == SPC_OPERATION_REDUCE:
                self.signature.root = ord(value.dtype.char)
        return 0

    cdef list gather(self, int pattern, object given, object error, uint64_t hash, int step):
        """Run one step; with `error`, this node contributes nothing. Return the values that came; None: missing."""
        cdef spc_signature_t signature = self.signature
        cdef Gathering gathering
        cdef bint copy
        signature.layout = layout_of(
            self.signature.layout, mix(mix(mix(hash, self.within), self.op.identity), self.algorithm), step)
        gathering = begin_step(self.handle, pattern, &signature, self.name, self.words_of(given))
        gathering.call.root = self.root
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
        """Combine whole values."""
        cdef object made
        cdef int status
        if self.number == OWN:
            return self.fold_by_rounds(value, 0)
        value = operators.plain(self.op, self.function, value)
        if not self.at_once:
            return self.fold_by_rounds(value, hash_of(value))
        if self.shown is None:
            self.shown = value
        if type(value) is tuple and any([isinstance(item, np.ndarray) for item in value]):
            return self.fold_tuple(value)
        if self.within == 0 and (isinstance(value, np.generic) or type(value) is complex):
            self.show(value)
            self.within = hash_of(value)
            made = combine_all(self, np.asarray(value))
            return made if made is None else made.item() if type(value) is complex else made[()]
        made = combine_numbers(self.handle, self.number, value, self.operation, self.root, self.within, &status)
        if made is not None:
            return made if self.has_result() else None
        if status != SPC_EWIDE:
            fail_numbers(self, status, value)
        self.show(value)
        return self.fold_by_rounds(value, hash_of(value))

    cdef object fold_tuple(self, tuple value):
        """Combine the arrays one by one, then the other items. If interrupted, the same call resumes here."""
        cdef tuple key = (self.name, hash_of(value))
        cdef list parts = [item for item in value if isinstance(item, np.ndarray)]
        cdef tuple others = tuple([item for item in value if not isinstance(item, np.ndarray)])
        cdef list made = []
        if self.handle.folded is not None and self.handle.folded[0] == key:
            _, made, self.handle.folded = self.handle.folded
        self.show(value)
        try:
            while len(made) < len(parts):
                self.within = mix(key[1], 1 + len(made))
                made.append(combine_all(self, parts[len(made)]))
            self.within, self.by_element = key[1], False
            made.append(self.fold_values(others) if others else others)
        except BaseException as error:
            is_left = spc_comm_is_entered(self.handle.core) or isinstance(error, KeyboardInterrupt)
            if is_left and len(made) <= len(parts) and not isinstance(error, errors.MismatchError):
                self.handle.folded = (key, made, self.handle.folded)
            raise
        if not self.has_result():
            return None
        arrays, numbers = iter(made), iter(made[len(parts)])
        return tuple([next(arrays if isinstance(item, np.ndarray) else numbers) for item in value])

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
        """Combine an item for each node: reduce_scatter."""
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
        if self.shown is None:
            self.shown = array
        self.by_element = True
        elements = np.ascontiguousarray(array).reshape(math.prod(shape[:axes]), *shape[axes:])
        made = self.fold_by_rounds(elements, operators.hashed(type_text(array)))
        return None if made is None else made.reshape(shape)

    cdef object fold_by_rounds(self, object value, uint64_t hash):
        """Run the algorithm of fold_rounds.pyx; values for which rounds do not pay are gathered and combined."""
        cdef object rounds
        cdef object root = self.root if self.operation == SPC_OPERATION_ARRAY_REDUCE else None
        cdef tuple key = (self.name, hash, self.within, self.algorithm)
        cdef spc_collect_call_t call = self.call()
        if self.by_element:
            call.count = value.nbytes
        rounds = ROUNDS.get(spc_collect_way(self.handle.core, &call).algorithm)
        if rounds is None:
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
        return partial(operators.combined_elements, op) if self.by_element else op.function

    cdef object along_tree(self, list values):
        cdef object made
        try:
            made = fold_rounds.along_tree(values, self.combiner())
        except ValueError:
            if not self.at_once:
                raise
            raise error_text.nan_result(self.name) from None  # of times, as in combine_numbers
        return made if self.number == OWN else operators.alone(self.op, made)


cdef Fold new_fold(Handle handle, int operation, str function, object op, int32_t root, object algorithm):
    """Check operator and algorithm; `root` is one, or 0."""
    cdef Fold self = Fold.__new__(Fold)
    cdef spc_collect_call_t call
    if type(op) is not operators.Op:
        raise error_text.bad_operator(function, op)
    if (algorithm is not None and type(algorithm) is not str) or algorithm not in ALGORITHMS:
        raise error_text.bad_algorithm(function, algorithm)
    if (algorithm == "slices" or algorithm == "binary-swap") and not op.elementwise:
        raise error_text.not_elementwise(function, algorithm, op.name)
    self.handle, self.operation, self.function, self.op, self.root = handle, operation, function, op, root
    self.number = op.number
    self.algorithm = ALGORITHMS[algorithm]
    call = self.call()
    call.kind = INT
    self.at_once = spc_collect_way(handle.core, &call).combiner == SPC_COLLECT_AT_ONCE
    self.signature.operation = SPC_OPERATION_GATHER if operation == SPC_OPERATION_REDUCE else operation
    self.signature.op, self.signature.root = self.number, root
    if operation == SPC_OPERATION_REDUCE:
        self.name = f"{function}()"
        return self
    self.name = f"{function}(op={op.name}"
    if operation == SPC_OPERATION_ARRAY_REDUCE:
        self.name += f", root={root}"
    self.name += ")" if algorithm is None else f', algorithm="{algorithm}")'
    return self


# ---- arrays by the core


cdef uint64_t mix_array(uint32_t type_number, cnp.ndarray array) noexcept:
    """Return a hash of the type and shape, which all nodes must have alike."""
    return mix_shape(mix(mix(0, ARRAY), type_number), cnp.PyArray_NDIM(array),
                     <const int64_t *>cnp.PyArray_DIMS(array))


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
        function, *arguments = fold.words_of(array)
        fold.handle.doing = function(*arguments)
    return fail(fold.handle, status, fold.name)


cdef object collect_array(Fold fold, object array, object counts):
    """Reduce an array; `counts`: rows for each node, of reduce_scatter. NotImplemented: the core cannot."""
    cdef cnp.ndarray source = <cnp.ndarray>array
    cdef spc_collect_call_t call = fold.call()
    cdef spc_collect_combiner_t combiner
    cdef object numbers = None
    cdef int status = SPC_OK
    call.kind, call.type, call.count = ARRAY, type_of(source), cnp.PyArray_SIZE(source)
    combiner = spc_collect_way(fold.handle.core, &call).combiner
    if combiner == SPC_COLLECT_BY_CALLER:
        return NotImplemented
    if not cnp.PyArray_ISCARRAY_RO(source) or type(array) is not np.ndarray:
        source = np.array(array, order="C", copy=True, subok=False)
    call.hash = mix_array(call.type, source)
    call.input = cnp.PyArray_DATA(source)
    if fold.within != 0:
        call.kind, call.hash = fold.signature.layout, mix(call.hash, fold.within)
    if combiner == SPC_COLLECT_AT_ONCE:
        result = collect_short(fold.handle, &call, source, &status)
        if status != SPC_OK:
            fail_fold(fold, status, source)
        return result if fold.has_result() else None
    if counts is not None:
        row = call.count // len(array) if len(array) else 0
        numbers = np.array([count * row for count in counts], np.uint64)
        call.counts = <const uint64_t *>cnp.PyArray_DATA(<cnp.ndarray>numbers)
    return collect_long(fold, &call, source, counts, numbers)


cdef object collect_short(Handle handle, const spc_collect_call_t *call, cnp.ndarray array, int *status):
    """Reduce in one step; return the result on each node that needs it."""
    cdef spc_signature_t signature
    cdef spc_field_t field
    cdef cnp.ndarray result = empty_like(array)
    spc_collect_describe_short(call, &signature, &field)
    status[0] = combine(handle, &signature, &field, call.input, signature.length_bytes, cnp.PyArray_DATA(result))
    return result


cdef object collect_at_once(Handle handle, int operation, int op, int32_t root, cnp.ndarray array, int *status):
    """Reduce a real-number array in C order in one step. None: it has failed, or with SPC_EWIDE it does not qualify."""
    cdef spc_collect_call_t call
    cdef object result
    if not cnp.PyArray_CheckExact(array) or not cnp.PyArray_ISCARRAY_RO(array):
        return None
    memset(&call, 0, sizeof(call))
    call.op = <spc_operator_t>op
    call.operation, call.root = <spc_operation_t>operation, root
    call.kind, call.type, call.count = ARRAY, core_type(cnp.PyArray_TYPE(array)), cnp.PyArray_SIZE(array)
    if spc_collect_way(handle.core, &call).combiner != SPC_COLLECT_AT_ONCE:
        return None
    call.hash = mix_array(call.type, array)
    call.input = cnp.PyArray_DATA(array)
    result = collect_short(handle, &call, array, status)
    return result if status[0] == SPC_OK else None


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


cdef object reduce_at_once(Handle self, int operation, str function, object op, int number, int32_t root, object x):
    """Take the fast path of numbers, and of real-number arrays in C order. None: the value does not qualify."""
    cdef int status = SPC_EWIDE
    cdef object result
    cdef Fold fold
    if cnp.PyArray_Check(x):
        result = collect_at_once(self, operation, number, root, <cnp.ndarray>x, &status)
    else:
        result = combine_numbers(self, number, x, operation, root, 0, &status)
    if result is None and status != SPC_EWIDE:
        fold = new_fold(self, operation, function, op, root, None)
        fold.shown = x
        fail_numbers(fold, status, x)
    return result


cdef object reduce_globally(Handle self, int number, str function, object x):
    """Run global_sum, global_min or global_max."""
    cdef object op = SUM if number == SPC_SUM else MIN if number == SPC_MIN else MAX
    cdef object result = reduce_at_once(self, SPC_OPERATION_REDUCE, function, op, number, 0, x)
    cdef Fold fold
    if result is not None:
        return result
    fold = new_fold(self, SPC_OPERATION_REDUCE, function, op, 0, None)
    fold.shown = x
    return in_order_of(x, combine_all(fold, x))


cdef object in_order_of(object given, object result):
    """Return the result in the byte order of what this node gave."""
    cdef object dtype
    if type(given) is tuple:
        return tuple([in_order_of(one, other) for one, other in zip(given, result)])
    if not isinstance(given, ARRAYS):
        return result
    dtype = plain_numbers(given).dtype
    if dtype.isnative:
        return result
    made = np.asarray(result).astype(dtype)
    return made if isinstance(given, np.ndarray) else made[()]


cdef object reduce_on_root(Handle self, object x, object op, object root, object algorithm):
    cdef int32_t rank = root_from(self, root, "reduce")
    cdef object result = reduce_whole(self, SPC_OPERATION_ARRAY_REDUCE, "reduce", op, rank, algorithm, x)
    return result if rank == self.rank_number else None


cdef object reduce_on_all(Handle self, object x, object op, object algorithm):
    return reduce_whole(self, SPC_OPERATION_ARRAY_ALLREDUCE, "allreduce", op, 0, algorithm, x)


cdef object reduce_whole(Handle self, int operation, str function, object op, int32_t root, object algorithm, object x):
    cdef object result
    if algorithm is None and (op is SUM or op is MIN or op is MAX or (
            cnp.PyArray_Check(x) and type(op) is operators.Op)):
        result = reduce_at_once(self, operation, function, op, SPC_SUM if op is SUM else op.number, root, x)
        if result is not None:
            return result
    return combine_all(new_fold(self, operation, function, op, root, algorithm), x)


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
        result = collect_array(fold, x, counts)
        if result is not NotImplemented:
            return result
    return fold.fold_items(np.split(x, np.cumsum(counts)[:self.node_count - 1]))


cdef object combine_all(Fold fold, object x):
    if not isinstance(x, np.ndarray):
        return fold.fold_values(x)
    if fold.number != OWN:
        x = operators.plain_array(fold.op, fold.function, x)
        result = collect_array(fold, x, None)
        if result is not NotImplemented:
            return result
        if fold.operation == SPC_OPERATION_REDUCE and fold.within == 0:
            fold.show(x)
        return fold.fold_array(x)
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
