/* SPDX-License-Identifier: MIT */
#include "message/spc_outbox.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "message/spc_format.h"
#include "message/spc_mailbox.h"
#include "message/spc_ring.h"
#include "segment/spc_arena.h"
#include "segment/spc_segment.h"

typedef struct copy {
    uint32_t users; /* queues, each of which counts its bytes against the queue limit */
    uint64_t from; /* of the payload: earlier bytes have been sent in parts */
    uint64_t bytes;
    unsigned char data[];
} copy_t;

/* Written already, in ring or arena; or a private copy, which several queues may share; or it stays in the program's
 * memory, while its sender is in a call. */
typedef struct waiting {
    struct waiting *next;
    spc_envelope_t envelope;
    uint64_t offset;  /* in the segment, if copy and stream are NULL */
    copy_t *copy;
    spc_stream_t *stream; /* its payload is still its sender's */
    uint64_t sent;    /* bytes of the payload sent in parts */
} waiting_t;

typedef struct queue {
    waiting_t *head;
    waiting_t **tail;
    uint32_t length;
    uint32_t copies; /* not written yet: they need room in the ring before any entry behind them */
} queue_t;

/* Totals of all queues of a node. */
typedef struct queue_total {
    uint32_t waiting;
    uint64_t bytes; /* of the messages and of their places: empty messages take memory, too */
} queue_total_t;

/* Whether it is yet to be written. */
static inline bool waiting_is_unwritten(const waiting_t *waiting) {
    return waiting->copy != NULL || waiting->stream != NULL;
}

/* Room for the rest of a message whose parts are being sent. It exists before the first part: a message that has begun
 * has to continue, or its receiver would assemble it for ever. */
typedef struct rest {
    waiting_t *item;
    copy_t *copy;
} rest_t;

/* ---- messages that wait, a FIFO for each destination */

static void fill(copy_t *copy, const spc_payload_t *payload, uint64_t from) {
    copy->users = 1;
    copy->from = from;
    copy->bytes = payload->meta_bytes + payload->data_bytes - from;
    spc_payload_copy(payload, from, copy->bytes, copy->data);
}

/* A copy of the payload, with one user: the caller. NULL if there is no memory. */
static copy_t *copy_make(const spc_payload_t *payload) {
    copy_t *copy = malloc(sizeof(*copy) + payload->meta_bytes + payload->data_bytes);
    if (copy != NULL) {
        fill(copy, payload, 0);
    }
    return copy;
}

/* Removes one user; `copy` may be NULL. */
static void copy_release(copy_t *copy) {
    if (copy != NULL && --copy->users == 0) {
        free(copy);
    }
}

static void queue_init(queue_t *queue) {
    *queue = (queue_t){.tail = &queue->head};
}

/* Each message counts with its entry here, and a copy also with the bytes that its receiver will have to keep. The
 * sizes of ring and arena bound the other kinds, and the receiver of a stream has a place for it. */
static uint64_t cost_of(const waiting_t *item) {
    return sizeof(*item) + (item->copy != NULL ? item->envelope.length_bytes : 0);
}

static void append(queue_t *queue, waiting_t *item, queue_total_t *total) {
    item->next = NULL;
    *queue->tail = item;
    queue->tail = &item->next;
    queue->length++;
    total->waiting++;
    total->bytes += cost_of(item);
    queue->copies += waiting_is_unwritten(item);
    if (item->copy != NULL) {
        item->copy->users++;
    }
}

/* Appends a message, which uses `copy` from now on. SPC_ENOMEM: nothing was done. */
static int queue_push(queue_t *queue, const waiting_t *waiting, queue_total_t *total) {
    waiting_t *item = malloc(sizeof(*item));
    if (item == NULL) {
        return SPC_ENOMEM;
    }
    *item = *waiting;
    append(queue, item, total);
    return SPC_OK;
}

/* Forgets the head, and its copy if no other entry uses it; its stream is done. */
static void queue_pop(queue_t *queue, queue_total_t *total) {
    waiting_t *item = queue->head;
    queue->head = item->next;
    if (queue->head == NULL) {
        queue->tail = &queue->head;
    }
    queue->length--;
    total->waiting--;
    total->bytes -= cost_of(item);
    queue->copies -= waiting_is_unwritten(item);
    if (item->stream != NULL) {
        item->stream->done = true;
    }
    copy_release(item->copy);
    free(item);
}

/* Frees the ring or arena memory of messages for a destination that has ended. */
static void free_written(const waiting_t *item, const spc_outbox_options_t *options, uint32_t rank) {
    void *written = spc_segment_address(options->segment, item->offset);
    if ((item->envelope.flags & SPC_SLOT_PLACE) == SPC_SLOT_ARENA) {
        uint32_t owner = ((const spc_block_shared_t *)written)->owner; /* it may be of another node's arena */
        spc_block_unpin(written, rank);
        spc_event_notify(&options->events[owner], options->segment->config->features);
    } else if ((item->envelope.flags & SPC_SLOT_PLACE) == SPC_SLOT_RING) {
        spc_ring_mark_read(written);
    }
}

