# SPDX-License-Identifier: MIT
"""Connections between boxes: declarations of csrc/net."""
from libc.stddef cimport size_t
from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t

from spcomm._core.libspc cimport spc_segment_t

cdef extern from "base/spc_process.h" nogil:
    int spc_process_die_with_parent(int number)
    void spc_process_rename(const char *name)
    void spc_process_close_range(int first, int last)


cdef extern from "net/link/spc_link.h" nogil:
    ctypedef struct spc_link_limits_t:
        pass
    spc_link_limits_t spc_link_limits(uint64_t timeout_ns)
    ctypedef struct spc_link_counts_t:
        uint64_t resent
        uint64_t duplicates
        uint64_t attached
        uint64_t broken
        uint64_t reads
        uint64_t writes
        uint64_t retained_bytes
        uint64_t retained_bytes_worst


cdef extern from "net/link/spc_channel.h" nogil:
    ctypedef struct spc_frame_piece_t:
        const void *start
        size_t length_bytes
    ctypedef struct spc_channel_t:
        const spc_channel_methods_t *methods
    ctypedef struct spc_channel_methods_t:
        int (*read)(spc_channel_t *channel, void *buffer, size_t room_bytes, size_t *got_bytes) noexcept nogil
        int (*write)(spc_channel_t *channel, const spc_frame_piece_t *pieces, uint32_t count,
                     size_t *taken_bytes) noexcept nogil
        int (*descriptor)(const spc_channel_t *channel) noexcept nogil
        void (*destroy)(spc_channel_t *channel) noexcept nogil
        int (*holds)(const spc_channel_t *channel) noexcept nogil
        int (*has_unread)(const spc_channel_t *channel) noexcept nogil
    int spc_channel_tcp_create(int descriptor, spc_channel_t **channel)
    int spc_channel_read(spc_channel_t *channel, void *buffer, size_t room_bytes, size_t *got_bytes)
    int spc_channel_write(spc_channel_t *channel, const spc_frame_piece_t *pieces, uint32_t count, size_t *taken_bytes)
    int spc_channel_descriptor(const spc_channel_t *channel)
    void spc_channel_destroy(spc_channel_t *channel)


cdef extern from "dlfcn.h" nogil:
    void *dlopen(const char *path, int flags)
    int RTLD_NOW, RTLD_NOLOAD


cdef extern from "net/link/spc_channel_mpi.h" nogil:
    """
    #include <dlfcn.h>
    static inline spc_mpi_function_t *spcpy_function(void *library, const char *name) {
        union { void *object; spc_mpi_function_t *function; } found = {dlsym(library, name)};
        return found.function;
    }
    """
    enum:
        SPC_MPI_STATUS_BYTES
    ctypedef union spc_mpi_handle_t:
        int narrow
        void *wide
    ctypedef void spc_mpi_function_t() noexcept
    ctypedef struct spc_mpi_functions_t:
        bint are_wide
        spc_mpi_handle_t byte
        spc_mpi_function_t *isend
        spc_mpi_function_t *irecv
        spc_mpi_function_t *test
        spc_mpi_function_t *wait
        spc_mpi_function_t *cancel
        spc_mpi_function_t *get_count
    spc_mpi_function_t *spcpy_function(void *library, const char *name)
    int spc_channel_mpi_create(const spc_mpi_functions_t *mpi, spc_mpi_handle_t comm, int rank, int tag,
                               spc_channel_t **channel)


