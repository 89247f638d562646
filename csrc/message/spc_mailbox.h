/* SPDX-License-Identifier: MIT */
/*
 * spc_mailbox: announces messages to their receivers (SpeedesComm 3.2, ScaMPI 1.5.1).
 *
 * A receiver's mailbox has a doorbell and one row of slots per sender. A slot is one cache line: the envelope, and
 * either the payload itself or its location. Sender and receiver walk along the row in step: message number i goes into
 * slot i mod slots with sequence i + 1, and the receiver polls that slot's sequence, never a shared index. The receiver
 * publishes its progress in `consumed` now and then (a quarter of the row), so the sender has a cached view of free
 * slots.
 *
 * Single writers: the sender writes a slot (while free); the receiver writes `consumed`, `wanted`, `receipt` and
 * `lent_bytes`. The doorbell has a bit per sender (rank mod 64), set by senders and cleared by the receiver before it
 * scans those rows. The bit is always set after a slot is written, even if it seems set:
 * tests/models/mailbox_doorbell.pml shows the lost wake-up otherwise. A dead sender leaves complete slots or none: the
 * sequence is stored last.
 *
 * The writer and reader halves are private to one node each, and used under its communicator's lock.
 */
#ifndef SPC_MAILBOX_H
#define SPC_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/spc_atomic.h"
#include "message/spc_format.h"
#include "segment/spc_event.h"

enum {
    SPC_SLOT_INLINE = 0,  /* location of the payload */
    SPC_SLOT_RING = 1,    /* `offset`: of this receiver's header in the sender's ring, in the segment */
    SPC_SLOT_ARENA = 2,   /* `offset`: of the block, in the segment */
    SPC_SLOT_PLACE = 3,   /* mask of the above */
    /* RING: one part; ARENA: all that remains. `length_bytes` is of the whole, in every part. */
    SPC_SLOT_PART = 4,
    SPC_SLOT_SOLE = 8,    /* ARENA: the only receiver */
    SPC_SLOT_ASKS = 16,   /* the sender wants a receipt (spc_receipt.h); in every part of a message */
    SPC_SLOT_FIRST = 32, /* PART: the first of its message, which stands for it where messages are counted */
    /* Not a message of the program: its sender has destroyed the communicator of this context (spc_numbers.h). */
    SPC_SLOT_LAST = 64,
    SPC_SLOT_ANSWER = 128, /* ASKS: the receipt is to be a message */
};

/* Contexts: the kind of a message, beside the number of its communicator; ANY never matches another context. */
enum {
    SPC_CONTEXT_USER = 0,
    SPC_CONTEXT_INTERNAL = 1,
    SPC_CONTEXT_COORDINATED = 2,
    SPC_CONTEXT_HANDLED = 3, /* messages for handlers; in slots they have USER's */
    SPC_CONTEXT_KINDS = 4, /* a power of two */
};

/* 64 bytes. `sequence` is stored last (release) and read first (acquire). */
typedef struct spc_slot_shared {
    _Atomic uint32_t sequence;
    int32_t tag;
    uint16_t source; /* global rank: the gateway announces for others */
    uint16_t context;
    uint16_t meta_bytes;
    uint8_t format;
    uint8_t flags;
    uint64_t length_bytes; /* meta and data */
    union {
        uint64_t offset;
        struct {
            uint64_t offset;
            uint64_t
                end; /* of this part in its message: known without its memory, which may be in use again */
        } part;
        unsigned char inlined[SPC_INLINE_BYTES];
    } payload;
} spc_slot_shared_t;

_Static_assert(sizeof(spc_slot_shared_t) == SPC_CACHE_LINE, "a slot is one cache line");

#define SPC_RECEIPT_WORDS 8

typedef struct spc_row_shared { /* the receiver's fields, then the slots */
    _Atomic uint32_t consumed; /* slots read so far, published lazily */
    _Atomic uint32_t wanted; /* a hint: spc_mailbox_want */
    _Atomic uint64_t long_bytes; /* messages that the receiver has taken; see spc_mailbox_count */
    _Atomic uint32_t receipt[SPC_RECEIPT_WORDS]; /* a bit for each receipt: spc_receipt.h */
    _Atomic uint64_t lent_bytes; /* bytes of this sender's messages kept by the receiver beyond its share */
    _Atomic uint32_t continued; /* slots read that are not messages of their own; see spc_mailbox_count */
    unsigned char padding[SPC_CACHE_LINE - 28 - 4 * SPC_RECEIPT_WORDS];
    spc_slot_shared_t slot[];
} spc_row_shared_t;

_Static_assert(sizeof(spc_row_shared_t) == SPC_CACHE_LINE, "spc_row_shared_t lies in shared memory");

typedef struct spc_mailbox_shared {
    _Atomic uint64_t doorbell;
    unsigned char padding[2 * SPC_CACHE_LINE - 8];
} spc_mailbox_shared_t; /* then the rows */

