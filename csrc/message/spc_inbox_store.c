/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "message/spc_inbox_private.h"
#include "message/spc_receipt.h"
#include "message/spc_ring.h"

/* ---- counting ---- */

/* Before a message of `context` is begun, so that nothing can fail once it is complete. */
int spc_inbox_make_count(spc_inbox_t *inbox, uint16_t context) {
    if (context >= inbox->contexts) {
        spc_inbox_filed_t *grown = realloc(inbox->filed, (context + 1u) * sizeof(*grown));
        if (grown == NULL) {
            return SPC_ENOMEM;
        }
        memset(grown + inbox->contexts, 0, (context + 1u - inbox->contexts) * sizeof(*grown));
        inbox->filed = grown;
        inbox->contexts = context + 1u;
    }
    return SPC_OK;
}

static void count_complete(spc_inbox_t *inbox, uint16_t context) {
    spc_inbox_count_complete(inbox, context, 1);
    inbox->news |= SPC_INBOX_STORED;
}

/* Small and empty messages take memory, too: without their entries the limit would not limit them. */
uint64_t spc_inbox_held_bytes(const spc_message_t *message) {
    return sizeof(spc_entry_t) + (message->storage == SPC_STORED_HEAP ? message->length_bytes : 0);
}

void spc_inbox_hold(spc_inbox_t *inbox, uint32_t sender, uint64_t held_bytes) {
    spc_inbox_row_t *row = &inbox->row[sender];
    const uint64_t before = row->lent_bytes;
    row->held_bytes = held_bytes;
    row->lent_bytes = held_bytes > inbox->share_bytes ? held_bytes - inbox->share_bytes : 0;
    if (__builtin_expect(row->lent_bytes != before, 0)) { /* mostly nothing is lent */
        spc_mailbox_lend(row->reader.row, row->lent_bytes);
        if (row->lent_bytes < before) {
            spc_inbox_notify_sender(inbox, sender);
        }
    }
}

/* ---- out of slots ---- */

void spc_inbox_open_slot(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot,
                         spc_message_t *message) {
    message->length_bytes = slot->length_bytes;
    message->arrival = ++inbox->arrivals;
    message->source = slot->source;
    message->tag = slot->tag;
    message->context = spc_inbox_context(inbox, slot);
    message->meta_bytes = slot->meta_bytes;
    message->format = slot->format;
    message->sole = slot->flags & SPC_SLOT_SOLE;
    message->sender = sender;
    message->number = ++inbox->row[sender].opened;
    switch (slot->flags & SPC_SLOT_PLACE) {
    case SPC_SLOT_INLINE:
        message->storage = SPC_STORED_INLINE;
        message->handle = NULL;
        message->bytes = message->inlined;
        memcpy(message->inlined, slot->payload.inlined, SPC_INLINE_BYTES);
        break;
    case SPC_SLOT_RING:
        message->storage = SPC_STORED_RING;
        message->handle = spc_segment_address(inbox->options.segment, slot->payload.offset);
        message->bytes = spc_ring_payload(message->handle);
        spc_mailbox_count_long(&inbox->row[sender].reader, slot->length_bytes);
        break;
    default:
        message->storage = SPC_STORED_ARENA;
        message->handle = spc_segment_address(inbox->options.segment, slot->payload.offset);
        message->bytes = spc_block_payload(message->handle);
        spc_mailbox_count_long(&inbox->row[sender].reader, slot->length_bytes);
        break;
    }
}

void spc_inbox_note_left(const spc_inbox_t *inbox, const spc_message_t *message) {
    spc_note_add_left(inbox->options.notes, (uint32_t)message->source, inbox->options.rank, message->tag,
                      spc_inbox_diverted_from(inbox, message->context));
}

void spc_inbox_notify_sender(const spc_inbox_t *inbox, uint32_t sender) {
    spc_event_notify(&inbox->options.events[sender], inbox->features);
}

void spc_inbox_consume_slot(spc_inbox_t *inbox, uint32_t sender) {
    if (spc_mailbox_consume(&inbox->row[sender].reader)) {
        spc_inbox_notify_sender(inbox, sender);
    }
}

void spc_inbox_give_receipt(spc_inbox_t *inbox, uint32_t sender, uint32_t number) {
    spc_receipt_give(inbox->row[sender].reader.row, number);
    spc_inbox_notify_sender(inbox, sender);
}

/* ---- into the queue ---- */

/* Moves a ring message to the heap, which frees the ring. */
static int move_to_heap(spc_inbox_t *inbox, spc_message_t *message) {
    unsigned char *memory = malloc(message->length_bytes);
    if (memory == NULL) {
        return SPC_ENOMEM;
    }
    memcpy(memory, message->bytes, message->length_bytes);
    spc_inbox_release(inbox, message);
    message->storage = SPC_STORED_HEAP;
    message->handle = memory;
    message->bytes = memory;
    return SPC_OK;
}

