/* SPDX-License-Identifier: MIT */
#include "message/spc_outbox.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "message/spc_outbox_queue.h"

typedef struct destination {
    spc_mailbox_writer_t writer;
    spc_outbox_queue_t queue;
    uint32_t leave; /* new messages may be announced up to this number: spc_outbox_look */
    uint64_t taken; /* the last send that has announced or queued something for it */
    uint64_t sent;  /* number of messages announced; counted only if there is a trace */
    bool streams;   /* the last long message to it was a stream: spc_outbox_expect_stream */
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
    spc_queue_total_t total;
    spc_ring_t *ring;
    spc_arena_t *arena; /* NULL if this run has none */
    int32_t *batch;     /* destinations that share one message in the ring */
    destination_t destination[];
};

static inline spc_envelope_t spc_outbox_envelope(const spc_outbox_t *outbox, uint16_t context, int32_t tag,
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
static inline void spc_outbox_begin(spc_outbox_t *outbox) {
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
        spc_outbox_queue_init(&made->destination[i].queue);
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
static bool spc_outbox_look(spc_outbox_t *outbox, uint32_t rank, uint16_t context) {
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
    return count_taken(outbox) + length_bytes + sizeof(spc_waiting_t);
}

static bool is_over_limit(const spc_outbox_t *outbox, const spc_envelope_t *envelope) {
    /* A message longer than the limit may be queued alone: otherwise it could never be sent. */
    return is_limited(outbox, envelope->context)
           && spc_outbox_limit_for(outbox, envelope->length_bytes) > outbox->limit_bytes
           && count_taken(outbox) != 0;
}

static inline bool spc_outbox_is_open(spc_outbox_t *outbox, uint32_t rank, uint16_t context) {
    destination_t *destination = &outbox->destination[rank];
    return destination->queue.head == NULL
           && ((int32_t)(destination->leave - destination->writer.announced) > 0
               || spc_outbox_look(outbox, rank, context));
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

/* The row is open. */
static void spc_outbox_announce_offset(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                                       uint64_t offset) {
    spc_slot_shared_t *slot = spc_mailbox_next(&outbox->destination[rank].writer);
    spc_slot_write_envelope(slot, envelope);
    slot->payload.offset = offset;
    publish(outbox, rank);
}

/* True: no node will receive it, and it has been counted. The caller drops it. */
static bool spc_outbox_is_lost(const spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope) {
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
    uint64_t longest = spc_ring_payload_max(outbox->ring, 1);
    while (sent < envelope->length_bytes && has_slots(&outbox->destination[rank].writer, kept)) {
        uint64_t left = envelope->length_bytes - sent, bytes = left < longest ? left : longest;
        spc_ring_header_shared_t *header;
        void *room;
        if (spc_ring_reserve(outbox->ring, &(int32_t){(int32_t)rank}, 1, bytes, &header, &room) != SPC_OK) {
            break;
        }
        spc_payload_copy(payload, sent - skipped, bytes, room);
        part.flags = (uint8_t)(sent == 0 ? part.flags | SPC_SLOT_FIRST : part.flags & ~SPC_SLOT_FIRST);
        spc_outbox_announce_offset(outbox, rank, &part, spc_segment_offset(outbox->options.segment, header));
        sent += bytes;
        spc_status_set_moved(outbox->options.status, outbox->options.rank, true, envelope->length_bytes,
                             sent);
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
static int spc_outbox_note_taken(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                                 int status) {
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
static int spc_outbox_announce_or_enqueue(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                                          uint64_t offset) {
    if (spc_outbox_is_open(outbox, rank, envelope->context)) {
        spc_outbox_announce_offset(outbox, rank, envelope, offset);
        return spc_outbox_note_taken(outbox, rank, envelope, SPC_OK);
    }
    spc_waiting_t waiting = {.envelope = *envelope, .offset = offset};
    int status = spc_outbox_queue_push(&outbox->destination[rank].queue, &waiting, &outbox->total);
    return spc_outbox_note_taken(outbox, rank, envelope, status);
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
        int queued = spc_outbox_announce_or_enqueue(outbox, (uint32_t)destinations[i], &by_ring, offset);
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
    spc_rest_t rest;
    if (!spc_outbox_is_open(outbox, rank, envelope->context)) {
        return SPC_EAGAIN;
    }
    if (spc_rest_reserve(envelope->length_bytes, &rest) != SPC_OK) {
        return SPC_ENOMEM;
    }
    uint64_t sent = send_parts(outbox, rank, envelope, payload, 0, 0, 0);
    if (sent != 0 && sent != envelope->length_bytes) {
        spc_status_set_copying(outbox->options.status, outbox->options.rank, envelope->length_bytes);
        spc_rest_queue(&rest, envelope, payload, sent, &outbox->destination[rank].queue, &outbox->total);
        spc_status_set_copying(outbox->options.status, outbox->options.rank, 0);
        return spc_outbox_note_taken(outbox, rank, envelope, SPC_OK);
    }
    spc_rest_free(&rest);
    return sent == 0 ? SPC_EAGAIN : spc_outbox_note_taken(outbox, rank, envelope, SPC_OK);
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
                      const spc_payload_t *payload, bool limited, spc_copy_t **shared) {
    if (spc_outbox_is_lost(outbox, rank, envelope)) {
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
        *shared = spc_copy_make(payload);
        spc_status_set_copying(outbox->options.status, outbox->options.rank, 0);
    }
    if (*shared == NULL) {
        return SPC_ENOMEM;
    }
    spc_waiting_t waiting = {.envelope = *envelope, .copy = *shared};
    int status = spc_outbox_queue_push(&outbox->destination[rank].queue, &waiting, &outbox->total);
    return spc_outbox_note_taken(outbox, rank, envelope, status);
}

/* Sends to each of outbox->batch alone, if they cannot share the ring. */
static int send_batch(spc_outbox_t *outbox, uint32_t batch, const spc_envelope_t *envelope,
                      const spc_payload_t *payload, bool limited, spc_copy_t **shared) {
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
        if (!spc_outbox_is_open(outbox, rank, context) && !has_ended(outbox, rank)) {
            return true;
        }
    }
    return false;
}

/* Several destinations, or one without an open row: those without an unwritten message before it share the ring. */
static int send_widely(spc_outbox_t *outbox, const int32_t *destinations, uint32_t count,
                       const spc_envelope_t *envelope, const spc_payload_t *payload) {
    spc_outbox_begin(outbox);
    /* Between boxes, a multicast is identified by its place in the ring. */
    bool small = envelope->length_bytes <= SPC_INLINE_BYTES && (count == 1 || !outbox->is_wide);
    bool limited = count == 1; /* a multicast that has begun goes beyond the limit, by one message */
    if (is_blocked(outbox, destinations, count, envelope->context) && is_over_limit(outbox, envelope)) {
        return SPC_EAGAIN;
    }
    uint32_t batch = 0;
    spc_copy_t *shared = NULL;
    int status = SPC_OK;
    for (uint32_t i = 0; i < count && status == SPC_OK; i++) {
        uint32_t rank = (uint32_t)destinations[i];
        if (small && spc_outbox_is_open(outbox, rank, envelope->context)) {
            announce_inline(outbox, rank, envelope, payload);
            (void)spc_outbox_note_taken(outbox, rank, envelope, SPC_OK);
        } else if (!small && outbox->destination[rank].queue.copies == 0 && !has_ended(outbox, rank)) {
            outbox->batch[batch++] = destinations[i];
        } else {
            status = send_alone(outbox, rank, envelope, payload, limited, &shared);
        }
    }
    status = status != SPC_OK ? status : send_batch(outbox, batch, envelope, payload, limited, &shared);
    spc_copy_release(shared);
    return status;
}

int spc_outbox_send(spc_outbox_t *outbox, const int32_t *destinations, uint32_t destination_count,
                    uint16_t context, int32_t tag, const spc_payload_t *payload) {
    spc_envelope_t envelope = spc_outbox_envelope(outbox, context, tag, payload, SPC_SLOT_INLINE);
    if (destination_count == 1 && envelope.length_bytes <= SPC_INLINE_BYTES
        && spc_outbox_is_open(outbox, (uint32_t)destinations[0], context)) {
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
    const spc_waiting_t waiting = {.envelope = envelope};
    for (uint32_t i = 0; i < destination_count; i++) {
        if (has_ended(outbox, destinations[i])) {
            continue;
        }
        if (spc_outbox_is_open(outbox, destinations[i], context)) {
            spc_outbox_announce_offset(outbox, destinations[i], &envelope, 0);
        } else {
            (void)spc_outbox_queue_push(&outbox->destination[destinations[i]].queue, &waiting,
                                        &outbox->total);
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
    spc_envelope_t envelope = spc_outbox_envelope(outbox, context, tag, payload, flags);
    uint64_t offset = spc_segment_offset(outbox->options.segment, block);
    spc_outbox_begin(outbox);
    bool to_self = false;
    int status = SPC_OK;
    uint32_t count = 0;
    /* All pins before the first announcement: a fast receiver must not be the last holder for a moment. */
    for (uint32_t i = 0; i < destination_count; i++) {
        if (!spc_outbox_is_lost(outbox, (uint32_t)destinations[i], &envelope)) {
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
        int queued = spc_outbox_announce_or_enqueue(outbox, rank, &envelope, offset);
        if (queued != SPC_OK) {
            spc_block_unpin(block, rank);
            status = queued;
        }
    }
    return status;
}

/* Frees a block that no node gets. Its owner may wait for room. */
static void spc_outbox_give_back(const spc_outbox_t *outbox, spc_block_shared_t *block) {
    uint32_t owner = block->owner; /* without its pin, the block may be reused at once */
    spc_block_unpin(block, outbox->options.rank);
    spc_event_notify(&outbox->options.events[owner], outbox->features);
}

uint64_t spc_outbox_block_bytes(spc_outbox_t *outbox) {
    return outbox->arena != NULL ? spc_arena_used(outbox->arena) : 0;
}

int spc_outbox_move_block(spc_outbox_t *outbox, int32_t destination, uint16_t context, int32_t tag,
                          const spc_payload_t *payload, spc_block_shared_t *block) {
    spc_envelope_t envelope =
        spc_outbox_envelope(outbox, context, tag, payload, SPC_SLOT_ARENA | SPC_SLOT_SOLE);
    uint32_t to = (uint32_t)destination, from = outbox->options.rank;
    uint64_t offset = spc_segment_offset(outbox->options.segment, block);
    spc_outbox_begin(outbox);
    if (spc_outbox_is_lost(outbox, to, &envelope)) {
        spc_outbox_give_back(outbox, block);
        return SPC_OK;
    }
    bool open = spc_outbox_is_open(outbox, to, context);
    spc_waiting_t waiting = {.envelope = envelope, .offset = offset};
    int status =
        open ? SPC_OK : spc_outbox_queue_push(&outbox->destination[to].queue, &waiting, &outbox->total);
    if (status == SPC_OK && to != from) {
        /* Before the block is announced: its receiver may pass it back at once, which sets this node's pin. */
        spc_block_pass(block, from, to);
    }
    if (status == SPC_OK && open) {
        spc_outbox_announce_offset(outbox, to, &envelope, offset);
    }
    return spc_outbox_note_taken(outbox, to, &envelope, status);
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
    const spc_envelope_t envelope = spc_outbox_envelope(outbox, context, tag, payload, 0);
    const spc_waiting_t waiting = {.envelope = envelope, .stream = stream};
    *stream = (spc_stream_t){.payload = payload, .destination = rank};
    if (!spc_mailbox_is_wanted(&outbox->destination[rank].writer, context, tag, envelope.length_bytes)
        || !spc_outbox_is_open(outbox, rank, context)
        || spc_outbox_take_block(outbox, envelope.length_bytes, &stream->block) != SPC_OK) {
        return SPC_EAGAIN;
    }
    if (spc_outbox_queue_push(&outbox->destination[rank].queue, &waiting, &outbox->total) != SPC_OK) {
        spc_outbox_give_back(outbox, stream->block);
        return SPC_EAGAIN;
    }
    outbox->destination[rank].streams = true;
    spc_outbox_begin(outbox);
    return spc_outbox_note_taken(outbox, rank, &envelope, SPC_OK);
}

bool spc_outbox_expect_stream(spc_outbox_t *outbox, int32_t destination, bool expected) {
    const bool before = outbox->destination[destination].streams;
    outbox->destination[destination].streams = expected;
    return before;
}

/* The block holds the rest of the message: its last part, or the whole message if no part found room. */
static void queue_block(spc_outbox_t *outbox, const spc_stream_t *stream) {
    spc_outbox_queue_t *queue = &outbox->destination[stream->destination].queue;
    spc_waiting_t *item = queue->head;
    spc_block_pin(stream->block, stream->destination);
    spc_block_unpin(stream->block, outbox->options.rank);
    item->envelope.flags |= SPC_SLOT_ARENA | (stream->sent != 0 ? SPC_SLOT_PART : SPC_SLOT_SOLE);
    item->offset = spc_segment_offset(outbox->options.segment, stream->block);
    item->stream = NULL;
    queue->copies--;
}

void spc_outbox_end_stream(spc_outbox_t *outbox, spc_stream_t *stream) {
    if (stream->done) { /* all of it was sent, or its receiver has ended */
        spc_outbox_give_back(outbox, stream->block);
    } else {
        queue_block(outbox, stream);
        (void)spc_outbox_flush(outbox);
    }
}

/* ---- flushing */

/* Sends the parts of a stream that have room, out of its sender's memory. */
static bool flush_stream(spc_outbox_t *outbox, uint32_t rank, const spc_waiting_t *item) {
    spc_stream_t *stream = item->stream;
    const uint64_t before = stream->sent;
    if (stream->held) {
        return false;
    }
    /* The last part may be a block, which must not wait for a slot. */
    stream->sent = send_parts(outbox, rank, &item->envelope, stream->payload, 0, before, 1);
    if (stream->sent == item->envelope.length_bytes) {
        spc_outbox_queue_pop(&outbox->destination[rank].queue, &outbox->total);
        return true;
    }
    return stream->sent != before;
}

/* Sends the head of a queue if there is room; true if it left the queue or advanced. */
static bool flush_head(spc_outbox_t *outbox, uint32_t rank) {
    destination_t *destination = &outbox->destination[rank];
    spc_waiting_t *item = destination->queue.head;
    if (!spc_mailbox_has_room(&destination->writer)) {
        return false;
    }
    /* The next new message looks again, however many are announced from here: `leave` is compared modulo 2^32. */
    destination->leave = destination->writer.announced;
    if (item->stream != NULL) {
        return flush_stream(outbox, rank, item);
    }
    if (item->copy == NULL) {
        spc_outbox_announce_offset(outbox, rank, &item->envelope, item->offset);
        spc_outbox_queue_pop(&outbox->destination[rank].queue, &outbox->total);
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
        spc_outbox_announce_offset(outbox, rank, &by_ring,
                                   spc_segment_offset(outbox->options.segment, header));
    } else {
        uint64_t before = item->sent;
        item->sent = send_parts(outbox, rank, &item->envelope, &rest, item->copy->from, before, 0);
        if (item->sent != item->envelope.length_bytes) {
            return item->sent != before;
        }
    }
    spc_outbox_queue_pop(&outbox->destination[rank].queue, &outbox->total);
    return true;
}

/* Not inlined: its registers are not worth saving where nothing waits. */
static __attribute__((noinline)) bool flush_waiting(spc_outbox_t *outbox) {
    bool moved = false;
    for (uint32_t rank = 0; rank < outbox->nodes && outbox->total.waiting != 0; rank++) {
        const spc_outbox_queue_t *queue = &outbox->destination[rank].queue;
        if (queue->head != NULL && has_ended(outbox, rank)) {
            spc_outbox_queue_drop(&outbox->destination[rank].queue, &outbox->options, rank, &outbox->total);
            moved = true;
        }
        const spc_waiting_t *before = NULL;
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
            spc_outbox_queue_pop(&outbox->destination[i].queue, &outbox->total);
        }
    }
    spc_arena_destroy(outbox->arena);
    spc_ring_destroy(outbox->ring);
    free(outbox->batch);
    free(outbox);
}
