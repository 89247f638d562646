# SPDX-License-Identifier: MIT
"""Reductions of arrays, as csrc/comm/spc_collect.h declares them, and the operators of csrc/reduce/spc_ops.h."""

from libc.stdint cimport uint32_t, uint64_t

from spcomm._core.libblock cimport spc_block_shared_t
from spcomm._core.libspc cimport spc_comm_t

cdef extern from "reduce/spc_ops.h" nogil:
    enum:
        SPC_PROD
        SPC_LOGICAL_AND
        SPC_LOGICAL_OR
        SPC_LOGICAL_XOR
        SPC_BITWISE_AND
        SPC_BITWISE_OR
        SPC_BITWISE_XOR
        SPC_MINLOC
        SPC_MAXLOC
        SPC_TYPE_BOOL
        SPC_TYPE_COMPLEX64
        SPC_TYPE_COMPLEX128
        SPC_TYPE_PAIR_INT8
        SPC_TYPE_PAIR_INT16
        SPC_TYPE_PAIR_INT32
        SPC_TYPE_PAIR_INT64
        SPC_TYPE_PAIR_UINT8
        SPC_TYPE_PAIR_UINT16
        SPC_TYPE_PAIR_UINT32
        SPC_TYPE_PAIR_UINT64
        SPC_TYPE_PAIR_FLOAT32
        SPC_TYPE_PAIR_FLOAT64
    bint spc_ops_has(int op, uint32_t type)


cdef extern from "reduce/spc_reduce.h" nogil:
    enum:
        SPC_OPERATION_ARRAY_ALLREDUCE
        SPC_OPERATION_ARRAY_REDUCE
        SPC_OPERATION_ARRAY_REDUCE_SCATTER
        SPC_OPERATION_ARRAY_SCAN
        SPC_OPERATION_ARRAY_EXSCAN


cdef extern from "comm/spc_collect.h" nogil:
    enum:
        SPC_COLLECT_DEFAULT
        SPC_COLLECT_TREE
        SPC_COLLECT_FLAT
        SPC_COLLECT_SLICES
        SPC_COLLECT_BINARY_SWAP
    ctypedef struct spc_collect_call_t:
        int operation
        int algorithm
        int op "operator"
        uint32_t type
        uint32_t root
        uint64_t count
        const uint64_t *counts
        uint64_t kind
        uint64_t hash
        const void *input
        void *memory
    ctypedef struct spc_collect_t:
        pass
    int spc_collect_choose(const spc_comm_t *comm, const spc_collect_call_t *call)
    uint64_t spc_collect_memory_bytes(const spc_comm_t *comm, const spc_collect_call_t *call)
    int spc_collect_create(spc_comm_t *comm, const spc_collect_call_t *call, spc_collect_t **collect)
    int spc_collect_run(spc_collect_t *collect, uint64_t deadline_ns)
    void *spc_collect_take_result(spc_collect_t *collect, spc_block_shared_t **block)
    void spc_collect_destroy(spc_collect_t *collect)