/* Parts have been announced: the receiver, or its mailbox, counts the message. */
static bool has_begun(const waiting_t *item) {
    return item->sent != 0 || (item->stream != NULL && item->stream->sent != 0)
           || (item->envelope.flags & SPC_SLOT_PART) != 0;
}

/* Empties the queue of a destination that has ended: messages written for it are marked as read unless its process is
 * gone, for then the memory is free already and may be in use again. The rest is forgotten; all are counted. */
static void queue_drop(queue_t *queue, const spc_outbox_options_t *options, uint32_t rank,
                       queue_total_t *total) {
    const bool is_gone = spc_status_is_gone(options->status, rank);
    /* For nodes elsewhere the gateway receives: it counts a message with its last part. */
    const bool is_here = spc_segment_is_here(options->segment, rank);
    while (queue->head != NULL) {
        const waiting_t *item = queue->head;
        if (!is_gone && !waiting_is_unwritten(item)) {
            free_written(item, options, rank);
        }
        if ((!is_here || !has_begun(item)) && (item->envelope.flags & SPC_SLOT_LAST) == 0) {
            spc_note_add_left(options->notes, item->envelope.source, rank, item->envelope.tag,
                              item->envelope.context);
        }
        queue_pop(queue, total);
    }
}

/* Releases it unused. */
static void rest_free(rest_t *rest) {
    free(rest->item);
    free(rest->copy);
}

/* SPC_ENOMEM: nothing is reserved. Pages of memory are taken only for queued data. */
static int rest_reserve(uint64_t bytes, rest_t *rest) {
    rest->item = malloc(sizeof(*rest->item));
    rest->copy = malloc(sizeof(*rest->copy) + bytes);
    if (rest->item == NULL || rest->copy == NULL) {
        rest_free(rest);
        return SPC_ENOMEM;
    }
    return SPC_OK;
}

/* Uses it for the bytes after `sent` of the payload, at the end of the queue. Never fails. */
static void rest_queue(rest_t *rest, const spc_envelope_t *envelope, const spc_payload_t *payload,
                       uint64_t sent, queue_t *queue, queue_total_t *total) {
    copy_t *smaller = realloc(rest->copy, sizeof(*smaller) + envelope->length_bytes - sent);
    copy_t *copy = smaller != NULL ? smaller : rest->copy;
    fill(copy, payload, sent);
    *rest->item = (waiting_t){.envelope = *envelope, .copy = copy, .sent = sent};
    append(queue, rest->item, total);
    copy_release(copy);
}

typedef struct destination {
    spc_mailbox_writer_t writer;
    queue_t queue;
    uint32_t leave; /* new messages may be announced up to this number: look_for_room */
    uint64_t taken; /* the last send that has announced or queued something for it */
    uint64_t sent; /* number of messages announced; counted only if there is a trace */
    bool streams; /* the last long message to it was a stream: spc_outbox_expect_stream */
} destination_t;

struct spc_outbox {
    spc_outbox_options_t options;
    uint32_t features;
    uint32_t nodes;
    uint64_t limit_bytes; /* for messages that wait here or that receivers keep; UINT64_MAX: none */
    uint32_t stride; /* number of announcements between two looks at lent bytes */
    bool is_wide; /* the run has several boxes */
    uint64_t sends; /* running number of sends that may fail */
    uint64_t began; /* ticks at the start of the last of them; only if there is a trace */
    uint8_t asks; /* of messages sent now: spc_outbox_ask */
    queue_total_t total;
    spc_ring_t *ring;
    spc_arena_t *arena; /* NULL if this run has none */
    int32_t *batch; /* destinations that share one message in the ring */
    destination_t destination[];
};

static inline spc_envelope_t envelope_of(const spc_outbox_t *outbox, uint16_t context, int32_t tag,
                                         const spc_payload_t *payload, uint8_t flags) {
    return (spc_envelope_t){
        .tag = tag,
        .source = (uint16_t)outbox->options.rank,
        .context = context,
        .meta_bytes = payload->meta_bytes,
        .format = payload->format,
        .flags = (uint8_t)(flags | outbox->asks),
        .length_bytes = payload->meta_bytes + payload->data_bytes,
    };
}

/* Begins a send that may fail. The trace records it as sent now: its receiver may have it before this call returns. */
static inline void begin_send(spc_outbox_t *outbox) {
    outbox->sends++;
    if (__builtin_expect(outbox->options.trace != NULL, 0)) {
        outbox->began = spc_trace_now(outbox->options.trace);
    }
}

/* ---- life */

static uint64_t clamp(uint64_t count, uint64_t most) {
    return count == 0 ? 1 : count < most ? count : most;
}

