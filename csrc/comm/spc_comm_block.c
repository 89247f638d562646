/* SPDX-License-Identifier: MIT */
/*
 * Blocks of the arenas that a caller holds: taken, written, given back or handed on. Once a block has been announced it
 * is another node's: so a call that fails after that (a wait for the receiver that was interrupted) has moved it, and
 * says so by its pointer. And how received messages end, of which the long ones lie in blocks.
 */
#include <stdlib.h>

#include "comm/spc_comm_perturb.h"
#include "comm/spc_comm_private.h"

static int take_block(spc_comm_t *comm, uint64_t length_bytes, bool kept, spc_block_shared_t **block) {
    spc_node_t *node = comm->node;
    int status = spc_comm_check_usable(comm);
    if (status == SPC_OK) {
        pthread_mutex_lock(&node->lock);
        status = kept ? spc_outbox_take_kept(node->outbox, length_bytes, block)
                      : spc_outbox_take_block(node->outbox, length_bytes, block);
        pthread_mutex_unlock(&node->lock);
    }
    return status;
}

int spc_comm_take_block(spc_comm_t *comm, uint64_t length_bytes, spc_block_shared_t **block) {
    return take_block(comm, length_bytes, false, block);
}

int spc_comm_take_kept(spc_comm_t *comm, uint64_t length_bytes, spc_block_shared_t **block) {
    return take_block(comm, length_bytes, true, block);
}

void spc_comm_release_block(spc_comm_t *comm, spc_block_shared_t *block) {
    spc_comm_release_stored(comm, SPC_STORED_ARENA, block);
}

static bool are_dead_gone(spc_node_wait_t *wait) {
    const spc_status_shared_t *status = wait->node->status;
    bool gone = true;
    for (uint32_t rank = 0; rank < wait->node->size && gone; rank++) {
        gone = spc_status_state(status, rank) != SPC_NODE_DIED || spc_status_is_gone(status, rank);
    }
    return gone;
}

int spc_comm_await_gone(spc_comm_t *comm, uint64_t deadline_ns) {
    spc_node_wait_t wait = {.node = comm->node, .test = are_dead_gone};
    return spc_node_wait_for(&wait, deadline_ns);
}

uint64_t spc_comm_block_bytes(spc_comm_t *comm) {
    spc_node_t *node = comm->node;
    pthread_mutex_lock(&node->lock);
    uint64_t bytes = spc_outbox_block_bytes(node->outbox);
    pthread_mutex_unlock(&node->lock);
    return bytes;
}

/* ---- moving */

int spc_comm_move_block(spc_comm_t *comm, int32_t destination, uint16_t context, int32_t tag,
                        const spc_payload_t *payload, uint64_t deadline_ns, spc_block_shared_t **block) {
    spc_send_call_t call = {
        .destinations = &destination, .destination_count = 1, .tag = tag, .payload = payload, .block = block};
    int status = spc_comm_prepare_send(comm, &call, context);
    if (status == SPC_EAGAIN) {
        return spc_comm_perturbed_send(comm, &call, context == SPC_CONTEXT_USER, deadline_ns);
    }
    return status != SPC_OK ? status : spc_comm_send_call(comm, &call, deadline_ns);
}

/* ---- ending what was received */

void spc_message_release(spc_comm_t *comm, spc_message_t *message) {
    if (message->handle != NULL && spc_owner_mark_holds(&comm->node->owner)) {
        spc_inbox_release(comm->node->inbox, message);
    }
}

bool spc_message_claim(spc_comm_t *comm, spc_message_t *message) {
    const spc_node_t *node = comm->node;
    if (message->storage == SPC_STORED_ARENA && !message->sole && message->handle != NULL
        && spc_owner_mark_holds(&node->owner)) {
        message->sole = spc_block_is_sole(message->handle, node->rank, node->config->nodes);
    }
    return message->sole;
}

void spc_comm_release_stored(spc_comm_t *comm, spc_storage_t storage, void *handle) {
    if (storage == SPC_STORED_HEAP) {
        free(handle);
    } else if (spc_owner_mark_holds(&comm->node->owner)) {
        spc_inbox_release_block(comm->node->inbox, handle);
    }
}
