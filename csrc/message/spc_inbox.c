/* SPDX-License-Identifier: MIT */
#include "message/spc_inbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "message/spc_receipt.h"
#include "message/spc_ring.h"

/* ---- the queue */

/* Wildcards: SPC_ANY_SOURCE, SPC_ANY_TAG. */
static inline bool is_match(const spc_message_t *message, uint16_t context, int32_t source, int32_t tag) {
    return message->context == context && (source == SPC_ANY_SOURCE || message->source == source)
           && (tag == SPC_ANY_TAG || message->tag == tag);
}

static inline bool is_complete(const spc_entry_t *entry) {
    return entry->assembled_bytes == entry->message.length_bytes;
}

void spc_inbox_queue_init(spc_inbox_queue_t *queue) {
    memset(queue, 0, sizeof(*queue));
}

void spc_inbox_queue_fini(spc_inbox_queue_t *queue) {
    spc_entry_t *entry = queue->arrivals.first;
    while (entry != NULL) {
        spc_entry_t *next = entry->next;
        if (entry->message.storage == SPC_STORED_HEAP) {
            free(entry->message.handle);
        }
        free(entry);
        entry = next;
    }
    while (queue->spare != NULL) {
        entry = queue->spare;
        queue->spare = entry->next;
        free(entry);
    }
}

spc_entry_t *spc_inbox_queue_make(spc_inbox_queue_t *queue) {
    spc_entry_t *entry = queue->spare;
    if (entry != NULL) {
        queue->spare = entry->next;
    } else {
        entry = malloc(sizeof(*entry));
    }
    if (entry != NULL) {
        entry->posted = NULL;
    }
    return entry;
}

static spc_entry_list_t *bucket_of(spc_inbox_queue_t *queue, const spc_message_t *message) {
    return &queue->tags[((uint32_t)message->tag + message->context) % SPC_TAG_BUCKETS];
}

static void link_by_arrival(spc_entry_list_t *list, spc_entry_t *entry) {
    spc_entry_t *before = list->last;
    while (before != NULL && before->message.arrival > entry->message.arrival) {
        before = before->previous;
    }
    entry->previous = before;
    entry->next = before != NULL ? before->next : list->first;
    *(before != NULL ? &before->next : &list->first) = entry;
    *(entry->next != NULL ? &entry->next->previous : &list->last) = entry;
}

static void link_by_tag(spc_entry_list_t *list, spc_entry_t *entry) {
    spc_entry_t *before = list->last;
    while (before != NULL && before->message.arrival > entry->message.arrival) {
        before = before->tag_previous;
    }
    entry->tag_previous = before;
    entry->tag_next = before != NULL ? before->tag_next : list->first;
    *(before != NULL ? &before->tag_next : &list->first) = entry;
    *(entry->tag_next != NULL ? &entry->tag_next->tag_previous : &list->last) = entry;
}

void spc_inbox_queue_insert(spc_inbox_queue_t *queue, spc_entry_t *entry) {
    link_by_arrival(&queue->arrivals, entry);
    link_by_tag(bucket_of(queue, &entry->message), entry);
    queue->length++;
}

static bool matches(const spc_entry_t *entry, uint16_t context, int32_t source, int32_t tag) {
    return is_match(&entry->message, context, source, tag) && is_complete(entry);
}

spc_entry_t *spc_inbox_queue_find(const spc_inbox_queue_t *queue, uint16_t context, int32_t source,
                                  int32_t tag) {
    if (tag == SPC_ANY_TAG) {
        spc_entry_t *entry = queue->arrivals.first;
        while (entry != NULL && !matches(entry, context, source, tag)) {
            entry = entry->next;
        }
        return entry;
    }
    spc_entry_t *entry = queue->tags[((uint32_t)tag + context) % SPC_TAG_BUCKETS].first;
    while (entry != NULL && !matches(entry, context, source, tag)) {
        entry = entry->tag_next;
    }
    return entry;
}

static void unlink_by_tag(spc_inbox_queue_t *queue, spc_entry_t *entry) {
    spc_entry_list_t *tags = bucket_of(queue, &entry->message);
    *(entry->tag_previous != NULL ? &entry->tag_previous->tag_next : &tags->first) = entry->tag_next;
    *(entry->tag_next != NULL ? &entry->tag_next->tag_previous : &tags->last) = entry->tag_previous;
}

/* `kinds` 0: of the same context, and either the source or the tag differs. Else: only the context does. */
static bool is_near(const spc_message_t *message, const spc_match_t *match, uint32_t kinds) {
    bool source = match->source == SPC_ANY_SOURCE || message->source == match->source;
    bool tag = match->tag == SPC_ANY_TAG || message->tag == match->tag;
    const uint32_t here = match->context, there = message->context;
    return kinds == 0 ? here == there && source != tag
                      : here != there && here % kinds == there % kinds && source && tag;
}

