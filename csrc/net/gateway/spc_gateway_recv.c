/* SPDX-License-Identifier: MIT */
/*
 * Receiving: writes messages from the link into the mailboxes of the nodes here, in place of their senders.
 *
 * Each node elsewhere has an outbox here: its rows, ring and arena in this segment. A message goes through it as if the
 * node had sent it in this box: inline, in the ring or in a block of the arena, one block for all of its receivers
 * here, queued if there is no room. Credit goes back once no part of the message is queued. The bytes that receivers
 * here keep of its messages beyond their shares (spc_inbox.h) are sent to its box with the credit that is given back,
 * and then whenever they change: there the bytes count against the sender's limit.
 */
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "net/gateway/spc_gateway_private.h"

int spc_gateway_recv_create(spc_gateway_t *gateway) {
    gateway->sources = calloc(gateway->nodes, sizeof(*gateway->sources));
    gateway->owed = calloc((size_t)gateway->config->boxes * gateway->nodes, sizeof(*gateway->owed));
    if (gateway->sources == NULL || gateway->owed == NULL) {
        return SPC_ENOMEM;
    }
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        const uint32_t rank = gateway->ranks[i];
        spc_outbox_options_t options = {.segment = &gateway->segment,
                                        .status = gateway->status,
                                        .events = gateway->events,
                                        .notes = spc_gateway_notes(gateway, rank),
                                        .rank = rank,
                                        .is_unlimited = true};
        gateway->sources[rank].asked = calloc(gateway->nodes, sizeof(*gateway->sources[rank].asked));
        gateway->sources[rank].lent = calloc(gateway->nodes, sizeof(*gateway->sources[rank].lent));
        if (gateway->sources[rank].asked == NULL || gateway->sources[rank].lent == NULL
            || spc_outbox_create(&options, &gateway->sources[rank].outbox) != SPC_OK) {
            return SPC_ENOMEM;
        }
    }
    return SPC_OK;
}

static void free_assembly(uint32_t rank, spc_gateway_assembly_t *assembly) {
    if (assembly->block != NULL) {
        spc_block_unpin(assembly->block, rank);
    } else {
        free(assembly->bytes);
    }
    free(assembly);
}

void spc_gateway_drop_assemblies(spc_gateway_t *gateway, uint32_t rank) {
    spc_gateway_source_t *source = &gateway->sources[rank];
    while (source->assemblies != NULL) {
        spc_gateway_assembly_t *assembly = source->assemblies;
        source->assemblies = assembly->next;
        free_assembly(rank, assembly);
    }
}

void spc_gateway_recv_destroy(spc_gateway_t *gateway) {
    for (uint32_t rank = 0; gateway->sources != NULL && rank < gateway->nodes; rank++) {
        spc_gateway_drop_assemblies(gateway, rank);
        spc_outbox_destroy(gateway->sources[rank].outbox);
        free(gateway->sources[rank].asked);
        free(gateway->sources[rank].lent);
    }
    while (gateway->watched != NULL) {
        spc_gateway_watch_t *watch = gateway->watched;
        gateway->watched = watch->next;
        free(watch);
    }
    free(gateway->sources);
    free(gateway->owed);
}

/* ---- receipts ---- */

/* Messages that ask for a receipt are counted here just as their sender counts them, so both ends know their numbers.
 * Receipts that are messages come by themselves. */
