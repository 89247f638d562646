/* SPDX-License-Identifier: MIT */
#include "spc_comm_private.h"

void spc_comm_share_block(spc_comm_t *comm, spc_block_shared_t *block) {
    pthread_mutex_lock(&comm->node->lock);
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        spc_block_pin(block, spc_comm_member(comm, rank));
    }
    pthread_mutex_unlock(&comm->node->lock);
}

void spc_comm_unshare_block(spc_comm_t *comm, spc_block_shared_t *block) {
    pthread_mutex_lock(&comm->node->lock);
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (rank != comm->rank) {
            /* relaxed: the others' use has happened before, as the caller knows; the arena looks with this lock. */
            atomic_store_explicit(&block->pin[spc_comm_member(comm, rank)], 0, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&comm->node->lock);
}

bool spc_comm_offset(const spc_comm_t *comm, const void *address, uint64_t bytes, uint64_t *offset) {
    const spc_segment_t *segment = &comm->node->segment;
    const uintptr_t base = (uintptr_t)segment->base;
    const uintptr_t at = (uintptr_t)address;
    if (at < base || at - base > segment->size_bytes || bytes > segment->size_bytes - (at - base)) {
        return false;
    }
    *offset = at - base;
    return true;
}

void *spc_comm_address(const spc_comm_t *comm, uint64_t offset) {
    return spc_segment_address(&comm->node->segment, offset);
}
