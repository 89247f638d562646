# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Reductions in Python: of values, by operators or of dtypes that the core does not combine.

The values are gathered, and whoever needs a result combines them here along the core's tree. Every step is one of
gathering.pyx, under the signature of the reduction, which has the operator's identity and, of the operators of spcomm,
what the value is.
"""

from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memset

from spcomm._core.gathering cimport Gathering, begin_step, is_new
from spcomm._core.handle cimport Handle
from spcomm._core.libcollect cimport (
    SPC_COLLECT_BINARY_SWAP,
    SPC_COLLECT_DEFAULT,
    SPC_COLLECT_FLAT,
    SPC_COLLECT_SLICES,
    SPC_COLLECT_TREE,
    SPC_OPERATION_ARRAY_EXSCAN,
    SPC_OPERATION_ARRAY_REDUCE,
    SPC_OPERATION_ARRAY_SCAN,
)
from spcomm._core.libspc cimport (
    SPC_OPERATION_DATA_ALLGATHER,
    SPC_OPERATION_DATA_ALLTOALL,
    SPC_OPERATION_DATA_GATHER,
    layout_of,
    mix,
    spc_signature_t,
)

from functools import partial

import numpy as np

from spcomm._core import fold_errors, operators
from spcomm._core.mismatch import described
from spcomm._core.simtime import SimTime

cdef dict ALGORITHMS = {None: SPC_COLLECT_DEFAULT, "tree": SPC_COLLECT_TREE, "flat": SPC_COLLECT_FLAT,
                        "slices": SPC_COLLECT_SLICES, "binary-swap": SPC_COLLECT_BINARY_SWAP}
cdef dict HASHES = {type(value): operators.hashed(described("", value)) for value in (0, 0.5, True, 0j, SimTime(0))}
cdef int OWN = operators.OWN


cdef uint64_t hash_of(object value) except? 0:
    """Of what kind of value it is: for those of operators of spcomm, which are to be of one kind."""
    cdef object hash = HASHES.get(type(value))
    return operators.hashed(described("", value)) if hash is None else hash


cdef class Fold:
    cdef bint has_result(self) noexcept:
        if self.operation == SPC_OPERATION_ARRAY_REDUCE:
            return self.handle.rank_number == self.root
        return self.operation != SPC_OPERATION_ARRAY_EXSCAN or self.handle.rank_number != 0

    cdef str words_of(self, object value):
        """The call with its value, for mismatches. Operators of programs take any value."""
        return self.name if self.number == OWN else described(self.name, value)

    cdef int set_signature(self, spc_signature_t *signature, uint64_t hash, int step) except -1:
        memset(signature, 0, sizeof(spc_signature_t))
        signature.operation = self.operation
        signature.op = self.number
        signature.root = self.root
        signature.layout = layout_of(0, mix(mix(hash, self.op.identity), self.algorithm), step)
        return 0

    cdef list gather(self, int pattern, object given, object error, uint64_t hash, int step):
        """One step; `error`: this node gives nothing, and why. The values that came, by rank; None: nobody's."""
        cdef spc_signature_t signature
        cdef Gathering gathering
        self.set_signature(&signature, hash, step)
        gathering = begin_step(self.handle, pattern, &signature, self.name, self.doing or self.words_of(given))
        if is_new(gathering):
            if error is not None:
                gathering.fail_with(error)
            elif pattern == SPC_OPERATION_DATA_ALLTOALL:
                gathering.give_each(given)
            else:
                gathering.give(given)
        gathering.run()
        return gathering.parts(True) if pattern != SPC_OPERATION_DATA_GATHER or self.has_result() else None

    cdef object fold_values(self, object value):
        """Of whole values."""
        cdef uint64_t hash = 0
        cdef list values
        cdef int pattern = SPC_OPERATION_DATA_ALLGATHER
        if self.number != OWN:
            value = operators.plain(self.op, self.function, value)
            hash = hash_of(value)
        if self.operation == SPC_OPERATION_ARRAY_REDUCE:
            pattern = SPC_OPERATION_DATA_GATHER
        values = self.gather(pattern, value, None, hash, 0)
        if not self.has_result():
            return None
        if self.operation == SPC_OPERATION_ARRAY_SCAN:
            del values[self.handle.rank_number + 1:]
        elif self.operation == SPC_OPERATION_ARRAY_EXSCAN:
            del values[self.handle.rank_number:]
        return along_tree(self, values)

    cdef object fold_items(self, list items):
        """Of an item for each node: reduce_scatter."""
        cdef uint64_t hash = 0
        if self.number != OWN:
            items = [operators.plain(self.op, self.function, item) for item in items]
            for item in items:
                hash = mix(hash, hash_of(item))
        return along_tree(self, self.gather(SPC_OPERATION_DATA_ALLTOALL, items, None, hash, 0))

    cdef object fold_slices(self, object array):
        """Each node applies a program's operator to its slice of all arrays; then the slices are gathered."""
        cdef object flat = np.ascontiguousarray(array).reshape(-1)
        cdef uint64_t hash = operators.hashed(described("", array))
        cdef tuple key = (self.name, hash, self.algorithm)
        cdef int pattern = SPC_OPERATION_DATA_ALLGATHER
        cdef object mine = None
        cdef object error = None
        self.doing = described(self.name, array)
        if self.operation == SPC_OPERATION_ARRAY_REDUCE:
            pattern = SPC_OPERATION_DATA_GATHER
        if self.handle.folded is None or self.handle.folded[0] != key:
            slices = np.array_split(flat, self.handle.node_count)
            parts = self.gather(SPC_OPERATION_DATA_ALLTOALL, slices, None, hash, 0)
            try:
                mine = combined_slice(self, parts)
            except Exception as raised:
                error = raised
            self.handle.folded = (key, mine, error)
        _key, mine, error = self.handle.folded
        try:
            parts = self.gather(pattern, mine, error, hash, 1)
        finally:
            if self.handle.gathering is None:  # it is over
                self.handle.folded = None
        if parts is None:
            return None
        filled = [part for part in parts if len(part) != 0]
        return np.concatenate(filled or parts).reshape(np.shape(array))


