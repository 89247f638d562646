# SPDX-License-Identifier: MIT
"""What Cython sees of the C core. The headers are the contract; this only repeats their declarations."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "base/spc_error.h" nogil:
    enum:
        SPC_OK
        SPC_EINVAL
        SPC_ENOMEM
        SPC_ESYSTEM
        SPC_ETIMEDOUT
        SPC_EAGAIN
        SPC_EINTERRUPTED
        SPC_ELOST
        SPC_EFINISHED
        SPC_EMISMATCH
        SPC_ECLOSED
        SPC_EFORKED
        SPC_ELIMIT
        SPC_EWIDE
        SPC_ECYCLE
        SPC_EDISCONNECTED
    const char *spc_error_name(int status)
    const char *spc_error_message(int status)


cdef extern from "base/spc_clock.h" nogil:
    uint64_t SPC_NO_DEADLINE
    uint64_t spc_clock_now_ns()
    uint64_t spc_clock_deadline_ns(int64_t timeout_ns)


cdef extern from "base/spc_platform.h" nogil:
    enum:
        SPC_FEATURE_memfd
        SPC_FEATURE_futex
        SPC_FEATURE_pidfd
        SPC_FEATURE_eventfd
        SPC_FEATURE_wipe_on_fork
    uint32_t spc_platform_features(uint32_t disabled)
    double spc_platform_cores()
    uint64_t spc_platform_memory_limit()


cdef extern from "base/spc_process.h" nogil:
    uint32_t spc_process_busy_threads()
    void spc_process_adopt_orphans()


cdef extern from "segment/spc_config.h" nogil:
    enum:
        SPC_NODES_MAX
        SPC_PERTURB_SCHEDULE
        SPC_PERTURB_RENDEZVOUS
    ctypedef struct spc_config_t:
        uint32_t nodes
        uint32_t features
        uint32_t slots
        uint32_t fanin
        uint64_t ring_bytes
        uint64_t arena_bytes
        uint64_t scratch_bytes
        uint64_t queue_limit_bytes
        uint32_t shared_cores
        uint32_t sleep_at_once
        uint64_t made_ns
        uint64_t trace_events
        uint64_t perturb_seed
        uint64_t rendezvous_bytes
        uint32_t perturb
        uint32_t prefault
        uint32_t boxes
        uint32_t box


cdef extern from "segment/spc_segment.h" nogil:
    enum:
        SPC_REGION_BOARD
        SPC_REGION_STATUS
        SPC_REGION_MAILBOX
    ctypedef struct spc_segment_plan_t:
        spc_config_t config
    ctypedef struct spc_segment_t:
        unsigned char *base
        uint64_t size_bytes
        const spc_config_t *config
    int spc_segment_create(const spc_segment_plan_t *plan, int *descriptor, uint64_t *size_bytes)
    int spc_segment_attach(spc_segment_t *segment, int descriptor)
    void spc_segment_detach(spc_segment_t *segment)
    void *spc_segment_address(const spc_segment_t *segment, uint64_t offset)
    void *spc_segment_part(const spc_segment_t *segment, int region, uint32_t index)
    uint64_t spc_segment_stride(const spc_segment_t *segment, int region)
    uint64_t spc_segment_offset(const spc_segment_t *segment, const void *address)


cdef extern from "message/spc_mailbox.h" nogil:
    ctypedef struct spc_mailbox_shared_t:
        pass
    ctypedef struct spc_mailbox_count_t:
        uint32_t slots
        uint64_t long_bytes
    spc_mailbox_count_t spc_mailbox_count(spc_mailbox_shared_t *mailbox, uint32_t sender, uint32_t slots)


cdef extern from "segment/spc_status.h" nogil:
    ctypedef enum spc_node_state_t:
        SPC_NODE_STARTING
        SPC_NODE_LIVE
        SPC_NODE_FINISHED
        SPC_NODE_DIED
    ctypedef struct spc_status_shared_t:
        uint32_t nodes
    int32_t spc_status_process(const spc_status_shared_t *status, uint32_t rank)
    bint spc_status_has_raised(const spc_status_shared_t *status, uint32_t rank)
    spc_node_state_t spc_status_state(const spc_status_shared_t *status, uint32_t rank)


cdef extern from "message/spc_format.h" nogil:
    enum:
        SPC_META_MAX
        SPC_ANY_SOURCE
        SPC_ANY_TAG
        SPC_TAG_MAX
        SPC_FORMAT_RAW
        SPC_FORMAT_BYTES
        SPC_FORMAT_NONE
        SPC_FORMAT_BOOL
        SPC_FORMAT_INT64
        SPC_FORMAT_FLOAT64
        SPC_FORMAT_STR
        SPC_FORMAT_ARRAY
        SPC_FORMAT_TUPLE
        SPC_FORMAT_PICKLE
        SPC_FORMAT_LIST
        SPC_FORMAT_DICT
        SPC_STORED_ARENA
        SPC_STORED_HEAP
    ctypedef struct spc_array_meta_t:
        char byte_order
        char kind
        uint8_t dimensions
        uint8_t fortran
        uint16_t dtype_length
        uint16_t reserved
        uint32_t item_bytes
        uint32_t type_number
    ctypedef struct spc_extent_t:
        const void *start
        uint64_t length_bytes
    ctypedef struct spc_payload_t:
        const void *meta
        const void *data
        uint64_t data_bytes
        uint16_t meta_bytes
        uint8_t format
        const spc_extent_t *extents
    ctypedef struct spc_sink_t:
        void *data
        uint64_t data_bytes
        const void *meta
        uint16_t meta_bytes
        uint8_t format
        bint filled
    ctypedef struct spc_message_t:
        unsigned char *bytes
        uint64_t length_bytes
        uint64_t arrival
        void *handle
        int32_t source
        int32_t tag
        uint16_t context
        uint16_t meta_bytes
        uint8_t format
        uint8_t storage
        uint8_t sole
    unsigned char *spc_message_data(const spc_message_t *message)
    uint64_t spc_message_data_bytes(const spc_message_t *message)


cdef extern from "reduce/spc_ops.h" nogil:
    enum:
        SPC_FIELDS_MAX
        SPC_SUM
        SPC_MIN
        SPC_MAX
        SPC_TYPE_NONE
        SPC_TYPE_INT
        SPC_TYPE_WIDE
        SPC_TYPE_INT8
        SPC_TYPE_INT16
        SPC_TYPE_INT32
        SPC_TYPE_INT64
        SPC_TYPE_UINT8
        SPC_TYPE_UINT16
        SPC_TYPE_UINT32
        SPC_TYPE_UINT64
        SPC_TYPE_FLOAT32
        SPC_TYPE_FLOAT64
    ctypedef struct spc_field_t:
        uint32_t type
        uint32_t count


cdef extern from "reduce/spc_reduce.h" nogil:
    enum:
        SPC_OPERATION_BARRIER
        SPC_OPERATION_COORDINATED
        SPC_OPERATION_REDUCE
        SPC_OPERATION_GATHER
        SPC_OPERATION_SPLIT
        SPC_OPERATION_DATA_BCAST
        SPC_OPERATION_DATA_GATHER
        SPC_OPERATION_DATA_ALLGATHER
        SPC_OPERATION_DATA_SCATTER
        SPC_OPERATION_DATA_ALLTOALL
    ctypedef struct spc_signature_t:
        uint64_t length_bytes
        uint64_t layout
        uint32_t root
        uint8_t operation
        uint8_t op "operator"
        uint8_t type
        uint8_t field_count


cdef extern from "reduce/spc_layout.h" nogil:
    enum:  # what a value is, in the topmost byte of its layout; KINDS in signatures.pyx has the names
        INT "SPC_KIND_INT"
        FLOAT "SPC_KIND_FLOAT"
        BOOL "SPC_KIND_BOOL"
        ARRAY "SPC_KIND_ARRAY"
        TUPLE "SPC_KIND_TUPLE"
        COMPLEX "SPC_KIND_COMPLEX"
        SCALAR "SPC_KIND_SCALAR"
        SIMTIME "SPC_KIND_SIMTIME"
    uint64_t mix "spc_layout_mix"(uint64_t hash, uint64_t value)
    uint64_t layout_of "spc_layout_of"(uint64_t kind, uint64_t hash, uint64_t step)
    uint64_t layout_of_one "spc_layout_of_one"(uint64_t kind)


cdef extern from "segment/spc_board.h" nogil:
    enum:
        SPC_BOARD_FILE_BYTES
        SPC_BOARD_FUNCTION_BYTES

    ctypedef struct spc_board_entry_t:
        uint32_t kind
        uint32_t doubts
        uint32_t flags
        uint32_t communicator
        uint32_t rank
        uint32_t size
        int32_t source
        int32_t tag
        int32_t near_source
        int32_t near_tag
        uint32_t near_count
        uint32_t line
        uint64_t since_ns
        uint64_t phase
        uint64_t lines_offset
        unsigned char call[24]
        char function[64]
        char file[256]

    ctypedef struct spc_board_shared_t:
        pass

    uint32_t spc_board_vain(const spc_board_shared_t *board)


cdef extern from "diagnose/spc_traffic.h" nogil:
    uint64_t spc_traffic_seen(const spc_segment_t *segment)


cdef extern from "diagnose/spc_deadlock.h" nogil:
    ctypedef struct spc_deadlock_t:
        pass

    int spc_deadlock_create(const spc_segment_t *segment, spc_deadlock_t **deadlock)
    void spc_deadlock_destroy(spc_deadlock_t *deadlock)
    void spc_deadlock_find_vain(spc_deadlock_t *deadlock)
    uint32_t spc_deadlock_look(spc_deadlock_t *deadlock)
    bint spc_deadlock_has(const spc_deadlock_t *deadlock, uint32_t rank)


cdef extern from "comm/spc_comm.h" nogil:
    ctypedef struct spc_comm_t:
        pass
    enum:
        SPC_CONTEXT_USER
    ctypedef struct spc_comm_options_t:
        int descriptor
        uint32_t rank
        int (*check)(void *argument) noexcept
        int (*handle)(void *argument) noexcept
        void *check_argument
        int32_t (*locate)(void *argument, spc_board_entry_t *entry) noexcept
        uint64_t own_signals

    int spc_comm_plan(const spc_config_t *config, spc_segment_plan_t *plan)
    int spc_comm_count_collectives(const spc_segment_t *segment, uint64_t *counts)
    void spc_comm_mark_ending(const spc_segment_t *segment, uint32_t rank, spc_node_state_t state,
                              int32_t reason)
    void spc_comm_mark_ended(const spc_segment_t *segment, uint32_t rank, spc_node_state_t state,
                             int32_t reason)

    int spc_comm_create(const spc_comm_options_t *options, spc_comm_t **comm)
    int spc_comm_close(spc_comm_t *comm, uint64_t deadline_ns)
    void spc_comm_destroy(spc_comm_t *comm)
    int spc_comm_split(spc_comm_t *comm, int64_t color, int64_t key, uint64_t deadline_ns, spc_comm_t **part)
    uint32_t spc_comm_rank(const spc_comm_t *comm)
    uint32_t spc_comm_size(const spc_comm_t *comm)
    uint32_t spc_comm_rank_in_run(const spc_comm_t *comm, uint32_t rank)
    uint32_t spc_comm_box(const spc_comm_t *comm, uint32_t rank)
    uint64_t spc_comm_scratch_bytes(const spc_comm_t *comm)
    const spc_config_t *spc_comm_config(const spc_comm_t *comm)
    void spc_comm_mark_disconnected(const spc_segment_t *segment, int32_t culprit)
    int32_t spc_comm_lost_box(const spc_comm_t *comm)
    int32_t spc_comm_culprit(const spc_comm_t *comm, spc_node_state_t *state, int32_t *reason)
    int spc_comm_usable(const spc_comm_t *comm)

    int spc_comm_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                      uint16_t context,
                      int32_t tag, const spc_payload_t *payload, uint64_t deadline_ns)
    int spc_comm_try_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                          uint16_t context, int32_t tag, const spc_payload_t *payload)
    int spc_comm_send_ahead(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                            uint16_t context, int32_t tag, const spc_payload_t *payload, uint64_t deadline_ns)
    int spc_comm_ssend(spc_comm_t *comm, int32_t destination, uint16_t context, int32_t tag,
                       const spc_payload_t *payload, uint64_t deadline_ns)
    int spc_comm_try_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                          spc_message_t *message)
    int spc_comm_poll_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                           spc_message_t *message)
    int spc_comm_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                      spc_message_t *message)
    int spc_comm_recv_into(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                           spc_sink_t *sink, spc_message_t *message)
    int spc_comm_handle(spc_comm_t *comm, int32_t tag)
    int spc_comm_take_handled(spc_comm_t *comm, spc_message_t *message)
    int spc_comm_take(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, spc_message_t *message)
    int spc_comm_probe(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                       int32_t *found_source, int32_t *found_tag, uint64_t *length_bytes)
    int spc_comm_poll(spc_comm_t *comm, uint16_t context, uint64_t *waiting)
    bint spc_message_claim(spc_comm_t *comm, spc_message_t *message)
    void spc_message_release(spc_comm_t *comm, spc_message_t *message)
    int spc_comm_put_back(spc_comm_t *comm, spc_message_t *message)
    void spc_comm_release_stored(spc_comm_t *comm, int storage, void *handle)

    int spc_comm_collective(spc_comm_t *comm, const spc_signature_t *signature, const spc_field_t *fields,
                            const void *value, uint64_t length_bytes, void *result, uint64_t deadline_ns)
    int spc_comm_collective_poll(spc_comm_t *comm, const spc_signature_t *signature,
                                 const spc_field_t *fields,
                                 const void *value, uint64_t length_bytes, void *result)
    void spc_comm_contribution(const spc_comm_t *comm, uint32_t rank, const void **bytes,
                               uint64_t *length_bytes)
    bint spc_comm_mismatch(const spc_comm_t *comm, uint32_t rank, spc_signature_t *signature, uint64_t *phase)
    int spc_comm_fuzzy_enter(spc_comm_t *comm, uint64_t *phase)
    int spc_comm_fuzzy_done(spc_comm_t *comm, uint64_t phase)
    int spc_comm_fuzzy_wait(spc_comm_t *comm, uint64_t phase, uint64_t deadline_ns)


# ---- times and destinations

cdef extern from "spcomm/simtime.h" nogil:
    ctypedef struct spcomm_simtime_t:
        double time
        int32_t priority[4]
    spcomm_simtime_t spcomm_simtime_from(double time)
    int spcomm_simtime_compare(spcomm_simtime_t left, spcomm_simtime_t right)


cdef extern from "spcomm/destination.h" nogil:
    enum:
        SPCOMM_DESTINATION_RANKS
    ctypedef struct spcomm_destination_t:
        uint64_t words[16]
    void spcomm_destination_clear(spcomm_destination_t *destination)
    int spcomm_destination_set(spcomm_destination_t *destination, int rank)
    int spcomm_destination_reset(spcomm_destination_t *destination, int rank)
    bint spcomm_destination_contains(const spcomm_destination_t *destination, int rank)
    int spcomm_destination_count(const spcomm_destination_t *destination)
    bint spcomm_destination_equal(const spcomm_destination_t *left, const spcomm_destination_t *right)
    int spcomm_destination_from(const spcomm_destination_t *destination, int rank)
    int spcomm_destination_next(spcomm_destination_t *destination)
    int spcomm_destination_first(spcomm_destination_t *destination)
    int spcomm_destination_to_ranks(const spcomm_destination_t *destination, int32_t *ranks, int room)


cdef extern from "message/spc_format.h" nogil:
    enum:
        SPC_FORMAT_SIMTIME


cdef extern from "reduce/spc_ops.h" nogil:
    enum:
        SPC_TYPE_SIMTIME
    int spc_ops_combine(int op, const spc_field_t *fields, uint32_t field_count, void *left,
                        const void *right)


cdef extern from "reduce/spc_reduce.h" nogil:
    enum:
        SPC_OPERATION_FUZZY


cdef extern from "<stdbool.h>" nogil:
    ctypedef bint spc_bool "bool"


cdef extern from "comm/spc_comm.h" nogil:  # coordinated messages
    int spc_comm_coordinated_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                                  const spc_payload_t *payload, uint64_t deadline_ns)
    int spc_comm_coordinated_try_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                                      const spc_payload_t *payload)
    int spc_comm_coordinated_recv(spc_comm_t *comm, uint64_t deadline_ns, spc_message_t *message, spc_bool *over)
    int spc_comm_coordinated_poll(spc_comm_t *comm, spc_message_t *message, spc_bool *over)
