/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "spc_comm_perturb.h"
#include "spc_comm_private.h"

/* ---- sending ---- */

/* And to be copied: what is moved lies in a block already. */
static bool is_large(const spc_send_call_t *call) {
    return call->block == NULL && call->payload->meta_bytes + call->payload->data_bytes > SPC_EAGER_BYTES;
}

int spc_comm_prepare_send(const spc_comm_t *comm, spc_send_call_t *call, uint16_t kind) {
    call->context = spc_comm_context(comm, kind);
    call->ranks = call->destinations;
    for (uint32_t i = 0; i < call->destination_count; i++) {
        if ((uint32_t)call->destinations[i] >= comm->size) {
            return SPC_ERANK;
        }
    }
    return call->tag >= 0 ? spc_comm_pass_gate(comm) : SPC_ETAG;
}

/* With the lock. A coordinated message is counted and sent in one hold of it. */
static int send_locked(spc_node_t *node, spc_send_call_t *call) {
    spc_outbox_flush(node->outbox);
    if (call->block != NULL) {
        return spc_comm_move_locked(node, call);
    }
    int status = call->counted_by == NULL ? SPC_OK : spc_comm_coordinated_note_send(call);
    if (status != SPC_OK) {
        return status;
    }
    status = spc_outbox_send(node->outbox, call->destinations, call->destination_count, call->context,
                             call->tag, call->payload);
    if (status != SPC_OK && call->counted_by != NULL) {
        spc_comm_coordinated_undo_send(call);
    }
    return status;
}

/* As send_locked, of a block; nobody gets it if it is not to be sent. */
static int send_block_locked(spc_node_t *node, spc_send_call_t *call, spc_block_shared_t *block) {
    spc_outbox_flush(node->outbox);
    int refused = call->counted_by == NULL ? SPC_OK : spc_comm_coordinated_note_send(call);
    uint32_t count = refused == SPC_OK ? call->destination_count : 0;
    int status = spc_outbox_send_block(node->outbox, call->destinations, count, call->context, call->tag,
                                       call->payload, block);
    if (refused != SPC_OK) {
        return refused;
    }
    if (status != SPC_OK && call->counted_by != NULL) {
        spc_comm_coordinated_undo_send(call);
    }
    return status;
}

static int send_either(spc_node_t *node, void *call, spc_block_shared_t *block) {
    return block != NULL ? send_block_locked(node, call, block) : send_locked(node, call);
}

/* The payload is copied without the lock, so that other threads of the node are not held up. SPC_EAGAIN: no room. */
static int hand_over_block(spc_node_t *node, const spc_send_call_t *what, spc_comm_hand_over_t *send,
                           void *call) {
    const spc_payload_t *payload = what->payload;
    uint64_t length = payload->meta_bytes + payload->data_bytes;
    spc_block_shared_t *block;
    pthread_mutex_lock(&node->lock);
    int status = spc_outbox_take_block(node->outbox, length, &block);
    pthread_mutex_unlock(&node->lock);
    if (status != SPC_OK) {
        return SPC_EAGAIN;
    }
    spc_payload_fill(payload, what->destination_count, spc_block_payload(block));
    pthread_mutex_lock(&node->lock);
    status = send(node, call, block);
    pthread_mutex_unlock(&node->lock);
    return status;
}

int spc_comm_hand_over(spc_node_t *node, const spc_send_call_t *what, spc_comm_hand_over_t *send,
                       void *call) {
    int status = is_large(what) ? hand_over_block(node, what, send, call) : SPC_EAGAIN;
    if (status == SPC_EAGAIN) {
        pthread_mutex_lock(&node->lock);
        status = send(node, call, NULL);
        pthread_mutex_unlock(&node->lock);
    }
    return status;
}

int spc_comm_attempt_send(spc_node_t *node, spc_send_call_t *call) {
    return spc_comm_hand_over(node, call, send_either, call);
}

static bool test_send(spc_node_wait_t *wait) {
    wait->status = spc_comm_attempt_send(wait->node, wait->argument);
    return wait->status != SPC_EAGAIN;
}

static void describe_send(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    (void)pairs; /* what is queued says whose progress it needs */
    spc_comm_describe_send(wait->owner, wait->argument, entry);
}