cdef object combined_slice(Fold self, list parts):
    cdef Py_ssize_t length = len(parts[0])
    cdef object made
    if length == 0:
        return parts[0]
    made = along_tree(self, parts)
    if not isinstance(made, np.ndarray) or made.shape != (length,):
        raise fold_errors.wrong_slice(self.op.name, made, length)
    return made


cdef object along_tree(Fold self, list values):
    """v[i] = v[i] op v[i + 2^k], for growing k."""
    cdef Py_ssize_t step = 1
    cdef Py_ssize_t i
    cdef object function = self.op.function
    cdef object op = self.op
    if self.number != OWN:
        function = partial(operators.combined, op)
    while step < len(values):
        for i in range(0, len(values) - step, 2 * step):
            values[i] = function(values[i], values[i + step])
        step *= 2
    return values[0] if self.number == OWN else operators.alone(op, values[0])


cdef Fold new_fold(Handle handle, int operation, str function, object op, int32_t root, object algorithm):
    """Checks operator and algorithm; `root` is one, or 0."""
    cdef Fold self = Fold.__new__(Fold)
    if type(op) is not operators.Op:
        raise fold_errors.bad_operator(function, op)
    if (algorithm is not None and type(algorithm) is not str) or algorithm not in ALGORITHMS:
        raise fold_errors.bad_algorithm(function, algorithm)
    self.handle, self.operation, self.function, self.op, self.root = handle, operation, function, op, root
    self.number = op.number
    self.algorithm = ALGORITHMS[algorithm]
    self.name = f"{function}(op={op.name}"
    if operation == SPC_OPERATION_ARRAY_REDUCE:
        self.name += f", root={root}"
    self.name += ")" if algorithm is None else f', algorithm="{algorithm}")'
    return self
