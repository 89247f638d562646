/* SPDX-License-Identifier: MIT */
/*
 * Sending: queued, streamed to a waiting receiver, or with a wait for receipts; perturbed if the run is.
 */
#include "comm/spc_comm_perturb.h"
#include "comm/spc_comm_private.h"
#include "comm/spc_request.h"

/* ---- streams */

/* Streams to a receiver that waits with a place for the data: both ends copy at once. See spc_outbox.c. */

#define STREAM_BYTES (UINT64_C(1) << 19) /* shorter ones gain nothing */
#define PATIENCE_NS UINT64_C(1000000)    /* without any progress: the receiver is busy elsewhere */
#define IDLE_POLLS 64
/* A sender waits for a receive for a hundredth of the time of a copy (10 bytes a nanosecond), or for a sixth of it if
 * the last message to that node was a stream. */
#define PATIENCE_BYTES_PER_NS 1024
#define EXPECTING_BYTES_PER_NS 64

static bool may_stream(const spc_node_t *node, const spc_send_call_t *call) {
    return !node->config->shared_cores && call->destination_count == 1 && call->block == NULL
           && call->counted_by == NULL && call->payload->data_bytes >= STREAM_BYTES
           && (uint32_t)call->destinations[0] != node->rank;
}

/* The receive may come a little later than the send. */
static bool begin(spc_node_t *node, const spc_send_call_t *call, spc_stream_t *stream) {
    const uint64_t start_ns = spc_clock_now_ns();
    uint64_t bytes_per_ns = PATIENCE_BYTES_PER_NS;
    for (;;) {
        pthread_mutex_lock(&node->lock);
        /* True in the first round only, if ever: then the expectation is withdrawn. */
        if (spc_outbox_expect_stream(node->outbox, call->destinations[0], false)) {
            bytes_per_ns = EXPECTING_BYTES_PER_NS;
        }
        spc_outbox_flush(node->outbox);
        int status = spc_outbox_begin_stream(node->outbox, call->destinations[0], call->context, call->tag,
                                             call->payload, stream);
        pthread_mutex_unlock(&node->lock);
        if (status == SPC_OK || spc_clock_now_ns() - start_ns >= call->payload->data_bytes / bytes_per_ns) {
            return status == SPC_OK;
        }
        spc_cpu_relax();
    }
}

/* Sends parts until the stream is done, or held because its receiver has been slower than a byte a nanosecond. So this
 * takes no longer than a copy may take, and checks neither signals nor deadlines, just as a copy does. */
static void send_parts(spc_node_t *node, spc_stream_t *stream) {
    const uint64_t start_ns = spc_clock_now_ns();
    uint32_t idle = 0;
    for (bool is_over = false; !is_over;) {
        if (idle >= IDLE_POLLS) {
            spc_platform_yield();
        }
        pthread_mutex_lock(&node->lock);
        const uint64_t before = stream->sent;
        spc_outbox_flush(node->outbox);
        idle = stream->sent != before ? 0 : idle + 1;
        const bool is_slow = idle >= IDLE_POLLS && spc_clock_now_ns() - start_ns > PATIENCE_NS + stream->sent;
        stream->held = !stream->done && is_slow;
        is_over = stream->done || stream->held;
        pthread_mutex_unlock(&node->lock);
        spc_cpu_relax();
    }
}

/* Sends a long message to a receiver that waits for it with a place for the data, as fast as the receiver takes it.
 * SPC_EAGAIN: there is no such receiver; nothing was sent. Without the node's lock. */
static int stream(spc_node_t *node, const spc_send_call_t *call) {
    spc_stream_t stream;
    if (!may_stream(node, call) || !begin(node, call, &stream)) {
        return SPC_EAGAIN;
    }
    send_parts(node, &stream);
    if (stream.held) { /* only this thread writes it; another thread may end the stream meanwhile */
        const uint64_t length = call->payload->meta_bytes + call->payload->data_bytes;
        spc_payload_copy(call->payload, stream.sent, length - stream.sent, spc_block_payload(stream.block));
    }
    pthread_mutex_lock(&node->lock);
    spc_outbox_end_stream(node->outbox, &stream);
    pthread_mutex_unlock(&node->lock);
    return SPC_OK;
}