static int watch(spc_gateway_t *gateway, uint32_t source, uint32_t destination) {
    spc_gateway_watch_t *made = malloc(sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    *made = (spc_gateway_watch_t){gateway->watched, source, destination,
                                  gateway->sources[source].asked[destination]++};
    gateway->watched = made;
    return SPC_OK;
}

static spc_row_shared_t *row_of(const spc_gateway_t *gateway, uint32_t source, uint32_t destination) {
    return spc_mailbox_row(spc_segment_part(&gateway->segment, SPC_REGION_MAILBOX, destination), source,
                           gateway->config->slots);
}

static void tell_receipt(spc_gateway_t *gateway, const spc_gateway_watch_t *watch) {
    const spc_frame_t frame = {
        .kind = SPC_FRAME_RECEIPT,
        .source = (uint16_t)watch->source,
        .destination = (uint16_t)spc_segment_box(&gateway->segment, watch->source),
        .tag = (int32_t)watch->destination,
        .offset = watch->number,
    };
    spc_gateway_send(gateway, &frame, NULL, 0);
}

static bool progress_receipts(spc_gateway_t *gateway) {
    bool moved = false;
    spc_gateway_watch_t **at = &gateway->watched;
    while (*at != NULL) {
        spc_gateway_watch_t *watch = *at;
        /* Before the receipt, which the node may have given just before it died. */
        const bool is_gone = spc_status_is_gone(gateway->status, watch->destination);
        const bool given =
            spc_receipt_is_given(row_of(gateway, watch->source, watch->destination), watch->number);
        if (given || is_gone) {
            if (given) {
                tell_receipt(gateway, watch);
            }
            *at = watch->next;
            free(watch);
            moved = true;
        } else {
            at = &watch->next;
        }
    }
    return moved;
}

int spc_gateway_on_receipt(spc_gateway_t *gateway, const spc_frame_t *frame) {
    const uint32_t destination = (uint32_t)frame->tag;
    if (!spc_gateway_is_here(gateway, frame->source) || !spc_gateway_is_elsewhere(gateway, destination)) {
        return SPC_EINVAL;
    }
    spc_receipt_give(row_of(gateway, frame->source, destination), (uint32_t)frame->offset);
    spc_event_notify(&gateway->events[frame->source], gateway->config->features);
    return SPC_OK;
}

/* ---- bytes that receivers keep ---- */

static bool tell_lent(spc_gateway_t *gateway, uint32_t rank, uint32_t destination) {
    spc_gateway_source_t *source = &gateway->sources[rank];
    const bool has_ended = spc_status_state(gateway->status, destination) >= SPC_NODE_FINISHED;
    const uint64_t lent = has_ended ? 0 : spc_mailbox_lent(row_of(gateway, rank, destination));
    if (lent == source->lent[destination]) {
        return false;
    }
    source->lenders += (lent != 0) - (source->lent[destination] != 0);
    source->lent[destination] = lent;
    const spc_frame_t frame = {
        .kind = SPC_FRAME_LENT,
        .source = (uint16_t)rank,
        .destination = (uint16_t)spc_segment_box(&gateway->segment, rank),
        .tag = (int32_t)destination,
        .total_bytes = lent,
    };
    spc_gateway_send(gateway, &frame, NULL, 0);
    return true;
}

static bool progress_lent(spc_gateway_t *gateway) {
    bool moved = false;
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        const spc_gateway_source_t *source = &gateway->sources[gateway->ranks[i]];
        for (uint32_t to = 0; to < gateway->here && source->lenders != 0; to++) {
            if (source->lent[gateway->ranks[to]] != 0) {
                moved = tell_lent(gateway, gateway->ranks[i], gateway->ranks[to]) || moved;
            }
        }
    }
    return moved;
}

int spc_gateway_on_lent(spc_gateway_t *gateway, const spc_frame_t *frame) {
    const uint32_t destination = (uint32_t)frame->tag;
    if (!spc_gateway_is_here(gateway, frame->source) || !spc_gateway_is_elsewhere(gateway, destination)) {
        return SPC_EINVAL;
    }
    spc_mailbox_lend(row_of(gateway, frame->source, destination), frame->total_bytes);
    spc_event_notify(&gateway->events[frame->source], gateway->config->features);
    return SPC_OK;
}

/* ---- messages ---- */

static spc_payload_t payload_of(const spc_frame_t *frame, const unsigned char *bytes) {
    return (spc_payload_t){
        .meta = bytes,
        .data = bytes + frame->meta_bytes,
        .data_bytes = frame->total_bytes - frame->meta_bytes,
        .meta_bytes = frame->meta_bytes,
        .format = frame->format,
    };
}

/* `block` holds the message, or `bytes` do. */
static int announce(spc_gateway_t *gateway, const spc_frame_t *frame, const int32_t *destinations,
                    uint32_t count, const unsigned char *bytes, spc_block_shared_t *block) {
    spc_outbox_t *outbox = gateway->sources[frame->source].outbox;
    const spc_payload_t payload = payload_of(frame, bytes);
    const bool asks = (frame->flags & SPC_FRAME_ASKS) != 0, answers = (frame->flags & SPC_FRAME_ANSWER) != 0;
    int status = SPC_OK;
    for (uint32_t i = 0; asks && !answers && i < count && status == SPC_OK; i++) {
        status = watch(gateway, frame->source, (uint32_t)destinations[i]);
    }
    if (status != SPC_OK) {
        return status;
    }
    spc_outbox_ask(outbox, (uint8_t)((asks ? SPC_SLOT_ASKS : 0) | (answers ? SPC_SLOT_ANSWER : 0)));
    status =
        block != NULL
            ? spc_outbox_send_block(outbox, destinations, count, frame->context, frame->tag, &payload, block)
            : spc_outbox_send(outbox, destinations, count, frame->context, frame->tag, &payload);
    spc_outbox_ask(outbox, 0);
    return status;
}