int spc_outbox_create(const spc_outbox_options_t *options, spc_outbox_t **outbox) {
    const spc_segment_t *segment = options->segment;
    const spc_config_t *config = segment->config;
    const uint32_t receivers = config->nodes + (config->boxes > 1); /* then the gateway is one, too */
    spc_outbox_t *made = calloc(1, sizeof(*made) + receivers * sizeof(destination_t));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->options = *options;
    made->features = config->features;
    made->is_wide = config->boxes > 1;
    made->nodes = receivers;
    made->limit_bytes = options->is_unlimited ? UINT64_MAX : config->queue_limit_bytes;
    made->stride = options->is_unlimited
                       ? config->slots
                       : (uint32_t)clamp(spc_config_share_bytes(config) / SPC_EAGER_BYTES, config->slots);
    for (uint32_t i = 0; i < receivers; i++) {
        spc_mailbox_shared_t *mailbox = spc_segment_part(segment, SPC_REGION_MAILBOX, i);
        spc_mailbox_writer_init(&made->destination[i].writer, mailbox, options->rank, config->slots);
        queue_init(&made->destination[i].queue);
    }
    made->batch = calloc(receivers, sizeof(*made->batch));
    int status = made->batch == NULL ? SPC_ENOMEM : SPC_OK;
    if (status == SPC_OK) {
        status = spc_ring_create(spc_segment_part(segment, SPC_REGION_RING, options->rank),
                                 config->ring_bytes, receivers, options->status, &made->ring);
    }
    if (status == SPC_OK && config->arena_bytes != 0) {
        status =
            spc_arena_create(spc_segment_part(segment, SPC_REGION_ARENA, options->rank), config->arena_bytes,
                             options->rank, receivers, options->status, &made->arena);
    }
    if (status != SPC_OK) {
        spc_outbox_destroy(made);
        return status;
    }
    *outbox = made;
    return SPC_OK;
}

/* ---- the limit */

static bool has_ended(const spc_outbox_t *outbox, uint32_t rank) {
    return spc_status_state(outbox->options.status, rank) >= SPC_NODE_FINISHED;
}

bool spc_outbox_is_lent(const spc_outbox_t *outbox, uint32_t destination) {
    return spc_mailbox_lent(outbox->destination[destination].writer.row) != 0
           && !has_ended(outbox, destination);
}

/* The taken part of the limit: messages that wait here, and those that others keep beyond their shares. */
static uint64_t count_taken(const spc_outbox_t *outbox) {
    uint64_t bytes = outbox->total.bytes;
    for (uint32_t rank = 0; rank < outbox->nodes; rank++) {
        const uint64_t lent = spc_mailbox_lent(outbox->destination[rank].writer.row);
        bytes += lent != 0 && !has_ended(outbox, rank) ? lent : 0;
    }
    return bytes;
}

/* The members of a collective take its messages at once: these need no limit, and must not wait for one. */
static bool is_limited(const spc_outbox_t *outbox, uint16_t context) {
    return outbox->limit_bytes != UINT64_MAX && context % SPC_CONTEXT_KINDS != SPC_CONTEXT_INTERNAL;
}

/* Raises `leave`, if the row has room, and if the messages that receivers keep leave some of the limit. Queued messages
 * do not need it, for they have been counted; nor do messages of collectives. */
static bool look_for_room(spc_outbox_t *outbox, uint32_t rank, uint16_t context) {
    destination_t *destination = &outbox->destination[rank];
    const spc_mailbox_writer_t *writer = &destination->writer;
    if (!spc_mailbox_refresh(&destination->writer)) {
        return false;
    }
    uint64_t most = outbox->stride;
    if (spc_mailbox_lent(writer->row) != 0 && is_limited(outbox, context)) {
        const uint64_t taken = count_taken(outbox);
        if (taken >= outbox->limit_bytes) {
            return false;
        }
        most = clamp((outbox->limit_bytes - taken) / SPC_EAGER_BYTES, most);
    }
    const uint64_t room = writer->slots - (writer->announced - writer->consumed);
    destination->leave = writer->announced + (uint32_t)(room < most ? room : most);
    return true;
}

uint64_t spc_outbox_limit_for(const spc_outbox_t *outbox, uint64_t length_bytes) {
    return count_taken(outbox) + length_bytes + sizeof(waiting_t);
}

static bool is_over_limit(const spc_outbox_t *outbox, const spc_envelope_t *envelope) {
    /* A message longer than the limit may be queued alone: otherwise it could never be sent. */
    return is_limited(outbox, envelope->context)
           && spc_outbox_limit_for(outbox, envelope->length_bytes) > outbox->limit_bytes
           && count_taken(outbox) != 0;
}

static inline bool is_open(spc_outbox_t *outbox, uint32_t rank, uint16_t context) {
    destination_t *destination = &outbox->destination[rank];
    return destination->queue.head == NULL
           && ((int32_t)(destination->leave - destination->writer.announced) > 0
               || look_for_room(outbox, rank, context));
}

