# SPDX-License-Identifier: MIT
"""Collectives that move data, as csrc/comm/spc_comm.h declares them."""

from libc.stdint cimport int32_t, uint32_t

from spcomm._core.libspc cimport spc_comm_t, spc_message_t, spc_payload_t, spc_signature_t

cdef extern from "comm/spc_comm.h" nogil:
    ctypedef struct spc_gathering_t:
        uint32_t operation
        uint32_t root
        spc_signature_t signature
        const spc_payload_t *payloads
        uint32_t payload_count
        uint32_t failure_bytes
        const char *failure
        spc_message_t *messages
        int32_t failed
    int spc_comm_gathering(spc_comm_t *comm, spc_gathering_t *call)
    int spc_comm_gathering_poll(spc_comm_t *comm, spc_gathering_t *call)
    void spc_comm_gathering_end(spc_comm_t *comm, spc_gathering_t *call)
