/* SPDX-License-Identifier: MIT */
#include "message/spc_inbox.h"

#include <stdlib.h>

#include "base/spc_error.h"
#include "message/spc_inbox_private.h"
#include "message/spc_ring.h"

int spc_inbox_create(const spc_inbox_options_t *options, spc_inbox_t **inbox) {
    const spc_config_t *config = options->segment->config;
    uint32_t senders = config->nodes + 1; /* the agent is one */
    spc_inbox_t *made = calloc(1, sizeof(*made) + senders * sizeof(spc_inbox_row_t));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->options = *options;
    made->features = config->features;
    made->senders = senders;
    made->share_bytes = spc_config_share_bytes(config);
    made->mailbox = spc_segment_part(options->segment, SPC_REGION_MAILBOX, options->rank);
    spc_inbox_queue_init(&made->queue);
    for (uint32_t i = 0; i < senders; i++) {
        spc_mailbox_reader_init(&made->row[i].reader, made->mailbox, i, config->slots);
    }
    *inbox = made;
    return SPC_OK;
}

void spc_inbox_destroy(spc_inbox_t *inbox) {
    if (inbox != NULL) {
        spc_inbox_queue_fini(&inbox->queue);
        free(inbox->filed);
        free(inbox->closed);
        free(inbox->diversions);
        free(inbox);
    }
}

/* ---- taking ---- */

static bool slot_matches(const spc_inbox_t *inbox, const spc_slot_shared_t *slot, const spc_match_t *match) {
    return spc_inbox_context(inbox, slot) == match->context
           && (match->source == SPC_ANY_SOURCE || slot->source == match->source)
           && (match->tag == SPC_ANY_TAG || slot->tag == match->tag);
}

void spc_inbox_take_entry(spc_inbox_t *inbox, spc_entry_t *entry, spc_message_t *message) {
    if (__builtin_expect(entry->asks != 0, 0)) {
        spc_inbox_give_receipt(inbox, entry->message.sender, (uint32_t)(entry->asks - 1));
        entry->asks = 0;
    }
    spc_inbox_queue_remove(&inbox->queue, entry, message);
    spc_inbox_count_complete(inbox, message->context, -1);
    spc_inbox_hold(inbox, message->sender,
                   inbox->row[message->sender].held_bytes - spc_inbox_held_bytes(message));
}

uint32_t spc_inbox_news(spc_inbox_t *inbox) {
    const uint32_t news = inbox->news;
    inbox->news = 0;
    return news;
}

static int take_queued(spc_inbox_t *inbox, const spc_match_t *match, spc_message_t *message) {
    if (inbox->queue.length == 0) {
        return SPC_EAGAIN;
    }
    spc_entry_t *entry = spc_inbox_queue_find(&inbox->queue, match->context, match->source, match->tag);
    if (entry == NULL) {
        return SPC_EAGAIN;
    }
    if (__builtin_expect(entry->posted != NULL, 0)) {
        spc_inbox_settle_posted(entry, match->posted);
    }
    spc_inbox_take_entry(inbox, entry, message);
    return SPC_OK;
}

/* The row's next slot, which matches and wants a receipt. */
static void take_asking(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot,
                        spc_message_t *message) {
    spc_inbox_open_slot(inbox, sender, slot, message);
    spc_inbox_consume_slot(inbox, sender);
    spc_inbox_give_receipt(inbox, sender, inbox->row[sender].asked++);
}

/* Serves one row until it gives a match: directly from the slot, or by completing a message in parts. Others go into
 * the queue. At most one row-length. SPC_EAGAIN: nothing (more) there; `emptied` tells whether that is certain. */