/* ---- coordinated messages are counted when they are sent */

/* A cycle cannot begin inside another collective operation of this node, or that operation could never continue. */
static int may_begin(const spc_comm_t *comm) {
    if (!spc_comm_is_pending(comm)) {
        return SPC_OK;
    }
    /* Relaxed: only to distinguish a thread that waits in it from one that has left it. */
    return atomic_load_explicit(&comm->collective, memory_order_relaxed) != 0 ? SPC_EBUSY : SPC_EMISMATCH;
}

static int note_counted(spc_send_call_t *call) {
    spc_coordinated_t *account = call->counted_by->cycle.account;
    int status = spc_coordinated_is_open(account) ? SPC_OK : may_begin(call->counted_by);
    call->tag = spc_coordinated_tag(account);
    return status != SPC_OK ? status
                            : spc_coordinated_note_send(account, call->ranks, call->destination_count);
}

static void undo_counted(const spc_send_call_t *call) {
    const spc_comm_t *comm = call->counted_by;
    for (uint32_t i = 0; i < call->destination_count; i++) {
        if (!spc_outbox_took(comm->node->outbox, (uint32_t)call->destinations[i])) {
            spc_coordinated_undo_send(comm->cycle.account, call->ranks[i]);
        }
    }
}

/* ---- messages that ask for receipts are numbered when they are sent */

static bool is_answered(const spc_awaited_t *awaited) {
    return spc_receipt_is_answer(awaited->number);
}

/* With the lock. Whether all can be numbered. SPC_ELIMIT: not all alike, with a bit for each. */
static int number_all(spc_node_t *node, spc_synchronous_call_t *call) {
    int status =
        node->receipts != NULL ? SPC_OK : spc_receipts_create(&node->segment, node->rank, &node->receipts);
    for (uint32_t i = 0; i < call->send->destination_count && status == SPC_OK; i++) {
        uint32_t rank = (uint32_t)call->send->destinations[i];
        status = spc_receipts_next(node->receipts, rank, &call->awaited[i].number);
        if (status == SPC_OK && call->send->destination_count > 1 && is_answered(&call->awaited[i])) {
            status = SPC_ELIMIT;
        }
        call->awaited[i].destination = (int32_t)rank;
        call->awaited[i].rank = (uint32_t)call->send->ranks[i];
    }
    return status;
}

/* With the lock, after sending: messages that the outbox took have used their numbers, and are waited for. */
static void note_sent(spc_node_t *node, spc_synchronous_call_t *call, int status) {
    for (uint32_t i = 0; i < call->send->destination_count; i++) {
        spc_awaited_t awaited = call->awaited[i];
        uint32_t rank = (uint32_t)awaited.destination;
        if (status != SPC_OK && !spc_outbox_took(node->outbox, rank)) {
            continue;
        }
        spc_receipts_note_sent(node->receipts, rank, awaited.number);
        if (call->content && rank == node->rank) {
            spc_receipts_settle(node->receipts, rank, awaited.number);
        } else {
            call->awaited[call->count++] = awaited;
        }
    }
    call->sent = true;
}

/* ---- sending */

/* The ways in which a message leaves its sender. */
typedef enum way {
    SHORT, /* under the lock, into its slot, the ring or the queue */
    LONG,  /* copied into a block without the lock; as a short one if there is none */
    MOVED, /* it lies in a block already */
} way_t;

static inline way_t choose_way(const spc_send_call_t *call) {
    if (call->block != NULL) {
        return MOVED;
    }
    return call->payload->meta_bytes + call->payload->data_bytes > SPC_EAGER_BYTES ? LONG : SHORT;
}

