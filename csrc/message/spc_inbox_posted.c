/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "message/spc_inbox_private.h"

/* ---- posting ---- */

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

/* What has arrived of the data so far. There has been memory for it from the first part on. */
static void move_to_heap(spc_entry_t *entry) {
    spc_message_t *message = &entry->message;
    memcpy(spc_message_data(message), entry->posted->sink->data,
           entry->assembled_bytes - message->meta_bytes);
    entry->posted = NULL;
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
            move_to_heap(entry);
        }
    }
}

/* ---- filling ---- */

/* With the meta whole in the first part. */
static bool is_as_expected(const spc_message_t *message, const unsigned char *payload, uint64_t bytes,
                           const spc_sink_t *sink) {
    return message->format == sink->format && message->meta_bytes == sink->meta_bytes
           && spc_message_data_bytes(message) == sink->data_bytes && bytes >= sink->meta_bytes
           && memcmp(payload, sink->meta, sink->meta_bytes) == 0;
}

void spc_inbox_find_posted(spc_inbox_t *inbox, spc_entry_t *entry, const unsigned char *payload,
                           uint64_t bytes) {
    for (spc_posted_t *posted = inbox->posted; posted != NULL; posted = posted->next) {
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
    memcpy(entry->message.bytes, payload, meta); /* in case the data have to move */
    if (entry->posted != NULL) {
        to = (unsigned char *)entry->posted->sink->data + (done + meta - entry->message.meta_bytes);
    }
    memcpy(to, payload + meta, bytes - meta);
    entry->assembled_bytes = done + bytes;
}

/* ---- taking ---- */

void spc_inbox_settle_posted(spc_entry_t *entry, spc_posted_t *posted) {
    if (entry->posted == posted) {
        posted->sink->filled = true;
        entry->posted = NULL;
    } else {
        move_to_heap(entry); /* whoever posted it still waits: it has not been withdrawn */
    }
}
