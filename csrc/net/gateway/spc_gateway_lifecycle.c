/* SPDX-License-Identifier: MIT */
/*
 * Life of nodes (present, ended, gone): announced to the other boxes, and made known here as other boxes announce it.
 *
 * The gateway announces the end of a node after all messages of that node, and makes it known once all of them are in
 * the rows of their receivers: a node that sees the end sees the messages, as in one box.
 */
#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"
#include "net/gateway/spc_gateway_private.h"

int spc_gateway_lifecycle_create(spc_gateway_t *gateway) {
    gateway->told = calloc(gateway->nodes, sizeof(*gateway->told));
    gateway->told_gone = calloc(gateway->nodes, sizeof(*gateway->told_gone));
    gateway->told_notes = calloc((size_t)gateway->nodes * SPC_NOTE_KINDS, sizeof(*gateway->told_notes));
    return gateway->told != NULL && gateway->told_gone != NULL && gateway->told_notes != NULL ? SPC_OK
                                                                                              : SPC_ENOMEM;
}

/* ---- announcing ---- */

static void tell(spc_gateway_t *gateway, uint32_t rank, uint32_t state, bool is_gone) {
    const int32_t reason = state == SPC_NODE_LIVE ? spc_status_process(gateway->status, rank)
                                                  : atomic_load_explicit(&gateway->status->line[rank].reason,
                                                                         memory_order_relaxed);
    const spc_frame_t frame = {.kind = SPC_FRAME_STATUS,
                               .flags = SPC_FRAME_OTHERS,
                               .source = (uint16_t)rank,
                               .tag = reason,
                               .total_bytes = state,
                               .offset = is_gone};
    spc_gateway_send(gateway, &frame, NULL, 0);
    gateway->told[rank] = state;
    gateway->told_gone[rank] = is_gone;
}

/* A note that is being written is sent later: its writer notifies when it is complete. */
static void tell_note(spc_gateway_t *gateway, uint32_t rank, spc_note_kind_t kind, bool *moved) {
    uint32_t *told = &gateway->told_notes[rank * SPC_NOTE_KINDS + kind];
    const uint32_t version = spc_note_version(spc_gateway_notes(gateway, rank), kind);
    spc_note_t note;
    if (version == *told || !spc_note_read(spc_gateway_notes(gateway, rank), kind, &note)) {
        return;
    }
    const spc_frame_t frame = {
        .kind = SPC_FRAME_NOTE, .flags = SPC_FRAME_OTHERS, .source = (uint16_t)rank, .tag = (int32_t)kind};
    spc_gateway_send(gateway, &frame, &note, sizeof(note));
    *told = version;
    *moved = true;
}

static void progress_node(spc_gateway_t *gateway, uint32_t rank, bool *moved) {
    const uint32_t state = spc_status_state(gateway->status, rank);
    /* After the state, since `gone` comes first: one frame carries both. The state alone indicates news. */
    const bool is_gone = state >= SPC_NODE_FINISHED && spc_status_is_gone(gateway->status, rank);
    tell_note(gateway, rank, SPC_NOTE_CALL, moved);
    tell_note(gateway, rank, SPC_NOTE_END, moved); /* written before the node ends */
    if (state == gateway->told[rank] && is_gone == gateway->told_gone[rank]) {
        return;
    }
    if (state >= SPC_NODE_FINISHED) {
        /* A node that ends because of a lost connection is no news for others: they would name it, not the loss, if
         * they learnt of it first. The mark was set before the node's wait ended, so it is seen here. */
        const bool is_disconnected = spc_status_state(gateway->status, gateway->nodes) == SPC_NODE_DIED;
        if (is_disconnected || !spc_gateway_send_are_empty(gateway, rank)) {
            return;
        }
        spc_gateway_collective_flush(gateway, rank);
    }
    tell(gateway, rank, state, is_gone);
    *moved = true;
}

bool spc_gateway_lifecycle_are_told(const spc_gateway_t *gateway) {
    bool told = true;
    for (uint32_t i = 0; i < gateway->here && told; i++) {
        told = gateway->told_gone[gateway->ranks[i]];
    }
    return told;
}

/* ---- making known ---- */

