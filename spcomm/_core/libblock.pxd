# SPDX-License-Identifier: MIT
# Of the C core: blocks of arenas, and pickles whose buffers lie beside them.
from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t

from spcomm._core.libspc cimport spc_comm_t, spc_payload_t


cdef extern from "segment/spc_arena.h" nogil:
    ctypedef struct spc_block_shared_t:
        pass
    void *spc_block_payload(spc_block_shared_t *block)


cdef extern from "comm/spc_comm.h" nogil:
    int spc_comm_take_block(spc_comm_t *comm, uint64_t length_bytes, spc_block_shared_t **block)
    int spc_comm_take_kept(spc_comm_t *comm, uint64_t length_bytes, spc_block_shared_t **block)
    int spc_comm_move_block(spc_comm_t *comm, int32_t destination, uint16_t context, int32_t tag,
                            const spc_payload_t *payload, uint64_t deadline_ns, spc_block_shared_t **block)
    int spc_comm_await_gone(spc_comm_t *comm, uint64_t deadline_ns)
    uint64_t spc_comm_block_bytes(spc_comm_t *comm)


cdef extern from "message/spc_format.h" nogil:
    enum:
        SPC_BUFFER_ALIGNMENT
    ctypedef struct spc_pickle_meta_t:
        uint64_t pickle_bytes
        uint32_t count
        uint32_t reserved

cdef extern from "base/spc_copy.h" nogil:
    void *spc_copy_past(void *target, const void *source, size_t length_bytes)