/* ---- announcing */

static void publish(spc_outbox_t *outbox, uint32_t rank) {
    spc_mailbox_announce(&outbox->destination[rank].writer);
    spc_event_notify(&outbox->options.events[rank], outbox->features);
}

/* The caller has checked that there is room. Inline, because every small message takes this path. */
static inline void announce_inline(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                                   const spc_payload_t *payload) {
    spc_slot_shared_t *slot = spc_mailbox_next(&outbox->destination[rank].writer);
    spc_slot_write_envelope(slot, envelope);
    if (payload->meta_bytes == 0 && payload->data_bytes == 8
        && payload->extents == NULL) { /* a number: the common case */
        memcpy(slot->payload.inlined, payload->data, 8);
    } else {
        spc_payload_copy(payload, 0, envelope->length_bytes, slot->payload.inlined);
    }
    publish(outbox, rank);
}

/* The row is open. `end`: of the message, or of this part in it. */
static void announce_part(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                          uint64_t offset, uint64_t end) {
    spc_slot_shared_t *slot = spc_mailbox_next(&outbox->destination[rank].writer);
    spc_slot_write_envelope(slot, envelope);
    slot->payload.part.offset = offset;
    slot->payload.part.end = end;
    publish(outbox, rank);
}

static void announce_offset(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                            uint64_t offset) {
    announce_part(outbox, rank, envelope, offset, envelope->length_bytes);
}

/* True: no node will receive it, and it has been counted. The caller drops it. */
static bool is_lost(const spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope) {
    bool lost = has_ended(outbox, rank);
    if (lost) {
        spc_note_add_left(outbox->options.notes, envelope->source, rank, envelope->tag, envelope->context);
    }
    return lost;
}

/* Room for a slot, and this many more. */
static bool has_slots(spc_mailbox_writer_t *writer, uint32_t more) {
    if (writer->announced - writer->consumed + more >= writer->slots) {
        (void)spc_mailbox_refresh(writer);
    }
    return writer->announced - writer->consumed + more < writer->slots;
}

/* Sends parts from `sent` on while there is room, with `kept` slots left over; returns how far it got. */
static uint64_t send_parts(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                           const spc_payload_t *payload, uint64_t skipped, uint64_t sent, uint32_t kept) {
    spc_envelope_t part = *envelope;
    part.flags |= SPC_SLOT_RING | SPC_SLOT_PART;
    const uint64_t longest = spc_ring_payload_max(outbox->ring, 1), whole = envelope->length_bytes;
    while (sent < whole && has_slots(&outbox->destination[rank].writer, kept)) {
        uint64_t left = whole - sent, bytes = left < longest ? left : longest;
        spc_ring_header_shared_t *header;
        void *room;
        if (spc_ring_reserve(outbox->ring, &(int32_t){(int32_t)rank}, 1, bytes, &header, &room) != SPC_OK) {
            break;
        }
        spc_payload_copy(payload, sent - skipped, bytes, room);
        part.flags = (uint8_t)(sent == 0 ? part.flags | SPC_SLOT_FIRST : part.flags & ~SPC_SLOT_FIRST);
        sent += bytes;
        announce_part(outbox, rank, &part, spc_segment_offset(outbox->options.segment, header), sent);
        spc_status_set_moved(outbox->options.status, outbox->options.rank, true, whole, sent);
    }
    return sent;
}

/* ---- sending */

/* Records a send at the time `ticks`. */
static void record(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope, uint64_t ticks) {
    spc_trace_record(outbox->options.trace,
                     &(spc_trace_event_t){.ticks = ticks,
                                          .kind = SPC_TRACE_SEND,
                                          .context = envelope->context,
                                          .peer = (int32_t)rank,
                                          .tag = envelope->tag,
                                          .bytes = envelope->length_bytes,
                                          .number = (uint32_t)++outbox->destination[rank].sent});
}

/* Records and returns the status: announced or queued for this destination, if it is SPC_OK. */
static int note_taken(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope, int status) {
    outbox->destination[rank].taken = status == SPC_OK ? outbox->sends : 0;
    if (__builtin_expect(outbox->options.trace != NULL, 0) && status == SPC_OK) {
        record(outbox, rank, envelope, outbox->began);
    }
    return status;
}

void spc_outbox_ask(spc_outbox_t *outbox, uint8_t flags) {
    outbox->asks = flags;
}

bool spc_outbox_took(const spc_outbox_t *outbox, uint32_t destination) {
    return outbox->destination[destination].taken == outbox->sends;
}

static bool fits_ring(const spc_outbox_t *outbox, uint64_t bytes, uint32_t count) {
    return bytes <= spc_ring_payload_max(outbox->ring, count);
}

