/* SPDX-License-Identifier: MIT */
/*
 * spc_inbox: the receiving half of a node: messages that have arrived and that no receive has matched, and matching.
 *
 * A receive looks here first, in order of arrival. If nothing matches and its sender's next slot does, the message is
 * handed over from there directly: nothing is allocated, and ring and arena payloads are read in place. Otherwise the
 * inbox drains rows: inline payloads are copied into the queue and ring payloads to the heap, which frees the sender's
 * ring; arena blocks stay.
 *
 * Order: per sender as sent (the row is in order, the inbox keeps it, the inbox comes first). ANY is fair: the inbox
 * serves rows from the one after the last served, one row-length each at most.
 *
 * A node that waits reads all rows to their ends: no message of a row ever hides those behind it. Memory that a
 * sender's messages take here beyond its share (spc_config_share_bytes) is published to that sender, and counts
 * against its limit.
 *
 * Used under the communicator's lock, by one thread at a time. It never waits.
 */
#ifndef SPC_INBOX_H
#define SPC_INBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "message/spc_format.h"
#include "message/spc_mailbox.h"
#include "message/spc_numbers.h"
#include "message/spc_outbox.h"
#include "segment/spc_arena.h"
#include "segment/spc_note.h"
#include "segment/spc_segment.h"
#include "segment/spc_status.h"
#include "segment/spc_trace.h"

typedef struct spc_inbox spc_inbox_t;

typedef struct spc_inbox_options {
    const spc_segment_t *segment;
    spc_status_shared_t *status;
    spc_event_shared_t *events;
    uint32_t rank;
    spc_note_shared_t *notes; /* counts messages that no receive asked for; may be NULL */
    spc_trace_t *trace; /* records taken messages; may be NULL */
    spc_numbers_t *numbers; /* hears of last messages; may be NULL */
    spc_outbox_t *outbox; /* sends receipts that are messages; NULL: nobody asks for one */
} spc_inbox_options_t;

/* A waiting receive has posted the destination of its data (ACLMPL 4, request block). A message in parts that begins to
 * arrive meanwhile, and is as its sink expects, is assembled there instead of in memory of the inbox. It remains an
 * ordinary message: if another receive takes it, or this one gives up, its parts move from there to the heap. */
typedef struct spc_posted {
    spc_sink_t *sink;
    spc_match_t match;
    bool used; /* by a message; a sink serves only one */
    struct spc_posted *next;
} spc_posted_t;

int spc_inbox_create(const spc_inbox_options_t *options, spc_inbox_t **inbox);
void spc_inbox_destroy(spc_inbox_t *inbox);

/* Takes the first message that matches, from the inbox or straight from its row. SPC_EAGAIN if there is none yet;
 * SPC_ENOMEM. The caller ends it with spc_inbox_release, or gives it back with spc_inbox_put_back. */
int spc_inbox_take(spc_inbox_t *inbox, const spc_match_t *match, spc_message_t *message);

/* Posts `sink` for messages that match `match`, which then refers to it, until it is withdrawn; a named source can see
 * that (spc_mailbox_want). Withdrawing returns its memory to the caller. `sink->filled`: a take with this match has got
 * the message whose data are there. */
void spc_inbox_post(spc_inbox_t *inbox, spc_match_t *match, spc_sink_t *sink, spc_posted_t *posted);
void spc_inbox_withdraw(spc_inbox_t *inbox, spc_posted_t *posted);

/* As spc_inbox_take, from the queues only: drains nothing new. */
int spc_inbox_take_queued(spc_inbox_t *inbox, const spc_match_t *match, spc_message_t *message);

/* The match of that receive, of several, that a message is for by its context, source and tag; or NULL. */
typedef const spc_match_t *spc_inbox_choose_t(void *argument, uint16_t context, int32_t source, int32_t tag);
typedef struct spc_inbox_choice {
    spc_inbox_choose_t *choose;
    void *argument;
} spc_inbox_choice_t;

/* As spc_inbox_take, for the receive that was chosen last. It does not look into the queues first: no message there is
 * for one of these receives. From the row of one source, or from all rows whose bells have rung. */