static int enqueue(spc_inbox_t *inbox, const spc_message_t *message, uint64_t asks) {
    int status = spc_inbox_make_count(inbox, message->context);
    spc_entry_t *entry = status == SPC_OK ? spc_inbox_queue_make(&inbox->queue) : NULL;
    if (entry == NULL) {
        return SPC_ENOMEM;
    }
    spc_message_move(&entry->message, message);
    if (message->storage == SPC_STORED_RING && move_to_heap(inbox, &entry->message) != SPC_OK) {
        free(entry);
        return SPC_ENOMEM;
    }
    count_complete(inbox, message->context);
    entry->assembled_bytes = message->length_bytes;
    entry->asks = asks;
    spc_inbox_queue_insert(&inbox->queue, entry);
    spc_inbox_hold(inbox, message->sender,
                   inbox->row[message->sender].held_bytes + spc_inbox_held_bytes(&entry->message));
    return SPC_OK;
}

int spc_inbox_enqueue(spc_inbox_t *inbox, const spc_message_t *message) {
    return enqueue(inbox, message, 0);
}

/* The first part of a message: its place in the queue, and memory for all of it. */
static int begin_assembly(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot) {
    int status = spc_inbox_make_count(inbox, spc_inbox_context(inbox, slot));
    spc_entry_t *entry = status == SPC_OK ? spc_inbox_queue_make(&inbox->queue) : NULL;
    unsigned char *memory = entry != NULL ? malloc(slot->length_bytes) : NULL;
    if (memory == NULL) {
        free(entry);
        return SPC_ENOMEM;
    }
    spc_inbox_open_slot(inbox, sender, slot, &entry->message);
    entry->message.storage = SPC_STORED_HEAP;
    entry->message.handle = memory;
    entry->message.bytes = memory;
    entry->assembled_bytes = 0;
    entry->asks = (slot->flags & SPC_SLOT_ASKS) != 0 ? (uint64_t)inbox->row[sender].asked++ + 1 : 0;
    spc_inbox_queue_insert(&inbox->queue, entry);
    inbox->row[sender].assembling = entry;
    spc_inbox_hold(inbox, sender, inbox->row[sender].held_bytes + spc_inbox_held_bytes(&entry->message));
    return SPC_OK;
}

/* A message in parts whose context was closed while they came. */
static void drop_if_closed(spc_inbox_t *inbox, spc_entry_t *entry) {
    if (spc_inbox_is_closed(inbox, entry->message.context)) {
        spc_message_t message;
        entry->asks = 0; /* nobody has taken it */
        spc_inbox_take_entry(inbox, entry, &message);
        spc_inbox_note_left(inbox, &message);
        spc_inbox_release(inbox, &message);
    }
}

static int store_part(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot) {
    spc_inbox_row_t *row = &inbox->row[sender];
    void *part = spc_segment_address(inbox->options.segment, slot->payload.offset);
    if (row->assembling == NULL) {
        int status = begin_assembly(inbox, sender, slot);
        if (status != SPC_OK) {
            return status;
        }
        const spc_ring_header_shared_t *header = part; /* the first part is never in a block */
        spc_inbox_find_posted(inbox, row->assembling, spc_ring_payload(part), header->payload_bytes);
    }
    spc_entry_t *entry = row->assembling;
    if ((slot->flags & SPC_SLOT_PLACE) == SPC_SLOT_ARENA) {
        spc_inbox_assemble(entry, spc_block_payload(part),
                           entry->message.length_bytes - entry->assembled_bytes);
        spc_inbox_release_block(inbox, part);
    } else {
        const spc_ring_header_shared_t *header = part;
        spc_inbox_assemble(entry, spc_ring_payload(part), header->payload_bytes);
        spc_ring_mark_read(part);
    }
    spc_inbox_consume_slot(inbox, sender);
    spc_inbox_notify_sender(inbox, sender);
    inbox->news |= SPC_INBOX_MOVED;
    if (spc_entry_is_complete(entry)) {
        row->assembling = NULL;
        count_complete(inbox, entry->message.context);
        drop_if_closed(inbox, entry);
    }
    return SPC_OK;
}

/* A message that is complete in its slot. */
static int store_whole(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot, uint64_t asks) {
    spc_message_t message;
    spc_inbox_open_slot(inbox, sender, slot, &message);
    int status = SPC_OK;
    if (spc_inbox_is_closed(inbox, message.context)) {
        spc_inbox_note_left(inbox, &message);
        spc_inbox_release(inbox, &message);
    } else {
        status = enqueue(inbox, &message, asks);
    }
    if (status == SPC_OK) {
        spc_inbox_consume_slot(inbox, sender);
    } else {
        inbox->row[sender].opened--; /* it will be opened again */
    }
    return status;
}

static int store_special(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot) {
    if (spc_slot_has_parts(slot)) {
        return store_part(inbox, sender, slot);
    }
    int status = store_whole(inbox, sender, slot, (uint64_t)inbox->row[sender].asked + 1);
    inbox->row[sender].asked += status == SPC_OK;
    return status;
}

int spc_inbox_store_slot(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot) {
    return spc_slot_is_special(slot) ? store_special(inbox, sender, slot)
                                     : store_whole(inbox, sender, slot, 0);
}