/* With the lock: for a call that has a block. */
static int move(spc_node_t *node, const spc_send_call_t *call) {
    int status = spc_outbox_move_block(node->outbox, call->destinations[0], call->context, call->tag,
                                       call->payload, *call->block);
    if (status == SPC_OK) {
        *call->block = NULL;
    }
    return status;
}

/* With the lock. `copied`: the block that holds a copy of the payload, or NULL. */
static inline int send(spc_node_t *node, const spc_send_call_t *call, spc_block_shared_t *copied) {
    if (copied != NULL) {
        return spc_outbox_send_block(node->outbox, call->destinations, call->destination_count, call->context,
                                     call->tag, call->payload, copied);
    }
    if (call->block != NULL) {
        return move(node, call);
    }
    return spc_outbox_send(node->outbox, call->destinations, call->destination_count, call->context,
                           call->tag, call->payload);
}

static bool is_noted(const spc_send_call_t *call) {
    return call->counted_by != NULL || call->asking != NULL;
}

/* With the lock, before a message is sent: whether it may be. */
static int note_intent(spc_node_t *node, spc_send_call_t *call) {
    if (call->counted_by != NULL) {
        return note_counted(call);
    }
    const int status = number_all(node, call->asking);
    if (status == SPC_OK) {
        const bool answers = is_answered(&call->asking->awaited[0]);
        spc_outbox_ask(node->outbox, (uint8_t)(SPC_SLOT_ASKS | (answers ? SPC_SLOT_ANSWER : 0)));
    }
    return status;
}

/* With the lock, after that. */
static void note_outcome(spc_node_t *node, spc_send_call_t *call, int status) {
    if (call->asking != NULL) {
        spc_outbox_ask(node->outbox, 0);
        if (status != SPC_EAGAIN) {
            note_sent(node, call->asking, status);
        }
    } else if (status != SPC_OK) {
        undo_counted(call);
    }
}

/* With the lock, which is held once for all that concerns the message. */
static int send_noted(spc_node_t *node, spc_send_call_t *call, spc_block_shared_t *copied) {
    int status = note_intent(node, call);
    if (status == SPC_OK) {
        status = send(node, call, copied);
        note_outcome(node, call, status);
    } else if (copied != NULL) { /* sent to nobody, it is free again */
        (void)spc_outbox_send_block(node->outbox, call->destinations, 0, call->context, call->tag,
                                    call->payload, copied);
    }
    return status;
}

/* With the lock, which it releases: hands the message to the outbox. No node gets the block `copied` if the message is
 * not to be sent. */
static inline int send_locked(spc_node_t *node, spc_send_call_t *call, spc_block_shared_t *copied) {
    spc_outbox_flush(node->outbox);
    const int status = is_noted(call) ? send_noted(node, call, copied) : send(node, call, copied);
    pthread_mutex_unlock(&node->lock);
    return status;
}

/* Copies the payload without the lock, so that other threads of the node are not held up. SPC_EAGAIN: no room. */
static int send_copy(spc_node_t *node, spc_send_call_t *call) {
    const spc_payload_t *payload = call->payload;
    spc_block_shared_t *block;
    pthread_mutex_lock(&node->lock);
    int status = spc_outbox_take_block(node->outbox, payload->meta_bytes + payload->data_bytes, &block);
    pthread_mutex_unlock(&node->lock);
    if (status != SPC_OK) {
        return SPC_EAGAIN;
    }
    spc_payload_fill(payload, call->destination_count, spc_block_payload(block));
    pthread_mutex_lock(&node->lock);
    return send_locked(node, call, block);
}

int spc_comm_attempt_send(spc_node_t *node, spc_send_call_t *call) {
    const int status = choose_way(call) == LONG ? send_copy(node, call) : SPC_EAGAIN;
    if (status != SPC_EAGAIN) {
        return status;
    }
    pthread_mutex_lock(&node->lock);
    return send_locked(node, call, NULL);
}

static bool test_send(spc_node_wait_t *wait) {
    wait->status = spc_comm_attempt_send(wait->node, wait->argument);
    return wait->status != SPC_EAGAIN;
}