_Static_assert(sizeof(spc_mailbox_shared_t) == 128, "spc_mailbox_shared_t lies in shared memory");

/* Contents of a slot beside sequence and payload. */
typedef struct spc_envelope {
    int32_t tag;
    uint16_t source;
    uint16_t context;
    uint16_t meta_bytes;
    uint8_t format;
    uint8_t flags;
    uint64_t length_bytes;
} spc_envelope_t;

typedef struct spc_mailbox_writer { /* a sender's half of one row */
    spc_row_shared_t *row;
    _Atomic uint64_t *doorbell;
    uint64_t doorbell_bit;
    uint32_t slots;
    uint32_t index; /* of the next slot */
    uint32_t announced;
    uint32_t consumed; /* cached */
} spc_mailbox_writer_t;

typedef struct spc_mailbox_reader { /* the receiver's half of one row */
    spc_row_shared_t *row;
    uint32_t slots;
    uint32_t index;
    uint32_t received;
    uint32_t publish_every;
    uint32_t continued; /* read, of messages in parts: spc_mailbox_count_part */
    uint64_t long_bytes; /* read, of messages that do not fit into a slot: spc_mailbox_count_long */
} spc_mailbox_reader_t;

uint64_t spc_mailbox_bytes(uint32_t senders, uint32_t slots);
spc_row_shared_t *spc_mailbox_row(spc_mailbox_shared_t *mailbox, uint32_t sender, uint32_t slots);

void spc_mailbox_writer_init(spc_mailbox_writer_t *writer, spc_mailbox_shared_t *mailbox, uint32_t sender,
                             uint32_t slots);
void spc_mailbox_reader_init(spc_mailbox_reader_t *reader, spc_mailbox_shared_t *mailbox, uint32_t sender,
                             uint32_t slots);

/* Counts of messages that senders have announced to one receiver, from its mailbox or a copy of it, for an observer,
 * and for a summary at the end. Messages that fit into slots need no counter: the highest sequence in a row is the
 * number that its sender has written. A message in parts counts once; of a message that is still being read, each
 * unread part counts. */
typedef struct spc_mailbox_count {
    uint32_t messages; /* modulo 2^32 */
    uint64_t long_bytes; /* of messages that did not fit into their slots, once opened by the receiver */
} spc_mailbox_count_t;

/* Called by a receiver that opens a payload outside its slot. Relaxed: a concurrent reader takes the value that is
 * there. */
static inline void spc_mailbox_count_long(spc_mailbox_reader_t *reader, uint64_t bytes) {
    reader->long_bytes += bytes;
    atomic_store_explicit(&reader->row->long_bytes, reader->long_bytes, memory_order_relaxed);
}

/* Called by a receiver that reads a part of a message, except the first, or what is no message of the program. Relaxed,
 * as above. */
static inline void spc_mailbox_count_part(spc_mailbox_reader_t *reader) {
    reader->continued++;
    atomic_store_explicit(&reader->row->continued, reader->continued, memory_order_relaxed);
}

spc_mailbox_count_t spc_mailbox_count(spc_mailbox_shared_t *mailbox, uint32_t sender, uint32_t slots);

/* The word by which a receiver that waits for a long message, with a place for its data, announces that in the sender's
 * row: a hash of the context, the tag (or SPC_ANY_TAG) and the length of the message, and of the number of slots that
 * it has read. So it does not match for a sender with unread slots in the row, or with another message. Never 0, which
 * means that nothing is wanted. */
static inline uint32_t spc_mailbox_want(uint32_t received, uint16_t context, int32_t tag,
                                        uint64_t length_bytes) {
    uint64_t mixed = received + ((uint64_t)(uint32_t)tag << 32);
    mixed = (mixed ^ length_bytes ^ (uint64_t)context << 48) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32) | 1;
}

/* Both relaxed: a hint. A sender that sees an old word, or one that is equal by chance, sends in a slower way. */
static inline void spc_mailbox_set_wanted(spc_mailbox_reader_t *reader, uint32_t want) {
    atomic_store_explicit(&reader->row->wanted, want, memory_order_relaxed);
}

static inline bool spc_mailbox_is_wanted(const spc_mailbox_writer_t *writer, uint16_t context, int32_t tag,
                                         uint64_t length_bytes) {
    uint32_t wanted = atomic_load_explicit(&writer->row->wanted, memory_order_relaxed);
    return wanted == spc_mailbox_want(writer->announced, context, tag, length_bytes)
           || wanted == spc_mailbox_want(writer->announced, context, SPC_ANY_TAG, length_bytes);
}

/* Free slots as far as is known; reads the receiver's line only if the row seems full. */
bool spc_mailbox_refresh(spc_mailbox_writer_t *writer);

static inline bool spc_mailbox_has_room(spc_mailbox_writer_t *writer) {
    return writer->announced - writer->consumed < writer->slots || spc_mailbox_refresh(writer);
}