static int try_to_send(spc_node_t *node, spc_send_call_t *call) {
    if (is_large(call) || pthread_mutex_trylock(&node->lock) != 0) {
        return SPC_EAGAIN;
    }
    int status = send_locked(node, call);
    pthread_mutex_unlock(&node->lock);
    return status;
}

static int send_and_wait(spc_comm_t *comm, spc_send_call_t *call, uint64_t deadline_ns) {
    spc_node_wait_t wait = {
        .node = comm->node, .test = test_send, .describe = describe_send, .owner = comm, .argument = call};
    if (spc_comm_stream(comm->node, call) == SPC_OK) {
        return SPC_OK;
    }
    if (test_send(&wait)) {
        return wait.status;
    }
    int status = spc_node_wait_for(&wait, deadline_ns);
    return status == SPC_OK ? wait.status : status;
}

/* Destinations are ranks of this communicator; underneath they are ranks of the segment. */
static void name_members(const spc_comm_t *comm, spc_send_call_t *call, int32_t members[]) {
    for (uint32_t i = 0; i < call->destination_count; i++) {
        members[i] = (int32_t)comm->members[call->destinations[i]];
    }
    call->destinations = members;
}

static int try_to_send_to_members(spc_comm_t *comm, spc_send_call_t *call) {
    int32_t members[SPC_NODES_MAX];
    name_members(comm, call, members);
    return try_to_send(comm->node, call);
}

static int send_to_members(spc_comm_t *comm, spc_send_call_t *call, uint64_t deadline_ns) {
    int32_t members[SPC_NODES_MAX];
    name_members(comm, call, members);
    return send_and_wait(comm, call, deadline_ns);
}

int spc_comm_try_send_call(spc_comm_t *comm, spc_send_call_t *call) {
    return comm->members == NULL ? try_to_send(comm->node, call) : try_to_send_to_members(comm, call);
}

int spc_comm_send_call(spc_comm_t *comm, spc_send_call_t *call, uint64_t deadline_ns) {
    return comm->members == NULL ? send_and_wait(comm, call, deadline_ns)
                                 : send_to_members(comm, call, deadline_ns);
}

int spc_comm_try_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                      uint16_t context, int32_t tag, const spc_payload_t *payload) {
    spc_send_call_t call = {
        .destinations = destinations, .destination_count = destination_count, .tag = tag, .payload = payload};
    int status = spc_comm_prepare_send(comm, &call, context);
    if (status != SPC_OK) {
        return status;
    }
    return spc_comm_try_send_call(comm, &call);
}

int spc_comm_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count, uint16_t context,
                  int32_t tag, const spc_payload_t *payload, uint64_t deadline_ns) {
    spc_send_call_t call = {
        .destinations = destinations, .destination_count = destination_count, .tag = tag, .payload = payload};
    int status = spc_comm_prepare_send(comm, &call, context);
    if (status != SPC_OK) {
        bool may_wait = context == SPC_CONTEXT_USER;
        return status != SPC_EAGAIN ? status : spc_comm_perturbed_send(comm, &call, may_wait, deadline_ns);
    }
    return spc_comm_send_call(comm, &call, deadline_ns);
}

int spc_comm_send_ahead(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                        uint16_t context, int32_t tag, const spc_payload_t *payload, uint64_t deadline_ns) {
    spc_send_call_t call = {
        .destinations = destinations, .destination_count = destination_count, .tag = tag, .payload = payload};
    int status = spc_comm_prepare_send(comm, &call, context);
    if (status == SPC_EAGAIN) {
        return spc_comm_perturbed_send(comm, &call, false, deadline_ns);
    }
    return status != SPC_OK ? status : spc_comm_send_call(comm, &call, deadline_ns);
}

/* ---- receiving ---- */

static int take_locked(spc_node_t *node, const spc_recv_call_t *call) {
    int status = spc_inbox_take(node->inbox, &call->match, call->message);
    spc_outbox_flush(node->outbox);
    return status;
}

static bool test_recv(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    pthread_mutex_lock(&node->lock);
    wait->status = take_locked(node, wait->argument);
    spc_node_unlock(node);
    return wait->status != SPC_EAGAIN;
}

static bool waits_for_itself(spc_node_t *node) {
    pthread_mutex_lock(&node->lock);
    bool waits = spc_outbox_waiting(node->outbox, node->rank) != 0;
    pthread_mutex_unlock(&node->lock);
    return waits;
}