static void describe_message(const spc_comm_t *comm, const spc_send_call_t *call, spc_board_entry_t *entry) {
    int32_t destination =
        call->destination_count == 1 ? spc_comm_rank_of(comm, call->destinations[0]) : SPC_ANY_SOURCE;
    spc_comm_describe(comm, SPC_BOARD_SEND, destination, call->tag, entry);
    entry->phase =
        spc_outbox_limit_for(comm->node->outbox, call->payload->meta_bytes + call->payload->data_bytes);
}

static void describe_send(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    (void)pairs; /* the queued messages show whose progress it needs */
    describe_message(wait->owner, wait->argument, entry);
}

/* ---- sends that wait for the receiver */

/*
 * Sending that waits for the receiver: the message asks for a receipt (message/spc_receipt.h), and the wait is over
 * when all receipts are there. One wait does both: it sends when there is room, and from then on looks for them.
 *
 * Two kinds of call use it. An ssend has one destination, and fails if that ends without taking the message. A send
 * that the perturber makes wait (spc_comm_perturb.c) may have several, does not wait for its own node, and accepts that
 * destinations end: as ever, messages to them are dropped.
 */

static bool is_over(const spc_synchronous_call_t *call) {
    return call->sent && call->next == call->count;
}

/* ---- waiting for receipts */

/* With the lock: takes the answers of this node that have come. */
static void take_answers(const spc_comm_t *comm, int32_t source) {
    spc_node_t *node = comm->node;
    const spc_match_t match = {
        .source = source, .tag = SPC_RECEIPT_TAG, .context = spc_comm_context(comm, SPC_CONTEXT_INTERNAL)};
    spc_message_t message;
    while (spc_node_take(node, &match, &message) == SPC_OK) {
        uint64_t number;
        if (message.length_bytes == sizeof(number)) { /* else another box has made it up */
            memcpy(&number, message.bytes, sizeof(number));
            spc_receipts_note_answer(node->receipts, (uint32_t)source, number);
        }
        spc_inbox_release(node->inbox, &message);
        spc_inbox_note_stored(node->inbox); /* it may be the receipt that another thread waits for */
    }
}

bool spc_comm_is_taken(const spc_comm_t *comm, const spc_awaited_t *awaited) {
    spc_node_t *node = comm->node;
    if (!is_answered(awaited)) {
        return spc_receipts_given(node->receipts, (uint32_t)awaited->destination, awaited->number);
    }
    pthread_mutex_lock(&node->lock);
    take_answers(comm, awaited->destination);
    const bool taken = spc_receipts_given(node->receipts, (uint32_t)awaited->destination, awaited->number);
    spc_node_unlock(node);
    return taken;
}

static bool is_settled(spc_comm_t *comm, const spc_synchronous_call_t *call, const spc_awaited_t *awaited) {
    return spc_comm_is_taken(comm, awaited) || (call->content && spc_comm_has_left(comm, awaited->rank));
}

static bool test_synchronous(spc_node_wait_t *wait) {
    spc_synchronous_call_t *call = wait->argument;
    if (!call->sent) {
        wait->status = spc_comm_attempt_send(wait->node, call->send);
        if (wait->status != SPC_OK) {
            return wait->status != SPC_EAGAIN;
        }
    }
    while (call->next < call->count && is_settled(wait->owner, call, &call->awaited[call->next])) {
        call->next++;
    }
    return is_over(call);
}

/* The receiver has ended, or left the communicator. */
static int doomed_synchronous(spc_node_wait_t *wait) {
    const spc_synchronous_call_t *call = wait->argument;
    spc_comm_t *comm = wait->owner;
    int status = spc_comm_check_usable(comm); /* another thread may have closed it */
    if (status != SPC_OK || call->content) {
        return status;
    }
    uint32_t rank = (uint32_t)call->send->ranks[0];
    return spc_comm_has_left(comm, rank) ? spc_comm_blame(comm, rank) : SPC_OK;
}