/* Queues the announcement if there is no room. SPC_ENOMEM. */
static int announce_or_enqueue(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                               uint64_t offset) {
    if (is_open(outbox, rank, envelope->context)) {
        announce_offset(outbox, rank, envelope, offset);
        return note_taken(outbox, rank, envelope, SPC_OK);
    }
    waiting_t waiting = {.envelope = *envelope, .offset = offset};
    int status = queue_push(&outbox->destination[rank].queue, &waiting, &outbox->total);
    return note_taken(outbox, rank, envelope, status);
}

/* Writes the payload once into the ring for all of `destinations`. SPC_EAGAIN: there is no room. */
static int send_by_ring(spc_outbox_t *outbox, const int32_t *destinations, uint32_t count,
                        const spc_envelope_t *envelope, const spc_payload_t *payload) {
    spc_ring_header_shared_t *headers;
    void *room;
    int status = spc_ring_reserve(outbox->ring, destinations, count, envelope->length_bytes, &headers, &room);
    if (status != SPC_OK) {
        return SPC_EAGAIN;
    }
    spc_payload_copy(payload, 0, envelope->length_bytes, room);
    spc_envelope_t by_ring = *envelope;
    by_ring.flags |= SPC_SLOT_RING;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t offset = spc_segment_offset(outbox->options.segment, &headers[i]);
        int queued = announce_or_enqueue(outbox, (uint32_t)destinations[i], &by_ring, offset);
        if (queued != SPC_OK) {
            spc_ring_mark_read(&headers[i]); /* no receiver will */
            status = queued;
        }
    }
    return status;
}

/* Sends a message longer than a chunk of the ring: parts as far as there is room, and the queue gets the rest.
 * SPC_EAGAIN: not one part found room, and nothing is queued. SPC_ENOMEM: nothing was sent either. */
static int begin_parts(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                       const spc_payload_t *payload) {
    rest_t rest;
    if (!is_open(outbox, rank, envelope->context)) {
        return SPC_EAGAIN;
    }
    if (rest_reserve(envelope->length_bytes, &rest) != SPC_OK) {
        return SPC_ENOMEM;
    }
    uint64_t sent = send_parts(outbox, rank, envelope, payload, 0, 0, 0);
    if (sent != 0 && sent != envelope->length_bytes) {
        spc_status_set_copying(outbox->options.status, outbox->options.rank, envelope->length_bytes);
        rest_queue(&rest, envelope, payload, sent, &outbox->destination[rank].queue, &outbox->total);
        spc_status_set_copying(outbox->options.status, outbox->options.rank, 0);
        return note_taken(outbox, rank, envelope, SPC_OK);
    }
    rest_free(&rest);
    return sent == 0 ? SPC_EAGAIN : note_taken(outbox, rank, envelope, SPC_OK);
}

/* Sends as much as can go before anything is queued. SPC_EAGAIN: there is no room. */
static int send_at_once(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                        const spc_payload_t *payload, bool limited) {
    if (!fits_ring(outbox, envelope->length_bytes, 1)) {
        return begin_parts(outbox, rank, envelope, payload);
    }
    if (limited || envelope->length_bytes <= SPC_INLINE_BYTES) {
        return SPC_EAGAIN;
    }
    /* Receivers of a multicast that keep up do not wait for one that holds all its chunks. */
    int32_t destination = (int32_t)rank;
    return send_by_ring(outbox, &destination, 1, envelope, payload);
}

/* Sends to one destination, or to some of several that cannot share the ring: queues messages without room. */
static int send_alone(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                      const spc_payload_t *payload, bool limited, copy_t **shared) {
    if (is_lost(outbox, rank, envelope)) {
        return SPC_OK;
    }
    if (outbox->destination[rank].queue.head == NULL) {
        int status = send_at_once(outbox, rank, envelope, payload, limited);
        if (status != SPC_EAGAIN) {
            return status;
        }
    }
    if (limited && is_over_limit(outbox, envelope)) {
        return SPC_EAGAIN;
    }
    if (*shared == NULL) {
        spc_status_set_copying(outbox->options.status, outbox->options.rank, envelope->length_bytes);
        *shared = copy_make(payload);
        spc_status_set_copying(outbox->options.status, outbox->options.rank, 0);
    }
    if (*shared == NULL) {
        return SPC_ENOMEM;
    }
    waiting_t waiting = {.envelope = *envelope, .copy = *shared};
    int status = queue_push(&outbox->destination[rank].queue, &waiting, &outbox->total);
    return note_taken(outbox, rank, envelope, status);
}

/* Sends to each of outbox->batch alone, if they cannot share the ring. */
static int send_batch(spc_outbox_t *outbox, uint32_t batch, const spc_envelope_t *envelope,
                      const spc_payload_t *payload, bool limited, copy_t **shared) {
    if (batch != 0 && fits_ring(outbox, envelope->length_bytes, batch)) {
        int status = send_by_ring(outbox, outbox->batch, batch, envelope, payload);
        if (status != SPC_EAGAIN) {
            return status;
        }
    }
    int status = SPC_OK;
    for (uint32_t i = 0; i < batch && status == SPC_OK; i++) {
        status = send_alone(outbox, (uint32_t)outbox->batch[i], envelope, payload, limited, shared);
    }
    return status;
}

