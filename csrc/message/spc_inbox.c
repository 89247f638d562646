/* SPDX-License-Identifier: MIT */
#include "message/spc_inbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "message/spc_inbox_queue.h"
#include "message/spc_ring.h"

typedef struct row {
    spc_mailbox_reader_t reader;
    spc_entry_t *assembling; /* the message whose parts are arriving: they come without gaps */
    uint64_t held_bytes;     /* heap memory that its messages in the queue take */
    bool refused;
} row_t;

struct spc_inbox {
    spc_inbox_options_t options;
    uint32_t features;
    uint32_t senders;
    uint32_t last_served;
    uint64_t rung;        /* doorbell bits taken, whose rows are not known to be empty */
    uint64_t arrivals;    /* running number of messages */
    uint64_t limit_bytes; /* per sender */
    uint64_t *counts;     /* complete messages in the queue, by context */
    uint32_t contexts;
    spc_mailbox_shared_t *mailbox;
    spc_inbox_queue_t queue;
    row_t row[];
};

int spc_inbox_create(const spc_inbox_options_t *options, spc_inbox_t **inbox) {
    const spc_config_t *config = options->segment->config;
    uint32_t senders = config->nodes + 1; /* the agent is one */
    spc_inbox_t *made = calloc(1, sizeof(*made) + senders * sizeof(row_t));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->options = *options;
    made->features = config->features;
    made->senders = senders;
    made->limit_bytes = config->queue_limit_bytes;
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
        free(inbox->counts);
        free(inbox);
    }
}

/* ---- counting ---- */

static int count_complete(spc_inbox_t *inbox, uint16_t context) {
    if (context >= inbox->contexts) {
        uint64_t *grown = realloc(inbox->counts, (context + 1u) * sizeof(*grown));
        if (grown == NULL) {
            return SPC_ENOMEM;
        }
        memset(grown + inbox->contexts, 0, (context + 1u - inbox->contexts) * sizeof(*grown));
        inbox->counts = grown;
        inbox->contexts = context + 1u;
    }
    inbox->counts[context]++;
    return SPC_OK;
}

uint64_t spc_inbox_count(const spc_inbox_t *inbox, uint16_t context) {
    return context < inbox->contexts ? inbox->counts[context] : 0;
}

static uint64_t held_bytes(const spc_message_t *message) {
    return message->storage == SPC_STORED_HEAP ? message->length_bytes : 0;
}

/* ---- out of slots ---- */

/* The slot's message, where it lies; the slot can be consumed afterwards. */
static void open_slot(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot, spc_message_t *message) {
    message->length_bytes = slot->length_bytes;
    message->arrival = ++inbox->arrivals;
    message->source = slot->source;
    message->tag = slot->tag;
    message->context = slot->context;
    message->meta_bytes = slot->meta_bytes;
    message->format = slot->format;
    message->sole = (slot->flags & SPC_SLOT_SOLE) != 0;
    message->sender = sender;
    void *place = spc_segment_address(inbox->options.segment, slot->payload.offset);
    switch (slot->flags & SPC_SLOT_PLACE) {
    case SPC_SLOT_INLINE:
        message->storage = SPC_STORED_INLINE;
        message->handle = NULL;
        message->bytes = message->inlined;
        memcpy(message->inlined, slot->payload.inlined, SPC_INLINE_BYTES);
        break;
    case SPC_SLOT_RING:
        message->storage = SPC_STORED_RING;
        message->handle = place;
        message->bytes = spc_ring_payload(place);
        break;
    default:
        message->storage = SPC_STORED_ARENA;
        message->handle = place;
        message->bytes = spc_block_payload(place);
        break;
    }
}

static void notify_sender(const spc_inbox_t *inbox, uint32_t sender) {
    spc_event_notify(&inbox->options.events[sender], inbox->features);
}

static void consume_slot(spc_inbox_t *inbox, uint32_t sender) {
    if (spc_mailbox_consume(&inbox->row[sender].reader)) {
        notify_sender(inbox, sender);
    }
}

