/* SPDX-License-Identifier: MIT */
/*
 * spc_outbox_queue: messages that one sender could not announce yet, a FIFO per destination.
 *
 * Private to the outbox, and used under the same lock. A waiting message is either written already (in ring or arena:
 * `offset`), or a private copy, which the queues of several destinations may share, or stays in the program's memory,
 * while its sender is in a call (`stream`). In each queue a copy counts against the queue limit with the bytes that its
 * receiver will have to keep.
 */
#ifndef SPC_OUTBOX_QUEUE_H
#define SPC_OUTBOX_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "message/spc_format.h"
#include "message/spc_mailbox.h"
#include "message/spc_outbox.h"

typedef struct spc_copy {
    uint32_t users;
    uint64_t from; /* of the payload: earlier bytes have been sent in parts */
    uint64_t bytes;
    unsigned char data[];
} spc_copy_t;

typedef struct spc_waiting {
    struct spc_waiting *next;
    spc_envelope_t envelope;
    uint64_t offset;  /* in the segment, if copy and stream are NULL */
    spc_copy_t *copy;
    spc_stream_t *stream; /* its payload is still its sender's */
    uint64_t sent;    /* bytes of the payload sent in parts */
} spc_waiting_t;

typedef struct spc_outbox_queue {
    spc_waiting_t *head;
    spc_waiting_t **tail;
    uint32_t length;
    uint32_t copies; /* not written yet: they need room in the ring before any entry behind them */
} spc_outbox_queue_t;

/* Totals of all queues of a node. */
typedef struct spc_queue_total {
    uint32_t waiting;
    uint64_t bytes; /* of the messages and of their places: empty messages take memory, too */
} spc_queue_total_t;

void spc_outbox_queue_init(spc_outbox_queue_t *queue);

/* Appends a message, which uses `copy` from now on. SPC_ENOMEM: nothing was done. */
int spc_outbox_queue_push(spc_outbox_queue_t *queue, const spc_waiting_t *waiting, spc_queue_total_t *total);

/* Whether it is yet to be written. */
static inline bool spc_waiting_is_unwritten(const spc_waiting_t *waiting) {
    return waiting->copy != NULL || waiting->stream != NULL;
}

/* Forgets the head, and its copy if no other entry uses it; its stream is done. */
void spc_outbox_queue_pop(spc_outbox_queue_t *queue, spc_queue_total_t *total);

/* Empties the queue of a destination that has ended: messages written for it are marked as read unless its process is
 * gone, for then the memory is free already and may be in use again. The rest is forgotten; all are counted. */
void spc_outbox_queue_drop(spc_outbox_queue_t *queue, const spc_outbox_options_t *options, uint32_t rank,
                           spc_queue_total_t *total);

/* A copy of the payload, with one user: the caller. NULL if there is no memory. */
spc_copy_t *spc_copy_make(const spc_payload_t *payload);

/* Removes one user; `copy` may be NULL. */
void spc_copy_release(spc_copy_t *copy);

/* Room for the rest of a message whose parts are being sent. It exists before the first part: a message that has begun
 * has to continue, or its receiver would assemble it for ever. */
typedef struct spc_rest {
    spc_waiting_t *item;
    spc_copy_t *copy;
} spc_rest_t;

/* SPC_ENOMEM: nothing is reserved. Pages of memory are taken only for queued data. */
int spc_rest_reserve(uint64_t bytes, spc_rest_t *rest);

/* Releases it unused. */
void spc_rest_free(spc_rest_t *rest);

/* Uses it for the bytes after `sent` of the payload, at the end of the queue. Never fails. */
void spc_rest_queue(spc_rest_t *rest, const spc_envelope_t *envelope, const spc_payload_t *payload,
                    uint64_t sent, spc_outbox_queue_t *queue, spc_queue_total_t *total);

#endif
