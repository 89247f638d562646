/* SPDX-License-Identifier: MIT */
/*
 * Messages to several nodes elsewhere: over the link once.
 *
 * Their sender has written the payload once, and announced it in the row of each receiver. The heads of those rows that
 * say the same place are sent as one frame with several ranks; until it has gone, the rows go together.
 *
 * The sender may still be announcing when the first row is looked at. Its headers in the ring, or the pins of the
 * block, say who else will get it: a row that is empty is waited for, for a moment. A row that has other messages at
 * its head gets its copy later, and so does one without credit: a slow receiver holds up only its own traffic.
 */
#include "net/spc_agent_private.h"

/* The longest wait for a sender that was interrupted while it announced, or that has something queued. */
#define DEFER_NS UINT64_C(200000)

static bool is_same(const spc_agent_t *agent, const spc_agent_row_t *row, const spc_agent_piece_t *piece) {
    const spc_slot_shared_t *slot = spc_mailbox_peek(&row->reader);
    if (slot == NULL || row->leader != NULL || row->part_offset != 0 || row->done != 0) {
        return false;
    }
    const spc_agent_piece_t head = spc_agent_find_piece(agent, row, slot);
    return piece->block != NULL ? head.block == piece->block
                                : head.header != NULL && head.bytes == piece->bytes;
}

/* Will the message come into this row, too? Those after this header in the ring get it; of a block, those with pins. */
static bool is_expected(const spc_agent_piece_t *piece, uint32_t rank) {
    if (piece->block != NULL) {
        /* Relaxed: set before the announcement that was seen. */
        return atomic_load_explicit(&piece->block->pin[rank], memory_order_relaxed) != 0;
    }
    const uint32_t later = piece->header->payload_offset / (uint32_t)sizeof(*piece->header) - 1;
    for (uint32_t i = 1; i <= later; i++) {
        /* Relaxed: this agent alone marks it. */
        if (piece->header[i].destination == rank
            && atomic_load_explicit(&piece->header[i].read, memory_order_relaxed) == 0) {
            return true;
        }
    }
    return false;
}

/* An empty row that the message will come into is a reason to wait, unless its sender has ended. */
static bool is_missing(const spc_agent_t *agent, const spc_agent_row_t *row, const spc_agent_piece_t *piece) {
    return spc_mailbox_peek(&row->reader) == NULL && is_expected(piece, row->destination)
           && spc_status_state(agent->status, row->source) < SPC_NODE_FINISHED;
}

static bool is_cast(const spc_slot_shared_t *slot, const spc_agent_piece_t *piece) {
    return (slot->flags & (SPC_SLOT_SOLE | SPC_SLOT_PART)) == 0
           && (piece->header != NULL || piece->block != NULL);
}

/* True: too long. */
static bool defer(spc_agent_t *agent, spc_agent_row_t *row) {
    const uint64_t now_ns = spc_clock_now_ns();
    row->deferred_ns = row->deferred_ns == 0 ? now_ns : row->deferred_ns;
    if (now_ns - row->deferred_ns >= DEFER_NS) {
        return true;
    }
    const uint64_t until_ns = row->deferred_ns + DEFER_NS;
    agent->look_again_ns = until_ns < agent->look_again_ns ? until_ns : agent->look_again_ns;
    return false;
}

/* What has begun goes on as it began. */
static uint32_t find_followers(spc_agent_t *agent, spc_agent_row_t *row, spc_agent_row_t *rows[]) {
    uint32_t count = 0;
    rows[count++] = row;
    for (uint32_t i = 0; i < agent->row_count && row->is_leader; i++) {
        if (agent->rows[i].leader == row) {
            rows[count++] = &agent->rows[i];
        }
    }
    return count;
}

uint32_t spc_agent_cast(spc_agent_t *agent, spc_agent_row_t *row, const spc_slot_shared_t *slot,
                        const spc_agent_piece_t *piece, spc_agent_row_t *rows[]) {
    uint32_t count = 0;
    if (!is_cast(slot, piece) || row->done != 0) {
        return find_followers(agent, row, rows);
    }
    const uint64_t whole = piece->length_bytes < agent->window / 2 ? piece->length_bytes : agent->window / 2;
    rows[count++] = row;
    bool misses = false;
    for (uint32_t i = 0; i < agent->row_count; i++) {
        spc_agent_row_t *other = &agent->rows[i];
        if (other == row || other->source != row->source || other->destination == agent->nodes) {
            continue;
        }
        if (!is_same(agent, other, piece)) {
            misses = misses || is_missing(agent, other, piece);
        } else if (agent->credit[other->destination] >= spc_agent_cost(whole)) {
            rows[count++] = other;
        }
    }
    if (misses && !defer(agent, row)) {
        return 0;
    }
    if (agent->credit[row->destination] < spc_agent_cost(whole)) {
        return 1; /* by itself, part by part */
    }
    row->is_leader = count > 1;
    for (uint32_t i = 1; i < count; i++) {
        rows[i]->leader = row;
        rows[i]->ready = true;
    }
    return count;
}