int spc_gateway_on_note(spc_gateway_t *gateway, const spc_frame_t *frame, const unsigned char *body) {
    spc_note_t note;
    if (!spc_gateway_is_elsewhere(gateway, frame->source) || frame->length_bytes != sizeof(note)
        || (frame->tag != SPC_NOTE_CALL && frame->tag != SPC_NOTE_END)) {
        return SPC_EINVAL;
    }
    memcpy(&note, body, sizeof(note));
    spc_note_write(spc_gateway_notes(gateway, frame->source), (spc_note_kind_t)frame->tag, &note);
    return SPC_OK;
}

static void note_gone(spc_gateway_t *gateway, uint32_t box) {
    bool are_gone = true;
    for (uint32_t rank = 0; rank < gateway->nodes && are_gone; rank++) {
        are_gone = spc_segment_box(&gateway->segment, rank) != box || gateway->sources[rank].is_gone;
    }
    gateway->gone |= (uint64_t)are_gone << box;
}

int spc_gateway_on_status(spc_gateway_t *gateway, const spc_frame_t *frame) {
    if (!spc_gateway_is_elsewhere(gateway, frame->source) || frame->total_bytes > SPC_NODE_DIED) {
        return SPC_EINVAL;
    }
    spc_gateway_source_t *source = &gateway->sources[frame->source];
    if (frame->total_bytes == SPC_NODE_LIVE) {
        spc_status_set_live(gateway->status, frame->source, frame->tag);
        return SPC_OK;
    }
    source->state = (uint32_t)frame->total_bytes;
    source->reason = frame->tag;
    source->is_gone = frame->offset != 0;
    source->is_known = false;
    note_gone(gateway, spc_segment_box(&gateway->segment, frame->source));
    return SPC_OK;
}

static bool make_known(spc_gateway_t *gateway, uint32_t rank) {
    spc_gateway_source_t *source = &gateway->sources[rank];
    const uint32_t features = gateway->config->features;
    if (source->state < SPC_NODE_FINISHED) {
        return false;
    }
    spc_gateway_drop_assemblies(gateway, rank); /* messages that it did not finish */
    if (!spc_gateway_source_is_empty(gateway, rank)) {
        return false;
    }
    if (source->is_gone) { /* first, as in the node's own box */
        spc_status_set_gone(gateway->status, rank, gateway->events, gateway->nodes + 1, features);
    }
    spc_status_end(gateway->status, rank, (spc_node_state_t)source->state, source->reason, gateway->events,
                   gateway->nodes + 1, features);
    source->is_known = true;
    return true;
}

/* ---- the last message: a box whose nodes are gone stays until it has got, and counted, all messages for them */

static void shut_down(spc_gateway_t *gateway, uint64_t boxes) {
    for (uint32_t box = 0; box < gateway->config->boxes; box++) {
        if ((boxes & ~gateway->told_shutdown) >> box & 1) {
            const spc_frame_t frame = {
                .kind = SPC_FRAME_SHUTDOWN, .source = (uint16_t)gateway->box, .destination = (uint16_t)box};
            spc_gateway_send(gateway, &frame, NULL, 0);
        }
    }
    gateway->told_shutdown |= boxes;
}

static uint64_t other_boxes(const spc_gateway_t *gateway) {
    return (UINT64_MAX >> (64 - gateway->config->boxes)) & ~(UINT64_C(1) << gateway->box);
}

void spc_gateway_shut_down(spc_gateway_t *gateway) {
    shut_down(gateway, other_boxes(gateway));
}

bool spc_gateway_is_shut_down(const spc_gateway_t *gateway) {
    return gateway->shutdown == other_boxes(gateway);
}

int spc_gateway_on_shutdown(spc_gateway_t *gateway, const spc_frame_t *frame) {
    if (frame->source >= gateway->config->boxes || frame->source == gateway->box) {
        return SPC_EINVAL;
    }
    gateway->shutdown |= UINT64_C(1) << frame->source;
    return SPC_OK;
}

bool spc_gateway_lifecycle_progress(spc_gateway_t *gateway) {
    bool moved = (gateway->gone & ~gateway->told_shutdown) != 0;
    shut_down(gateway, gateway->gone);
    for (uint32_t i = 0; i < gateway->here; i++) {
        progress_node(gateway, gateway->ranks[i], &moved);
    }
    for (uint32_t i = gateway->here; i < gateway->nodes; i++) {
        const uint32_t rank = gateway->ranks[i];
        if (!gateway->sources[rank].is_known && make_known(gateway, rank)) {
            moved = true;
        }
    }
    return moved;
}