void spc_comm_describe_receipt(const spc_comm_t *comm, const spc_synchronous_call_t *call,
                               spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const spc_awaited_t *awaited = &call->awaited[call->next];
    spc_comm_describe(comm, SPC_BOARD_RECEIPT, (int32_t)awaited->rank, call->send->tag, entry);
    spc_comm_need(comm, awaited->rank, pairs);
    entry->flags |= call->content ? SPC_BOARD_RENDEZVOUS : 0;
    entry->phase = awaited->number;
    entry->lines_offset = spc_segment_offset(&comm->node->segment,
                                             spc_receipts_row(comm->node->receipts, awaited->destination));
}

/* A receipt that is given while this node sleeps is visible only to a reader of its bit: the board names the
 * receipt. */
static void describe_synchronous(const spc_node_wait_t *wait, spc_board_entry_t *entry,
                                 spc_board_pair_t *pairs) {
    const spc_synchronous_call_t *call = wait->argument;
    if (call->sent && call->next < call->count) {
        spc_comm_describe_receipt(wait->owner, call, entry, pairs);
    } else {
        describe_message(wait->owner, call->send, entry);
    }
}

/* Settles them: no call waits for receipts that come later. */
static void settle_all(spc_node_t *node, const spc_synchronous_call_t *call) {
    if (call->count == 0) {
        return;
    }
    pthread_mutex_lock(&node->lock);
    for (uint32_t i = 0; i < call->count; i++) {
        spc_receipts_settle(node->receipts, (uint32_t)call->awaited[i].destination, call->awaited[i].number);
    }
    pthread_mutex_unlock(&node->lock);
}

static int send_and_wait_for_receipts(spc_comm_t *comm, spc_synchronous_call_t *call, uint64_t deadline_ns) {
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_synchronous,
                            .doomed = doomed_synchronous,
                            .describe = describe_synchronous,
                            .owner = comm,
                            .argument = call};
    const int status = spc_node_test_or_wait(&wait, deadline_ns);
    settle_all(comm->node, call);
    return status;
}

/* ---- preparing, and sending with or without a wait */

/* Checks the destinations, and whether the communicator may be used. */
static inline int prepare(const spc_comm_t *comm, spc_send_call_t *call, uint16_t kind) {
    call->context = spc_comm_context(comm, kind);
    call->ranks = call->destinations;
    for (uint32_t i = 0; i < call->destination_count; i++) {
        if ((uint32_t)call->destinations[i] >= comm->size) {
            return SPC_ERANK;
        }
    }
    if (call->tag < 0) {
        return SPC_ETAG;
    }
    const int status = spc_comm_check_callable(comm);
    call->perturbed = status == SPC_PERTURBED;
    return call->perturbed ? SPC_OK : status;
}

/* Destinations are ranks of this communicator; the layers below use ranks of the segment. */
static void name_members(const spc_comm_t *comm, spc_send_call_t *call, int32_t members[]) {
    for (uint32_t i = 0; i < call->destination_count; i++) {
        members[i] = (int32_t)spc_comm_member(comm, (uint32_t)call->ranks[i]);
    }
    call->destinations = members;
}

/* As try_to_send, in a part of the run. With the lock, which it releases. */
static int try_to_send_to_members(spc_comm_t *comm, spc_send_call_t *call) {
    int32_t members[SPC_NODES_MAX];
    name_members(comm, call, members);
    return send_locked(comm->node, call, NULL);
}

/* Without waiting, also for another thread. */
static inline int try_to_send(spc_comm_t *comm, spc_send_call_t *call) {
    if (call->perturbed || choose_way(call) == LONG || pthread_mutex_trylock(&comm->node->lock) != 0) {
        return SPC_EAGAIN;
    }
    return comm->members == NULL ? send_locked(comm->node, call, NULL) : try_to_send_to_members(comm, call);
}