/* Behind all messages of its sender, as in one box. */
static void announce_last(spc_gateway_t *gateway, const spc_frame_t *frame, const int32_t *destinations) {
    for (uint32_t i = 0; i < frame->count; i++) {
        const uint32_t rank = (uint32_t)destinations[i];
        spc_outbox_send_last(gateway->sources[frame->source].outbox, &rank, 1, frame->context);
    }
}

static int take_whole(spc_gateway_t *gateway, const spc_frame_t *frame, const int32_t *destinations,
                      const unsigned char *bytes) {
    spc_block_shared_t *block = NULL;
    if (frame->total_bytes > SPC_EAGER_BYTES
        && spc_outbox_take_block(gateway->sources[frame->source].outbox, frame->total_bytes, &block)
               == SPC_OK) {
        memcpy(spc_block_payload(block), bytes, frame->total_bytes);
    }
    return announce(gateway, frame, destinations, frame->count, bytes, block);
}

/* Parts of one message to one receiver arrive one after the other; parts of messages to others may arrive in
 * between. */
static spc_gateway_assembly_t **find_assembly(spc_gateway_t *gateway, const spc_frame_t *frame,
                                              int32_t destination) {
    spc_gateway_assembly_t **at = &gateway->sources[frame->source].assemblies;
    while (*at != NULL && (*at)->destinations[0] != destination) {
        at = &(*at)->next;
    }
    return at;
}

/* The first part holds the length of the message, which nothing bounds: a message longer than the queue limit may be
 * queued alone, and credit, which bounds what is under way, comes back part by part. So the allocation succeeds or
 * fails; most systems back only pages that have been written. Each source has one assembly for each receiver here. */
static spc_gateway_assembly_t *begin(spc_gateway_t *gateway, const spc_frame_t *frame,
                                     const int32_t *destinations) {
    spc_gateway_source_t *source = &gateway->sources[frame->source];
    spc_gateway_assembly_t *made = calloc(1, sizeof(*made) + frame->count * sizeof(*destinations));
    if (made == NULL) {
        return NULL;
    }
    made->frame = *frame;
    made->count = frame->count;
    memcpy(made->destinations, destinations, frame->count * sizeof(*destinations));
    if (spc_outbox_take_block(source->outbox, frame->total_bytes, &made->block) == SPC_OK) {
        made->bytes = spc_block_payload(made->block);
    } else {
        made->block = NULL;
        made->bytes = malloc(frame->total_bytes);
    }
    if (made->bytes == NULL) {
        free(made);
        return NULL;
    }
    made->next = source->assemblies;
    source->assemblies = made;
    return made;
}

static int take_part(spc_gateway_t *gateway, const spc_frame_t *frame, const int32_t *destinations,
                     const unsigned char *bytes, uint64_t length_bytes) {
    spc_gateway_assembly_t **at = find_assembly(gateway, frame, destinations[0]);
    spc_gateway_assembly_t *assembly = *at;
    if (assembly == NULL) {
        if (frame->offset != 0) {
            return SPC_EINVAL;
        }
        assembly = begin(gateway, frame, destinations);
        if (assembly == NULL) {
            return SPC_ENOMEM;
        }
        at = find_assembly(gateway, frame, destinations[0]);
    }
    if (frame->offset != assembly->received || frame->total_bytes != assembly->frame.total_bytes
        || length_bytes > frame->total_bytes - frame->offset) {
        return SPC_EINVAL;
    }
    memcpy(assembly->bytes + frame->offset, bytes, length_bytes);
    assembly->received += length_bytes;
    if (assembly->received != frame->total_bytes) {
        return SPC_OK;
    }
    *at = assembly->next;
    int status = announce(gateway, &assembly->frame, assembly->destinations, assembly->count, assembly->bytes,
                          assembly->block);
    if (assembly->block == NULL) {
        free(assembly->bytes);
    }
    free(assembly);
    return status;
}

/* Reads the ranks at the start of the body; all must be here, each once: a block is pinned once for each receiver.
 * Returns how many bytes they take; 0: they make no sense. */
static uint32_t read_destinations(const spc_gateway_t *gateway, const spc_frame_t *frame,
                                  const unsigned char *body, int32_t *destinations) {
    const uint32_t bytes = (uint32_t)spc_round_up(frame->count * sizeof(uint16_t), 8);
    if (frame->count == 0 || frame->count > gateway->here || bytes > frame->length_bytes) {
        return 0;
    }
    uint64_t seen[SPC_NODES_MAX / 64] = {0};
    for (uint32_t i = 0; i < frame->count; i++) {
        uint16_t rank;
        memcpy(&rank, body + i * sizeof(rank), sizeof(rank));
        if (!spc_gateway_is_here(gateway, rank) || (seen[rank / 64] >> rank % 64 & 1) != 0) {
            return 0;
        }
        seen[rank / 64] |= UINT64_C(1) << rank % 64;
        destinations[i] = rank;
    }
    return bytes;
}