static bool has_parts(const spc_slot_shared_t *slot) {
    return (slot->flags & SPC_SLOT_PART) != 0;
}

static bool slot_matches(const spc_slot_shared_t *slot, const spc_match_t *match) {
    return slot->context == match->context &&
           (match->source == SPC_ANY_SOURCE || slot->source == match->source) &&
           (match->tag == SPC_ANY_TAG || slot->tag == match->tag);
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

static int enqueue(spc_inbox_t *inbox, const spc_message_t *message) {
    spc_entry_t *entry = spc_inbox_queue_make(&inbox->queue);
    if (entry == NULL) {
        return SPC_ENOMEM;
    }
    spc_message_move(&entry->message, message);
    if (message->storage == SPC_STORED_RING && move_to_heap(inbox, &entry->message) != SPC_OK) {
        free(entry);
        return SPC_ENOMEM;
    }
    int status = count_complete(inbox, message->context);
    if (status != SPC_OK) {
        free(entry);
        return status;
    }
    entry->assembled_bytes = message->length_bytes;
    spc_inbox_queue_insert(&inbox->queue, entry);
    inbox->row[message->sender].held_bytes += held_bytes(&entry->message);
    return SPC_OK;
}

/* The first part of a message: its place in the queue, and memory for all of it. */
static int begin_assembly(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot) {
    spc_entry_t *entry = spc_inbox_queue_make(&inbox->queue);
    unsigned char *memory = entry != NULL ? malloc(slot->length_bytes) : NULL;
    if (memory == NULL) {
        free(entry);
        return SPC_ENOMEM;
    }
    open_slot(inbox, sender, slot, &entry->message);
    entry->message.storage = SPC_STORED_HEAP;
    entry->message.handle = memory;
    entry->message.bytes = memory;
    entry->assembled_bytes = 0;
    spc_inbox_queue_insert(&inbox->queue, entry);
    inbox->row[sender].assembling = entry;
    inbox->row[sender].held_bytes += slot->length_bytes;
    return SPC_OK;
}

static int store_part(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot) {
    row_t *row = &inbox->row[sender];
    int status = row->assembling == NULL ? begin_assembly(inbox, sender, slot) : SPC_OK;
    if (status != SPC_OK) {
        return status;
    }
    spc_entry_t *entry = row->assembling;
    spc_ring_header_shared_t *header = spc_segment_address(inbox->options.segment, slot->payload.offset);
    memcpy(entry->message.bytes + entry->assembled_bytes, spc_ring_payload(header), header->payload_bytes);
    entry->assembled_bytes += header->payload_bytes;
    spc_ring_mark_read(header);
    consume_slot(inbox, sender);
    notify_sender(inbox, sender);
    if (spc_entry_is_complete(entry)) {
        row->assembling = NULL;
        return count_complete(inbox, entry->message.context);
    }
    return SPC_OK;
}

/* Would storing this slot take its sender over the limit? A message longer than the limit may be there alone. */
static bool must_refuse(spc_inbox_t *inbox, row_t *row, const spc_slot_shared_t *slot) {
    bool takes_heap = (slot->flags & SPC_SLOT_PLACE) == SPC_SLOT_RING && row->assembling == NULL;
    row->refused = takes_heap && row->held_bytes != 0 && row->held_bytes + slot->length_bytes > inbox->limit_bytes;
    return row->refused;
}

/* Moves the row's next message, or part of one, into the queue. */
static int store_slot(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot) {
    if (has_parts(slot)) {
        return store_part(inbox, sender, slot);
    }
    spc_message_t message;
    open_slot(inbox, sender, slot, &message);
    int status = enqueue(inbox, &message);
    if (status == SPC_OK) {
        consume_slot(inbox, sender);
    }
    return status;
}

/* ---- taking ---- */

static void take_entry(spc_inbox_t *inbox, spc_entry_t *entry, spc_message_t *message) {
    spc_inbox_queue_remove(&inbox->queue, entry, message);
    inbox->counts[message->context]--;
    inbox->row[message->sender].held_bytes -= held_bytes(message);
}

int spc_inbox_take_queued(spc_inbox_t *inbox, const spc_match_t *match, spc_message_t *message) {
    if (inbox->queue.length == 0) {
        return SPC_EAGAIN;
    }
    spc_entry_t *entry = spc_inbox_queue_find(&inbox->queue, match->context, match->source, match->tag);
    if (entry == NULL) {
        return SPC_EAGAIN;
    }
    take_entry(inbox, entry, message);
    return SPC_OK;
}

/* Serves one row until it gives a match: directly from the slot, or by completing a message in parts. Others go into
 * the queue. At most one row-length. SPC_EAGAIN: nothing (more) there; `emptied` tells whether that is certain. */
static int take_from_row(spc_inbox_t *inbox, uint32_t sender, const spc_match_t *match, spc_message_t *message,
                         bool *emptied) {
    row_t *row = &inbox->row[sender];
    *emptied = false;
    for (uint32_t i = 0; i < row->reader.slots; i++) {
        const spc_slot_shared_t *slot = spc_mailbox_peek(&row->reader);
        if (slot == NULL) {
            *emptied = true;
            return SPC_EAGAIN;
        }
        bool wanted = slot_matches(slot, match);
        if (wanted && !has_parts(slot)) {
            open_slot(inbox, sender, slot, message);
            consume_slot(inbox, sender);
            return SPC_OK;
        }
        if (!wanted && must_refuse(inbox, row, slot)) {
            return SPC_EAGAIN;
        }
        int status = store_slot(inbox, sender, slot);
        if (status != SPC_OK) {
            return status;
        }
        if (wanted && row->assembling == NULL) {
            return spc_inbox_take_queued(inbox, match, message);
        }
    }
    return SPC_EAGAIN;
}

/* The first row from `from` on whose bell has rung; `senders` if none has. Several rows share a bit if there are many. */
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

int spc_inbox_take(spc_inbox_t *inbox, const spc_match_t *match, spc_message_t *message) {
    int status = spc_inbox_take_queued(inbox, match, message);
    if (status != SPC_EAGAIN) {
        return status;
    }
    if (match->source != SPC_ANY_SOURCE) {
        /* With a known source its slot is polled: the doorbell would cost another cache line. */
        bool emptied;
        return take_from_row(inbox, (uint32_t)match->source, match, message, &emptied);
    }
    take_t take = {match, message};
    return visit_rows(inbox, visit_to_take, &take);
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
    row_t *row = &inbox->row[sender];
    uint32_t completed = 0;
    *emptied = false;
    for (uint32_t i = 0; i < row->reader.slots; i++) {
        const spc_slot_shared_t *slot = spc_mailbox_peek(&row->reader);
        if (slot == NULL) {
            *emptied = true;
            break;
        }
        if (must_refuse(inbox, row, slot) || store_slot(inbox, sender, slot) != SPC_OK) {
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

bool spc_inbox_is_refusing(const spc_inbox_t *inbox, uint32_t source) {
    return inbox->row[source].refused;
}

/* ---- ending and giving back ---- */

void spc_inbox_release_block(const spc_inbox_t *inbox, spc_block_shared_t *block) {
    spc_block_unpin(block, inbox->options.rank);
    notify_sender(inbox, block->owner);
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
        notify_sender(inbox, message->sender);
        break;
    case SPC_STORED_ARENA:
        spc_inbox_release_block(inbox, handle);
        break;
    default:
        free(handle);
        break;
    }
}

int spc_inbox_put_back(spc_inbox_t *inbox, spc_message_t *message) {
    int status = enqueue(inbox, message);
    if (status == SPC_OK) {
        message->handle = NULL;
        message->bytes = NULL;
    }
    return status;
}