/* As spc_inbox_near. */
static uint32_t count_near(const spc_inbox_queue_t *queue, const spc_match_t *match, uint32_t kinds,
                           int32_t *source, int32_t *tag) {
    uint32_t count = 0;
    for (const spc_entry_t *entry = queue->arrivals.first; entry != NULL; entry = entry->next) {
        if (is_complete(entry) && is_near(&entry->message, match, kinds)) {
            *source = count == 0 ? entry->message.source : *source;
            *tag = count == 0 ? entry->message.tag : *tag;
            count++;
        }
    }
    return count;
}

/* Gives it another context; it keeps its place. */
static void move_entry(spc_inbox_queue_t *queue, spc_entry_t *entry, uint16_t context) {
    unlink_by_tag(queue, entry);
    entry->message.context = context;
    link_by_tag(bucket_of(queue, &entry->message), entry);
}

void spc_inbox_queue_remove(spc_inbox_queue_t *queue, spc_entry_t *entry, spc_message_t *message) {
    unlink_by_tag(queue, entry);
    *(entry->previous != NULL ? &entry->previous->next : &queue->arrivals.first) = entry->next;
    *(entry->next != NULL ? &entry->next->previous : &queue->arrivals.last) = entry->previous;
    queue->length--;
    spc_message_move(message, &entry->message);
    entry->next = queue->spare;
    queue->spare = entry;
}

/* ---- entries whose data go to a place that a receive posted */

/* Moves the data that have arrived so far to the heap. There has been memory for it from the first part on. */
static void move_posted(spc_entry_t *entry) {
    spc_message_t *message = &entry->message;
    memcpy(spc_message_data(message), entry->posted->sink->data,
           entry->assembled_bytes - message->meta_bytes);
    entry->posted = NULL;
}

/* With the meta whole in the first part. */
static bool is_as_expected(const spc_message_t *message, const unsigned char *payload, uint64_t bytes,
                           const spc_sink_t *sink) {
    return message->format == sink->format && message->meta_bytes == sink->meta_bytes
           && spc_message_data_bytes(message) == sink->data_bytes && bytes >= sink->meta_bytes
           && memcmp(payload, sink->meta, sink->meta_bytes) == 0;
}

/* The first part of a message, `bytes` of it at `payload`, is about to be stored: whether one of these receives,
 * `first` before the others, wants its data. */
static void find_posted(spc_posted_t *first, spc_entry_t *entry, const unsigned char *payload,
                        uint64_t bytes) {
    for (spc_posted_t *posted = first; posted != NULL; posted = posted->next) {
        const spc_match_t *match = &posted->match;
        if (!posted->used && is_match(&entry->message, match->context, match->source, match->tag)
            && is_as_expected(&entry->message, payload, bytes, posted->sink)) {
            posted->used = true;
            entry->posted = posted;
            return;
        }
    }
}

/* Stores the next bytes of a message that arrives in parts. */
static void assemble(spc_entry_t *entry, const unsigned char *payload, uint64_t bytes) {
    uint64_t done = entry->assembled_bytes;
    uint64_t meta = entry->posted != NULL && done == 0 ? entry->message.meta_bytes : 0;
    unsigned char *to = entry->message.bytes + done + meta;
    memcpy(entry->message.bytes, payload, meta); /* in case the data must move */
    if (entry->posted != NULL) {
        to = (unsigned char *)entry->posted->sink->data + (done + meta - entry->message.meta_bytes);
    }
    memcpy(to, payload + meta, bytes - meta);
    entry->assembled_bytes = done + bytes;
}

/* Takes a message whose data are in a posted place: by that receive, which has `posted`, or by another. */
static void settle_posted(spc_entry_t *entry, spc_posted_t *posted) {
    if (entry->posted == posted) {
        posted->sink->filled = true;
        entry->posted = NULL;
    } else {
        move_posted(entry); /* the receive that posted it still waits: it has not been withdrawn */
    }
}

/* ---- filters, in a table with open addressing and linear probing
 *
 * The table of messages for handlers. The receiver registers a handler, so the slot does not show it: messages with its
 * context and tag are filed under another context, which no receive searches. Order is as ever: by arrival, and so by
 * sender. */

typedef struct spc_filter { /* messages with this context and tag are filed under another context */
    int32_t tag;
    uint16_t from;
    uint16_t to; /* equal to `from`: a free place of the table */
} spc_filter_t;

typedef struct spc_filters { /* all zeros: there is none */
    /* A hash table of 2^bits places, at most half of them in use; its owner frees it. */
    spc_filter_t *places;
    uint32_t count;
    uint32_t bits;
} spc_filters_t;

#define BITS_MIN 4

/* The place where the search for a context and tag begins. */
static uint32_t home_of(const spc_filters_t *filters, uint16_t context, int32_t tag) {
    uint32_t key = (uint32_t)tag + context * UINT32_C(0x85ebca6b);
    return key * UINT32_C(0x9e3779b9) >> (32 - filters->bits); /* neighboring tags lie far apart */
}

static uint32_t mask_of(const spc_filters_t *filters) {
    return (UINT32_C(1) << filters->bits) - 1;
}

static bool is_free(const spc_filter_t *filter) {
    return filter->from == filter->to;
}

