/* SPDX-License-Identifier: MIT */
#include "diagnose/spc_traffic.h"

#include "message/spc_mailbox.h"
#include "reduce/spc_reduce.h"
#include "segment/spc_status.h"

/* Sequences only grow, so their sum does. Relaxed: a message that is missed now is seen the next time. */
static uint64_t add_row(const spc_row_shared_t *row, uint32_t slots) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < slots; i++) {
        sum += atomic_load_explicit(&row->slot[i].sequence, memory_order_relaxed);
    }
    return sum;
}

uint64_t spc_traffic_seen(const spc_segment_t *segment) {
    const spc_config_t *config = segment->config;
    const spc_status_shared_t *status = spc_segment_part(segment, SPC_REGION_STATUS, 0);
    uint64_t sum =
        spc_reduce_completed(spc_segment_part(segment, SPC_REGION_REDUCE, 0), config->nodes, config->fanin);
    for (uint32_t to = 0; to < config->nodes; to++) {
        spc_mailbox_shared_t *mailbox = spc_segment_part(segment, SPC_REGION_MAILBOX, to);
        for (uint32_t from = 0; from <= config->nodes; from++) {
            if (from == config->nodes || spc_status_state(status, from) != SPC_NODE_STARTING) {
                sum += add_row(spc_mailbox_row(mailbox, from, config->slots), config->slots);
            }
        }
    }
    return sum;
}