static int send_and_wait(spc_comm_t *comm, spc_send_call_t *call, uint64_t deadline_ns) {
    int32_t members[SPC_NODES_MAX];
    spc_node_wait_t wait = {
        .node = comm->node, .test = test_send, .describe = describe_send, .owner = comm, .argument = call};
    if (comm->members != NULL) {
        name_members(comm, call, members);
    }
    if (stream(comm->node, call) == SPC_OK) {
        return SPC_OK;
    }
    return spc_node_test_or_wait(&wait, deadline_ns);
}

/* ---- perturbed sends */

static bool goes_to_others(const spc_comm_t *comm, const spc_send_call_t *call) {
    return call->destination_count > 1
           || (call->destination_count == 1 && (uint32_t)call->ranks[0] != comm->rank);
}

/* Whether the run's configuration makes this send wait for its receivers. */
static bool is_rendezvous(const spc_comm_t *comm, const spc_send_call_t *call, bool ahead) {
    return !ahead && call->counted_by == NULL && (comm->config->perturb & SPC_PERTURB_RENDEZVOUS) != 0
           && call->payload->meta_bytes + call->payload->data_bytes >= comm->config->rendezvous_bytes
           && goes_to_others(comm, call);
}

/* Waits for the receivers: not for this node itself, and not for those that end. A timeout ends the waiting: the
 * message has been sent, as without rendezvous. */
static int send_by_rendezvous(spc_comm_t *comm, spc_send_call_t *call, uint64_t deadline_ns) {
    int32_t members[SPC_NODES_MAX];
    spc_awaited_t awaited[SPC_NODES_MAX];
    spc_synchronous_call_t synchronous = {.send = call, .awaited = awaited, .content = true};
    name_members(comm, call, members);
    call->asking = &synchronous;
    int status = send_and_wait_for_receipts(comm, &synchronous, deadline_ns);
    call->asking = NULL;
    call->destinations = call->ranks;
    return status == SPC_ETIMEDOUT && synchronous.sent ? SPC_OK : status;
}

static int send_perturbed(spc_comm_t *comm, spc_send_call_t *call, bool ahead, uint64_t deadline_ns) {
    spc_comm_perturb_before(comm);
    int status = is_rendezvous(comm, call, ahead) ? send_by_rendezvous(comm, call, deadline_ns) : SPC_ELIMIT;
    if (status == SPC_ELIMIT) { /* or too many to several are open: then this message goes without waiting */
        status = send_and_wait(comm, call, deadline_ns);
    }
    if (status == SPC_OK) {
        spc_comm_perturb_after(comm);
    }
    return status;
}

/* ---- the calls */

int spc_comm_try_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                      uint16_t context, int32_t tag, const spc_payload_t *payload, spc_send_call_t *call) {
    *call = (spc_send_call_t){
        .destinations = destinations, .destination_count = destination_count, .tag = tag, .payload = payload};
    const int status = prepare(comm, call, context);
    return status == SPC_OK ? try_to_send(comm, call) : status;
}

int spc_comm_coordinated_try_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                                  const spc_payload_t *payload, spc_send_call_t *call) {
    *call = (spc_send_call_t){.destinations = destinations,
                              .destination_count = destination_count,
                              .payload = payload,
                              .counted_by = comm};
    const int status = prepare(comm, call, SPC_CONTEXT_COORDINATED);
    return status == SPC_OK ? try_to_send(comm, call) : status;
}

int spc_comm_finish_send(spc_comm_t *comm, spc_send_call_t *call, bool ahead, uint64_t deadline_ns) {
    return call->perturbed ? send_perturbed(comm, call, ahead, deadline_ns)
                           : send_and_wait(comm, call, deadline_ns);
}

static int prepare_and_send(spc_comm_t *comm, spc_send_call_t *call, uint16_t kind, bool ahead,
                            uint64_t deadline_ns) {
    const int status = prepare(comm, call, kind);
    return status == SPC_OK ? spc_comm_finish_send(comm, call, ahead, deadline_ns) : status;
}

