# SPDX-License-Identifier: MIT
"""What a run without a launcher takes of the C core: csrc/agent."""
from libc.stdint cimport int32_t, uint32_t, uint64_t

cdef extern from "fork/spc_fork.h" nogil:
    ctypedef struct spc_fork_t:
        pass
    ctypedef struct spc_fork_options_t:
        int descriptor
        uint32_t nodes
        double grace_s
    uint32_t spc_fork_other_threads()
    int spc_fork_nodes(const spc_fork_options_t *options, spc_fork_t **fork, uint32_t *rank)
    int spc_fork_check(void *fork)
    uint64_t spc_fork_own_signals(const spc_fork_t *fork)
    int spc_fork_wait(spc_fork_t *fork, int own_code, int *exit_code)
    int spc_fork_wait_at_exit(spc_fork_t *fork)
    int spc_fork_report_descriptor(const spc_fork_t *fork)


cdef extern from "fork/spc_infile.h" nogil:
    enum:
        SPC_INFILE_SERVER_BYTES
        SPC_INFILE_MESSAGE_BYTES
    ctypedef struct spc_infile_t:
        int32_t local_nodes
        int32_t total_nodes
        int32_t group_id
        char *server
    int spc_infile_read(const char *path, spc_infile_t *infile, char *message, uint64_t message_bytes)