/* The filter of this context and tag, or the free place where it would be. */
static spc_filter_t *find(const spc_filters_t *filters, uint16_t context, int32_t tag) {
    uint32_t at = home_of(filters, context, tag);
    spc_filter_t *found = &filters->places[at];
    while (!is_free(found) && (found->tag != tag || found->from != context)) {
        at = (at + 1) & mask_of(filters);
        found = &filters->places[at];
    }
    return found;
}

/* Makes room for one more. SPC_ENOMEM. */
static int reserve_filter(spc_filters_t *filters) {
    spc_filter_t *before = filters->places;
    const uint32_t places = before != NULL ? mask_of(filters) + 1 : 0;
    if (filters->count < places / 2) {
        return SPC_OK;
    }
    const uint32_t bits = before != NULL ? filters->bits + 1 : BITS_MIN;
    spc_filter_t *grown = calloc((size_t)1 << bits, sizeof(*grown));
    if (grown == NULL) {
        return SPC_ENOMEM;
    }
    filters->places = grown;
    filters->bits = bits;
    for (uint32_t i = 0; i < places; i++) {
        if (!is_free(&before[i])) {
            *find(filters, before[i].from, before[i].tag) = before[i];
        }
    }
    free(before);
    return SPC_OK;
}

/* There is room. False: messages of this context and tag are filtered already. */
static bool add_filter(spc_filters_t *filters, uint16_t context, int32_t tag, uint16_t to) {
    spc_filter_t *place = find(filters, context, tag);
    if (!is_free(place)) {
        return false;
    }
    *place = (spc_filter_t){.tag = tag, .from = context, .to = to};
    filters->count++;
    return true;
}

/* Removes a filter, and moves up those behind it that the free place would hide. */
static void take_out(spc_filters_t *filters, uint32_t place) {
    const uint32_t mask = mask_of(filters);
    spc_filter_t *table = filters->places;
    for (uint32_t at = (place + 1) & mask; !is_free(&table[at]); at = (at + 1) & mask) {
        const uint32_t home = home_of(filters, table[at].from, table[at].tag);
        if (((at - home) & mask) >= ((at - place) & mask)) {
            table[place] = table[at];
            place = at;
        }
    }
    table[place] = (spc_filter_t){.tag = 0};
    filters->count--;
}

/* The context under which a message of this context and tag is filed: a different one if there is a filter. Takes the
 * same time for any number of filters, and needs at least one. */
static uint16_t find_filter(const spc_filters_t *filters, uint16_t context, int32_t tag) {
    const spc_filter_t *found = find(filters, context, tag);
    return is_free(found) ? context : found->to;
}

/* Ends the filters of `count` contexts from `first` on. */
static void forget_filters(spc_filters_t *filters, uint16_t first, uint16_t count) {
    const uint32_t places = filters->count != 0 ? mask_of(filters) + 1 : 0;
    for (uint32_t place = 0; place < places;) {
        const spc_filter_t *filter = &filters->places[place];
        if (!is_free(filter) && filter->from >= first && filter->from - first < count) {
            take_out(filters, place); /* another one may be there now */
        } else {
            place++;
        }
    }
}

typedef struct spc_inbox_filed { /* the messages of one context in the queue */
    uint64_t complete;
    uint16_t filtered_from; /* the context in their slots, if is_filtered */
    bool is_filtered; /* these messages are for handlers */
} spc_inbox_filed_t;

typedef struct spc_inbox_row {
    spc_mailbox_reader_t reader;
    spc_entry_t *assembling; /* the message whose parts are arriving: parts come without gaps */
    uint64_t held_bytes; /* memory that its messages in the queue take */
    uint32_t opened; /* messages so far, modulo 2³² */
    spc_asked_t asked; /* messages so far that want a receipt */
} spc_inbox_row_t;

struct spc_inbox {
    spc_inbox_options_t options;
    uint32_t features;
    uint32_t senders;
    uint32_t last_served;
    uint64_t rung; /* doorbell bits taken, whose rows are not known to be empty */
    uint32_t epoch; /* number of ends after which all rows have been searched */
    uint64_t arrivals; /* running number of messages */
    uint32_t news; /* SPC_INBOX_STORED, SPC_INBOX_MOVED */
    uint64_t share_bytes; /* by sender */
    spc_inbox_filed_t *filed; /* by context */
    uint32_t contexts;
    uint64_t filtered; /* complete messages for handlers in the queue */
    unsigned char *closed; /* a bit for each context whose messages are dropped. NULL: there is none */
    spc_filters_t filters;
    spc_mailbox_shared_t *mailbox;
    spc_posted_t *posted; /* in order */
    spc_inbox_queue_t queue;
    spc_inbox_row_t row[];
};

static inline bool has_parts(const spc_slot_shared_t *slot) {
    return (slot->flags & SPC_SLOT_PART) != 0;
}

static inline bool is_last(const spc_slot_shared_t *slot) {
    return (slot->flags & SPC_SLOT_LAST) != 0;
}

