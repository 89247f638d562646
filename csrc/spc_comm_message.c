/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "spc_comm_private.h"

/* ---- sending ---- */

typedef struct send_call {
    const int32_t *destinations;
    uint32_t destination_count;
    uint16_t context;
    int32_t tag;
    const spc_payload_t *payload;
} send_call_t;

static bool is_large(const send_call_t *call) {
    return call->payload->meta_bytes + call->payload->data_bytes > SPC_EAGER_BYTES;
}

static int check_send(const spc_comm_t *comm, const send_call_t *call) {
    for (uint32_t i = 0; i < call->destination_count; i++) {
        if ((uint32_t)call->destinations[i] >= comm->size) {
            return SPC_ERANK;
        }
    }
    return call->tag >= 0 ? spc_comm_check_usable(comm) : SPC_ETAG;
}

/* With the lock. */
static int send_locked(spc_comm_t *comm, const send_call_t *call) {
    if (!spc_outbox_is_empty(comm->outbox)) {
        spc_outbox_flush(comm->outbox);
    }
    return spc_outbox_send(comm->outbox, call->destinations, call->destination_count, call->context,
                           call->tag, call->payload);
}

/* The payload is copied without the lock, so that other threads of the node are not held up. SPC_EAGAIN: no room. */
static int send_large(spc_comm_t *comm, const send_call_t *call) {
    const spc_payload_t *payload = call->payload;
    uint64_t length = payload->meta_bytes + payload->data_bytes;
    spc_block_shared_t *block;
    pthread_mutex_lock(&comm->lock);
    int status = spc_outbox_take_block(comm->outbox, length, &block);
    pthread_mutex_unlock(&comm->lock);
    if (status != SPC_OK) {
        return SPC_EAGAIN;
    }
    spc_payload_copy(payload, 0, length, spc_block_payload(block));
    pthread_mutex_lock(&comm->lock);
    if (!spc_outbox_is_empty(comm->outbox)) {
        spc_outbox_flush(comm->outbox);
    }
    status = spc_outbox_send_block(comm->outbox, call->destinations, call->destination_count, call->context,
                                   call->tag, payload, block);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

static bool test_send(spc_comm_wait_t *wait) {
    spc_comm_t *comm = wait->comm;
    const send_call_t *call = wait->argument;
    if (is_large(call)) {
        wait->status = send_large(comm, call);
        if (wait->status != SPC_EAGAIN) {
            return true;
        }
    }
    pthread_mutex_lock(&comm->lock);
    wait->status = send_locked(comm, call);
    pthread_mutex_unlock(&comm->lock);
    return wait->status != SPC_EAGAIN;
}

int spc_comm_try_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count,
                      uint16_t context, int32_t tag, const spc_payload_t *payload) {
    send_call_t call = {destinations, destination_count, context, tag, payload};
    int status = check_send(comm, &call);
    if (status != SPC_OK) {
        return status;
    }
    if (is_large(&call) || pthread_mutex_trylock(&comm->lock) != 0) {
        return SPC_EAGAIN;
    }
    status = send_locked(comm, &call);
    pthread_mutex_unlock(&comm->lock);
    return status;
}

int spc_comm_send(spc_comm_t *comm, const int32_t *destinations, uint32_t destination_count, uint16_t context,
                  int32_t tag, const spc_payload_t *payload, uint64_t deadline_ns) {
    send_call_t call = {destinations, destination_count, context, tag, payload};
    int status = check_send(comm, &call);
    if (status != SPC_OK) {
        return status;
    }
    spc_comm_wait_t wait = {.comm = comm, .test = test_send, .argument = &call};
    if (test_send(&wait)) {
        return wait.status;
    }
    status = spc_comm_wait_for(&wait, deadline_ns);
    return status == SPC_OK ? wait.status : status;
}

/* ---- receiving ---- */

typedef struct recv_call {
    spc_match_t match;
    spc_message_t *message;
} recv_call_t;

static int take_locked(spc_comm_t *comm, const recv_call_t *call) {
    int status = spc_inbox_take(comm->inbox, &call->match, call->message);
    if (!spc_outbox_is_empty(comm->outbox)) {
        spc_outbox_flush(comm->outbox);
    }
    return status;
}

static bool test_recv(spc_comm_wait_t *wait) {
    spc_comm_t *comm = wait->comm;
    pthread_mutex_lock(&comm->lock);
    wait->status = take_locked(comm, wait->argument);
    spc_comm_unlock(comm);
    return wait->status != SPC_EAGAIN;
}

static bool waits_for_itself(spc_comm_t *comm) {
    pthread_mutex_lock(&comm->lock);
    bool waits = spc_outbox_waiting(comm->outbox, comm->rank) != 0;
    pthread_mutex_unlock(&comm->lock);
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
        if (!spc_comm_has_ended(comm, rank)) {
            return SPC_OK;
        }
        last = rank;
    }
    if (last == comm->rank) {
        return SPC_OK;
    }
    return waits_for_itself(comm) ? SPC_EAGAIN : spc_comm_blame(comm, last);
}

static int doomed_by_source(spc_comm_t *comm, const spc_match_t *match) {
    if (match->source == SPC_ANY_SOURCE) {
        return doomed_from_anybody(comm);
    }
    uint32_t source = (uint32_t)match->source;
    return spc_comm_has_ended(comm, source) ? spc_comm_blame(comm, source) : SPC_OK;
}