static int take_from_row(spc_inbox_t *inbox, uint32_t sender, const spc_match_t *match,
                         spc_message_t *message, bool *emptied) {
    spc_inbox_row_t *row = &inbox->row[sender];
    *emptied = false;
    for (uint32_t i = 0; i < row->reader.slots; i++) {
        const spc_slot_shared_t *slot = spc_mailbox_peek(&row->reader);
        if (slot == NULL) {
            *emptied = true;
            return SPC_EAGAIN;
        }
        bool wanted = slot_matches(inbox, slot, match);
        if (wanted && !spc_slot_is_special(slot)) {
            spc_inbox_open_slot(inbox, sender, slot, message);
            spc_inbox_consume_slot(inbox, sender);
            return SPC_OK;
        }
        if (wanted && !spc_slot_has_parts(slot)) {
            take_asking(inbox, sender, slot, message);
            return SPC_OK;
        }
        int status = spc_inbox_store_slot(inbox, sender, slot);
        if (status != SPC_OK) {
            return status;
        }
        if (wanted && row->assembling == NULL) {
            return take_queued(inbox, match, message);
        }
    }
    return SPC_EAGAIN;
}

/* The first row from `from` on whose bell has rung; `senders` if none has. If there are many, several share a bit. */
static uint32_t next_rung_row(const spc_inbox_t *inbox, uint64_t rung, uint32_t from) {
    for (uint32_t row = from; row < inbox->senders;) {
        uint64_t later = rung >> (row % 64);
        if (later != 0) {
            return row + (uint32_t)__builtin_ctzll(later);
        }
        row += 64 - row % 64;
    }
    return inbox->senders;
}

typedef int (*row_visitor_t)(spc_inbox_t *inbox, uint32_t sender, void *argument, bool *emptied);

/* Visits rung rows, from the one after the last served, until a visit returns other than SPC_EAGAIN. */
static int visit_rows(spc_inbox_t *inbox, row_visitor_t visit, void *argument) {
    /* Before any row is scanned: a bit set from now on means something that this scan may not see. */
    uint64_t rung = inbox->rung | spc_mailbox_collect(inbox->mailbox);
    uint32_t epoch = spc_status_epoch(inbox->options.status);
    if (epoch != inbox->epoch) {
        rung = UINT64_MAX; /* who died may have announced something without living to ring */
        inbox->epoch = epoch;
    }
    uint64_t remaining = 0;
    int status = SPC_EAGAIN;
    uint32_t start = inbox->last_served + 1 < inbox->senders ? inbox->last_served + 1 : 0;
    inbox->rung = rung;
    if (rung == 0) {
        return SPC_EAGAIN;
    }
    for (int lap = 0; lap < 2 && status == SPC_EAGAIN; lap++) {
        uint32_t end = lap == 0 ? inbox->senders : start;
        uint32_t row = next_rung_row(inbox, rung, lap == 0 ? start : 0);
        while (row < end) {
            bool emptied;
            status = visit(inbox, row, argument, &emptied);
            if (!emptied) {
                remaining |= UINT64_C(1) << (row % 64);
            }
            if (status != SPC_EAGAIN) {
                inbox->last_served = row;
                return status; /* inbox->rung still has all bits */
            }
            row = next_rung_row(inbox, rung, row + 1);
        }
    }
    inbox->rung = remaining;
    return status;
}

typedef struct take {
    const spc_match_t *match;
    spc_message_t *message;
} take_t;

static int visit_to_take(spc_inbox_t *inbox, uint32_t sender, void *argument, bool *emptied) {
    const take_t *take = argument;
    return take_from_row(inbox, sender, take->match, take->message, emptied);
}

static int take(spc_inbox_t *inbox, const spc_match_t *match, spc_message_t *message) {
    int status = take_queued(inbox, match, message);
    if (status != SPC_EAGAIN) {
        return status;
    }
    if (match->source != SPC_ANY_SOURCE) {
        /* With a known source its slot is polled: the doorbell would cost another cache line. */
        bool emptied;
        return take_from_row(inbox, (uint32_t)match->source, match, message, &emptied);
    }
    take_t asked = {match, message};
    return visit_rows(inbox, visit_to_take, &asked);
}

static void record(const spc_inbox_t *inbox, const spc_message_t *message) {
    spc_trace_record(inbox->options.trace, &(spc_trace_event_t){.kind = SPC_TRACE_RECEIVE,
                                                                .context = message->context,
                                                                .peer = message->source,
                                                                .tag = message->tag,
                                                                .bytes = message->length_bytes,
                                                                .number = message->number});
}