/* Not all of the message is in the slot: it is one part of several, or needs an answer; or the slot is no message. */
static inline bool is_special(const spc_slot_shared_t *slot) {
    return (slot->flags & (SPC_SLOT_PART | SPC_SLOT_ASKS | SPC_SLOT_LAST)) != 0;
}

static inline bool is_closed(const spc_inbox_t *inbox, uint16_t context) {
    return __builtin_expect(inbox->closed != NULL, 0) && (inbox->closed[context / 8] >> context % 8 & 1) != 0;
}

/* ---- messages that are counted, and filed elsewhere */

/* The slots' context of messages that are filed under this one. */
static uint16_t filter_of(const spc_inbox_t *inbox, uint16_t context) {
    const bool is_filtered = context < inbox->contexts && inbox->filed[context].is_filtered;
    return is_filtered ? inbox->filed[context].filtered_from : context;
}

bool spc_inbox_has_filters(const spc_inbox_t *inbox) {
    return inbox->filters.count != 0;
}

bool spc_inbox_has_filtered(const spc_inbox_t *inbox) {
    return inbox->filtered != 0;
}

/* Counts one complete message more (1) or fewer (-1) of this context in the queue. */
static inline void count_waiting(spc_inbox_t *inbox, uint16_t context, int change) {
    spc_inbox_filed_t *filed = &inbox->filed[context];
    filed->complete += (uint64_t)change;
    inbox->filtered += filed->is_filtered ? (uint64_t)change : 0;
}

/* The context under which a slot's message is matched and filed; not its own if the message is for a handler. */
static inline uint16_t context_of(const spc_inbox_t *inbox, const spc_slot_shared_t *slot) {
    const bool plain = __builtin_expect(inbox->filters.count == 0, 1);
    return plain ? slot->context : find_filter(&inbox->filters, slot->context, slot->tag);
}

/* ---- life */

int spc_inbox_create(const spc_inbox_options_t *options, spc_inbox_t **inbox) {
    const spc_config_t *config = options->segment->config;
    uint32_t senders = config->nodes + 1; /* the gateway is one */
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
        free(inbox->filters.places);
        free(inbox);
    }
}

/* ---- counting */

/* The sender whose ring, arena or row has room now. */
static void notify_sender(const spc_inbox_t *inbox, uint32_t sender) {
    spc_event_notify(&inbox->options.events[sender], inbox->features);
}

/* Ensures that messages of this context can be counted: before one is begun, so that no step can fail once it is
 * complete. SPC_ENOMEM. */
static int make_count(spc_inbox_t *inbox, uint16_t context) {
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
    count_waiting(inbox, context, 1);
    inbox->news |= SPC_INBOX_STORED;
}

/* Bytes of its sender's share that a message in the queue takes. Small and empty messages take memory, too: without
 * their entries the limit would not limit them. */
static uint64_t count_held(const spc_message_t *message) {
    return sizeof(spc_entry_t) + (message->storage == SPC_STORED_HEAP ? message->length_bytes : 0);
}

/* The part of held bytes that their sender lends: those beyond the share. */
static uint64_t lent_part(const spc_inbox_t *inbox, uint64_t held_bytes) {
    return held_bytes > inbox->share_bytes ? held_bytes - inbox->share_bytes : 0;
}

/* The sender's messages in the queue take this much from now on; publishes to it the lent part of that. */
static void hold(spc_inbox_t *inbox, uint32_t sender, uint64_t held_bytes) {
    spc_inbox_row_t *row = &inbox->row[sender];
    const uint64_t before = lent_part(inbox, row->held_bytes), lent = lent_part(inbox, held_bytes);
    row->held_bytes = held_bytes;
    if (__builtin_expect(lent != before, 0)) { /* mostly nothing is lent */
        spc_mailbox_lend(row->reader.row, lent);
        if (lent < before) {
            notify_sender(inbox, sender);
        }
    }
}

/* ---- out of slots */

