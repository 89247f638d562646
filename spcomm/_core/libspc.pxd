# SPDX-License-Identifier: MIT
"""Cython's view of the C core. The headers are the contract; this file only repeats their declarations."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef extern from "base/spc_error.h" nogil:
    enum:
        SPC_OK
        SPC_EINVAL
        SPC_EVERSION
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
        SPC_EDEADLOCK
    const char *spc_error_name(int status)
    const char *spc_error_message(int status)


cdef extern from "base/spc_clock.h" nogil:
    uint64_t SPC_NO_DEADLINE
    uint64_t spc_clock_now_ns()
    uint64_t spc_clock_deadline_ns(int64_t timeout_ns)


cdef extern from "base/spc_cgroup.h" nogil:
    uint64_t spc_cgroup_oom_kills(const char *root)


cdef extern from "base/spc_platform.h" nogil:
    enum:
        SPC_FEATURE_memfd
        SPC_FEATURE_futex
        SPC_FEATURE_pidfd
        SPC_FEATURE_epoll
        SPC_FEATURE_wipe_on_fork
    uint32_t spc_platform_features(uint32_t disabled)
    double spc_platform_cores()
    uint64_t spc_platform_memory_limit()


cdef extern from "base/spc_process.h" nogil:
    uint32_t spc_process_busy_threads()
    void spc_process_adopt_orphans()


cdef extern from "base/spc_copy.h" nogil:
    void *spc_copy_past(void *target, const void *source, size_t length_bytes)


cdef extern from "<stdbool.h>" nogil:
    ctypedef bint spc_bool "bool"


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
        uint32_t counts_times
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
        SPC_BOXES_MAX
        SPC_REGION_EVENT
        SPC_REGION_NOTE
        SPC_REGION_TRACE
    ctypedef struct spc_segment_plan_t:
        spc_config_t config
    ctypedef struct spc_segment_t:
        unsigned char *base
        uint64_t size_bytes
        const spc_config_t *config
    int spc_segment_create(const spc_segment_plan_t *plan, int *descriptor, uint64_t *size_bytes)
    int spc_segment_attach(spc_segment_t *segment, int descriptor)
    void spc_segment_detach(spc_segment_t *segment)
    void *spc_segment_part(const spc_segment_t *segment, int region, uint32_t index)
    uint64_t spc_segment_stride(const spc_segment_t *segment, int region)
    uint64_t spc_segment_offset(const spc_segment_t *segment, const void *address)
    bint spc_segment_is_here(const spc_segment_t *segment, uint32_t rank)
    void spc_segment_set_boxes(const spc_segment_t *segment, const uint16_t *box_by_rank)


cdef extern from "segment/spc_arena.h" nogil:
    ctypedef struct spc_block_shared_t:
        pass
    void *spc_block_payload(spc_block_shared_t *block)


cdef extern from "segment/spc_event.h" nogil:
    ctypedef struct spc_event_shared_t:
        pass
    bint spc_event_sleeps(const spc_event_shared_t *event)
    void spc_event_stand_in(spc_event_shared_t *event, const spc_event_shared_t *gateway)


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
    uint64_t spc_status_moving(const spc_status_shared_t *status, uint32_t rank, uint64_t *moved_bytes)


cdef extern from "segment/spc_note.h" nogil:
    enum:
        SPC_NOTE_WORDS_BYTES
        SPC_NOTE_FUNCTION_BYTES
        SPC_NOTE_FILE_BYTES
        SPC_NOTE_SENT_FILE_BYTES
        SPC_NOTE_LEFT_MAX
        SPC_NOTE_END
        SPC_NOTE_FUZZY
        SPC_NOTE_CYCLE
    ctypedef struct spc_note_t:
        uint32_t count
        uint32_t line
        char words[136]
        char function[64]
        char file[256]
    ctypedef struct spc_note_left_t:
        uint32_t source
        uint32_t destination
        int32_t tag
        uint32_t context
        uint64_t count
    ctypedef struct spc_note_sent_t:
        uint32_t destination
        int32_t tag
        uint32_t line
        char file[112]
    ctypedef struct spc_note_shared_t:
        uint32_t left_count
        uint64_t left_more
        spc_note_left_t left[32]
        uint32_t sent_count
        spc_note_sent_t sent[32]
    bint spc_note_read(const spc_note_shared_t *notes, int kind, spc_note_t *note)
    bint spc_note_is_settled(const spc_note_shared_t *notes)
    bint spc_note_is_handled(const spc_note_shared_t *notes, uint32_t context, int32_t tag)


cdef extern from "segment/spc_trace.h" nogil:
    enum:
        SPC_TRACE_CALL
        SPC_TRACE_RETURN
        SPC_TRACE_SEND
        SPC_TRACE_RECEIVE
        SPC_TRACE_WAIT
        SPC_TRACE_GO_ON
        SPC_TRACE_ENTER
        SPC_TRACE_LEAVE
        SPC_TRACE_WORK
        SPC_TRACE_HANDLE
        SPC_TRACE_HANDLED
        SPC_TRACE_START
        SPC_TRACE_CORE
        SPC_TRACE_NAMES_MAX
        SPC_TRACE_NAME_BYTES
    const char *SPC_TRACE_NO_ROOM
    ctypedef struct spc_trace_event_t:
        uint64_t ticks
        uint8_t kind
        uint16_t context
        int32_t peer
        int32_t tag
        uint32_t what
        uint32_t place
        uint32_t number
        uint64_t thread
        uint64_t bytes
    ctypedef struct spc_trace_shared_t:
        pass
    ctypedef struct spc_trace_t:
        pass
    void spc_trace_record(spc_trace_t *trace, const spc_trace_event_t *event)
    uint32_t spc_trace_name(spc_trace_t *trace, const char *text)
    ctypedef struct spc_trace_reader_t:
        const spc_trace_shared_t *shared
        uint64_t first
        uint64_t count
    void spc_trace_look(spc_trace_reader_t *reader, const spc_trace_shared_t *shared, uint64_t bytes)
    bint spc_trace_read(const spc_trace_reader_t *reader, uint64_t number, spc_trace_event_t *event,
                        uint64_t *time_ns)
    void spc_trace_text(const spc_trace_shared_t *shared, uint32_t number, char *text)


cdef extern from "segment/spc_board.h" nogil:
    enum:
        SPC_BOARD_AT_END
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
    ctypedef struct spc_board_spent_t:
        uint64_t started_ns
        uint64_t closed_ns
        uint64_t core_started_ns
        uint64_t core_closed_ns
        uint64_t waiting_since_ns
        uint64_t waited_ns
    ctypedef struct spc_board_shared_t:
        pass
    spc_board_spent_t spc_board_read_times(const spc_board_shared_t *board)
    uint32_t spc_board_vain(const spc_board_shared_t *board)


cdef extern from "message/spc_mailbox.h" nogil:
    ctypedef struct spc_mailbox_shared_t:
        pass
    ctypedef struct spc_mailbox_count_t:
        uint32_t messages
        uint64_t long_bytes
    spc_mailbox_count_t spc_mailbox_count(spc_mailbox_shared_t *mailbox, uint32_t sender, uint32_t slots)
    ctypedef struct spc_unread_t:
        uint16_t source
        uint16_t context
        int32_t tag
    bint spc_mailbox_unread(spc_mailbox_shared_t *mailbox, uint32_t sender, uint32_t slots, uint32_t *at,
                            spc_unread_t *unread)


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
        SPC_FORMAT_SIMTIME
        SPC_BUFFER_ALIGNMENT
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
    ctypedef struct spc_pickle_meta_t:
        uint64_t pickle_bytes
        uint32_t count
        uint32_t reserved


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
        SPC_TYPE_FLOAT64
        SPC_TYPE_SIMTIME
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
    ctypedef struct spc_field_t:
        uint32_t type
        uint32_t count
    int spc_ops_combine(int op, const spc_field_t *fields, uint32_t field_count, void *left,
                        const void *right)
    bint spc_ops_has(int op, uint32_t type)


cdef extern from "reduce/spc_reduce.h" nogil:
    enum:
        SPC_OPERATION_BARRIER
        SPC_OPERATION_COORDINATED
        SPC_OPERATION_REDUCE
        SPC_OPERATION_GATHER
        SPC_OPERATION_DATA_BCAST
        SPC_OPERATION_DATA_GATHER
        SPC_OPERATION_DATA_ALLGATHER
        SPC_OPERATION_DATA_SCATTER
        SPC_OPERATION_DATA_ALLTOALL
        SPC_OPERATION_FUZZY
        SPC_OPERATION_ARRAY_ALLREDUCE
        SPC_OPERATION_ARRAY_REDUCE
        SPC_OPERATION_ARRAY_REDUCE_SCATTER
        SPC_OPERATION_ARRAY_SCAN
        SPC_OPERATION_ARRAY_EXSCAN
    ctypedef struct spc_signature_t:
        uint64_t length_bytes
        uint64_t layout
        uint32_t root
        uint8_t operation
        uint8_t op "operator"
        uint8_t type
        uint8_t field_count


cdef extern from "reduce/spc_layout.h" nogil:
    enum:  # the kind of a value, in the topmost byte of its layout
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
    uint64_t mix_shape "spc_layout_mix_shape"(uint64_t hash, uint32_t dimensions, const int64_t *shape)


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


cdef extern from "diagnose/spc_unmatched.h" nogil:
    bint spc_unmatched_any(const spc_segment_t *segment)


cdef extern from "comm/spc_comm.h" nogil:
    enum:
        SPC_CONTEXT_USER
        SPC_CONTEXT_KINDS
    ctypedef struct spc_comm_t:
        pass
    ctypedef struct spc_comm_options_t:
        int descriptor
        uint32_t rank
        int (*check)(void *argument) noexcept
        int (*handle)(void *argument) noexcept
        void *check_argument
        int32_t (*locate)(void *argument, spc_board_entry_t *entry, uint64_t *own_signals) noexcept
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
    int spc_comm_watch_itself(spc_comm_t *comm, int (*warn)(void *argument) noexcept)
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
    int spc_comm_coordinated_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                                  const spc_payload_t *payload, uint64_t deadline_ns)
    int spc_comm_coordinated_try_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                                      const spc_payload_t *payload)
    int spc_comm_coordinated_recv(spc_comm_t *comm, uint64_t deadline_ns, spc_message_t *message, spc_bool *over)
    int spc_comm_coordinated_poll(spc_comm_t *comm, spc_message_t *message, spc_bool *over)
    int spc_comm_take_block(spc_comm_t *comm, uint64_t length_bytes, spc_block_shared_t **block)
    int spc_comm_take_kept(spc_comm_t *comm, uint64_t length_bytes, spc_block_shared_t **block)
    int spc_comm_move_block(spc_comm_t *comm, int32_t destination, uint16_t context, int32_t tag,
                            const spc_payload_t *payload, uint64_t deadline_ns, spc_block_shared_t **block)
    int spc_comm_await_gone(spc_comm_t *comm, uint64_t deadline_ns)
    uint64_t spc_comm_block_bytes(spc_comm_t *comm)
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
    int spc_comm_gathering(spc_comm_t *comm, spc_gathering_t *call, uint64_t deadline_ns)
    int spc_comm_gathering_poll(spc_comm_t *comm, spc_gathering_t *call)
    void spc_comm_gathering_end(spc_comm_t *comm, spc_gathering_t *call)
    void spc_comm_note(spc_comm_t *comm, int kind, const spc_note_t *note)
    void spc_comm_note_sent(spc_comm_t *comm, const spc_note_sent_t *sent)
    void spc_comm_note_failure(spc_comm_t *comm, int32_t exit_code)
    void spc_comm_note_raised(spc_comm_t *comm, int32_t change)
    bint spc_comm_has_note(const spc_comm_t *comm, int kind)
    bint spc_comm_end_of(const spc_comm_t *comm, uint32_t rank, spc_note_t *note)
    void spc_comm_note_call(spc_comm_t *comm, uint64_t phase, spc_note_t *note)
    bint spc_comm_call_of(const spc_comm_t *comm, uint32_t rank, uint64_t phase, uint64_t deadline_ns,
                          spc_note_t *note)
    uint32_t spc_comm_near(const spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                           int32_t *near_source, int32_t *near_tag)
    spc_trace_t *spc_comm_trace(const spc_comm_t *comm)
    void spc_comm_trace_call(const spc_comm_t *comm, uint32_t what, uint32_t place, uint32_t detail)


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
    bint spc_collect_is_short(const spc_comm_t *comm, const spc_collect_call_t *call)
    void spc_collect_describe_short(const spc_collect_call_t *call, spc_signature_t *signature, spc_field_t *field)
    void spc_collect_use_no_blocks(spc_collect_t *collect, void *memory)
    uint64_t spc_collect_memory_bytes(const spc_comm_t *comm, const spc_collect_call_t *call)
    int spc_collect_create(spc_comm_t *comm, const spc_collect_call_t *call, spc_collect_t **collect)
    int spc_collect_run(spc_collect_t *collect, uint64_t deadline_ns)
    void *spc_collect_take_result(spc_collect_t *collect, spc_block_shared_t **block)
    void spc_collect_destroy(spc_collect_t *collect)


cdef extern from "fork/spc_meet.h" nogil:
    enum:
        SPC_MEET_MESSAGE_BYTES
    ctypedef struct spc_meet_options_t:
        const char *const *command
        int32_t local_nodes
        int32_t total_nodes
        int32_t group_id
        const char *infile
        const char *program
        int (*check)(void *argument) noexcept nogil
        void *check_argument
    ctypedef struct spc_meet_t:
        int descriptor
        uint32_t total_nodes
    int spc_meet(const spc_meet_options_t *options, spc_meet_t *meet, char *message, uint64_t message_bytes)
    void spc_meet_close(spc_meet_t *meet)


cdef extern from "fork/spc_launcher.h" nogil:
    enum:
        SPC_LAUNCHER_NOTE_BYTES
    ctypedef struct spc_launcher_place_t:
        uint32_t rank
        uint32_t size
        uint32_t local_rank
        uint32_t local_size
        bint is_slurm
        const char *launcher
        char *name
    int spc_launcher_find(spc_launcher_place_t *place, const char *program, char *note, uint64_t note_bytes)


cdef extern from "fork/spc_fork.h" nogil:
    ctypedef struct spc_fork_t:
        pass
    ctypedef struct spc_fork_options_t:
        int descriptor
        uint32_t nodes
        double grace_s
        const spc_meet_t *meet
    ctypedef struct spc_fork_join_options_t:
        const spc_launcher_place_t *place
        int descriptor
        const spc_meet_options_t *meet
        int (*check)(void *argument) noexcept nogil
        void *check_argument
    int spc_fork_join(const spc_fork_join_options_t *options, spc_fork_t **fork, int *descriptor, char *message,
                      uint64_t message_bytes)
    int spc_fork_is_caller(const spc_fork_t *fork)
    uint32_t spc_fork_other_threads()
    int spc_fork_nodes(const spc_fork_options_t *options, spc_fork_t **fork, uint32_t *rank)
    int spc_fork_check(void *fork)
    uint64_t spc_fork_own_signals(const spc_fork_t *fork)
    int spc_fork_wait(spc_fork_t *fork, int own_code, int *exit_code)
    int spc_fork_wait_at_exit(spc_fork_t *fork)
    int spc_fork_report_descriptor(const spc_fork_t *fork)


cdef extern from "fork/spc_infile.h" nogil:
    enum:
        SPC_INFILE_MESSAGE_BYTES
    ctypedef struct spc_infile_t:
        int32_t local_nodes
        int32_t total_nodes
        int32_t group_id
        int32_t timeout_s
        char *server
        char *code
        uint32_t rank_count
        int32_t *ranks
    int spc_infile_read(const char *path, spc_infile_t *infile, char *message, uint64_t message_bytes)


cdef extern from "fork/spc_join.h" nogil:
    enum:
        SPC_JOIN_MESSAGE_BYTES


cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    PyFrameObject *PyEval_GetFrame()  # borrowed; the caller's frame, because functions in C have none
    int PyFrame_GetLineNumber(PyFrameObject *frame)
    PyFrameObject *PyFrame_GetBack(PyFrameObject *frame)  # a new reference, or NULL
    ctypedef struct PyCodeObject:
        pass
    PyCodeObject *PyFrame_GetCode(PyFrameObject *frame)  # a new reference


cdef extern from "frameobject.h":
    int PyFrame_GetLasti(PyFrameObject *frame)