/* Nobody is left who could send. This node itself counts while it is alone, when other threads of it may send, and
 * while something from it to itself is queued. */
static int doomed_from_anybody(spc_comm_t *comm) {
    uint32_t last = comm->rank;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (rank == comm->rank) {
            continue;
        }
        if (!spc_comm_has_left(comm, rank)) {
            return SPC_OK;
        }
        last = rank;
    }
    if (last == comm->rank) {
        return SPC_OK;
    }
    return waits_for_itself(comm->node) ? SPC_EAGAIN : spc_comm_blame(comm, last);
}

/* The argument of a receive and of a probe begins with its match, where the source is a rank of the segment. */
int spc_comm_doomed_by_source(spc_node_wait_t *wait) {
    spc_comm_t *comm = wait->owner;
    const spc_match_t *match = wait->argument;
    int status = spc_comm_check_usable(comm); /* another thread may have closed it */
    if (status != SPC_OK) {
        return status;
    }
    if (match->source == SPC_ANY_SOURCE) {
        return doomed_from_anybody(comm);
    }
    uint32_t source = (uint32_t)(comm->rank_of == NULL ? match->source : comm->rank_of[match->source]);
    return spc_comm_has_left(comm, source) ? spc_comm_blame(comm, source) : SPC_OK;
}

static void describe_by_source(const spc_node_wait_t *wait, spc_board_entry_t *entry,
                               spc_board_pair_t *pairs) {
    spc_comm_describe_match(wait->owner, wait->argument, entry, pairs);
}

/* Checks the call, and says what to look for in the inbox. */
static int prepare(const spc_comm_t *comm, int32_t source, int32_t tag, uint16_t kind, spc_match_t *match) {
    if (source != SPC_ANY_SOURCE && (uint32_t)source >= comm->size) {
        return SPC_ERANK;
    }
    match->source = source;
    match->tag = tag;
    match->context = spc_comm_context(comm, kind);
    match->posted = NULL;
    if (comm->members != NULL && source != SPC_ANY_SOURCE) {
        match->source = (int32_t)comm->members[source];
    }
    return spc_comm_pass_gate(comm);
}

int spc_comm_name_source(const spc_comm_t *comm, int status, spc_message_t *message) {
    if (comm->rank_of != NULL && status == SPC_OK) {
        message->source = comm->rank_of[message->source];
    }
    return status;
}

static int try_to_take(spc_comm_t *comm, const spc_recv_call_t *call) {
    spc_node_t *node = comm->node;
    if (pthread_mutex_trylock(&node->lock) != 0) {
        return SPC_EAGAIN;
    }
    int status = take_locked(node, call);
    spc_node_unlock(node);
    return spc_comm_name_source(comm, status, call->message);
}

int spc_comm_try_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                      spc_message_t *message) {
    spc_recv_call_t call = {.message = message};
    int status = prepare(comm, source, tag, context, &call.match);
    if (status == SPC_OK) {
        status = try_to_take(comm, &call);
    } else if (status == SPC_EAGAIN) {
        status = spc_comm_name_source(comm, spc_comm_perturbed_try_recv(comm, &call), message);
    }
    if (status == SPC_EAGAIN) {
        spc_node_note_vain(comm->node);
        status = spc_comm_look_again(comm, &call);
    }
    return status;
}

int spc_comm_poll_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                       spc_message_t *message) {
    spc_recv_call_t call = {.message = message};
    int status = prepare(comm, source, tag, context, &call.match);
    if (status != SPC_OK) {
        return status; /* SPC_EAGAIN, too: spc_comm_recv sees to it */
    }
    status = try_to_take(comm, &call);
    uint32_t polls = atomic_load_explicit(&comm->node->polls, memory_order_relaxed);
    for (uint32_t i = 0; i < polls && status == SPC_EAGAIN; i++) {
        spc_cpu_relax();
        status = try_to_take(comm, &call);
    }
    return status;
}

/* `prepared`: what prepare has said. */
static int recv_and_wait(spc_comm_t *comm, spc_recv_call_t *call, int prepared, uint64_t deadline_ns) {
    if (prepared != SPC_OK) {
        return prepared != SPC_EAGAIN ? prepared : spc_comm_perturbed_recv(comm, call, deadline_ns);
    }
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_recv,
                            .doomed = spc_comm_doomed_by_source,
                            .describe = describe_by_source,
                            .owner = comm,
                            .argument = call};
    int status = SPC_OK;
    if (!test_recv(&wait)) {
        status = spc_node_wait_for(&wait, deadline_ns);
    }
    return status == SPC_OK ? wait.status : status;
}