/* The slot's message, in place; the slot can be consumed afterwards. */
static void open_slot(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot,
                      spc_message_t *message) {
    message->length_bytes = slot->length_bytes;
    message->arrival = ++inbox->arrivals;
    message->source = slot->source;
    message->tag = slot->tag;
    message->context = context_of(inbox, slot);
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

/* No receive will ask for it any more. */
static void note_left(const spc_inbox_t *inbox, const spc_message_t *message) {
    spc_note_add_left(inbox->options.notes, (uint32_t)message->source, inbox->options.rank, message->tag,
                      filter_of(inbox, message->context));
}

/* Counts the row's next slot as read. */
static inline void consume_slot(spc_inbox_t *inbox, uint32_t sender) {
    if (spc_mailbox_consume(&inbox->row[sender].reader)) {
        notify_sender(inbox, sender);
    }
}

/* Sends the receipt for a message of this context. SPC_ENOMEM. */
static int send_answer(spc_outbox_t *outbox, uint32_t sender, uint16_t context, uint64_t number) {
    const uint16_t internal = (uint16_t)(context - context % SPC_CONTEXT_KINDS + SPC_CONTEXT_INTERNAL);
    const spc_payload_t payload = {.data = &number, .data_bytes = sizeof(number), .format = SPC_FORMAT_RAW};
    return spc_outbox_send(outbox, &(int32_t){(int32_t)sender}, 1, internal, SPC_RECEIPT_TAG, &payload);
}

/* Notifies the sender that its message of this number and context is taken. SPC_ENOMEM: it must not be taken. */
__attribute__((noinline)) static int give_receipt(spc_inbox_t *inbox, uint32_t sender, uint16_t context,
                                                  uint64_t number) {
    if (spc_receipt_is_answer(number)) {
        return send_answer(inbox->options.outbox, sender, context, number);
    }
    spc_receipt_give(inbox->row[sender].reader.row, (uint32_t)number);
    notify_sender(inbox, sender);
    return SPC_OK;
}

/* ---- out of the queue */

/* Removes an entry from the queue, and from the accounts of its sender. */
static void take_entry(spc_inbox_t *inbox, spc_entry_t *entry, spc_message_t *message) {
    spc_inbox_queue_remove(&inbox->queue, entry, message);
    count_waiting(inbox, message->context, -1);
    hold(inbox, message->sender, inbox->row[message->sender].held_bytes - count_held(message));
}

/* ---- receives with a posted place for the data */

void spc_inbox_post(spc_inbox_t *inbox, spc_match_t *match, spc_sink_t *sink, spc_posted_t *posted) {
    spc_posted_t **end = &inbox->posted;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    sink->filled = false;
    match->posted = posted;
    *posted = (spc_posted_t){.sink = sink, .match = *match};
    *end = posted;
    if (match->source != SPC_ANY_SOURCE) {
        spc_mailbox_reader_t *reader = &inbox->row[match->source].reader;
        spc_mailbox_set_wanted(reader, spc_mailbox_want(reader->received, match->context, match->tag,
                                                        sink->meta_bytes + sink->data_bytes));
    }
}

void spc_inbox_withdraw(spc_inbox_t *inbox, spc_posted_t *posted) {
    spc_posted_t **link = &inbox->posted;
    while (*link != posted) {
        link = &(*link)->next;
    }
    *link = posted->next;
    if (posted->match.source != SPC_ANY_SOURCE) {
        spc_mailbox_set_wanted(&inbox->row[posted->match.source].reader, 0);
    }
    if (!posted->used || posted->sink->filled) {
        return;
    }
    for (spc_entry_t *entry = inbox->queue.arrivals.first; entry != NULL; entry = entry->next) {
        if (entry->posted == posted) {
            move_posted(entry);
        }
    }
}

/* ---- into the queue */

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

/* Puts a message at its place in the queue; a ring message moves to the heap. SPC_ENOMEM. */
static int enqueue(spc_inbox_t *inbox, const spc_message_t *message, uint64_t asks) {
    int status = make_count(inbox, message->context);
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
    hold(inbox, message->sender, inbox->row[message->sender].held_bytes + count_held(&entry->message));
    return SPC_OK;
}

/* Stores the first part of a message: its place in the queue, and memory for all of it. */
static int begin_assembly(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot) {
    int status = make_count(inbox, context_of(inbox, slot));
    spc_entry_t *entry = status == SPC_OK ? spc_inbox_queue_make(&inbox->queue) : NULL;
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
    entry->asks = 0;
    if ((slot->flags & SPC_SLOT_ASKS) != 0) {
        entry->asks = spc_asked_next(&inbox->row[sender].asked, slot->flags) + 1;
        spc_asked_count(&inbox->row[sender].asked, slot->flags);
    }
    spc_inbox_queue_insert(&inbox->queue, entry);
    inbox->row[sender].assembling = entry;
    hold(inbox, sender, inbox->row[sender].held_bytes + count_held(&entry->message));
    return SPC_OK;
}

/* A message in parts whose context was closed during its arrival. */
static void drop_if_closed(spc_inbox_t *inbox, spc_entry_t *entry) {
    if (is_closed(inbox, entry->message.context)) {
        spc_message_t message;
        take_entry(inbox, entry, &message); /* no receive has taken it: without a receipt */
        note_left(inbox, &message);
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
        find_posted(inbox->posted, row->assembling, spc_ring_payload(part), header->payload_bytes);
    } else {
        spc_mailbox_count_part(&row->reader);
    }
    spc_entry_t *entry = row->assembling;
    if ((slot->flags & SPC_SLOT_PLACE) == SPC_SLOT_ARENA) {
        assemble(entry, spc_block_payload(part), entry->message.length_bytes - entry->assembled_bytes);
        spc_inbox_release_block(inbox, part);
    } else {
        assemble(entry, spc_ring_payload(part), ((spc_ring_header_shared_t *)part)->payload_bytes);
        spc_ring_mark_read(part);
    }
    spc_status_set_moved(inbox->options.status, inbox->options.rank, false, entry->message.length_bytes,
                         entry->assembled_bytes);
    consume_slot(inbox, sender);
    notify_sender(inbox, sender);
    inbox->news |= SPC_INBOX_MOVED;
    if (is_complete(entry)) {
        row->assembling = NULL;
        count_complete(inbox, entry->message.context);
        drop_if_closed(inbox, entry);
    }
    return SPC_OK;
}

/* A message that is complete in its slot. */
static int store_whole(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot, uint64_t asks) {
    spc_message_t message;
    open_slot(inbox, sender, slot, &message);
    const bool closed = is_closed(inbox, message.context);
    int status = closed ? SPC_OK : enqueue(inbox, &message, asks);
    if (closed) {
        note_left(inbox, &message);
        spc_inbox_release(inbox, &message);
    }
    if (status == SPC_OK) {
        consume_slot(inbox, sender);
    } else {
        inbox->row[sender].opened--; /* it will be opened again */
    }
    return status;
}

static void open_contexts(spc_inbox_t *inbox, uint16_t first, uint16_t count) {
    for (uint16_t i = 0; i < count && inbox->closed != NULL; i++) {
        inbox->closed[(first + i) / 8] &= (unsigned char)~(1u << (first + i) % 8);
    }
}

/* The sender has destroyed this communicator: no further message of it comes in this row. If none comes in any, its
 * number is free, and the next communicator of that number begins with open contexts. */
static void hear_last(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot) {
    const uint32_t number = slot->context / SPC_CONTEXT_KINDS;
    if (inbox->options.numbers != NULL && spc_numbers_note_last(inbox->options.numbers, number)) {
        open_contexts(inbox, (uint16_t)(number * SPC_CONTEXT_KINDS), SPC_CONTEXT_KINDS);
    }
    spc_mailbox_count_part(&inbox->row[sender].reader);
    consume_slot(inbox, sender);
}

static int store_special(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot) {
    if (is_last(slot)) {
        hear_last(inbox, sender, slot);
        return SPC_OK;
    }
    if (has_parts(slot)) {
        return store_part(inbox, sender, slot);
    }
    spc_asked_t *asked = &inbox->row[sender].asked;
    const uint8_t flags = slot->flags; /* the sender may write the slot again once it is stored */
    int status = store_whole(inbox, sender, slot, spc_asked_next(asked, flags) + 1);
    if (status == SPC_OK) {
        spc_asked_count(asked, flags);
    }
    return status;
}

/* Moves the row's next message, or part of one, into the queue. SPC_ENOMEM. */
static int store_slot(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot) {
    return is_special(slot) ? store_special(inbox, sender, slot) : store_whole(inbox, sender, slot, 0);
}

/* ---- taking */

static inline bool slot_matches(const spc_inbox_t *inbox, const spc_slot_shared_t *slot,
                                const spc_match_t *match) {
    return context_of(inbox, slot) == match->context
           && (match->source == SPC_ANY_SOURCE || slot->source == match->source)
           && (match->tag == SPC_ANY_TAG || slot->tag == match->tag);
}

uint32_t spc_inbox_news(spc_inbox_t *inbox) {
    const uint32_t news = inbox->news;
    inbox->news = 0;
    return news;
}

void spc_inbox_note_stored(spc_inbox_t *inbox) {
    inbox->news |= SPC_INBOX_STORED;
}

static int take_queued(spc_inbox_t *inbox, const spc_match_t *match, spc_message_t *message) {
    spc_entry_t *entry = spc_inbox_queue_find(&inbox->queue, match->context, match->source, match->tag);
    if (entry == NULL) {
        return SPC_EAGAIN;
    }
    if (__builtin_expect(entry->asks != 0, 0)) {
        int status = give_receipt(inbox, entry->message.sender, entry->message.context, entry->asks - 1);
        if (status != SPC_OK) {
            return status;
        }
    }
    if (__builtin_expect(entry->posted != NULL, 0)) {
        settle_posted(entry, match->posted);
    }
    take_entry(inbox, entry, message);
    return SPC_OK;
}

/* The row's next slot, which matches and wants a receipt. SPC_ENOMEM. */
__attribute__((noinline)) static int take_asking(spc_inbox_t *inbox, uint32_t sender,
                                                 const spc_slot_shared_t *slot, spc_message_t *message) {
    spc_asked_t *asked = &inbox->row[sender].asked;
    int status = give_receipt(inbox, sender, slot->context, spc_asked_next(asked, slot->flags));
    if (status == SPC_OK) {
        spc_asked_count(asked, slot->flags);
        open_slot(inbox, sender, slot, message);
        consume_slot(inbox, sender);
    }
    return status;
}

/* The match of a posted receive that a slot's message is for; NULL: it is for none. */
static const spc_match_t *choose(const spc_inbox_t *inbox, const spc_slot_shared_t *slot,
                                 const spc_inbox_choice_t *choice) {
    return choice->choose(choice->argument, context_of(inbox, slot), slot->source, slot->tag);
}

/* Serves one row until it gives a match: directly from the slot, or by completing a message in parts. Others go into
 * the queue. At most one row-length. SPC_EAGAIN: nothing (more) there; `emptied` reports whether that is certain.
 * Inline, so that a receive by `match` pays nothing for those by `choice`, one of which is NULL. */
__attribute__((always_inline)) static inline int serve_row(spc_inbox_t *inbox, uint32_t sender,
                                                           const spc_match_t *match,
                                                           const spc_inbox_choice_t *choice,
                                                           spc_message_t *message, bool *emptied) {
    spc_inbox_row_t *row = &inbox->row[sender];
    *emptied = false;
    for (uint32_t i = 0; i < row->reader.slots; i++) {
        const spc_slot_shared_t *slot = spc_mailbox_peek(&row->reader);
        if (slot == NULL) {
            *emptied = true;
            return SPC_EAGAIN;
        }
        if (choice != NULL) {
            match = choose(inbox, slot, choice);
        }
        bool wanted = choice != NULL ? match != NULL : slot_matches(inbox, slot, match);
        if (wanted && !is_special(slot)) {
            open_slot(inbox, sender, slot, message);
            consume_slot(inbox, sender);
            return SPC_OK;
        }
        wanted = wanted && !is_last(slot);
        if (wanted && !has_parts(slot)) {
            return take_asking(inbox, sender, slot, message);
        }
        int status = store_slot(inbox, sender, slot);
        if (status != SPC_OK) {
            return status;
        }
        if (wanted && row->assembling == NULL) {
            return take_queued(inbox, match, message);
        }
    }
    return SPC_EAGAIN;
}

/* The first row from `from` on whose bell has rung; `senders` if none has. With many senders, several share a bit. */
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

/* Visits rung rows, from the one after the last served, until a visit returns other than SPC_EAGAIN. Inline: its
 * callers know what they visit rows for. */
__attribute__((always_inline)) static inline int visit_rows(spc_inbox_t *inbox, row_visitor_t visit,
                                                            void *argument) {
    /* Before any row is scanned: a bit set from now on stands for a message that this scan may miss. */
    uint64_t rung = inbox->rung | spc_mailbox_collect(inbox->mailbox);
    uint32_t epoch = spc_status_epoch(inbox->options.status);
    if (epoch != inbox->epoch) {
        rung = UINT64_MAX; /* a node that died may have announced a message without living to ring */
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
    return serve_row(inbox, sender, take->match, NULL, take->message, emptied);
}

/* Not inlined: its registers are not worth saving where a receive names its source. */
__attribute__((noinline)) static int take_from_any(spc_inbox_t *inbox, const spc_match_t *match,
                                                   spc_message_t *message) {
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
    bool emptied;
    int status = inbox->queue.length != 0 ? take_queued(inbox, match, message) : SPC_EAGAIN;
    if (status == SPC_EAGAIN) {
        /* With a known source its slot is polled: the doorbell would cost another cache line. */
        status = match->source != SPC_ANY_SOURCE
                     ? serve_row(inbox, (uint32_t)match->source, match, NULL, message, &emptied)
                     : take_from_any(inbox, match, message);
    }
    if (__builtin_expect(inbox->options.trace != NULL, 0) && status == SPC_OK) {
        record(inbox, message);
    }
    return status;
}

typedef struct chosen {
    const spc_inbox_choice_t *choice;
    spc_message_t *message;
} chosen_t;

static int visit_to_choose(spc_inbox_t *inbox, uint32_t sender, void *argument, bool *emptied) {
    const chosen_t *chosen = argument;
    return serve_row(inbox, sender, NULL, chosen->choice, chosen->message, emptied);
}

int spc_inbox_take_chosen(spc_inbox_t *inbox, int32_t source, const spc_inbox_choice_t *choice,
                          spc_message_t *message) {
    bool emptied;
    chosen_t chosen = {choice, message};
    const int status = source != SPC_ANY_SOURCE ? visit_to_choose(inbox, (uint32_t)source, &chosen, &emptied)
                                                : visit_rows(inbox, visit_to_choose, &chosen);
    if (__builtin_expect(inbox->options.trace != NULL, 0) && status == SPC_OK) {
        record(inbox, message);
    }
    return status;
}

bool spc_inbox_is_empty(const spc_inbox_t *inbox) {
    return inbox->queue.length == 0;
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

/* ---- draining */

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
        if (store_slot(inbox, sender, slot) != SPC_OK) {
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

uint32_t spc_inbox_near(const spc_inbox_t *inbox, const spc_match_t *match, uint32_t kinds, int32_t *source,
                        int32_t *tag) {
    return count_near(&inbox->queue, match, kinds, source, tag);
}

uint64_t spc_inbox_count(const spc_inbox_t *inbox, uint16_t context) {
    return context < inbox->contexts ? inbox->filed[context].complete : 0;
}

/* ---- ending and giving back */

void spc_inbox_release_block(const spc_inbox_t *inbox, spc_block_shared_t *block) {
    uint32_t owner = block->owner; /* without its pin, the block may be reused at once */
    spc_block_unpin(block, inbox->options.rank);
    notify_sender(inbox, owner);
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

/* For a message in parts, only the first part counts; `missing` bytes of it are still to come. */
static void discard_row(spc_inbox_t *inbox, uint32_t sender, uint64_t missing) {
    const spc_slot_shared_t *slot;
    spc_message_t message;
    uint64_t long_bytes = inbox->row[sender].reader.long_bytes; /* received so far; later parts not */
    while ((slot = spc_mailbox_peek(&inbox->row[sender].reader)) != NULL) {
        if (is_last(slot)) {
            hear_last(inbox, sender, slot);
            continue;
        }
        open_slot(inbox, sender, slot, &message);
        if (missing == 0) {
            note_left(inbox, &message);
            missing = has_parts(slot) ? message.length_bytes : 0;
        } else {
            spc_mailbox_count_part(&inbox->row[sender].reader);
        }
        if (has_parts(slot)) {
            missing -= message.storage == SPC_STORED_ARENA
                           ? missing
                           : ((const spc_ring_header_shared_t *)message.handle)->payload_bytes;
        }
        spc_inbox_release(inbox, &message);
        consume_slot(inbox, sender);
    }
    spc_mailbox_count_long(&inbox->row[sender].reader,
                           long_bytes - inbox->row[sender].reader.long_bytes); /* modulo 2^64 */
    spc_mailbox_publish(&inbox->row[sender].reader);
}

void spc_inbox_discard(spc_inbox_t *inbox) {
    spc_message_t message;
    (void)spc_mailbox_collect(inbox->mailbox); /* bits that are set later stand for later messages */
    for (uint32_t sender = 0; sender < inbox->senders; sender++) {
        const spc_entry_t *begun = inbox->row[sender].assembling;
        discard_row(inbox, sender, begun != NULL ? begun->message.length_bytes - begun->assembled_bytes : 0);
        inbox->row[sender].assembling = NULL;
    }
    while (inbox->queue.arrivals.first != NULL) {
        spc_inbox_queue_remove(&inbox->queue, inbox->queue.arrivals.first, &message);
        note_left(inbox, &message);
        spc_inbox_release(inbox, &message);
    }
    for (uint32_t sender = 0; sender < inbox->senders; sender++) {
        hold(inbox, sender, 0);
    }
}

/* Without memory for the mark, later messages stay in the queue: unwanted, but harmless up to their sender's limit. */
static void mark_closed(spc_inbox_t *inbox, uint16_t context) {
    if (inbox->closed == NULL) {
        inbox->closed = calloc(UINT16_MAX / 8 + 1, 1);
    }
    if (inbox->closed != NULL) {
        inbox->closed[context / 8] |= (unsigned char)(1u << context % 8);
    }
}

/* A message that is still being assembled stays; it is dropped when it is complete. */
static void discard_context(spc_inbox_t *inbox, uint16_t context) {
    spc_entry_t *entry;
    spc_message_t message;
    while ((entry = spc_inbox_queue_find(&inbox->queue, context, SPC_ANY_SOURCE, SPC_ANY_TAG)) != NULL) {
        take_entry(inbox, entry, &message); /* no receive has taken it: without a receipt */
        note_left(inbox, &message);
        spc_inbox_release(inbox, &message);
    }
}

void spc_inbox_close_contexts(spc_inbox_t *inbox, uint16_t first, uint16_t count) {
    for (uint16_t i = 0; i < count; i++) {
        mark_closed(inbox, first + i);
        discard_context(inbox, first + i);
    }
    forget_filters(&inbox->filters, first, count);
}

int spc_inbox_put_back(spc_inbox_t *inbox, spc_message_t *message) {
    if (is_closed(inbox, message->context)) {
        note_left(inbox, message);
        spc_inbox_release(inbox, message);
        return SPC_OK;
    }
    int status = enqueue(inbox, message, 0);
    if (status == SPC_OK) {
        message->handle = NULL;
        message->bytes = NULL;
    }
    return status;
}

/* ---- handlers: filters begin and end */

/* Files messages that were queued before there was a handler. An entry keeps its place and its receipt; only lists by
 * tag depend on the context. */
static void filter_queued(spc_inbox_t *inbox, uint16_t context, int32_t tag, uint16_t to) {
    spc_entry_t *next;
    for (spc_entry_t *entry = inbox->queue.arrivals.first; entry != NULL; entry = next) {
        next = entry->next;
        if (entry->message.context == context && entry->message.tag == tag) {
            if (is_complete(entry)) {
                count_waiting(inbox, context, -1);
                count_waiting(inbox, to, 1);
            }
            move_entry(&inbox->queue, entry, to);
        }
    }
}

int spc_inbox_filter(spc_inbox_t *inbox, uint16_t context, int32_t tag, uint16_t to) {
    /* An incomplete message counts only when it is complete, and that must not fail. */
    if (reserve_filter(&inbox->filters) != SPC_OK || make_count(inbox, to) != SPC_OK) {
        return SPC_ENOMEM;
    }
    if (add_filter(&inbox->filters, context, tag, to)) {
        inbox->filed[to].filtered_from = context;
        inbox->filed[to].is_filtered = true;
        filter_queued(inbox, context, tag, to);
    }
    return SPC_OK;
}
