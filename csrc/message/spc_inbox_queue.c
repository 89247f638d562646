/* SPDX-License-Identifier: MIT */
#include "message/spc_inbox_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

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
    return spc_message_matches(&entry->message, context, source, tag) && spc_entry_is_complete(entry);
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

uint32_t spc_inbox_queue_near(const spc_inbox_queue_t *queue, const spc_match_t *match, uint32_t kinds,
                              int32_t *source, int32_t *tag) {
    uint32_t count = 0;
    for (const spc_entry_t *entry = queue->arrivals.first; entry != NULL; entry = entry->next) {
        if (spc_entry_is_complete(entry) && is_near(&entry->message, match, kinds)) {
            *source = count == 0 ? entry->message.source : *source;
            *tag = count == 0 ? entry->message.tag : *tag;
            count++;
        }
    }
    return count;
}

void spc_inbox_queue_move(spc_inbox_queue_t *queue, spc_entry_t *entry, uint16_t context) {
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

void spc_inbox_move_posted(spc_entry_t *entry) {
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

void spc_inbox_find_posted(spc_posted_t *first, spc_entry_t *entry, const unsigned char *payload,
                           uint64_t bytes) {
    for (spc_posted_t *posted = first; posted != NULL; posted = posted->next) {
        const spc_match_t *match = &posted->match;
        if (!posted->used && spc_message_matches(&entry->message, match->context, match->source, match->tag)
            && is_as_expected(&entry->message, payload, bytes, posted->sink)) {
            posted->used = true;
            entry->posted = posted;
            return;
        }
    }
}

void spc_inbox_assemble(spc_entry_t *entry, const unsigned char *payload, uint64_t bytes) {
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

void spc_inbox_settle_posted(spc_entry_t *entry, spc_posted_t *posted) {
    if (entry->posted == posted) {
        posted->sink->filled = true;
        entry->posted = NULL;
    } else {
        spc_inbox_move_posted(entry); /* the receive that posted it still waits: it has not been withdrawn */
    }
}

/* ---- filters, in a table with open addressing and linear probing */

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

int spc_filters_reserve(spc_filters_t *filters) {
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

bool spc_filters_add(spc_filters_t *filters, uint16_t context, int32_t tag, uint16_t to) {
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

uint16_t spc_filters_find(const spc_filters_t *filters, uint16_t context, int32_t tag) {
    const spc_filter_t *found = find(filters, context, tag);
    return is_free(found) ? context : found->to;
}

void spc_filters_forget(spc_filters_t *filters, uint16_t first, uint16_t count) {
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