int spc_inbox_take_chosen(spc_inbox_t *inbox, int32_t source, const spc_inbox_choice_t *choice,
                          spc_message_t *message);

/* Whether the queues hold no message, and no part of one. */
bool spc_inbox_is_empty(const spc_inbox_t *inbox);

/* The source, tag and size of the message that would be taken; it stays. */
int spc_inbox_peek(spc_inbox_t *inbox, const spc_match_t *match, int32_t *source, int32_t *tag,
                   uint64_t *length_bytes);

/* Ends a taken message: marks it read, unpins or frees it, and notifies its sender. Needs no lock: any thread, any
 * time. Only reads fields that never change after create. Idempotent. */
void spc_inbox_release(const spc_inbox_t *inbox, spc_message_t *message);

/* Unpins a block that a message of storage ARENA held. */
void spc_inbox_release_block(const spc_inbox_t *inbox, spc_block_shared_t *block);

/* Gives a taken message back to its old place, or releases it if its context is closed; `message` is void afterwards.
 * SPC_ENOMEM: it is still the caller's. */
int spc_inbox_put_back(spc_inbox_t *inbox, spc_message_t *message);

/* Moves arrivals into the queues, at most one row-length of each sender. Returns how many messages became complete. */
uint32_t spc_inbox_drain(spc_inbox_t *inbox);

/* Drains one sender's row even if no bell rang: after its death or finish. */
uint32_t spc_inbox_drain_row(spc_inbox_t *inbox, uint32_t source);

/* Events since the last call; a mask. */
enum {
    SPC_INBOX_STORED = 1, /* a message became complete in the queues: waiting threads may find it there */
    SPC_INBOX_MOVED = 2,  /* a part of a message was stored: the next one may come at once */
};
uint32_t spc_inbox_news(spc_inbox_t *inbox);

/* Adds SPC_INBOX_STORED: a message went to a request that a thread may wait for. */
void spc_inbox_note_stored(spc_inbox_t *inbox);

/* Releases and counts all messages that have arrived, for a node that will take no more. Rows are published as read:
 * their slots, and the doorbell, show later messages. */
void spc_inbox_discard(spc_inbox_t *inbox);

/* Releases messages with one of `count` contexts from `first` on, both arrived and later ones: no receive will match
 * them. Until their communicator's number is free: its contexts are then open again. */
void spc_inbox_close_contexts(spc_inbox_t *inbox, uint16_t first, uint16_t count);

/* From now on messages with this context and tag, also those in the queues, have the context `to` for every receive:
 * they are for a handler. SPC_ENOMEM. */
int spc_inbox_filter(spc_inbox_t *inbox, uint16_t context, int32_t tag, uint16_t to);

/* Whether any such messages are complete in the queues. */
bool spc_inbox_has_filtered(const spc_inbox_t *inbox);

/* Number of complete messages of a context in the queues. */
uint64_t spc_inbox_count(const spc_inbox_t *inbox, uint16_t context);

/* Whether messages are filed for handlers, or may be later. */
bool spc_inbox_has_filters(const spc_inbox_t *inbox);

/* The number of slots of its row that have been read, modulo 2³². */
uint32_t spc_inbox_received(const spc_inbox_t *inbox, uint32_t source);

/* Counts complete messages in the queues that nearly match, with source and tag of the first: from that source with
 * another tag, or with that tag from another source. `kinds`, unless 0: instead those that match in both, but have
 * another context of the same kind; contexts of so many kinds take turns. */
uint32_t spc_inbox_near(const spc_inbox_t *inbox, const spc_match_t *match, uint32_t kinds, int32_t *source,
                        int32_t *tag);

/* ---- the queue, private to the inbox and its test: messages in order of arrival and by tag
 *
 * It owns its entries; their memory is reused. An entry may be incomplete (its parts are still coming): it has its
 * place, but is not found. */

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

/* Removes it and hands its message over; the entry is gone. */
void spc_inbox_queue_remove(spc_inbox_queue_t *queue, spc_entry_t *entry, spc_message_t *message);

#endif