int spc_gateway_on_message(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    int32_t destinations[SPC_NODES_MAX];
    if (!spc_gateway_is_elsewhere(gateway, frame->source) || frame->meta_bytes > frame->total_bytes) {
        return SPC_EINVAL;
    }
    const uint32_t list_bytes = read_destinations(gateway, frame, body, destinations);
    if (list_bytes == 0) {
        return SPC_EINVAL;
    }
    const uint64_t length = frame->length_bytes - list_bytes;
    const uint32_t box = spc_segment_box(&gateway->segment, frame->source);
    for (uint32_t i = 0; i < frame->count; i++) {
        uint64_t *owed = &gateway->owed[box * gateway->nodes + (uint32_t)destinations[i]];
        *owed += length + SPC_CREDIT_FRAME_COST;
        if (*owed > gateway->window) { /* more than its credit; memory here is bounded by that */
            return SPC_EINVAL;
        }
    }
    if ((frame->flags & SPC_FRAME_LAST) != 0) {
        announce_last(gateway, frame, destinations);
        return SPC_OK;
    }
    if ((frame->flags & SPC_FRAME_PART) != 0) {
        return take_part(gateway, frame, destinations, body + list_bytes, length);
    }
    return length != frame->total_bytes ? SPC_EINVAL
                                        : take_whole(gateway, frame, destinations, body + list_bytes);
}

/* ---- credit ---- */

static bool is_queued(const spc_gateway_t *gateway, uint32_t box, uint32_t rank) {
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        const uint32_t source = gateway->ranks[i];
        if (spc_segment_box(&gateway->segment, source) == box
            && spc_outbox_waiting(gateway->sources[source].outbox, rank) != 0) {
            return true;
        }
    }
    return false;
}

/* Receivers may now keep bytes that came from this box: only then are there more than were reported. */
static void tell_all_lent(spc_gateway_t *gateway, uint32_t box, uint32_t destination) {
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        if (spc_segment_box(&gateway->segment, gateway->ranks[i]) == box) {
            (void)tell_lent(gateway, gateway->ranks[i], destination);
        }
    }
}

/* In pieces of a quarter of the window: the sender still has half of the window, which is two parts, when the next
 * piece comes. */
static bool progress_credit(spc_gateway_t *gateway) {
    bool moved = false;
    for (uint32_t box = 0; box < gateway->config->boxes; box++) {
        for (uint32_t i = 0; i < gateway->here; i++) {
            const uint32_t rank = gateway->ranks[i];
            uint64_t *owed = &gateway->owed[box * gateway->nodes + rank];
            if (*owed < gateway->window / 4 || is_queued(gateway, box, rank)) {
                continue;
            }
            tell_all_lent(gateway, box, rank);
            const spc_frame_t frame = {.kind = SPC_FRAME_CREDIT,
                                       .source = (uint16_t)gateway->box,
                                       .destination = (uint16_t)box,
                                       .tag = (int32_t)rank,
                                       .total_bytes = *owed};
            spc_gateway_send(gateway, &frame, NULL, 0);
            *owed = 0;
            moved = true;
        }
    }
    return moved;
}

bool spc_gateway_source_holds(const spc_gateway_t *gateway, uint32_t rank, uint32_t destination) {
    const spc_gateway_source_t *source = &gateway->sources[rank];
    for (const spc_gateway_assembly_t *parts = source->assemblies; parts != NULL; parts = parts->next) {
        for (uint32_t i = 0; i < parts->count; i++) {
            if (parts->destinations[i] == (int32_t)destination) {
                return true;
            }
        }
    }
    return spc_outbox_waiting(source->outbox, destination) != 0;
}

bool spc_gateway_source_is_empty(const spc_gateway_t *gateway, uint32_t rank) {
    return spc_outbox_is_empty(gateway->sources[rank].outbox) && spc_gateway_arrivals_are_taken(gateway);
}

bool spc_gateway_recv_progress(spc_gateway_t *gateway) {
    bool moved = false;
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        moved = spc_outbox_flush(gateway->sources[gateway->ranks[i]].outbox) || moved;
    }
    moved = progress_receipts(gateway) || moved;
    moved = progress_lent(gateway) || moved;
    return progress_credit(gateway) || moved;
}