int spc_inbox_take(spc_inbox_t *inbox, const spc_match_t *match, spc_message_t *message) {
    const int status = take(inbox, match, message);
    if (__builtin_expect(inbox->options.trace != NULL, 0) && status == SPC_OK) {
        record(inbox, message);
    }
    return status;
}

int spc_inbox_take_queued(spc_inbox_t *inbox, const spc_match_t *match, spc_message_t *message) {
    const int status = take_queued(inbox, match, message);
    if (__builtin_expect(inbox->options.trace != NULL, 0) && status == SPC_OK) {
        record(inbox, message);
    }
    return status;
}

int spc_inbox_peek(spc_inbox_t *inbox, const spc_match_t *match, int32_t *source, int32_t *tag,
                   uint64_t *length_bytes) {
    spc_inbox_drain(inbox);
    if (match->source != SPC_ANY_SOURCE) {
        spc_inbox_drain_row(inbox, (uint32_t)match->source);
    }
    const spc_entry_t *entry = spc_inbox_queue_find(&inbox->queue, match->context, match->source, match->tag);
    if (entry == NULL) {
        return SPC_EAGAIN;
    }
    *source = entry->message.source;
    *tag = entry->message.tag;
    *length_bytes = spc_message_data_bytes(&entry->message);
    return SPC_OK;
}

/* ---- draining ---- */

static uint32_t drain_row(spc_inbox_t *inbox, uint32_t sender, bool *emptied) {
    spc_inbox_row_t *row = &inbox->row[sender];
    uint32_t completed = 0;
    *emptied = false;
    for (uint32_t i = 0; i < row->reader.slots; i++) {
        const spc_slot_shared_t *slot = spc_mailbox_peek(&row->reader);
        if (slot == NULL) {
            *emptied = true;
            break;
        }
        if (spc_inbox_store_slot(inbox, sender, slot) != SPC_OK) {
            break;
        }
        completed += row->assembling == NULL;
    }
    return completed;
}

static int visit_to_drain(spc_inbox_t *inbox, uint32_t sender, void *argument, bool *emptied) {
    *(uint32_t *)argument += drain_row(inbox, sender, emptied);
    return SPC_EAGAIN;
}

uint32_t spc_inbox_drain(spc_inbox_t *inbox) {
    uint32_t completed = 0;
    (void)visit_rows(inbox, visit_to_drain, &completed);
    return completed;
}

uint32_t spc_inbox_drain_row(spc_inbox_t *inbox, uint32_t source) {
    bool emptied;
    return drain_row(inbox, source, &emptied);
}

uint32_t spc_inbox_received(const spc_inbox_t *inbox, uint32_t source) {
    return inbox->row[source].reader.received;
}

static bool is_near(const spc_message_t *message, const spc_match_t *match) {
    bool source = match->source == SPC_ANY_SOURCE || message->source == match->source;
    bool tag = match->tag == SPC_ANY_TAG || message->tag == match->tag;
    return message->context == match->context && source != tag;
}

uint32_t spc_inbox_near(const spc_inbox_t *inbox, const spc_match_t *match, int32_t *source, int32_t *tag) {
    uint32_t count = 0;
    for (const spc_entry_t *entry = inbox->queue.arrivals.first; entry != NULL; entry = entry->next) {
        if (spc_entry_is_complete(entry) && is_near(&entry->message, match)) {
            *source = count == 0 ? entry->message.source : *source;
            *tag = count == 0 ? entry->message.tag : *tag;
            count++;
        }
    }
    return count;
}

uint64_t spc_inbox_count(const spc_inbox_t *inbox, uint16_t context) {
    return context < inbox->contexts ? inbox->filed[context].complete : 0;
}

/* ---- ending and giving back ---- */

void spc_inbox_release_block(const spc_inbox_t *inbox, spc_block_shared_t *block) {
    uint32_t owner = block->owner; /* without its pin, the block may be another one at once */
    spc_block_unpin(block, inbox->options.rank);
    spc_inbox_notify_sender(inbox, owner);
}

