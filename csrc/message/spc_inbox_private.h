/* SPDX-License-Identifier: MIT */
/*
 * spc_inbox_private: what the files of the inbox share; nobody else includes it.
 *
 *   spc_inbox.c        which message a receive gets
 *   spc_inbox_store.c  out of slots, into the queue; receipts
 *   spc_inbox_divert.c messages that are not for receives
 *   spc_inbox_posted.c receives that have said where they want the data
 */
#ifndef SPC_INBOX_PRIVATE_H
#define SPC_INBOX_PRIVATE_H

#include "message/spc_inbox.h"
#include "message/spc_inbox_queue.h"

typedef struct spc_diversion { /* messages with this context and tag are filed under another context */
    int32_t tag;
    uint16_t from;
    uint16_t to; /* equal to `from`: a free place of the table */
} spc_diversion_t;

typedef struct spc_inbox_filed { /* the messages of one context in the queue */
    uint64_t complete;
    uint16_t diverted_from; /* the context in their slots, if is_diverted */
    bool is_diverted;       /* they are for handlers */
} spc_inbox_filed_t;

typedef struct spc_inbox_row {
    spc_mailbox_reader_t reader;
    spc_entry_t *assembling; /* the message whose parts are arriving: they come without gaps */
    uint64_t held_bytes;     /* memory that its messages in the queue take */
    uint64_t lent_bytes;     /* of these, as published: what exceeds the share */
    uint32_t opened; /* messages so far, modulo 2³² */
    uint32_t asked; /* messages that want a receipt, so far: the number of the next one */
} spc_inbox_row_t;

struct spc_inbox {
    spc_inbox_options_t options;
    uint32_t features;
    uint32_t senders;
    uint32_t last_served;
    uint64_t rung;        /* doorbell bits taken, whose rows are not known to be empty */
    uint32_t epoch;       /* ends after which all rows have been looked at */
    uint64_t arrivals;    /* running number of messages */
    uint32_t news;            /* SPC_INBOX_STORED, SPC_INBOX_MOVED */
    uint64_t share_bytes;     /* of each sender */
    spc_inbox_filed_t *filed; /* by context */
    uint32_t contexts;
    uint64_t diverted;     /* complete messages for handlers in the queue */
    unsigned char *closed; /* a bit a context: its messages are dropped. NULL as long as there is none */
    spc_diversion_t *diversions; /* a hash table of 2^diversion_bits places, at most half of them in use */
    uint32_t diversion_count;
    uint32_t diversion_bits;
    spc_mailbox_shared_t *mailbox;
    spc_posted_t *posted; /* in order */
    spc_inbox_queue_t queue;
    spc_inbox_row_t row[];
};

static inline bool spc_slot_has_parts(const spc_slot_shared_t *slot) {
    return (slot->flags & SPC_SLOT_PART) != 0;
}

/* Not all is in the slot: it is one part of several, or has to be answered. */
static inline bool spc_slot_is_special(const spc_slot_shared_t *slot) {
    return (slot->flags & (SPC_SLOT_PART | SPC_SLOT_ASKS)) != 0;
}

static inline bool spc_inbox_is_closed(const spc_inbox_t *inbox, uint16_t context) {
    return __builtin_expect(inbox->closed != NULL, 0) && (inbox->closed[context / 8] >> context % 8 & 1) != 0;
}

/* The context under which a message of this context and tag is filed: another one if spc_inbox_divert has said so.
 * Takes the same time however many diversions there are, and is for inboxes that have some. */
uint16_t spc_inbox_diverted_to(const spc_inbox_t *inbox, uint16_t context, int32_t tag);

/* The context in the slots of messages that are filed under this one. */
uint16_t spc_inbox_diverted_from(const spc_inbox_t *inbox, uint16_t context);

/* Ends the diversions of `count` contexts from `first` on. */
void spc_inbox_forget_diversions(spc_inbox_t *inbox, uint16_t first, uint16_t count);

/* One complete message more (1) or fewer (-1) of this context is in the queue. */
static inline void spc_inbox_count_complete(spc_inbox_t *inbox, uint16_t context, int change) {
    spc_inbox_filed_t *filed = &inbox->filed[context];
    filed->complete += (uint64_t)change;
    inbox->diverted += filed->is_diverted ? (uint64_t)change : 0;
}

/* The context under which a slot's message is matched and filed; not its own if the message is for a handler. */
static inline uint16_t spc_inbox_context(const spc_inbox_t *inbox, const spc_slot_shared_t *slot) {
    const bool plain = __builtin_expect(inbox->diversion_count == 0, 1);
    return plain ? slot->context : spc_inbox_diverted_to(inbox, slot->context, slot->tag);
}

/* Out of the queue, and of the accounts of its sender. */
void spc_inbox_take_entry(spc_inbox_t *inbox, spc_entry_t *entry, spc_message_t *message);

/* The first part of a message, `bytes` of it at `payload`, is about to be stored: does a receive want its data? */
void spc_inbox_find_posted(spc_inbox_t *inbox, spc_entry_t *entry, const unsigned char *payload,
                           uint64_t bytes);

/* The next bytes of a message that arrives in parts. */
void spc_inbox_assemble(spc_entry_t *entry, const unsigned char *payload, uint64_t bytes);

/* The message, whose data are where a receive wants them, is taken: by that receive, which has `posted`, or another. */
void spc_inbox_settle_posted(spc_entry_t *entry, spc_posted_t *posted);

/* Nobody will ask for it any more. */
void spc_inbox_note_left(const spc_inbox_t *inbox, const spc_message_t *message);

/* Whose ring or arena has room now, or whose row. */
void spc_inbox_notify_sender(const spc_inbox_t *inbox, uint32_t sender);

/* The slot's message, where it lies; the slot can be consumed afterwards. */
void spc_inbox_open_slot(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot,
                         spc_message_t *message);

/* Tells the sender that its message of this number has been taken. */
void spc_inbox_give_receipt(spc_inbox_t *inbox, uint32_t sender, uint32_t number);

/* Counts the row's next slot as read. */
void spc_inbox_consume_slot(spc_inbox_t *inbox, uint32_t sender);

/* Puts a message at its place in the queue; what lies in a ring moves to the heap. SPC_ENOMEM. */
int spc_inbox_enqueue(spc_inbox_t *inbox, const spc_message_t *message);

/* Makes sure that messages of this context can be counted. SPC_ENOMEM. */
int spc_inbox_make_count(spc_inbox_t *inbox, uint16_t context);

/* Moves the row's next message, or part of one, into the queue. SPC_ENOMEM. */
int spc_inbox_store_slot(spc_inbox_t *inbox, uint32_t sender, const spc_slot_shared_t *slot);

/* The bytes of its sender's share that a message in the queue takes. */
uint64_t spc_inbox_held_bytes(const spc_message_t *message);

/* The sender's messages in the queue take so much from now on; tells it what of that is lent. */
void spc_inbox_hold(spc_inbox_t *inbox, uint32_t sender, uint64_t held_bytes);

#endif
