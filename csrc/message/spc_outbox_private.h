/* SPDX-License-Identifier: MIT */
/*
 * spc_outbox_private: what the files of the outbox share. Nobody else includes it.
 *
 *   spc_outbox.c        choosing, announcing, flushing
 *   spc_outbox_block.c  what lies in a block of an arena
 *   spc_outbox_stream.c what is copied while its receiver copies
 *   spc_outbox_queue.c  what waits: spc_outbox_queue.h
 */
#ifndef SPC_OUTBOX_PRIVATE_H
#define SPC_OUTBOX_PRIVATE_H

#include "message/spc_outbox.h"
#include "message/spc_outbox_queue.h"

typedef struct destination {
    spc_mailbox_writer_t writer;
    spc_outbox_queue_t queue;
    uint32_t leave; /* what is new may be announced until so many have been: spc_outbox_look */
    uint64_t taken; /* the last send that has announced or queued something for it */
    uint64_t sent;  /* messages that were; counted only where there is a trace */
} destination_t;

struct spc_outbox {
    spc_outbox_options_t options;
    uint32_t features;
    uint32_t nodes;
    uint64_t limit_bytes; /* of what waits here and what is lent to it; UINT64_MAX: none */
    uint32_t stride; /* so many may be announced between two looks at what is lent */
    bool is_wide; /* the run has several boxes */
    uint64_t sends; /* running number of those that may fail */
    uint64_t began; /* ticks: when the last of them did; only where there is a trace */
    uint8_t asks; /* SPC_SLOT_ASKS or 0: of what is sent now */
    spc_queue_total_t total;
    spc_ring_t *ring;
    spc_arena_t *arena; /* NULL if this run has none */
    int32_t *batch;     /* destinations that share one message in the ring */
    destination_t destination[];
};

/* ---- what is sent */

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

/* A send that may fail begins. For the trace it is sent now: its receiver may have it before this call returns. */
static inline void spc_outbox_begin(spc_outbox_t *outbox) {
    outbox->sends++;
    if (__builtin_expect(outbox->options.trace != NULL, 0)) {
        outbox->began = spc_trace_now(outbox->options.trace);
    }
}

/* Announced or queued for this destination, if the status is SPC_OK; gives it back. */
int spc_outbox_note_taken(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope, int status);

/* It was sent when `ticks` were counted. */
void spc_outbox_record(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope, uint64_t ticks);

/* True: nobody will receive it, and it has been counted. The caller drops it. */
bool spc_outbox_is_lost(const spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope);

/* A block that nobody gets. Its owner may wait for room. */
void spc_outbox_give_back(const spc_outbox_t *outbox, spc_block_shared_t *block);

/* ---- announcing what lies in ring or arena */

/* Gives leave for more, if the row has room, and if what the receiver keeps already leaves some of the limit. What is
 * queued needs none, for it has been counted; nor do messages of collectives. */
bool spc_outbox_look(spc_outbox_t *outbox, uint32_t rank, uint16_t context);

/* What is new may be announced: nothing is queued for it, and its row has room. */
static inline bool spc_outbox_is_open(spc_outbox_t *outbox, uint32_t rank, uint16_t context) {
    destination_t *destination = &outbox->destination[rank];
    return destination->queue.head == NULL
           && ((int32_t)(destination->leave - destination->writer.announced) > 0
               || spc_outbox_look(outbox, rank, context));
}

/* It is open. */
void spc_outbox_announce_offset(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                                uint64_t offset);

/* Queues the announcement if it is not. SPC_ENOMEM. */
int spc_outbox_announce_or_enqueue(spc_outbox_t *outbox, uint32_t rank, const spc_envelope_t *envelope,
                                   uint64_t offset);

#endif
