/* SPDX-License-Identifier: MIT */
/*
 * spc_inbox_queue: messages that have arrived without being requested, in order of arrival and by tag.
 *
 * Private to the inbox, and used under the same lock. It owns its entries; their memory is reused. An entry may be
 * incomplete (its parts are still coming): it has its place, but is not found.
 *
 * Filters are the table of messages for handlers. The receiver registers a handler, so the slot does not show it:
 * messages with its context and tag are filed under another context, which no receive searches. Order is as ever: by
 * arrival, and so by sender.
 */
#ifndef SPC_INBOX_QUEUE_H
#define SPC_INBOX_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "message/spc_inbox.h"

#define SPC_TAG_BUCKETS 64

typedef struct spc_entry {
    struct spc_entry *next, *previous;         /* by arrival */
    struct spc_entry *tag_next, *tag_previous; /* by arrival, of one bucket of tags */
    uint64_t assembled_bytes;                  /* bytes of it that are here */
    uint64_t asks; /* its sender wants a receipt: that message's number + 1; else 0 */
    spc_posted_t *posted; /* NULL, or the place of its data, instead of the message's memory */
    spc_message_t message;
} spc_entry_t;

typedef struct spc_entry_list {
    spc_entry_t *first, *last;
} spc_entry_list_t;

typedef struct spc_inbox_queue {
    spc_entry_list_t arrivals;
    spc_entry_list_t tags[SPC_TAG_BUCKETS];
    spc_entry_t *spare;
    uint64_t length; /* includes incomplete ones */
} spc_inbox_queue_t;

void spc_inbox_queue_init(spc_inbox_queue_t *queue);

/* Frees entries, and the heap memory of their messages. */
void spc_inbox_queue_fini(spc_inbox_queue_t *queue);

/* An entry that is in no list; NULL if there is no memory. */
spc_entry_t *spc_inbox_queue_make(spc_inbox_queue_t *queue);

/* Inserts it at its place: behind all entries that arrived before it. */
void spc_inbox_queue_insert(spc_inbox_queue_t *queue, spc_entry_t *entry);

/* The first complete one that matches, or NULL. */
spc_entry_t *spc_inbox_queue_find(const spc_inbox_queue_t *queue, uint16_t context, int32_t source,
                                  int32_t tag);

/* As spc_inbox_near. */
uint32_t spc_inbox_queue_near(const spc_inbox_queue_t *queue, const spc_match_t *match, uint32_t kinds,
                              int32_t *source, int32_t *tag);

/* Gives it another context; it keeps its place. */
void spc_inbox_queue_move(spc_inbox_queue_t *queue, spc_entry_t *entry, uint16_t context);

/* Removes it and hands its message over; the entry is gone. */
void spc_inbox_queue_remove(spc_inbox_queue_t *queue, spc_entry_t *entry, spc_message_t *message);

/* Wildcards: SPC_ANY_SOURCE, SPC_ANY_TAG. */
static inline bool spc_message_matches(const spc_message_t *message, uint16_t context, int32_t source,
                                       int32_t tag) {
    return message->context == context && (source == SPC_ANY_SOURCE || message->source == source)
           && (tag == SPC_ANY_TAG || message->tag == tag);
}

static inline bool spc_entry_is_complete(const spc_entry_t *entry) {
    return entry->assembled_bytes == entry->message.length_bytes;
}

/* ---- entries whose data go to a place that a receive posted */

/* The first part of a message, `bytes` of it at `payload`, is about to be stored: whether one of these receives,
 * `first` before the others, wants its data. */
void spc_inbox_find_posted(spc_posted_t *first, spc_entry_t *entry, const unsigned char *payload,
                           uint64_t bytes);

/* Stores the next bytes of a message that arrives in parts. */
void spc_inbox_assemble(spc_entry_t *entry, const unsigned char *payload, uint64_t bytes);

/* Takes a message whose data are in a posted place: by that receive, which has `posted`, or by another. */
void spc_inbox_settle_posted(spc_entry_t *entry, spc_posted_t *posted);

/* Moves the data that have arrived so far to the heap. There has been memory for it from the first part on. */
void spc_inbox_move_posted(spc_entry_t *entry);

/* ---- filters */

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

/* Makes room for one more. SPC_ENOMEM. */
int spc_filters_reserve(spc_filters_t *filters);

/* There is room. False: messages of this context and tag are filtered already. */
bool spc_filters_add(spc_filters_t *filters, uint16_t context, int32_t tag, uint16_t to);

/* The context under which a message of this context and tag is filed: a different one if there is a filter. Takes the
 * same time for any number of filters, and needs at least one. */
uint16_t spc_filters_find(const spc_filters_t *filters, uint16_t context, int32_t tag);

/* Ends the filters of `count` contexts from `first` on. */
void spc_filters_forget(spc_filters_t *filters, uint16_t first, uint16_t count);

#endif
