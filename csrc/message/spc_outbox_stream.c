/* SPDX-License-Identifier: MIT */
/*
 * Streams: long messages that are copied by both sides at once, through the few chunks of the ring that stay in the
 * cache. A block of the arena would be filled, and read, out of memory.
 *
 * A stream is the head of its destination's queue: the order is kept, and whichever thread flushes sends parts of it.
 * The block for what may remain is taken before the first part is sent, and a slot of the row is kept for it: a message
 * that has begun always reaches its receiver without its sender's further help, as one that lies in a block does.
 */
#include "base/spc_error.h"
#include "message/spc_outbox_private.h"

int spc_outbox_begin_stream(spc_outbox_t *outbox, int32_t destination, uint16_t context, int32_t tag,
                            const spc_payload_t *payload, spc_stream_t *stream) {
    const uint32_t rank = (uint32_t)destination;
    const spc_envelope_t envelope = spc_outbox_envelope(outbox, context, tag, payload, 0);
    const spc_waiting_t waiting = {.envelope = envelope, .stream = stream};
    *stream = (spc_stream_t){.payload = payload, .destination = rank};
    if (!spc_mailbox_is_wanted(&outbox->destination[rank].writer, context, tag, envelope.length_bytes)
        || !spc_outbox_is_open(outbox, rank, context)
        || spc_outbox_take_block(outbox, envelope.length_bytes, &stream->block) != SPC_OK) {
        return SPC_EAGAIN;
    }
    if (spc_outbox_queue_push(&outbox->destination[rank].queue, &waiting, &outbox->total) != SPC_OK) {
        spc_outbox_give_back(outbox, stream->block);
        return SPC_EAGAIN;
    }
    spc_outbox_begin(outbox);
    return spc_outbox_note_taken(outbox, rank, &envelope, SPC_OK);
}

/* The block is all that remains of the message: its last part, or the whole message if no part found room. */
static void queue_block(spc_outbox_t *outbox, const spc_stream_t *stream) {
    spc_outbox_queue_t *queue = &outbox->destination[stream->destination].queue;
    spc_waiting_t *item = queue->head;
    spc_block_pin(stream->block, stream->destination);
    spc_block_unpin(stream->block, outbox->options.rank);
    item->envelope.flags |= SPC_SLOT_ARENA | (stream->sent != 0 ? SPC_SLOT_PART : SPC_SLOT_SOLE);
    item->offset = spc_segment_offset(outbox->options.segment, stream->block);
    item->stream = NULL;
    queue->copies--;
}

void spc_outbox_end_stream(spc_outbox_t *outbox, spc_stream_t *stream) {
    if (stream->done) { /* all of it was sent, or its receiver has ended */
        spc_outbox_give_back(outbox, stream->block);
    } else {
        queue_block(outbox, stream);
        (void)spc_outbox_flush(outbox);
    }
}