static bool is_blocked(spc_outbox_t *outbox, const int32_t *destinations, uint32_t count, uint16_t context) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = (uint32_t)destinations[i];
        if (!is_open(outbox, rank, context) && !has_ended(outbox, rank)) {
            return true;
        }
    }
    return false;
}

/* Several destinations, or one without an open row: those without an unwritten message before it share the ring. */
static int send_widely(spc_outbox_t *outbox, const int32_t *destinations, uint32_t count,
                       const spc_envelope_t *envelope, const spc_payload_t *payload) {
    begin_send(outbox);
    /* Between boxes, a multicast is identified by its place in the ring. */
    bool small = envelope->length_bytes <= SPC_INLINE_BYTES && (count == 1 || !outbox->is_wide);
    bool limited = count == 1; /* a multicast that has begun goes beyond the limit, by one message */
    if (is_blocked(outbox, destinations, count, envelope->context) && is_over_limit(outbox, envelope)) {
        return SPC_EAGAIN;
    }
    uint32_t batch = 0;
    copy_t *shared = NULL;
    int status = SPC_OK;
    for (uint32_t i = 0; i < count && status == SPC_OK; i++) {
        uint32_t rank = (uint32_t)destinations[i];
        if (small && is_open(outbox, rank, envelope->context)) {
            announce_inline(outbox, rank, envelope, payload);
            (void)note_taken(outbox, rank, envelope, SPC_OK);
        } else if (!small && outbox->destination[rank].queue.copies == 0 && !has_ended(outbox, rank)) {
            outbox->batch[batch++] = destinations[i];
        } else {
            status = send_alone(outbox, rank, envelope, payload, limited, &shared);
        }
    }
    status = status != SPC_OK ? status : send_batch(outbox, batch, envelope, payload, limited, &shared);
    copy_release(shared);
    return status;
}

int spc_outbox_send(spc_outbox_t *outbox, const int32_t *destinations, uint32_t destination_count,
                    uint16_t context, int32_t tag, const spc_payload_t *payload) {
    spc_envelope_t envelope = envelope_of(outbox, context, tag, payload, SPC_SLOT_INLINE);
    if (destination_count == 1 && envelope.length_bytes <= SPC_INLINE_BYTES
        && is_open(outbox, (uint32_t)destinations[0], context)) {
        if (__builtin_expect(outbox->options.trace != NULL, 0)) {
            record(outbox, (uint32_t)destinations[0], &envelope, 0);
        }
        announce_inline(outbox, (uint32_t)destinations[0], &envelope, payload);
        return SPC_OK;
    }
    return send_widely(outbox, destinations, destination_count, &envelope, payload);
}

/* Neither a message for the trace nor for anyone's count. */
void spc_outbox_send_last(spc_outbox_t *outbox, const uint32_t *destinations, uint32_t destination_count,
                          uint16_t context) {
    const spc_envelope_t envelope = {.source = (uint16_t)outbox->options.rank,
                                     .context = context,
                                     .flags = SPC_SLOT_INLINE | SPC_SLOT_LAST};
    const waiting_t waiting = {.envelope = envelope};
    for (uint32_t i = 0; i < destination_count; i++) {
        if (has_ended(outbox, destinations[i])) {
            continue;
        }
        if (is_open(outbox, destinations[i], context)) {
            announce_offset(outbox, destinations[i], &envelope, 0);
        } else {
            (void)queue_push(&outbox->destination[destinations[i]].queue, &waiting, &outbox->total);
        }
    }
}

/* ---- blocks of an arena */

int spc_outbox_take_block(spc_outbox_t *outbox, uint64_t length_bytes, spc_block_shared_t **block) {
    return outbox->arena != NULL ? spc_arena_alloc(outbox->arena, length_bytes, block) : SPC_EAGAIN;
}

int spc_outbox_take_kept(spc_outbox_t *outbox, uint64_t length_bytes, spc_block_shared_t **block) {
    return outbox->arena != NULL ? spc_arena_alloc_kept(outbox->arena, length_bytes, block) : SPC_EAGAIN;
}