void spc_inbox_release(const spc_inbox_t *inbox, spc_message_t *message) {
    void *handle = message->handle;
    message->handle = NULL;
    if (handle == NULL) {
        return;
    }
    switch (message->storage) {
    case SPC_STORED_RING:
        spc_ring_mark_read(handle);
        spc_inbox_notify_sender(inbox, message->sender);
        break;
    case SPC_STORED_ARENA:
        spc_inbox_release_block(inbox, handle);
        break;
    default:
        free(handle);
        break;
    }
}

/* Of a message in parts only the first one counts; `missing` bytes of it are still to come. */
static void discard_row(spc_inbox_t *inbox, uint32_t sender, uint64_t missing) {
    const spc_slot_shared_t *slot;
    spc_message_t message;
    uint64_t long_bytes =
        inbox->row[sender].reader.long_bytes; /* of what was received, not of what follows */
    while ((slot = spc_mailbox_peek(&inbox->row[sender].reader)) != NULL) {
        spc_inbox_open_slot(inbox, sender, slot, &message);
        if (missing == 0) {
            spc_inbox_note_left(inbox, &message);
            missing = spc_slot_has_parts(slot) ? message.length_bytes : 0;
        }
        if (spc_slot_has_parts(slot)) {
            missing -= message.storage == SPC_STORED_ARENA
                           ? missing
                           : ((const spc_ring_header_shared_t *)message.handle)->payload_bytes;
        }
        spc_inbox_release(inbox, &message);
        spc_inbox_consume_slot(inbox, sender);
    }
    spc_mailbox_count_long(&inbox->row[sender].reader,
                           long_bytes - inbox->row[sender].reader.long_bytes); /* modulo 2^64 */
    spc_mailbox_publish(&inbox->row[sender].reader);
}

void spc_inbox_discard(spc_inbox_t *inbox) {
    spc_message_t message;
    (void)spc_mailbox_collect(inbox->mailbox); /* bits that are set later are of what comes later */
    for (uint32_t sender = 0; sender < inbox->senders; sender++) {
        const spc_entry_t *begun = inbox->row[sender].assembling;
        discard_row(inbox, sender, begun != NULL ? begun->message.length_bytes - begun->assembled_bytes : 0);
        inbox->row[sender].assembling = NULL;
    }
    while (inbox->queue.arrivals.first != NULL) {
        spc_inbox_queue_remove(&inbox->queue, inbox->queue.arrivals.first, &message);
        spc_inbox_note_left(inbox, &message);
        spc_inbox_release(inbox, &message);
    }
    for (uint32_t sender = 0; sender < inbox->senders; sender++) {
        spc_inbox_hold(inbox, sender, 0);
    }
}

/* Without memory for the mark, what comes later stays in the queue: unwanted, but harmless up to its sender's limit. */
static void mark_closed(spc_inbox_t *inbox, uint16_t context) {
    if (inbox->closed == NULL) {
        inbox->closed = calloc(UINT16_MAX / 8 + 1, 1);
    }
    if (inbox->closed != NULL) {
        inbox->closed[context / 8] |= (unsigned char)(1u << context % 8);
    }
}

/* What is still being assembled stays; it is dropped when it is complete. */
static void discard_context(spc_inbox_t *inbox, uint16_t context) {
    spc_entry_t *entry;
    spc_message_t message;
    while ((entry = spc_inbox_queue_find(&inbox->queue, context, SPC_ANY_SOURCE, SPC_ANY_TAG)) != NULL) {
        entry->asks = 0; /* nobody has taken it */
        spc_inbox_take_entry(inbox, entry, &message);
        spc_inbox_note_left(inbox, &message);
        spc_inbox_release(inbox, &message);
    }
}

void spc_inbox_close_contexts(spc_inbox_t *inbox, uint16_t first, uint16_t count) {
    for (uint16_t i = 0; i < count; i++) {
        mark_closed(inbox, first + i);
        discard_context(inbox, first + i);
    }
    spc_inbox_forget_diversions(inbox, first, count);
}

int spc_inbox_put_back(spc_inbox_t *inbox, spc_message_t *message) {
    int status = spc_inbox_enqueue(inbox, message);
    if (status == SPC_OK) {
        message->handle = NULL;
        message->bytes = NULL;
    }
    return status;
}
