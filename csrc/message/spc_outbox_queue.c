/* SPDX-License-Identifier: MIT */
#include "message/spc_outbox_queue.h"

#include <stdlib.h>

#include "base/spc_error.h"
#include "message/spc_ring.h"
#include "segment/spc_arena.h"
#include "segment/spc_segment.h"

void spc_outbox_queue_init(spc_outbox_queue_t *queue) {
    *queue = (spc_outbox_queue_t){.tail = &queue->head};
}

/* Each message counts with its entry here, and a copy also with the bytes that its receiver will have to keep. The
 * sizes of ring and arena bound the other kinds, and the receiver of a stream has a place for it. */
static uint64_t cost_of(const spc_waiting_t *item) {
    return sizeof(*item) + (item->copy != NULL ? item->envelope.length_bytes : 0);
}

static void append(spc_outbox_queue_t *queue, spc_waiting_t *item, spc_queue_total_t *total) {
    item->next = NULL;
    *queue->tail = item;
    queue->tail = &item->next;
    queue->length++;
    total->waiting++;
    total->bytes += cost_of(item);
    queue->copies += spc_waiting_is_unwritten(item);
    if (item->copy != NULL) {
        item->copy->users++;
    }
}

int spc_outbox_queue_push(spc_outbox_queue_t *queue, const spc_waiting_t *waiting, spc_queue_total_t *total) {
    spc_waiting_t *item = malloc(sizeof(*item));
    if (item == NULL) {
        return SPC_ENOMEM;
    }
    *item = *waiting;
    append(queue, item, total);
    return SPC_OK;
}

void spc_outbox_queue_pop(spc_outbox_queue_t *queue, spc_queue_total_t *total) {
    spc_waiting_t *item = queue->head;
    queue->head = item->next;
    if (queue->head == NULL) {
        queue->tail = &queue->head;
    }
    queue->length--;
    total->waiting--;
    total->bytes -= cost_of(item);
    queue->copies -= spc_waiting_is_unwritten(item);
    if (item->stream != NULL) {
        item->stream->done = true;
    }
    spc_copy_release(item->copy);
    free(item);
}

/* Frees the ring or arena memory of messages for a destination that has ended. */
static void free_written(const spc_waiting_t *item, const spc_outbox_options_t *options, uint32_t rank) {
    void *written = spc_segment_address(options->segment, item->offset);
    if ((item->envelope.flags & SPC_SLOT_PLACE) == SPC_SLOT_ARENA) {
        uint32_t owner = ((const spc_block_shared_t *)written)->owner; /* it may be of another node's arena */
        spc_block_unpin(written, rank);
        spc_event_notify(&options->events[owner], options->segment->config->features);
    } else if ((item->envelope.flags & SPC_SLOT_PLACE) == SPC_SLOT_RING) {
        spc_ring_mark_read(written);
    }
}

/* Parts have been announced: the receiver, or its mailbox, counts the message. */
static bool has_begun(const spc_waiting_t *item) {
    return item->sent != 0 || (item->stream != NULL && item->stream->sent != 0)
           || (item->envelope.flags & SPC_SLOT_PART) != 0;
}

void spc_outbox_queue_drop(spc_outbox_queue_t *queue, const spc_outbox_options_t *options, uint32_t rank,
                           spc_queue_total_t *total) {
    /* If so, the memory has been free since then, and may hold other messages now. */
    const bool is_gone = spc_status_is_gone(options->status, rank);
    /* For nodes elsewhere the gateway receives: it counts a message with its last part. */
    const bool is_here = spc_segment_is_here(options->segment, rank);
    while (queue->head != NULL) {
        const spc_waiting_t *item = queue->head;
        if (!is_gone && !spc_waiting_is_unwritten(item)) {
            free_written(item, options, rank);
        }
        if ((!is_here || !has_begun(item)) && (item->envelope.flags & SPC_SLOT_LAST) == 0) {
            spc_note_add_left(options->notes, item->envelope.source, rank, item->envelope.tag,
                              item->envelope.context);
        }
        spc_outbox_queue_pop(queue, total);
    }
}

int spc_rest_reserve(uint64_t bytes, spc_rest_t *rest) {
    rest->item = malloc(sizeof(*rest->item));
    rest->copy = malloc(sizeof(*rest->copy) + bytes);
    if (rest->item == NULL || rest->copy == NULL) {
        spc_rest_free(rest);
        return SPC_ENOMEM;
    }
    return SPC_OK;
}

void spc_rest_free(spc_rest_t *rest) {
    free(rest->item);
    free(rest->copy);
}

static void fill(spc_copy_t *copy, const spc_payload_t *payload, uint64_t from) {
    copy->users = 1;
    copy->from = from;
    copy->bytes = payload->meta_bytes + payload->data_bytes - from;
    spc_payload_copy(payload, from, copy->bytes, copy->data);
}

void spc_rest_queue(spc_rest_t *rest, const spc_envelope_t *envelope, const spc_payload_t *payload,
                    uint64_t sent, spc_outbox_queue_t *queue, spc_queue_total_t *total) {
    spc_copy_t *smaller = realloc(rest->copy, sizeof(*smaller) + envelope->length_bytes - sent);
    spc_copy_t *copy = smaller != NULL ? smaller : rest->copy;
    fill(copy, payload, sent);
    *rest->item = (spc_waiting_t){.envelope = *envelope, .copy = copy, .sent = sent};
    append(queue, rest->item, total);
    spc_copy_release(copy);
}

spc_copy_t *spc_copy_make(const spc_payload_t *payload) {
    spc_copy_t *copy = malloc(sizeof(*copy) + payload->meta_bytes + payload->data_bytes);
    if (copy != NULL) {
        fill(copy, payload, 0);
    }
    return copy;
}

void spc_copy_release(spc_copy_t *copy) {
    if (copy != NULL && --copy->users == 0) {
        free(copy);
    }
}