int spc_outbox_send_block(spc_outbox_t *outbox, const int32_t *destinations, uint32_t destination_count,
                          uint16_t context, int32_t tag, const spc_payload_t *payload,
                          spc_block_shared_t *block) {
    uint8_t flags = (uint8_t)(SPC_SLOT_ARENA | (destination_count == 1 ? SPC_SLOT_SOLE : 0));
    spc_envelope_t envelope = envelope_of(outbox, context, tag, payload, flags);
    uint64_t offset = spc_segment_offset(outbox->options.segment, block);
    begin_send(outbox);
    bool to_self = false;
    int status = SPC_OK;
    uint32_t count = 0;
    /* All pins before the first announcement: a fast receiver must not be the last holder for a moment. */
    for (uint32_t i = 0; i < destination_count; i++) {
        if (!is_lost(outbox, (uint32_t)destinations[i], &envelope)) {
            spc_block_pin(block, (uint32_t)destinations[i]);
            to_self = to_self || (uint32_t)destinations[i] == outbox->options.rank;
            outbox->batch[count++] = destinations[i];
        }
    }
    if (!to_self) {
        /* Before them, too: a node that alone gets the block may pass it back at once, and then this pin is its new
         * one. */
        spc_block_unpin(block, outbox->options.rank);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = (uint32_t)outbox->batch[i];
        int queued = announce_or_enqueue(outbox, rank, &envelope, offset);
        if (queued != SPC_OK) {
            spc_block_unpin(block, rank);
            status = queued;
        }
    }
    return status;
}

/* Frees a block that no node gets. Its owner may wait for room. */
static void give_back(const spc_outbox_t *outbox, spc_block_shared_t *block) {
    uint32_t owner = block->owner; /* without its pin, the block may be reused at once */
    spc_block_unpin(block, outbox->options.rank);
    spc_event_notify(&outbox->options.events[owner], outbox->features);
}

uint64_t spc_outbox_block_bytes(spc_outbox_t *outbox) {
    return outbox->arena != NULL ? spc_arena_used(outbox->arena) : 0;
}

int spc_outbox_move_block(spc_outbox_t *outbox, int32_t destination, uint16_t context, int32_t tag,
                          const spc_payload_t *payload, spc_block_shared_t *block) {
    spc_envelope_t envelope = envelope_of(outbox, context, tag, payload, SPC_SLOT_ARENA | SPC_SLOT_SOLE);
    uint32_t to = (uint32_t)destination, from = outbox->options.rank;
    uint64_t offset = spc_segment_offset(outbox->options.segment, block);
    begin_send(outbox);
    if (is_lost(outbox, to, &envelope)) {
        give_back(outbox, block);
        return SPC_OK;
    }
    bool open = is_open(outbox, to, context);
    waiting_t waiting = {.envelope = envelope, .offset = offset};
    int status = open ? SPC_OK : queue_push(&outbox->destination[to].queue, &waiting, &outbox->total);
    if (status == SPC_OK && to != from) {
        /* Before the block is announced: its receiver may pass it back at once, which sets this node's pin. */
        spc_block_pass(block, from, to);
    }
    if (status == SPC_OK && open) {
        announce_offset(outbox, to, &envelope, offset);
    }
    return note_taken(outbox, to, &envelope, status);
}

/* ---- streams */

/*
 * Streams are long messages that both sides copy at once, through the few chunks of the ring that stay in the cache.
 * Both copies of a block of the arena would go through main memory.
 *
 * A stream is the head of its destination's queue: the order is kept, and any thread that flushes sends parts of it.
 * The block for the rest is taken before the first part is sent, and a slot of the row is kept for it: a message that
 * has begun always reaches its receiver without its sender's further help, like a message in a block.
 */

int spc_outbox_begin_stream(spc_outbox_t *outbox, int32_t destination, uint16_t context, int32_t tag,
                            const spc_payload_t *payload, spc_stream_t *stream) {
    const uint32_t rank = (uint32_t)destination;
    const spc_envelope_t envelope = envelope_of(outbox, context, tag, payload, 0);
    const waiting_t waiting = {.envelope = envelope, .stream = stream};
    *stream = (spc_stream_t){.payload = payload, .destination = rank};
    if (!spc_mailbox_is_wanted(&outbox->destination[rank].writer, context, tag, envelope.length_bytes)
        || !is_open(outbox, rank, context)
        || spc_outbox_take_block(outbox, envelope.length_bytes, &stream->block) != SPC_OK) {
        return SPC_EAGAIN;
    }
    if (queue_push(&outbox->destination[rank].queue, &waiting, &outbox->total) != SPC_OK) {
        give_back(outbox, stream->block);
        return SPC_EAGAIN;
    }
    outbox->destination[rank].streams = true;
    begin_send(outbox);
    return note_taken(outbox, rank, &envelope, SPC_OK);
}

bool spc_outbox_expect_stream(spc_outbox_t *outbox, int32_t destination, bool expected) {
    const bool before = outbox->destination[destination].streams;
    outbox->destination[destination].streams = expected;
    return before;
}

/* The block holds the rest of the message: its last part, or the whole message if no part found room. */
static void queue_block(spc_outbox_t *outbox, const spc_stream_t *stream) {
    queue_t *queue = &outbox->destination[stream->destination].queue;
    waiting_t *item = queue->head;
    spc_block_pin(stream->block, stream->destination);
    spc_block_unpin(stream->block, outbox->options.rank);
    item->envelope.flags |= SPC_SLOT_ARENA | (stream->sent != 0 ? SPC_SLOT_PART : SPC_SLOT_SOLE);
    item->offset = spc_segment_offset(outbox->options.segment, stream->block);
    item->stream = NULL;
    queue->copies--;
}

