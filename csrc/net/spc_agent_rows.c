/* SPDX-License-Identifier: MIT */
/*
 * From the mailboxes of nodes that are elsewhere onto the link.
 *
 * A slot is read where it lies, and given back to its sender once the link has taken all of it. Long payloads go in
 * parts, as credit comes; meanwhile other rows go on. A message to several nodes goes in one frame (spc_agent_cast.c).
 * What is for a node that has ended is dropped here, as its own inbox would.
 */
#include <stdlib.h>

#include "base/spc_error.h"
#include "net/spc_agent_private.h"

int spc_agent_rows_create(spc_agent_t *agent) {
    const uint32_t elsewhere = agent->nodes - agent->here;
    agent->row_count = (elsewhere + 1) * agent->here;
    agent->rows = calloc(agent->row_count, sizeof(*agent->rows));
    if (agent->rows == NULL) {
        return SPC_ENOMEM;
    }
    spc_agent_row_t *row = agent->rows;
    for (uint32_t to = 0; to <= elsewhere; to++) {
        const uint32_t destination = to < elsewhere ? agent->ranks[agent->here + to] : agent->nodes;
        for (uint32_t from = 0; from < agent->here; from++, row++) {
            row->source = agent->ranks[from];
            row->destination = destination;
            spc_mailbox_reader_init(&row->reader,
                                    spc_segment_part(&agent->segment, SPC_REGION_MAILBOX, destination),
                                    row->source, agent->config->slots);
        }
    }
    return SPC_OK;
}

/* ---- what a slot holds ---- */

spc_agent_piece_t spc_agent_find_piece(const spc_agent_t *agent, const spc_agent_row_t *row,
                                       const spc_slot_shared_t *slot) {
    spc_agent_piece_t piece = {.bytes = slot->payload.inlined, .length_bytes = slot->length_bytes};
    if ((slot->flags & SPC_SLOT_PLACE) == SPC_SLOT_RING) {
        piece.header = spc_segment_address(&agent->segment, slot->payload.offset);
        piece.bytes = spc_ring_payload(piece.header);
        piece.length_bytes = piece.header->payload_bytes;
        piece.offset = row->part_offset;
    } else if ((slot->flags & SPC_SLOT_PLACE) == SPC_SLOT_ARENA) {
        piece.block = spc_segment_address(&agent->segment, slot->payload.offset);
        piece.bytes = spc_block_payload(piece.block);
    }
    return piece;
}

/* The head of the row and what it holds are their owners' again. */
static void give_back(spc_agent_t *agent, spc_agent_row_t *row) {
    const spc_slot_shared_t *slot = spc_mailbox_peek(&row->reader);
    const spc_agent_piece_t piece = spc_agent_find_piece(agent, row, slot);
    const uint32_t features = agent->config->features;
    if (spc_status_is_gone(agent->status, row->destination)) {
        row->part_offset = 0; /* its owners have taken the memory back already, and may use it again */
    } else if (piece.header != NULL) {
        row->part_offset += piece.length_bytes;
        row->part_offset = row->part_offset >= slot->length_bytes ? 0 : row->part_offset;
        spc_ring_mark_read(piece.header);
        spc_event_notify(&agent->events[row->source], features);
    } else if (piece.block != NULL) {
        const uint32_t owner = piece.block->owner;
        spc_block_unpin(piece.block, row->destination);
        spc_event_notify(&agent->events[owner], features);
    }
    if (spc_mailbox_consume(&row->reader)) {
        spc_event_notify(&agent->events[row->source], features);
    }
    row->done = 0;
    row->leader = NULL;
    row->is_leader = false;
    row->deferred_ns = 0;
}

/* ---- sending ---- */

static bool has_credit(const spc_agent_t *agent, spc_agent_row_t *const rows[], uint32_t count,
                       uint64_t bytes) {
    bool has = true;
    for (uint32_t i = 0; i < count && has; i++) {
        has = agent->credit[rows[i]->destination] >= spc_agent_cost(bytes);
    }
    return has;
}

/* The next part of the slot at the heads of these rows. False: there is no credit. */
static bool send_part(spc_agent_t *agent, spc_agent_row_t *const rows[], uint32_t count,
                      const spc_slot_shared_t *slot, const spc_agent_piece_t *piece) {
    const spc_agent_row_t *row = rows[0];
    const uint64_t left = piece->length_bytes - row->done;
    const uint64_t length = left < agent->part_bytes ? left : agent->part_bytes;
    uint16_t list[SPC_NODES_MAX + 4] = {0};
    const spc_frame_piece_t pieces[2] = {{list, spc_round_up(count * sizeof(list[0]), 8)},
                                         {piece->bytes + row->done, length}};
    const spc_frame_t frame = {
        .kind = SPC_FRAME_MESSAGE,
        .format = slot->format,
        .flags = (uint16_t)((length != slot->length_bytes ? SPC_FRAME_PART : 0)
                            | ((slot->flags & SPC_SLOT_ASKS) != 0 ? SPC_FRAME_ASKS : 0)),
        .source = (uint16_t)row->source,
        .tag = slot->tag,
        .context = slot->context,
        .meta_bytes = slot->meta_bytes,
        .count = (uint16_t)count,
        .total_bytes = slot->length_bytes,
        .offset = piece->offset + row->done,
    };
    if (!has_credit(agent, rows, count, length)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        list[i] = (uint16_t)rows[i]->destination;
        agent->credit[rows[i]->destination] -= spc_agent_cost(length);
        rows[i]->done += length;
    }
    spc_agent_queue(agent, &frame, pieces, 2);
    return true;
}