int spc_comm_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count, uint16_t context,
                  int32_t tag, const spc_payload_t *payload, uint64_t deadline_ns) {
    spc_send_call_t call = {
        .destinations = destinations, .destination_count = destination_count, .tag = tag, .payload = payload};
    return prepare_and_send(comm, &call, context, context != SPC_CONTEXT_USER, deadline_ns);
}

int spc_comm_send_ahead(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                        uint16_t context, int32_t tag, const spc_payload_t *payload, uint64_t deadline_ns) {
    spc_send_call_t call = {
        .destinations = destinations, .destination_count = destination_count, .tag = tag, .payload = payload};
    return prepare_and_send(comm, &call, context, true, deadline_ns);
}

/* Once a block has been announced it is another node's: so a call that fails after that (a wait for the receiver that
 * was interrupted) has moved it, and reports that by its pointer. */
int spc_comm_move_block(spc_comm_t *comm, int32_t destination, uint16_t context, int32_t tag,
                        const spc_payload_t *payload, uint64_t deadline_ns, spc_block_shared_t **block) {
    spc_send_call_t call = {
        .destinations = &destination, .destination_count = 1, .tag = tag, .payload = payload, .block = block};
    return prepare_and_send(comm, &call, context, context != SPC_CONTEXT_USER, deadline_ns);
}

/* A send to one node that asks for a receipt. SPC_ELOST, SPC_EFINISHED: it has ended. `member`: room for its rank. */
static int prepare_asking(spc_comm_t *comm, spc_synchronous_call_t *call, uint16_t kind, int32_t *member) {
    spc_send_call_t *send = call->send;
    const int status = prepare(comm, send, kind);
    if (status != SPC_OK) {
        return status;
    }
    if (send->perturbed) {
        spc_comm_perturb_before(comm);
    }
    const uint32_t rank = (uint32_t)send->ranks[0];
    if (spc_comm_has_left(comm, rank)) {
        return spc_comm_blame(comm, rank);
    }
    name_members(comm, send, member);
    send->asking = call;
    return SPC_OK;
}

int spc_comm_ssend(spc_comm_t *comm, int32_t destination, uint16_t context, int32_t tag,
                   const spc_payload_t *payload, uint64_t deadline_ns) {
    int32_t member;
    spc_awaited_t awaited;
    spc_send_call_t send = {
        .destinations = &destination, .destination_count = 1, .tag = tag, .payload = payload};
    spc_synchronous_call_t call = {.send = &send, .awaited = &awaited};
    const int status = prepare_asking(comm, &call, context, &member);
    return status == SPC_OK ? send_and_wait_for_receipts(comm, &call, deadline_ns) : status;
}

/* ---- sends that are completed later ---- */

static bool test_begin(spc_node_wait_t *wait) {
    spc_synchronous_call_t *call = wait->argument;
    wait->status = spc_comm_attempt_send(wait->node, call->send);
    return wait->status != SPC_EAGAIN;
}

int spc_request_send(spc_comm_t *comm, int32_t destination, uint16_t context, int32_t tag,
                     const spc_payload_t *payload, uint64_t deadline_ns, spc_request_t *request) {
    int32_t member;
    spc_send_call_t send = {
        .destinations = &destination, .destination_count = 1, .tag = tag, .payload = payload};
    spc_synchronous_call_t call = {.send = &send, .awaited = &request->awaited};
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_begin,
                            .doomed = doomed_synchronous,
                            .describe = describe_synchronous,
                            .owner = comm,
                            .argument = &call};
    int status = prepare_asking(comm, &call, context, &member);
    status = status == SPC_OK ? spc_node_test_or_wait(&wait, deadline_ns) : status;
    if (status == SPC_OK) {
        request->kind = SPC_REQUEST_SEND;
        request->comm = comm;
        request->status = SPC_OK;
        request->tag = tag;
        atomic_store_explicit(&request->done, false, memory_order_relaxed); /* no other thread knows it yet */
    }
    return status;
}
