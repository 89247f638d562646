/* SPDX-License-Identifier: MIT */
/*
 * Blocks of the arenas that a caller holds: taken, written and given back (spc_comm_send.c hands them on). This file
 * also ends received messages; long ones lie in blocks.
 */
#include <stdlib.h>

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

/* ---- ending received messages */

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
