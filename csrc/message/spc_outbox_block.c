/* SPDX-License-Identifier: MIT */
#include "base/spc_error.h"
#include "message/spc_outbox_private.h"

int spc_outbox_take_block(spc_outbox_t *outbox, uint64_t length_bytes, spc_block_shared_t **block) {
    return outbox->arena != NULL ? spc_arena_take(outbox->arena, length_bytes, block) : SPC_EAGAIN;
}

int spc_outbox_take_kept(spc_outbox_t *outbox, uint64_t length_bytes, spc_block_shared_t **block) {
    return outbox->arena != NULL ? spc_arena_take_kept(outbox->arena, length_bytes, block) : SPC_EAGAIN;
}

int spc_outbox_send_block(spc_outbox_t *outbox, const int32_t *destinations, uint32_t destination_count,
                          uint16_t context, int32_t tag, const spc_payload_t *payload,
                          spc_block_shared_t *block) {
    uint8_t flags = (uint8_t)(SPC_SLOT_ARENA | (destination_count == 1 ? SPC_SLOT_SOLE : 0));
    spc_envelope_t envelope = spc_outbox_envelope(outbox, context, tag, payload, flags);
    uint64_t offset = spc_segment_offset(outbox->options.segment, block);
    spc_outbox_begin(outbox);
    bool to_self = false;
    int status = SPC_OK;
    uint32_t count = 0;
    /* All pins before the first announcement: a fast receiver must not be the last for a moment. */
    for (uint32_t i = 0; i < destination_count; i++) {
        if (!spc_outbox_is_lost(outbox, (uint32_t)destinations[i], &envelope)) {
            spc_block_pin(block, (uint32_t)destinations[i]);
            to_self = to_self || (uint32_t)destinations[i] == outbox->options.rank;
            outbox->batch[count++] = destinations[i];
        }
    }
    if (!to_self) {
        /* Before them, too: whoever alone gets the block may pass it back at once, and then this pin is its new one. */
        spc_block_unpin(block, outbox->options.rank);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = (uint32_t)outbox->batch[i];
        int queued = spc_outbox_announce_or_enqueue(outbox, rank, &envelope, offset);
        if (queued != SPC_OK) {
            spc_block_unpin(block, rank);
            status = queued;
        }
    }
    return status;
}

void spc_outbox_give_back(const spc_outbox_t *outbox, spc_block_shared_t *block) {
    uint32_t owner = block->owner; /* without its pin, the block may be another one at once */
    spc_block_unpin(block, outbox->options.rank);
    spc_event_notify(&outbox->options.events[owner], outbox->features);
}

uint64_t spc_outbox_block_bytes(spc_outbox_t *outbox) {
    return outbox->arena != NULL ? spc_arena_used(outbox->arena) : 0;
}

int spc_outbox_move_block(spc_outbox_t *outbox, int32_t destination, uint16_t context, int32_t tag,
                          const spc_payload_t *payload, spc_block_shared_t *block) {
    spc_envelope_t envelope =
        spc_outbox_envelope(outbox, context, tag, payload, SPC_SLOT_ARENA | SPC_SLOT_SOLE);
    uint32_t to = (uint32_t)destination, from = outbox->options.rank;
    uint64_t offset = spc_segment_offset(outbox->options.segment, block);
    spc_outbox_begin(outbox);
    if (spc_outbox_is_lost(outbox, to, &envelope)) {
        spc_outbox_give_back(outbox, block);
        return SPC_OK;
    }
    bool open = spc_outbox_is_open(outbox, to, context);
    spc_waiting_t waiting = {.envelope = envelope, .offset = offset};
    int status =
        open ? SPC_OK : spc_outbox_queue_push(&outbox->destination[to].queue, &waiting, &outbox->total);
    if (status == SPC_OK && to != from) {
        /* Before it is announced: who has received it may pass it back at once, and sets this node's pin. */
        spc_block_pass(block, from, to);
    }
    if (status == SPC_OK && open) {
        spc_outbox_announce_offset(outbox, to, &envelope, offset);
    }
    return spc_outbox_note_taken(outbox, to, &envelope, status);
}