static int doomed_recv(spc_comm_wait_t *wait) {
    const recv_call_t *call = wait->argument;
    return doomed_by_source(wait->comm, &call->match);
}

static int prepare(const spc_comm_t *comm, int32_t source) {
    if (source != SPC_ANY_SOURCE && (uint32_t)source >= comm->size) {
        return SPC_ERANK;
    }
    return spc_comm_check_usable(comm);
}

int spc_comm_try_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                      spc_message_t *message) {
    recv_call_t call = {{source, tag, context}, message};
    int status = prepare(comm, source);
    if (status != SPC_OK) {
        return status;
    }
    if (pthread_mutex_trylock(&comm->lock) != 0) {
        return SPC_EAGAIN;
    }
    status = take_locked(comm, &call);
    spc_comm_unlock(comm);
    return status;
}

int spc_comm_poll_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                       spc_message_t *message) {
    int status = spc_comm_try_recv(comm, context, source, tag, message);
    uint32_t polls = atomic_load_explicit(&comm->polls, memory_order_relaxed);
    for (uint32_t i = 0; i < polls && status == SPC_EAGAIN; i++) {
        spc_cpu_relax();
        status = spc_comm_try_recv(comm, context, source, tag, message);
    }
    return status;
}

int spc_comm_recv(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                  spc_message_t *message) {
    recv_call_t call = {{source, tag, context}, message};
    int status = prepare(comm, source);
    if (status != SPC_OK) {
        return status;
    }
    spc_comm_wait_t wait = {.comm = comm, .test = test_recv, .doomed = doomed_recv, .argument = &call};
    if (test_recv(&wait)) {
        return wait.status;
    }
    status = spc_comm_wait_for(&wait, deadline_ns);
    return status == SPC_OK ? wait.status : status;
}

int spc_comm_take(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, spc_message_t *message) {
    spc_match_t match = {source, tag, context};
    int status = prepare(comm, source);
    if (status != SPC_OK) {
        return status;
    }
    pthread_mutex_lock(&comm->lock);
    status = spc_inbox_take_queued(comm->inbox, &match, message);
    spc_comm_unlock(comm);
    return status;
}

/* ---- looking ---- */

typedef struct probe_call {
    spc_match_t match;
    int32_t source;
    int32_t tag;
    uint64_t length_bytes;
} probe_call_t;

static bool test_probe(spc_comm_wait_t *wait) {
    spc_comm_t *comm = wait->comm;
    probe_call_t *call = wait->argument;
    pthread_mutex_lock(&comm->lock);
    wait->status = spc_inbox_peek(comm->inbox, &call->match, &call->source, &call->tag, &call->length_bytes);
    if (!spc_outbox_is_empty(comm->outbox)) {
        spc_outbox_flush(comm->outbox);
    }
    spc_comm_unlock(comm);
    return wait->status != SPC_EAGAIN;
}

static int doomed_probe(spc_comm_wait_t *wait) {
    const probe_call_t *call = wait->argument;
    return doomed_by_source(wait->comm, &call->match);
}

int spc_comm_probe(spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag, uint64_t deadline_ns,
                   int32_t *found_source, int32_t *found_tag, uint64_t *length_bytes) {
    probe_call_t call = {.match = {source, tag, context}};
    int status = prepare(comm, source);
    if (status != SPC_OK) {
        return status;
    }
    spc_comm_wait_t wait = {.comm = comm, .test = test_probe, .doomed = doomed_probe, .argument = &call};
    if (!test_probe(&wait)) {
        status = spc_comm_wait_for(&wait, deadline_ns);
    }
    status = status == SPC_OK ? wait.status : status;
    if (status == SPC_OK) {
        *found_source = call.source;
        *found_tag = call.tag;
        *length_bytes = call.length_bytes;
    }
    return status;
}

int spc_comm_poll(spc_comm_t *comm, uint16_t context, uint64_t *waiting) {
    int status = spc_comm_check_usable(comm);
    if (status != SPC_OK) {
        return status;
    }
    spc_comm_progress(comm);
    pthread_mutex_lock(&comm->lock);
    *waiting = spc_inbox_count(comm->inbox, context);
    spc_comm_unlock(comm);
    return SPC_OK;
}

/* ---- ending ---- */

void spc_message_release(spc_comm_t *comm, spc_message_t *message) {
    if (message->handle != NULL && spc_owner_mark_holds(&comm->owner)) {
        spc_inbox_release(comm->inbox, message);
    }
}

void spc_comm_release_stored(spc_comm_t *comm, spc_storage_t storage, void *handle) {
    if (storage == SPC_STORED_HEAP) {
        free(handle);
    } else if (spc_owner_mark_holds(&comm->owner)) {
        spc_inbox_release_block(comm->inbox, handle);
    }
}

int spc_comm_put_back(spc_comm_t *comm, spc_message_t *message) {
    pthread_mutex_lock(&comm->lock);
    int status = spc_inbox_put_back(comm->inbox, message);
    spc_comm_unlock(comm);
    /* Another thread may wait for just this message. Pairs, through the lock, with its test before it sleeps. */
    spc_event_notify(comm->event, comm->config->features);
    return status;
}
