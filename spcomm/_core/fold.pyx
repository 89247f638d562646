# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Reductions in Python: of values, by operators or of dtypes that the core does not combine.

In rounds (fold_rounds.py), or in one: then whoever needs a result gets all values and combines them, along the core's
tree as well. Each round is a gathering (gathering.pyx) under the signature of the reduction, which has the operator's
identity and, where all values have to be alike, what this one is.
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
    SPC_OPERATION_ARRAY_ALLREDUCE,
    SPC_OPERATION_ARRAY_EXSCAN,
    SPC_OPERATION_ARRAY_REDUCE,
    SPC_OPERATION_ARRAY_SCAN,
)
from spcomm._core.libspc cimport (
    SPC_OPERATION_DATA_ALLGATHER,
    SPC_OPERATION_DATA_ALLTOALL,
    SPC_OPERATION_DATA_BCAST,
    SPC_OPERATION_DATA_GATHER,
    layout_of,
    mix,
    spc_signature_t,
)

import math
from functools import partial

import numpy as np

from spcomm._core import fold_errors, fold_rounds, operators
from spcomm._core.mismatch import described
from spcomm._core.simtime import SimTime

cdef dict ALGORITHMS = {None: SPC_COLLECT_DEFAULT, "tree": SPC_COLLECT_TREE, "flat": SPC_COLLECT_FLAT,
                        "slices": SPC_COLLECT_SLICES, "binary-swap": SPC_COLLECT_BINARY_SWAP}
cdef dict HASHES = {type(value): operators.hashed(described("", value)) for value in (0, 0.5, True, 0j, SimTime(0))}
cdef dict ROUNDS = {SPC_COLLECT_TREE: fold_rounds.tree, SPC_COLLECT_SLICES: fold_rounds.slices,
                    SPC_COLLECT_BINARY_SWAP: fold_rounds.binary_swap}
cdef dict PATTERNS = {"alltoall": SPC_OPERATION_DATA_ALLTOALL, "allgather": SPC_OPERATION_DATA_ALLGATHER,
                      "gather": SPC_OPERATION_DATA_GATHER, "bcast": SPC_OPERATION_DATA_BCAST}
cdef int OWN = operators.OWN

cdef enum:
    SLICES_FROM = 1 << 16  # bytes of an array


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
        cdef bint copy
        self.set_signature(&signature, hash, step)
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
        # The last round of an array's puts parts together, and so copies them: views will do.
        copy = pattern != SPC_OPERATION_DATA_ALLGATHER or step == 0
        return gathering.parts(copy) if pattern != SPC_OPERATION_DATA_GATHER or self.has_result() else None

    cdef object fold_values(self, object value):
        """Of whole values."""
        cdef uint64_t hash = 0
        if self.number != OWN:
            value = operators.plain(self.op, self.function, value)
            hash = hash_of(value)
        return self.fold_by_rounds(value, hash)

    cdef object fold_gathered(self, object value, uint64_t hash):
        """In one step: who wants a result gets the values and combines them."""
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
        """Of an item for each node: reduce_scatter."""
        cdef uint64_t hash = 0
        if self.number != OWN:
            items = [operators.plain(self.op, self.function, item) for item in items]
            for item in items:
                hash = mix(hash, hash_of(item))
        return self.along_tree(self.gather(SPC_OPERATION_DATA_ALLTOALL, items, None, hash, 0))

    cdef object fold_array(self, object array):
        """Of an array, element by element: by the rounds of an algorithm, or whole."""
        cdef tuple shape = np.shape(array)
        cdef Py_ssize_t axes = len(shape) - self.op.element_axes  # those that count elements
        cdef object made
        cdef object elements
        if axes < 0:
            raise fold_errors.no_element(self.name, self.op.name, self.op.element_axes, shape)
        self.doing = described(self.name, array)
        elements = np.ascontiguousarray(array).reshape(math.prod(shape[:axes]), *shape[axes:])
        made = self.fold_by_rounds(elements, operators.hashed(described("", array)))
        return None if made is None else made.reshape(shape)

    cdef object fold_by_rounds(self, object value, uint64_t hash):
        """By the algorithm, as fold_rounds.py has it; what no round is worth is gathered and combined."""
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
        rounds = rounds(self.handle.rank_number, self.handle.node_count, root, value, self.combine())
        return self.go_through((key, rounds, next(rounds), 0))

    cdef object go_through(self, tuple state):
        """From this round on. Interrupted, it is kept in the handle, and the same call goes on here."""
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

    cdef object combine(self):
        """The function of two values."""
        cdef object op = self.op
        if self.number != OWN:
            return partial(operators.combined, op)
        return partial(operators.combined_elements, op) if self.doing is not None else op.function

    cdef object along_tree(self, list values):
        cdef object made = fold_rounds.along_tree(values, self.combine())
        return made if self.number == OWN else operators.alone(self.op, made)


cdef Fold new_fold(Handle handle, int operation, str function, object op, int32_t root, object algorithm):
    """Checks operator and algorithm; `root` is one, or 0."""
    cdef Fold self = Fold.__new__(Fold)
    if type(op) is not operators.Op:
        raise fold_errors.bad_operator(function, op)
    if (algorithm is not None and type(algorithm) is not str) or algorithm not in ALGORITHMS:
        raise fold_errors.bad_algorithm(function, algorithm)
    if (algorithm == "slices" or algorithm == "binary-swap") and not op.elementwise:
        raise fold_errors.not_elementwise(function, algorithm, op.name)
    self.handle, self.operation, self.function, self.op, self.root = handle, operation, function, op, root
    self.number = op.number
    self.algorithm = ALGORITHMS[algorithm]
    self.name = f"{function}(op={op.name}"
    if operation == SPC_OPERATION_ARRAY_REDUCE:
        self.name += f", root={root}"
    self.name += ")" if algorithm is None else f', algorithm="{algorithm}")'
    return self