cdef extern from "net/wire/spc_handshake.h" nogil:
    enum:
        SPC_HANDSHAKE_NONCE_BYTES
        SPC_HANDSHAKE_MAC_BYTES
        SPC_HANDSHAKE_SIGNED_BYTES
        SPC_HANDSHAKE_BYTES_MAX
        SPC_HANDSHAKE_TIMEOUT_NS
        SPC_HANDSHAKE_ACCEPTED
        SPC_HANDSHAKE_REFUSED
        SPC_HANDSHAKE_OTHER_VERSION
        SPC_HANDSHAKE_OTHER_BYTE_ORDER
        SPC_HANDSHAKE_FULL
        SPC_HANDSHAKE_STRANGER
        SPC_HANDSHAKE_LATE
        SPC_HANDSHAKE_CLOSED
        SPC_HANDSHAKE_VERSION
        SPC_HANDSHAKE_READ
        SPC_HANDSHAKE_WRITE
        SPC_HANDSHAKE_SIGN
        SPC_HANDSHAKE_OVER
    ctypedef enum spc_handshake_role_t:
        SPC_HANDSHAKE_CLIENT
        SPC_HANDSHAKE_SERVER
    ctypedef struct spc_handshake_t:
        pass
    ctypedef struct spc_handshake_options_t:
        spc_handshake_role_t role
        uint32_t version
        uint8_t byte_order
        bint full
        bint encrypted
        uint32_t job
        uint16_t box
        unsigned char *nonce
        uint64_t timeout_ns
    ctypedef struct spc_handshake_peer_t:
        uint32_t version
        uint8_t byte_order
        uint32_t job
        uint16_t box
        bint encrypted
    int spc_handshake_create(const spc_handshake_options_t *options, uint64_t now_ns, spc_handshake_t **handshake)
    void spc_handshake_destroy(spc_handshake_t *handshake)
    int spc_handshake_step(spc_handshake_t *handshake, uint64_t now_ns)
    size_t spc_handshake_wants(const spc_handshake_t *handshake)
    int spc_handshake_feed(spc_handshake_t *handshake, uint64_t now_ns, const void *bytes, size_t length_bytes)
    void spc_handshake_closed(spc_handshake_t *handshake)
    size_t spc_handshake_output(const spc_handshake_t *handshake, const unsigned char **bytes)
    int spc_handshake_sent(spc_handshake_t *handshake, size_t length_bytes)
    const unsigned char *spc_handshake_to_sign(const spc_handshake_t *handshake)
    int spc_handshake_sign(spc_handshake_t *handshake, const unsigned char *mac)
    int spc_handshake_outcome(const spc_handshake_t *handshake)
    void spc_handshake_peer(const spc_handshake_t *handshake, spc_handshake_peer_t *peer)


cdef extern from "net/server/spc_server.h" nogil:
    ctypedef struct spc_server_t:
        pass
    ctypedef struct spc_server_options_t:
        spc_link_limits_t limits
        void (*report)(void *argument, uint32_t job, const char *sentence) noexcept nogil
        void *argument
        uint32_t disabled
        bint keep_running
    int spc_server_create(const spc_server_options_t *options, spc_server_t **server)
    void spc_server_destroy(spc_server_t *server)
    int spc_server_add_job(spc_server_t *server, uint32_t job, uint16_t boxes, const uint16_t *box_of_rank,
                           uint32_t ranks)
    int spc_server_adopt(spc_server_t *server, uint32_t job, uint16_t box, spc_channel_t *channel)
    int spc_server_fail_job(spc_server_t *server, uint32_t job, const char *sentence)
    int spc_server_remove_job(spc_server_t *server, uint32_t job)
    int spc_server_run(spc_server_t *server)
    void spc_server_stop(spc_server_t *server)
    int spc_server_count(spc_server_t *server, uint32_t job, uint16_t box, spc_link_counts_t *counts)


cdef extern from "net/gateway/spc_gateway.h" nogil:
    ctypedef struct spc_gateway_t:
        pass
    ctypedef struct spc_gateway_options_t:
        int segment
        uint32_t job
        spc_link_limits_t limits
        void (*broken)(void *argument) noexcept nogil
        bint direct
        void (*wanted)(void *argument) noexcept nogil
        void (*blocked)(void *argument) noexcept nogil
        void *argument
    ctypedef struct spc_gateway_peer_counts_t:
        spc_link_counts_t link
        bint is_direct
    enum:
        SPC_GATEWAY_ADDRESS_BYTES
    int spc_gateway_listens(spc_gateway_t *gateway, const char *address)
    int spc_gateway_next_wanted(spc_gateway_t *gateway, uint32_t *box, uint32_t *number, char *address)
    bint spc_gateway_is_wanted(spc_gateway_t *gateway, uint32_t box, uint32_t number)
    int spc_gateway_attach_peer(spc_gateway_t *gateway, uint32_t box, uint32_t number, spc_channel_t *channel)
    void spc_gateway_relay_peer(spc_gateway_t *gateway, uint32_t box, uint32_t number)
    int spc_gateway_count_peer(spc_gateway_t *gateway, uint32_t box, spc_gateway_peer_counts_t *counts)
    int spc_gateway_create(const spc_gateway_options_t *options, spc_gateway_t **gateway)
    void spc_gateway_destroy(spc_gateway_t *gateway)
    int spc_gateway_attach(spc_gateway_t *gateway, spc_channel_t *channel)
    int spc_gateway_run(spc_gateway_t *gateway)
    void spc_gateway_stop(spc_gateway_t *gateway)
    const char *spc_gateway_sentence(const spc_gateway_t *gateway)
    uint32_t spc_gateway_culprit(const spc_gateway_t *gateway)
    void spc_gateway_disconnect(spc_gateway_t *gateway)
    const spc_segment_t *spc_gateway_blocked(spc_gateway_t *gateway)
    void spc_gateway_count(spc_gateway_t *gateway, spc_link_counts_t *counts)
