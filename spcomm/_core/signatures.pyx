# SPDX-License-Identifier: MIT
# cython: autotestdict=False, auto_pickle=False
"""Words for collective operations, which the core has (spc_call_words.h): for mismatch.py."""

from libc.stdio cimport FILE, fclose
from libc.stdlib cimport free

from spcomm._core.libdiagnose cimport open_memstream, spc_call_words_type, spc_call_words_write_collective
from spcomm._core.libspc cimport (
    SPC_OPERATION_DATA_ALLTOALL,
    SPC_OPERATION_DATA_BCAST,
    SPC_TYPE_INT8,
    SPC_TYPE_SIMTIME,
    spc_signature_t,
)

# Numbers of operations, from the first to the last that moves data.
MOVES_DATA = range(SPC_OPERATION_DATA_BCAST, SPC_OPERATION_DATA_ALLTOALL + 1)
# The names of NumPy's dtypes, by the core's number of them.
TYPES = {number: spc_call_words_type(number).decode() for number in range(SPC_TYPE_INT8, SPC_TYPE_SIMTIME + 1)}


def worded(signature):
    """`barrier()`, `global_sum() of an array of float64, 80 bytes`.

    Parameters
    ----------
    signature : tuple
        Operation, operator, type, fields, length, layout and root of a call, as numbers: a spc_signature_t. Reductions
        have no root, but the letter of NumPy's dtype there, where the core does not know the type.
    """
    cdef spc_signature_t call
    cdef char *text = NULL
    cdef size_t length_bytes = 0
    cdef FILE *out = open_memstream(&text, &length_bytes)
    if out == NULL:
        raise MemoryError
    call.operation, call.op, call.type, call.field_count, call.length_bytes, call.layout, call.root = signature
    spc_call_words_write_collective(&call, out)
    if fclose(out) != 0 or text == NULL:
        free(text)
        raise MemoryError
    try:
        return text[:length_bytes].decode()
    finally:
        free(text)
