/* SPDX-License-Identifier: MIT */
#include "segment/spc_status.h"

uint64_t spc_status_bytes(uint32_t lines) {
    return sizeof(spc_status_shared_t) + (uint64_t)lines * sizeof(spc_status_line_shared_t);
}

void spc_status_set_live(spc_status_shared_t *status, uint32_t rank, int32_t process) {
    /* Published by the release, which pairs with spc_status_state. */
    atomic_store_explicit(&status->line[rank].process, process, memory_order_relaxed);
    atomic_store_explicit(&status->line[rank].state, SPC_NODE_LIVE, memory_order_release);
}

void spc_status_end(spc_status_shared_t *status, uint32_t rank, spc_node_state_t state, int32_t reason,
                    spc_event_shared_t *events, uint32_t event_count, uint32_t features) {
    spc_status_line_shared_t *line = &status->line[rank];
    uint32_t before = atomic_load_explicit(&line->state, memory_order_acquire);
    bool ended = before >= SPC_NODE_FINISHED;
    while (!ended) {
        atomic_store_explicit(&line->reason, reason, memory_order_relaxed);
        /* Pairs with spc_status_state: a reader that sees the end sees the reason, and all that the node announced. The
         * node and the supervisor may come at the same moment: one of them counts. */
        ended = atomic_compare_exchange_strong_explicit(&line->state, &before, (uint32_t)state,
                                                        memory_order_acq_rel, memory_order_acquire)
                || before >= SPC_NODE_FINISHED;
    }
    if (!spc_status_is_told(status, rank)) { /* if both come here, the end is announced twice */
        spc_status_news(status, events, event_count, features);
        /* Last. Pairs with spc_status_is_told. */
        atomic_store_explicit(&line->told, 1, memory_order_seq_cst);
    }
}

void spc_status_news(spc_status_shared_t *status, spc_event_shared_t *events, uint32_t event_count,
                     uint32_t features) {
    /* Pairs with spc_status_epoch: a sleeper either sees the new epoch in its second test, or is woken here. */
    atomic_fetch_add_explicit(&status->epoch, 1, memory_order_seq_cst);
    for (uint32_t i = 0; i < event_count; i++) {
        spc_event_raise(&events[i], features);
    }
}

void spc_status_set_gone(spc_status_shared_t *status, uint32_t rank, spc_event_shared_t *events,
                         uint32_t event_count, uint32_t features) {
    /* Pairs with spc_status_is_gone. */
    if (atomic_exchange_explicit(&status->line[rank].gone, 1, memory_order_seq_cst) != 0) {
        return;
    }
    for (uint32_t i = 0; i < event_count; i++) {
        spc_event_raise(&events[i], features);
    }
}