/* All of the head of this row, or as much as may be; with those that follow it. True: it is done with. */
static bool send_head(spc_agent_t *agent, spc_agent_row_t *row, const spc_slot_shared_t *slot) {
    const spc_agent_piece_t piece = spc_agent_find_piece(agent, row, slot);
    spc_agent_row_t *rows[SPC_NODES_MAX];
    if (!row->is_leader && spc_status_state(agent->status, row->destination) >= SPC_NODE_FINISHED) {
        give_back(agent, row);
        return true;
    }
    const uint32_t count = spc_agent_cast(agent, row, slot, &piece, rows);
    do {
        if (count == 0 || !send_part(agent, rows, count, slot, &piece)) {
            return false;
        }
    } while (row->done != piece.length_bytes);
    for (uint32_t i = 0; i < count; i++) {
        give_back(agent, rows[i]);
    }
    return true;
}

/* A communicator's memory, from its first member here: the block stays pinned for this agent. */
static void take_own(spc_agent_t *agent, spc_agent_row_t *row, const spc_slot_shared_t *slot) {
    const spc_agent_piece_t piece = spc_agent_find_piece(agent, row, slot);
    spc_agent_fail(agent, piece.block == NULL ? SPC_EINVAL
                                              : spc_agent_add_area(agent, (uint32_t)slot->tag, piece.block));
    if (spc_mailbox_consume(&row->reader)) {
        spc_event_notify(&agent->events[row->source], agent->config->features);
    }
}

static bool pump_row(spc_agent_t *agent, spc_agent_row_t *row) {
    const spc_slot_shared_t *slot;
    bool moved = false;
    while (row->leader == NULL && (slot = spc_mailbox_peek(&row->reader)) != NULL) {
        if (row->destination == agent->nodes) {
            take_own(agent, row, slot);
        } else {
            const uint64_t done = row->done;
            if (!send_head(agent, row, slot)) {
                return moved || row->done != done; /* parts of it are on their way */
            }
        }
        moved = true;
    }
    row->ready = row->leader != NULL;
    return moved;
}

/* Which rows may have something: those whose senders have rung. */
static void collect(spc_agent_t *agent) {
    for (uint32_t first = 0; first < agent->row_count; first += agent->here) {
        spc_mailbox_shared_t *mailbox =
            spc_segment_part(&agent->segment, SPC_REGION_MAILBOX, agent->rows[first].destination);
        const uint64_t bits = spc_mailbox_collect(mailbox);
        for (uint32_t i = first; bits != 0 && i < first + agent->here; i++) {
            spc_agent_row_t *row = &agent->rows[i];
            row->ready = row->ready || (bits >> row->source % 64 & 1) != 0;
        }
    }
}

bool spc_agent_rows_pump(spc_agent_t *agent) {
    bool moved = false;
    agent->look_again_ns = SPC_NO_DEADLINE;
    collect(agent);
    for (uint32_t i = 0; i < agent->row_count; i++) {
        if (agent->rows[i].ready) {
            moved = pump_row(agent, &agent->rows[i]) || moved;
        }
    }
    return moved;
}

bool spc_agent_rows_are_empty(const spc_agent_t *agent, uint32_t source) {
    bool empty = true;
    for (uint32_t i = 0; i < agent->row_count; i++) {
        spc_agent_row_t *row = &agent->rows[i];
        if (row->source == source && spc_mailbox_peek(&row->reader) != NULL) {
            row->ready = true; /* who died may not have rung */
            empty = false;
        }
    }
    return empty;
}

void spc_agent_rows_note(const spc_agent_t *agent, bool *is_pending) {
    for (uint32_t i = 0; i < agent->row_count; i++) {
        is_pending[i] = spc_mailbox_peek(&agent->rows[i].reader) != NULL;
    }
}

int spc_agent_take_credit(spc_agent_t *agent, const spc_frame_t *frame) {
    const uint32_t rank = (uint32_t)frame->tag;
    if (!spc_agent_is_elsewhere(agent, rank) || frame->total_bytes > agent->window - agent->credit[rank]) {
        return SPC_EINVAL;
    }
    agent->credit[rank] += frame->total_bytes;
    return SPC_OK;
}