/* Iterates over the unread messages of a row, from *at = 0 on; after the end of its receiver, which has published how
 * far it read (spc_mailbox_publish) or has read nothing. A message in parts is its first part. Looks only where the
 * bell has rung since. False: there is no more. */
typedef struct spc_unread {
    uint16_t source;
    uint16_t context;
    int32_t tag;
} spc_unread_t;

bool spc_mailbox_unread(spc_mailbox_shared_t *mailbox, uint32_t sender, uint32_t slots, uint32_t *at,
                        spc_unread_t *unread);

/* Whether a message has come that was not looked for yet. Call it after the end of its receiver. */
static inline bool spc_mailbox_has_rung(const spc_mailbox_shared_t *mailbox) {
    /* Pairs with spc_mailbox_announce, as spc_mailbox_collect does. */
    return atomic_load_explicit(&mailbox->doorbell, memory_order_seq_cst) != 0;
}

/* The slot to fill, once has_room was true. */
static inline spc_slot_shared_t *spc_mailbox_next(spc_mailbox_writer_t *writer) {
    return &writer->row->slot[writer->index];
}

static inline void spc_slot_write_envelope(spc_slot_shared_t *slot, const spc_envelope_t *envelope) {
    /* The same layout in the same order: 20 of the slot's first 24 bytes in two stores. */
    memcpy(&slot->tag, envelope, 12);
    slot->length_bytes = envelope->length_bytes;
}

_Static_assert(offsetof(spc_envelope_t, flags) == 11, "the envelope is the slot's, without its sequence");
_Static_assert(offsetof(spc_slot_shared_t, flags) == 15, "the envelope is the slot's, without its sequence");

/* Publishes the slot and rings. The caller notifies the receiver's event next. */
static inline void spc_mailbox_announce(spc_mailbox_writer_t *writer) {
    spc_slot_shared_t *slot = spc_mailbox_next(writer);
    writer->announced++;
    writer->index = writer->index + 1 == writer->slots ? 0 : writer->index + 1;
    /* Pairs with the acquire in spc_mailbox_peek. */
    atomic_store_explicit(&slot->sequence, writer->announced, memory_order_release);
    /* seq_cst: between the slot and the caller's load of `sleeping`. Pairs with spc_mailbox_collect. */
    atomic_fetch_or_explicit(writer->doorbell, writer->doorbell_bit, memory_order_seq_cst);
}

/* The next slot of the row if it is there, else NULL. */
static inline const spc_slot_shared_t *spc_mailbox_peek(const spc_mailbox_reader_t *reader) {
    const spc_slot_shared_t *slot = &reader->row->slot[reader->index];
    /* Pairs with the release in spc_mailbox_announce. */
    return atomic_load_explicit(&slot->sequence, memory_order_acquire) == reader->received + 1 ? slot : NULL;
}

/* Frees the slot, which has been read and may be written again. True if that was published: the caller then notifies
 * the sender. */
static inline bool spc_mailbox_consume(spc_mailbox_reader_t *reader) {
    reader->received++;
    reader->index = reader->index + 1 == reader->slots ? 0 : reader->index + 1;
    if (reader->received % reader->publish_every != 0) {
        return false;
    }
    /* Pairs with spc_mailbox_refresh: the slot has been read before it is written again. */
    atomic_store_explicit(&reader->row->consumed, reader->received, memory_order_seq_cst);
    return true;
}

/* Publishes at the end how far the row has been read. */
static inline void spc_mailbox_publish(spc_mailbox_reader_t *reader) {
    if (reader->received % reader->publish_every != 0) {
        /* As in spc_mailbox_consume. */
        atomic_store_explicit(&reader->row->consumed, reader->received, memory_order_seq_cst);
    }
}

/* Called by the receiver: it keeps this many bytes of this sender's messages beyond its share. The caller notifies the
 * sender if that is less than before. seq_cst, both: the sender may be about to sleep until it is less. They pair with
 * each other. */
static inline void spc_mailbox_lend(spc_row_shared_t *row, uint64_t bytes) {
    atomic_store_explicit(&row->lent_bytes, bytes, memory_order_seq_cst);
}

static inline uint64_t spc_mailbox_lent(const spc_row_shared_t *row) {
    return atomic_load_explicit(&row->lent_bytes, memory_order_seq_cst);
}

/* Takes and clears the doorbell's bits: rows that may have messages. Before any of them is scanned. */
static inline uint64_t spc_mailbox_collect(spc_mailbox_shared_t *mailbox) {
    /* Both seq_cst, as part of the second test of a receiver about to sleep. Pair with spc_mailbox_announce. */
    if (atomic_load_explicit(&mailbox->doorbell, memory_order_seq_cst) == 0) {
        return 0;
    }
    return atomic_exchange_explicit(&mailbox->doorbell, 0, memory_order_seq_cst);
}

#endif
