/* SPDX-License-Identifier: MIT */
/*
 * spc_outbox: the sending half of a node: chooses the path of a message, and queues messages without room.
 *
 *   up to SPC_INLINE_BYTES        in the slot itself
 *   up to SPC_EAGER_BYTES         in the ring, once for all destinations
 *   longer                        in the arena, once for all destinations; its receivers read it there
 *   longer, and the arena is full in the ring, in parts if it is longer than a chunk
 *   long, and awaited             in the ring, in parts, while the receiver copies them to their destination
 *
 * Order. One FIFO per destination: while it is not empty, all messages to that destination go behind it, so messages to
 * one receiver are announced in the order they were sent, whichever path they take. A queued entry is one of: an
 * announcement whose payload lies in ring or arena already (a multicast is written once, for all), a private copy that
 * is yet to be written, or the rest of a message that goes in parts.
 *
 * The limit (--queue-limit) is for messages that this node has sent and no node has received: those that wait here, and
 * those that receivers keep beyond the share that each has for each sender (spc_config_share_bytes). It never holds
 * back a message that has been accepted: the outbox announces that as soon as there is room.
 *
 * Used under the communicator's lock, by one thread at a time. It never waits.
 */
#ifndef SPC_OUTBOX_H
#define SPC_OUTBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "message/spc_format.h"
#include "message/spc_mailbox.h"
#include "message/spc_ring.h"
#include "segment/spc_arena.h"
#include "segment/spc_note.h"
#include "segment/spc_segment.h"
#include "segment/spc_trace.h"

#define SPC_EAGER_BYTES 8192

typedef struct spc_outbox spc_outbox_t;

/* A long message that its receiver copies into place while its sender copies it into the ring. */
typedef struct spc_stream {
    const spc_payload_t *payload; /* the caller's, until it has ended the stream */
    spc_block_shared_t *block;    /* for the rest if the receiver does not keep up */
    uint32_t destination;
    uint64_t sent; /* bytes sent in parts */
    bool held;     /* no more parts are sent */
    bool done;     /* the payload is no longer needed */
} spc_stream_t;

typedef struct spc_outbox_options {
    const spc_segment_t *segment;
    spc_status_shared_t *status;
    spc_event_shared_t *events;
    uint32_t rank;
    spc_note_shared_t *notes; /* counts dropped messages; may be NULL */
    bool is_unlimited; /* the sender bounds by other means how much may be queued */
    spc_trace_t *trace; /* records sent messages; may be NULL */
} spc_outbox_options_t;

int spc_outbox_create(const spc_outbox_options_t *options, spc_outbox_t **outbox);
void spc_outbox_destroy(spc_outbox_t *outbox);

/* Announces or queues; payloads that no chunk of the ring can hold go in parts. SPC_EAGAIN: the message would exceed
 * the limit, and nothing was done. SPC_ENOMEM. `destinations` are distinct. Messages to nodes that have ended are
 * dropped silently: the sender cannot know in time, and asynchronous sends promise no receipt. */
int spc_outbox_send(spc_outbox_t *outbox, const int32_t *destinations, uint32_t destination_count,
                    uint16_t context, int32_t tag, const spc_payload_t *payload);

/* Announces or queues to each of these nodes, behind all messages that were sent to it before, that this node sends no
 * more with the contexts of a communicator (SPC_SLOT_LAST); `context` is any of them without a limit. Without memory
 * some of them do not hear it. */
void spc_outbox_send_last(spc_outbox_t *outbox, const uint32_t *destinations, uint32_t destination_count,
                          uint16_t context);

/* A block of this node's arena, pinned for this node. SPC_EAGAIN if it has no room. The caller fills it without the
 * lock, and hands it to spc_outbox_send_block. */
int spc_outbox_take_block(spc_outbox_t *outbox, uint64_t length_bytes, spc_block_shared_t **block);
int spc_outbox_take_kept(spc_outbox_t *outbox, uint64_t length_bytes, spc_block_shared_t **block);

/* Announces or queues a filled block ([meta][data], length_bytes in all); this node's pin ends unless it is a
 * destination, also after SPC_ENOMEM, when not all destinations get it. Takes no private memory worth a limit. */
int spc_outbox_send_block(spc_outbox_t *outbox, const int32_t *destinations, uint32_t destination_count,
                          uint16_t context, int32_t tag, const spc_payload_t *payload,
                          spc_block_shared_t *block);

/* Passes a block that this node alone uses, of any node's arena, to one destination, without a copy: [meta][data] lie
 * at its start; payload->meta and ->data are not read. It is announced, or queued behind waiting entries. It is no
 * longer this node's, unless this node is the destination; if the destination has ended, the block is free. SPC_ENOMEM:
 * nothing was done. */
int spc_outbox_move_block(spc_outbox_t *outbox, int32_t destination, uint16_t context, int32_t tag,
                          const spc_payload_t *payload, spc_block_shared_t *block);

/* Begins to send a message in parts from the caller's memory, if its one receiver waits for it with a destination for
 * the data (spc_mailbox_want), and can have it next. Each spc_outbox_flush sends the parts that have room; later
 * messages to the same destination wait behind it. SPC_EAGAIN: send it another way; nothing was done. */
int spc_outbox_begin_stream(spc_outbox_t *outbox, int32_t destination, uint16_t context, int32_t tag,
                            const spc_payload_t *payload, spc_stream_t *stream);

/* Whether the next long message to a node is expected to be a stream, as each one is after a stream, until this
 * function sets another expectation. Returns the previous expectation. */
bool spc_outbox_expect_stream(spc_outbox_t *outbox, int32_t destination, bool expected);

/* Ends a stream in any case: when it is done, or when the caller has held it (stream->held, with the lock) and has
 * copied all bytes after `sent` into its block, without the lock. Then the block is the last part. The payload is the
 * caller's again. */
void spc_outbox_end_stream(spc_outbox_t *outbox, spc_stream_t *stream);

/* Bytes of this node's arena that are given out. */
uint64_t spc_outbox_block_bytes(spc_outbox_t *outbox);

/* From now on, until it is called with 0 within the same hold of the lock, messages ask their receivers for receipts
 * (spc_receipt.h): SPC_SLOT_ASKS, with SPC_SLOT_ANSWER or without. */
void spc_outbox_ask(spc_outbox_t *outbox, uint8_t flags);

/* After a send (or send_block) that failed: whether it took the message for this destination all the same. With
 * SPC_ENOMEM a multicast may have reached some of its destinations. */
bool spc_outbox_took(const spc_outbox_t *outbox, uint32_t destination);

/* Announces waiting messages that now have room. True if any moved. */
bool spc_outbox_flush(spc_outbox_t *outbox);

/* True: no message waits. */
bool spc_outbox_is_empty(const spc_outbox_t *outbox);

/* Messages waiting for `destination`. */
uint32_t spc_outbox_waiting(const spc_outbox_t *outbox, uint32_t destination);

/* Whether `destination` keeps messages of this node beyond its share, so that they count against this node's limit. */
bool spc_outbox_is_lent(const spc_outbox_t *outbox, uint32_t destination);

/* The limit at which a message of this length could be queued now. */
uint64_t spc_outbox_limit_for(const spc_outbox_t *outbox, uint64_t length_bytes);

#endif
