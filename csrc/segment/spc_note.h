/* SPDX-License-Identifier: MIT */
/*
 * spc_note: notes that a node leaves for others, and for the launcher after its end.
 *
 *   END    how and where its program ended: for the errors of nodes that still need it
 *   CALL   its line in a collective operation that did not match: for the errors of all participants
 *   FUZZY  fuzzy barriers that it has left open, CYCLE a cycle of coordinated messages: counted when it closes
 *   REQUEST  requests of the MPI library that its program has begun and never completed: counted before it closes
 *   sent   where messages were sent, last of each kind: by a node that was asked to note it; by the MPI library
 *          while the program runs, where its first messages were sent
 *   left   messages that came to it and were never received, or that it sent to a node that had ended; of a node
 *          in another box: messages from it or to it that the gateway here dropped
 *   handled  the tags for which it installed handlers: its messages of these tags were left because no handler ran
 *
 * Notes are written where an operation ends or has failed, never on the path of a successful call. Only the node
 * writes, under its lock; in another box the gateway. Any process may read a note at any time, but `left` only once
 * its writer's process is gone. All zeros is the valid start: no note. Texts end with a zero byte and may be empty: not
 * known.
 */
#ifndef SPC_NOTE_H
#define SPC_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_atomic.h"

enum {
    SPC_NOTE_WORDS_BYTES = 136,
    SPC_NOTE_FUNCTION_BYTES = 64,
    SPC_NOTE_FILE_BYTES = 256,
    SPC_NOTE_LEFT_MAX = 32,
    SPC_NOTE_HANDLED_MAX = 16,
    SPC_NOTE_SENT_FILE_BYTES = 112,
};

typedef enum spc_note_kind {
    SPC_NOTE_END,
    SPC_NOTE_CALL,
    SPC_NOTE_FUZZY,
    SPC_NOTE_CYCLE,
    SPC_NOTE_REQUEST,
    SPC_NOTE_KINDS,
} spc_note_kind_t;

typedef struct spc_note {
    uint64_t key; /* CALL: the operation it is about */
    uint32_t count; /* FUZZY, CYCLE, REQUEST: how many are open */
    uint32_t line; /* 0: not known */
    char words[SPC_NOTE_WORDS_BYTES]; /* END: how, CALL: the call */
    char function[SPC_NOTE_FUNCTION_BYTES];
    char file[SPC_NOTE_FILE_BYTES];
} spc_note_t;

#define SPC_NOTE_WORDS (sizeof(spc_note_t) / 4)

/* Messages that no node received. Ranks of the run. */
typedef struct spc_note_left {
    uint32_t source;
    uint32_t destination;
    int32_t tag;
    uint32_t context;
    uint64_t count;
} spc_note_left_t;

/* The place of a send to `destination` with this tag. */
typedef struct spc_note_sent {
    uint32_t destination; /* rank of the run */
    int32_t tag;
    uint32_t line;
    uint32_t format; /* of its data, where the MPI library has noted it */
    char file[SPC_NOTE_SENT_FILE_BYTES];
} spc_note_sent_t;

/* A tag that has a handler. */
typedef struct spc_note_handled {
    uint32_t context;
    int32_t tag;
} spc_note_handled_t;

typedef struct spc_note_slot_shared {
    _Atomic uint32_t version; /* odd while it is written; 0: there is no note */
    _Atomic uint32_t word[SPC_NOTE_WORDS];
    uint32_t padding;
} spc_note_slot_shared_t;

typedef struct spc_note_shared {
    spc_note_slot_shared_t slot[SPC_NOTE_KINDS];
    _Atomic uint32_t left_count; /* rows of `left` */
    /* 1: closed; arrived messages were counted, and the rest lies unread in its mailbox */
    _Atomic uint32_t settled;
    uint64_t left_more; /* messages that found no row */
    spc_note_left_t left[SPC_NOTE_LEFT_MAX];
    _Atomic uint32_t sent_count;
    _Atomic uint32_t handled_count;
    spc_note_sent_t sent[SPC_NOTE_LEFT_MAX];
    spc_note_handled_t handled[SPC_NOTE_HANDLED_MAX];
} spc_note_shared_t;

_Static_assert(sizeof(spc_note_t) == 472, "a note is copied word by word");
_Static_assert(sizeof(spc_note_shared_t) == 7416, "spc_note_shared_t lies in shared memory");

/* Called by the node. */
void spc_note_write(spc_note_shared_t *notes, spc_note_kind_t kind, const spc_note_t *note);

/* False: there is none, or it is being written. */
bool spc_note_read(const spc_note_shared_t *notes, spc_note_kind_t kind, spc_note_t *note);

/* Differs when a note has been written; odd while it is. For the supervisor. */
static inline uint32_t spc_note_version(const spc_note_shared_t *notes, spc_note_kind_t kind) {
    return atomic_load_explicit(&notes->slot[kind].version,
                                memory_order_acquire); /* pairs with spc_note_write */
}

/* Called by a node that has closed: `left` is complete except for later messages. */
static inline void spc_note_settle(spc_note_shared_t *notes) {
    /* Release: pairs with spc_note_is_settled. */
    atomic_store_explicit(&notes->settled, 1, memory_order_release);
}

static inline bool spc_note_is_settled(const spc_note_shared_t *notes) {
    return atomic_load_explicit(&notes->settled, memory_order_acquire) != 0; /* pairs with spc_note_settle */
}

/* Whether any message was left, or any operation left open. */
static inline bool spc_note_has_any(const spc_note_shared_t *notes) {
    /* Relaxed: called after the process has ended. */
    return atomic_load_explicit(&notes->left_count, memory_order_relaxed) != 0
           || atomic_load_explicit(&notes->slot[SPC_NOTE_FUZZY].version, memory_order_relaxed) != 0
           || atomic_load_explicit(&notes->slot[SPC_NOTE_CYCLE].version, memory_order_relaxed) != 0
           || atomic_load_explicit(&notes->slot[SPC_NOTE_REQUEST].version, memory_order_relaxed) != 0;
}

/* Counts one message more, by the node under its lock; `notes` may be NULL: then nothing is counted. */
void spc_note_add_left(spc_note_shared_t *notes, uint32_t source, uint32_t destination, int32_t tag,
                       uint32_t context);

/* Called by the node, under its lock; a message without a row is left out. */
void spc_note_add_sent(spc_note_shared_t *notes, const spc_note_sent_t *sent);

/* The last row of a message to `destination` with this tag and format, at any time, from any process. */
bool spc_note_find_sent(const spc_note_shared_t *notes, uint32_t destination, int32_t tag, uint32_t format,
                        spc_note_sent_t *sent);

/* Called by the node, under its lock. Rows that are added later take their places: a node that does that adds none. */
void spc_note_forget_sent(spc_note_shared_t *notes);

/* Called by the node, under its lock, once for each handler; one without a row is left out. */
void spc_note_add_handled(spc_note_shared_t *notes, uint32_t context, int32_t tag);

/* Whether this node installed a handler for such messages. Called after its process has ended. */
bool spc_note_is_handled(const spc_note_shared_t *notes, uint32_t context, int32_t tag);

#endif