void spc_outbox_end_stream(spc_outbox_t *outbox, spc_stream_t *stream) {
    if (stream->done) { /* all of it was sent, or its receiver has ended */
        give_back(outbox, stream->block);
    } else {
        queue_block(outbox, stream);
        (void)spc_outbox_flush(outbox);
    }
}

/* ---- flushing */

/* Sends the parts of a stream that have room, out of its sender's memory. */
static bool flush_stream(spc_outbox_t *outbox, uint32_t rank, const waiting_t *item) {
    spc_stream_t *stream = item->stream;
    const uint64_t before = stream->sent;
    if (stream->held) {
        return false;
    }
    /* The last part may be a block, which must not wait for a slot. */
    stream->sent = send_parts(outbox, rank, &item->envelope, stream->payload, 0, before, 1);
    if (stream->sent == item->envelope.length_bytes) {
        queue_pop(&outbox->destination[rank].queue, &outbox->total);
        return true;
    }
    return stream->sent != before;
}

/* Sends the head of a queue if there is room; true if it left the queue or advanced. */
static bool flush_head(spc_outbox_t *outbox, uint32_t rank) {
    destination_t *destination = &outbox->destination[rank];
    waiting_t *item = destination->queue.head;
    if (!spc_mailbox_has_room(&destination->writer)) {
        return false;
    }
    /* The next new message looks again, however many are announced from here: `leave` is compared modulo 2^32. */
    destination->leave = destination->writer.announced;
    if (item->stream != NULL) {
        return flush_stream(outbox, rank, item);
    }
    if (item->copy == NULL) {
        announce_offset(outbox, rank, &item->envelope, item->offset);
        queue_pop(&outbox->destination[rank].queue, &outbox->total);
        return true;
    }
    spc_payload_t rest = {.data = item->copy->data, .data_bytes = item->copy->bytes};
    int32_t to = (int32_t)rank;
    spc_ring_header_shared_t *header;
    void *room;
    if (item->envelope.length_bytes <= SPC_INLINE_BYTES) {
        announce_inline(outbox, rank, &item->envelope, &rest);
    } else if (fits_ring(outbox, item->envelope.length_bytes, 1)) {
        spc_envelope_t by_ring = item->envelope;
        by_ring.flags |= SPC_SLOT_RING;
        if (spc_ring_reserve(outbox->ring, &to, 1, by_ring.length_bytes, &header, &room) != SPC_OK) {
            return false;
        }
        memcpy(room, item->copy->data, by_ring.length_bytes);
        announce_offset(outbox, rank, &by_ring, spc_segment_offset(outbox->options.segment, header));
    } else {
        uint64_t before = item->sent;
        item->sent = send_parts(outbox, rank, &item->envelope, &rest, item->copy->from, before, 0);
        if (item->sent != item->envelope.length_bytes) {
            return item->sent != before;
        }
    }
    queue_pop(&outbox->destination[rank].queue, &outbox->total);
    return true;
}

/* Not inlined: its registers are not worth saving where nothing waits. */
static __attribute__((noinline)) bool flush_waiting(spc_outbox_t *outbox) {
    bool moved = false;
    for (uint32_t rank = 0; rank < outbox->nodes && outbox->total.waiting != 0; rank++) {
        const queue_t *queue = &outbox->destination[rank].queue;
        if (queue->head != NULL && has_ended(outbox, rank)) {
            queue_drop(&outbox->destination[rank].queue, &outbox->options, rank, &outbox->total);
            moved = true;
        }
        const waiting_t *before = NULL;
        while (queue->head != NULL && queue->head != before) {
            before = queue->head;
            moved = flush_head(outbox, rank) || moved;
        }
    }
    return moved;
}

/* Every send and receive takes this path, mostly with nothing to do. */
bool spc_outbox_flush(spc_outbox_t *outbox) {
    return __builtin_expect(outbox->total.waiting != 0, 0) && flush_waiting(outbox);
}

bool spc_outbox_is_empty(const spc_outbox_t *outbox) {
    return outbox->total.waiting == 0;
}

uint32_t spc_outbox_waiting(const spc_outbox_t *outbox, uint32_t destination) {
    return outbox->destination[destination].queue.length;
}

void spc_outbox_destroy(spc_outbox_t *outbox) {
    if (outbox == NULL) {
        return;
    }
    for (uint32_t i = 0; i < outbox->nodes; i++) {
        while (outbox->destination[i].queue.head != NULL) {
            queue_pop(&outbox->destination[i].queue, &outbox->total);
        }
    }
    spc_arena_destroy(outbox->arena);
    spc_ring_destroy(outbox->ring);
    free(outbox->batch);
    free(outbox);
}