int spc_comm_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                  spc_message_t *message) {
    spc_recv_call_t call = {.message = message};
    int status = prepare(comm, source, tag, context, &call.match);
    return spc_comm_name_source(comm, recv_and_wait(comm, &call, status, deadline_ns), message);
}

int spc_comm_recv_into(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                       spc_sink_t *sink, spc_message_t *message) {
    spc_node_t *node = comm->node;
    spc_recv_call_t call = {.message = message};
    int status = prepare(comm, source, tag, context, &call.match);
    if (status != SPC_OK && status != SPC_EAGAIN) {
        return status;
    }
    spc_posted_t posted;
    pthread_mutex_lock(&node->lock);
    spc_inbox_post(node->inbox, &call.match, sink, &posted);
    pthread_mutex_unlock(&node->lock);
    status = recv_and_wait(comm, &call, status, deadline_ns);
    pthread_mutex_lock(&node->lock);
    spc_inbox_withdraw(node->inbox, &posted);
    spc_node_unlock(node);
    return spc_comm_name_source(comm, status, message);
}

int spc_comm_take(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, spc_message_t *message) {
    spc_recv_call_t call = {.message = message};
    int status = prepare(comm, source, tag, context, &call.match);
    if (status != SPC_OK && status != SPC_EAGAIN) { /* it looks only at what is here: nothing to perturb */
        return status;
    }
    pthread_mutex_lock(&comm->node->lock);
    status = spc_inbox_take_queued(comm->node->inbox, &call.match, message);
    spc_node_unlock(comm->node);
    return status == SPC_EAGAIN ? spc_comm_look_again(comm, &call)
                                : spc_comm_name_source(comm, status, message);
}

/* ---- looking ---- */

typedef struct probe_call {
    spc_match_t match; /* first: see spc_comm_doomed_by_source */
    int32_t source;
    int32_t tag;
    uint64_t length_bytes;
} probe_call_t;

static bool test_probe(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    probe_call_t *call = wait->argument;
    pthread_mutex_lock(&node->lock);
    wait->status = spc_inbox_peek(node->inbox, &call->match, &call->source, &call->tag, &call->length_bytes);
    spc_outbox_flush(node->outbox);
    spc_node_unlock(node);
    return wait->status != SPC_EAGAIN;
}

int spc_comm_probe(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                   int32_t *found_source, int32_t *found_tag, uint64_t *length_bytes) {
    probe_call_t call = {.source = 0};
    int status = spc_comm_perturb(comm, prepare(comm, source, tag, context, &call.match));
    if (status != SPC_OK) {
        return status;
    }
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_probe,
                            .doomed = spc_comm_doomed_by_source,
                            .describe = describe_by_source,
                            .owner = comm,
                            .argument = &call};
    if (!test_probe(&wait)) {
        status = spc_node_wait_for(&wait, deadline_ns);
    }
    status = status == SPC_OK ? wait.status : status;
    if (status == SPC_OK) {
        *found_source = comm->rank_of == NULL ? call.source : comm->rank_of[call.source];
        *found_tag = call.tag;
        *length_bytes = call.length_bytes;
    }
    return status;
}

/* ---- giving back ---- */

int spc_comm_put_back(spc_comm_t *comm, spc_message_t *message) {
    spc_node_t *node = comm->node;
    int32_t source = message->source;
    message->source = (int32_t)spc_comm_member(comm, (uint32_t)source);
    bool counted = message->context == spc_comm_context(comm, SPC_CONTEXT_COORDINATED);
    pthread_mutex_lock(&node->lock);
    int status = counted ? spc_comm_coordinated_check_back(comm, message->tag) : SPC_OK;
    status = status != SPC_OK ? status : spc_inbox_put_back(node->inbox, message);
    if (counted && status == SPC_OK) {
        spc_comm_coordinated_note_back(comm, source);
    }
    spc_node_unlock(node);
    if (status != SPC_OK) {
        message->source = source; /* it is still the caller's */
    }
    /* Another thread may wait for just this message. Pairs, through the lock, with its test before it sleeps. */
    spc_event_notify(node->event, node->config->features);
    return status;
}
