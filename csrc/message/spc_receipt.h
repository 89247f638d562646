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
 * Until then more such messages are refused (SPC_ELIMIT), which only waits that were given up cause, or hundreds of
 * threads. 256 divides 2^32, so the numbers may wrap.
 *
 * A receipt is given once, at the first match: also if the receiver puts the message back. None is given for a message
 * that is dropped because its communicator is closed, or its node has ended.
 *
 * The sender's half, spc_receipts_t, belongs to one node and is used under its lock; any thread may call
 * spc_receipts_given. The receiver gives under its own lock: it is the single writer of the bits.
 */
#ifndef SPC_RECEIPT_H
#define SPC_RECEIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "message/spc_mailbox.h"
#include "segment/spc_segment.h"

#define SPC_RECEIPTS_MAX (32 * SPC_RECEIPT_WORDS) /* of one pair of nodes, at a time */

typedef struct spc_receipts spc_receipts_t;

/* SPC_ENOMEM. */
int spc_receipts_create(const spc_segment_t *segment, uint32_t rank, spc_receipts_t **receipts);
void spc_receipts_destroy(spc_receipts_t *receipts);

/* The number of the next message to `destination` that asks. SPC_ELIMIT: too many are unanswered. */
int spc_receipts_next(spc_receipts_t *receipts, uint32_t destination, uint32_t *number);

/* Records that the message was handed to the outbox, in the same hold of the lock. A thread waits for it until
 * spc_receipts_settle. */
void spc_receipts_note_sent(spc_receipts_t *receipts, uint32_t destination);

/* Whether this message has been taken. */
bool spc_receipts_given(const spc_receipts_t *receipts, uint32_t destination, uint32_t number);

/* The same for any reader of the segment, and the row to read. */
bool spc_receipt_is_given(const spc_row_shared_t *row, uint32_t number);
const spc_row_shared_t *spc_receipts_row(const spc_receipts_t *receipts, int32_t destination);

/* No thread waits for it any more. */
void spc_receipts_settle(spc_receipts_t *receipts, uint32_t destination, uint32_t number);

/* The receiver's half: records that message `number` of this row has been taken. The caller notifies the sender's event
 * next. */
void spc_receipt_give(spc_row_shared_t *row, uint32_t number);

#endif
