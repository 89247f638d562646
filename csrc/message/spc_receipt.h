/* SPDX-License-Identifier: MIT */
/*
 * spc_receipt: shows the sender of a message that its receiver has taken it (ACLMPL's synchronous send).
 *
 * Messages that ask for a receipt (SPC_SLOT_ASKS) are numbered, 0, 1, 2 … for each pair of nodes. The numbers are not
 * transmitted: the sender counts its messages, the receiver those in the row, and a row keeps its order. When the
 * receiver takes message number k, in whatever order, it flips bit k mod 256 of the pair's receipts, which lie beside
 * `consumed` in the row's first line, and notifies the sender's event. So a receipt overtakes all messages, needs no
 * room and cannot fail.
 *
 * Laps. In laps 0, 2, 4 … a set bit means "taken", in the others a clear one. That is unambiguous while a bit stands
 * for one message at a time: number k is not used before k - 256 has been taken and its waiting thread has seen that.
 * 256 divides 2^32, so the numbers may wrap.
 *
 * Answers. While a message has no bit, because 256 or more are open, it asks for a message as its receipt
 * (SPC_SLOT_ANSWER): its number, in the internal context of its communicator. Such messages are numbered apart, by both
 * ends alike; SPC_RECEIPT_ANSWER is set in their numbers. There may be any number of them, and they may be taken in any
 * order. An answer queues behind what the receiver has sent before, and needs memory where it finds no room; without
 * memory the receive fails, and the message is not taken.
 *
 * A receipt is given once, at the first match: also if the receiver puts the message back. None is given for a message
 * that is dropped because its communicator is closed, or its node has ended.
 *
 * The sender's half, spc_receipts_t, belongs to one node and is used under its lock; for a number with a bit any thread
 * may call spc_receipts_given without. The receiver gives under its own lock: it is the single writer of the bits.
 */
#ifndef SPC_RECEIPT_H
#define SPC_RECEIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "message/spc_mailbox.h"
#include "segment/spc_segment.h"

#define SPC_RECEIPTS_MAX (32 * SPC_RECEIPT_WORDS) /* bits of one pair of nodes */
#define SPC_RECEIPT_ANSWER (UINT64_C(1) << 32)    /* in a number: the receipt is a message */
#define SPC_RECEIPT_TAG 0x0fffffff /* of these messages, below the tags of the MPI library */

static inline bool spc_receipt_is_answer(uint64_t number) {
    return (number & SPC_RECEIPT_ANSWER) != 0;
}

typedef struct spc_receipts spc_receipts_t;

/* SPC_ENOMEM. */
int spc_receipts_create(const spc_segment_t *segment, uint32_t rank, spc_receipts_t **receipts);
void spc_receipts_destroy(spc_receipts_t *receipts);

/* The number of the next message to `destination` that asks. SPC_ENOMEM. */
int spc_receipts_next(spc_receipts_t *receipts, uint32_t destination, uint64_t *number);

/* Records that the message with this next number was handed to the outbox, in the same hold of the lock. A thread waits
 * for it until spc_receipts_settle. */
void spc_receipts_note_sent(spc_receipts_t *receipts, uint32_t destination, uint64_t number);

/* An answer has come. */
void spc_receipts_note_answer(spc_receipts_t *receipts, uint32_t destination, uint64_t number);

/* Whether this message has been taken. */
bool spc_receipts_given(const spc_receipts_t *receipts, uint32_t destination, uint64_t number);

/* The same for any reader of the segment, and the row to read; answers are no part of it. */
bool spc_receipt_is_given(const spc_row_shared_t *row, uint64_t number);
const spc_row_shared_t *spc_receipts_row(const spc_receipts_t *receipts, int32_t destination);

/* No thread waits for it any more. */
void spc_receipts_settle(spc_receipts_t *receipts, uint32_t destination, uint64_t number);

/* The receiver's half. Messages so far of one sender that ask: */
typedef struct spc_asked {
    uint32_t bits;
    uint32_t answers;
} spc_asked_t;

/* The number of the next one, whose slot has these flags. */
static inline uint64_t spc_asked_next(const spc_asked_t *asked, uint8_t flags) {
    return (flags & SPC_SLOT_ANSWER) != 0 ? SPC_RECEIPT_ANSWER | asked->answers : asked->bits;
}

static inline void spc_asked_count(spc_asked_t *asked, uint8_t flags) {
    asked->answers += (flags & SPC_SLOT_ANSWER) != 0;
    asked->bits += (flags & SPC_SLOT_ANSWER) == 0;
}

/* Records that message `number` of this row has been taken. The caller notifies the sender's event
 * next. */
void spc_receipt_give(spc_row_shared_t *row, uint32_t number);

#endif
