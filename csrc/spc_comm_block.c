/* SPDX-License-Identifier: MIT */
#include "spc_comm_private.h"

int spc_comm_take_block(spc_comm_t *comm, uint64_t length_bytes, spc_block_shared_t **block) {
    spc_node_t *node = comm->node;
    int status = spc_comm_check_usable(comm);
    if (status == SPC_OK) {
        pthread_mutex_lock(&node->lock);
        status = spc_outbox_take_block(node->outbox, length_bytes, block);
        pthread_mutex_unlock(&node->lock);
    }
    return status;
}

void spc_comm_release_block(spc_comm_t *comm, spc_block_shared_t *block) {
    spc_comm_release_stored(comm, SPC_STORED_ARENA, block);
}
