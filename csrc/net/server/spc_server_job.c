/* SPDX-License-Identifier: MIT */
#include "net/server/spc_server_job.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_atomic.h"
#include "base/spc_error.h"
#include "net/wire/spc_arrival.h"
#include "reduce/spc_subtree.h"

enum { SPC_SERVER_JOB_BUCKETS = 256 };

typedef struct spc_server_phase spc_server_phase_t;

struct spc_server_job {
    spc_server_job_options_t options;
    uint64_t ended; /* boxes, a mask */
    unsigned char *ranks; /* scratch: the ranks of one box */
    spc_subtree_t *subtrees; /* and the values of a reduction: one for each rank */
    spc_server_phase_t *phases[SPC_SERVER_JOB_BUCKETS]; /* chains */
    uint64_t collected_bytes;
};

enum { RANK_BYTES = 2, RANKS_ALIGNMENT = 8 };

/* ---- emitting frames */

/* Emits the frame unless the box has ended. */
static int emit_frame(spc_server_job_t *job, uint16_t box, const spc_frame_t *frame,
                      const spc_frame_piece_t *pieces, uint32_t count, spc_link_body_t *shared) {
    if (job->ended >> box & 1) {
        return SPC_OK;
    }
    return job->options.emit(job->options.argument, box, frame, pieces, count, shared);
}

/* Makes a copy that several links share. */
static int share(const spc_server_job_t *job, const unsigned char *bytes, size_t length_bytes,
                 spc_link_body_t **shared) {
    int status = spc_link_body_create(job->options.pool, length_bytes, shared);
    if (status == SPC_OK && length_bytes > 0) {
        memcpy(spc_link_body_start(*shared), bytes, length_bytes);
    }
    return status;
}

/* ---- phases: contributions are kept until all boxes have contributed, so that each gets one frame */

enum { PIECES = 64 };

typedef struct contribution {
    struct contribution *next;
    uint64_t has_it; /* boxes that need no copy: its own, and those already sent it; a mask */
    uint32_t length_bytes;
    _Alignas(8) unsigned char bytes[]; /* values are combined here */
} contribution_t;

struct spc_server_phase {
    spc_server_phase_t *next; /* in its bucket */
    uint64_t number;
    uint64_t boxes, last; /* masks: boxes that take part, boxes that have contributed all */
    contribution_t *first, **end;
    uint16_t context;
    int32_t tag; /* the parts of a split communicator share a context, and differ in their first members */
    uint64_t
        generation; /* communicators of one context and first member follow each other, and differ in this */
    bool is_urgent;
};

/* A u64, little-endian on every machine. */
static uint64_t get_mask(const unsigned char *bytes) {
    uint64_t mask = 0;
    for (int i = 0; i < SPC_SERVER_JOB_MASK_BYTES; i++) {
        mask |= (uint64_t)bytes[i] << 8 * i;
    }
    return mask;
}

static void put_mask(unsigned char *bytes, uint64_t mask) {
    for (int i = 0; i < SPC_SERVER_JOB_MASK_BYTES; i++) {
        bytes[i] = (unsigned char)(mask >> 8 * i);
    }
}

/* ---- the table */

/* Where the phase is or would be: a pointer to the pointer to it. */
static spc_server_phase_t **place_of(spc_server_job_t *job, const spc_frame_t *frame) {
    uint64_t key = (frame->offset * 31 + frame->context) * 31 + (uint32_t)frame->tag;
    uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15) >> 32;
    spc_server_phase_t **place = &job->phases[hash % SPC_SERVER_JOB_BUCKETS];
    while (*place != NULL
           && ((*place)->context != frame->context || (*place)->tag != frame->tag
               || (*place)->generation != frame->total_bytes || (*place)->number != frame->offset)) {
        place = &(*place)->next;
    }
    return place;
}

static void free_phase(spc_server_job_t *job, spc_server_phase_t **place) {
    spc_server_phase_t *phase = *place;
    *place = phase->next;
    while (phase->first != NULL) {
        contribution_t *contribution = phase->first;
        phase->first = contribution->next;
        job->collected_bytes -= sizeof *contribution + contribution->length_bytes;
        free(contribution);
    }
    job->collected_bytes -= sizeof *phase;
    free(phase);
}

static void free_phases(spc_server_job_t *job) {
    for (int i = 0; i < SPC_SERVER_JOB_BUCKETS; i++) {
        while (job->phases[i] != NULL) {
            free_phase(job, &job->phases[i]);
        }
    }
}

static bool has_room(const spc_server_job_t *job, uint64_t bytes) {
    return bytes <= job->options.collected_max && job->collected_bytes <= job->options.collected_max - bytes;
}

static int begin_phase(spc_server_job_t *job, spc_server_phase_t **place, const spc_frame_t *frame,
                       uint64_t boxes) {
    if (!has_room(job, sizeof **place)) {
        return SPC_ELIMIT;
    }
    spc_server_phase_t *phase = calloc(1, sizeof *phase);
    if (phase == NULL) {
        return SPC_ENOMEM;
    }
    phase->context = frame->context;
    phase->tag = frame->tag;
    phase->generation = frame->total_bytes;
    phase->number = frame->offset;
    phase->boxes = boxes;
    phase->end = &phase->first;
    *place = phase;
    job->collected_bytes += sizeof *phase;
    return SPC_OK;
}

static int add_contribution(spc_server_job_t *job, spc_server_phase_t *phase, uint16_t box,
                            const unsigned char *bytes, uint32_t length_bytes) {
    if (length_bytes == 0) {
        return SPC_OK;
    }
    contribution_t *contribution = NULL;
    if (!has_room(job, sizeof *contribution + length_bytes)) {
        return SPC_ELIMIT;
    }
    contribution = malloc(sizeof *contribution + length_bytes);
    if (contribution == NULL) {
        return SPC_ENOMEM;
    }
    *contribution = (contribution_t){.has_it = UINT64_C(1) << box, .length_bytes = length_bytes};
    memcpy(contribution->bytes, bytes, length_bytes);
    *phase->end = contribution;
    phase->end = &contribution->next;
    job->collected_bytes += sizeof *contribution + length_bytes;
    return SPC_OK;
}

/* ---- the frames of a phase */

/* Emits contributions to one box, frame by frame. */
typedef struct bundle {
    spc_server_job_t *job;
    uint16_t box;
    spc_frame_t frame;
    unsigned char mask[SPC_SERVER_JOB_MASK_BYTES];
    spc_frame_piece_t pieces[PIECES];
    uint32_t count;
    size_t bytes;
} bundle_t;

static void begin_frame(bundle_t *bundle) {
    bundle->pieces[0] = (spc_frame_piece_t){bundle->mask, sizeof bundle->mask};
    bundle->count = 1;
    bundle->bytes = sizeof bundle->mask;
}

static int end_frame(bundle_t *bundle, bool is_last) {
    bundle->frame.flags = is_last ? SPC_FRAME_LAST : 0;
    return emit_frame(bundle->job, bundle->box, &bundle->frame, bundle->pieces, bundle->count, NULL);
}

static int add_to_frame(bundle_t *bundle, const contribution_t *contribution) {
    if (bundle->count == PIECES || contribution->length_bytes > SPC_FRAME_BODY_MAX - bundle->bytes) {
        int status = end_frame(bundle, false);
        if (status != SPC_OK) {
            return status;
        }
        begin_frame(bundle);
    }
    bundle->pieces[bundle->count++] = (spc_frame_piece_t){contribution->bytes, contribution->length_bytes};
    bundle->bytes += contribution->length_bytes;
    return SPC_OK;
}

/* Emits what this box has not received yet; if there is none, emits a frame only if the phase is complete. */
static int send_missing(spc_server_job_t *job, spc_server_phase_t *phase, uint16_t box,
                        const spc_frame_t *frame, bool is_complete) {
    bundle_t bundle;
    bundle.job = job;
    bundle.box = box;
    bundle.frame = *frame;
    bundle.frame.destination = box;
    put_mask(bundle.mask, phase->boxes);
    begin_frame(&bundle);
    const uint64_t bit = UINT64_C(1) << box;
    for (contribution_t *contribution = phase->first; contribution != NULL;
         contribution = contribution->next) {
        if ((contribution->has_it & bit) == 0) {
            int status = add_to_frame(&bundle, contribution);
            if (status != SPC_OK) {
                return status;
            }
            contribution->has_it |= bit;
        }
    }
    return is_complete || bundle.count > 1 ? end_frame(&bundle, is_complete) : SPC_OK;
}

static int send_all_missing(spc_server_job_t *job, spc_server_phase_t *phase, const spc_frame_t *frame,
                            bool is_complete) {
    int status = SPC_OK;
    for (uint16_t box = 0; box < job->options.boxes && status == SPC_OK; box++) {
        if (phase->boxes >> box & 1) {
            status = send_missing(job, phase, box, frame, is_complete);
        }
    }
    return status;
}

/* ---- combining: the values of a phase that has all contributions, none of them forwarded */

typedef struct reduction {
    spc_arrival_t like; /* the first arrival; all others match it */
    bool is_wide; /* some field has the type WIDE */
    uint32_t members;
    spc_subtree_t *subtrees; /* by first member */
} reduction_t;

/* An integer that is too wide for its field is of the same kind as one that fits. */
static uint32_t kind_of(spc_field_t field) {
    return field.type == SPC_TYPE_WIDE ? SPC_TYPE_INT : field.type;
}

/* False: it cannot be combined at all, or not with the others. */
static bool add_arrival(spc_server_job_t *job, reduction_t *reduction, const spc_arrival_t *arrival) {
    const spc_arrival_head_t *head = &arrival->head;
    if (reduction->members == 0) {
        reduction->like = *arrival;
    }
    const spc_arrival_t *like = &reduction->like;
    if (!spc_arrival_combines(arrival) || head->first >= job->options.ranks
        || job->subtrees[head->first].span != 0 || head->span == 0
        || head->span > job->options.ranks - reduction->members
        || memcmp(&head->signature, &like->head.signature, sizeof head->signature) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < head->signature.field_count; i++) {
        const spc_field_t field = arrival->fields[i];
        if (kind_of(field) != kind_of(like->fields[i]) || field.count != like->fields[i].count) {
            return false;
        }
        reduction->is_wide = reduction->is_wide || field.type == SPC_TYPE_WIDE;
    }
    job->subtrees[head->first] = (spc_subtree_t){head->first, head->span, (void *)(uintptr_t)arrival->value};
    reduction->members += head->span;
    return true;
}

/* Collects all arrivals of the phase. */
static bool add_arrivals(spc_server_job_t *job, reduction_t *reduction, const spc_server_phase_t *phase) {
    for (const contribution_t *at = phase->first; at != NULL; at = at->next) {
        uint32_t next = 0;
        while (next < at->length_bytes) {
            spc_arrival_t arrival;
            if (spc_arrival_read(at->bytes, at->length_bytes, 0, &next, &arrival) != SPC_OK
                || !add_arrival(job, reduction, &arrival)) {
                return false;
            }
        }
    }
    return reduction->members != 0;
}

/* Combines the value of all members, in job->subtrees[0]: SPC_OK or SPC_EWIDE. SPC_EINVAL: the phase holds no reduction
 * of all members of a communicator, and is unchanged. */
static int combine(spc_server_job_t *job, reduction_t *reduction, const spc_server_phase_t *phase) {
    memset(job->subtrees, 0, job->options.ranks * sizeof *job->subtrees);
    if (!add_arrivals(job, reduction, phase)) {
        return SPC_EINVAL;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->options.ranks; i++) {
        if (job->subtrees[i].span != 0) {
            job->subtrees[count++] = job->subtrees[i];
        }
    }
    const spc_signature_t *signature = &reduction->like.head.signature;
    const int status = spc_subtree_combine((spc_operator_t)signature->operator, reduction->like.fields,
                                           signature->field_count, reduction->members, job->subtrees, &count);
    return status == SPC_OK && reduction->is_wide ? SPC_EWIDE : status;
}

/* One arrival that stands for all members; all boxes share one copy of its body. */
static int share_total(spc_server_job_t *job, const reduction_t *reduction, const spc_server_phase_t *phase,
                       bool is_wide, spc_link_body_t **shared) {
    spc_arrival_head_t head = reduction->like.head;
    const size_t fields_bytes = head.signature.field_count * sizeof(spc_field_t);
    const size_t value_bytes = spc_round_up(head.length_bytes, 8);
    int status = spc_link_body_create(
        job->options.pool, SPC_SERVER_JOB_MASK_BYTES + sizeof head + fields_bytes + value_bytes, shared);
    if (status != SPC_OK) {
        return status;
    }
    unsigned char *at = spc_link_body_start(*shared);
    head.first = 0;
    head.span = reduction->members;
    put_mask(at, phase->boxes);
    at += SPC_SERVER_JOB_MASK_BYTES;
    memcpy(at, &head, sizeof head);
    at += sizeof head;
    for (uint32_t i = 0; i < head.signature.field_count; i++, at += sizeof(spc_field_t)) {
        spc_field_t field = reduction->like.fields[i];
        field.type = is_wide && field.type == SPC_TYPE_INT ? SPC_TYPE_WIDE : field.type;
        memcpy(at, &field, sizeof field);
    }
    memcpy(at, job->subtrees[0].value, value_bytes);
    return SPC_OK;
}

static int send_total(spc_server_job_t *job, const reduction_t *reduction, const spc_server_phase_t *phase,
                      const spc_frame_t *frame, bool is_wide) {
    spc_link_body_t *shared;
    int status = share_total(job, reduction, phase, is_wide, &shared);
    if (status != SPC_OK) {
        return status;
    }
    spc_frame_t total = *frame;
    total.flags = SPC_FRAME_LAST;
    total.source = SPC_FRAME_FROM_SERVER;
    for (uint16_t box = 0; box < job->options.boxes && status == SPC_OK; box++) {
        if (phase->boxes >> box & 1) {
            total.destination = box;
            status = emit_frame(job, box, &total, NULL, 0, shared);
        }
    }
    spc_link_body_release(shared);
    return status;
}

/* All boxes have contributed all. A phase that was forwarded in part is finished the same way: no box gets a value
 * twice. */
static int complete(spc_server_job_t *job, spc_server_phase_t *phase, const spc_frame_t *frame) {
    reduction_t reduction = {0};
    const int status = phase->is_urgent ? SPC_EINVAL : combine(job, &reduction, phase);
    if (status == SPC_OK || status == SPC_EWIDE) {
        return send_total(job, &reduction, phase, frame, status == SPC_EWIDE);
    }
    return send_all_missing(job, phase, frame, true);
}

/* An urgent phase makes the phases before it urgent, and they go out first: a box that learns of a member at one phase
 * has learnt of it at all earlier phases. A box sends its phases in order, so the open ones follow each other. */
static int hurry(spc_server_job_t *job, const spc_frame_t *frame) {
    spc_frame_t at = *frame;
    spc_server_phase_t *phase;
    while ((phase = *place_of(job, &at)) != NULL && !phase->is_urgent) {
        phase->is_urgent = true;
        at.offset--;
    }
    int status = SPC_OK;
    for (at.offset++; at.offset < frame->offset && status == SPC_OK; at.offset++) {
        status = send_all_missing(job, *place_of(job, &at), &at, false);
    }
    return status;
}

static bool is_sound(const spc_server_job_t *job, uint16_t box, uint64_t boxes) {
    uint64_t all = UINT64_MAX >> (SPC_SERVER_JOB_BOXES_MAX - job->options.boxes);
    return (boxes & ~all) == 0 && (boxes >> box & 1) != 0;
}

static int arrive(spc_server_job_t *job, uint16_t box, const spc_frame_t *frame, const unsigned char *body) {
    uint64_t boxes = frame->length_bytes >= SPC_SERVER_JOB_MASK_BYTES ? get_mask(body) : 0;
    if (!is_sound(job, box, boxes)) {
        return SPC_EINVAL;
    }
    const bool is_urgent = (frame->flags & SPC_FRAME_URGENT) != 0;
    const bool is_reminder = is_urgent && frame->length_bytes == SPC_SERVER_JOB_MASK_BYTES;
    spc_server_phase_t **place = place_of(job, frame);
    if (*place == NULL && is_reminder) {
        return SPC_OK; /* it is complete: all boxes have everything */
    }
    int status = *place == NULL ? begin_phase(job, place, frame, boxes) : SPC_OK;
    if (status != SPC_OK) {
        return status;
    }
    spc_server_phase_t *phase = *place;
    const uint64_t bit = UINT64_C(1) << box;
    if (phase->boxes != boxes || ((phase->last & bit) != 0 && !is_reminder)) {
        return SPC_EINVAL; /* boxes that disagree, or a second SPC_FRAME_LAST */
    }
    status = add_contribution(job, phase, box, body + SPC_SERVER_JOB_MASK_BYTES,
                              frame->length_bytes - SPC_SERVER_JOB_MASK_BYTES);
    if (status == SPC_OK && is_urgent) {
        status = hurry(job, frame);
    }
    if (status != SPC_OK) {
        return status;
    }
    phase->last |= (frame->flags & SPC_FRAME_LAST) != 0 ? bit : 0;
    if (phase->last == phase->boxes) {
        status = complete(job, phase, frame);
        free_phase(job, place);
    } else if (phase->is_urgent) {
        status = send_all_missing(job, phase, frame, false);
    }
    return status;
}

/* ---- life */

static bool is_valid(const spc_server_job_options_t *options) {
    if (options->boxes == 0 || options->boxes > SPC_SERVER_JOB_BOXES_MAX || options->emit == NULL) {
        return false;
    }
    for (uint32_t rank = 0; rank < options->ranks; rank++) {
        if (options->box_of_rank[rank] >= options->boxes) {
            return false;
        }
    }
    return true;
}

int spc_server_job_create(const spc_server_job_options_t *options, spc_server_job_t **job) {
    if (!is_valid(options)) {
        return SPC_EINVAL;
    }
    spc_server_job_t *made = calloc(1, sizeof *made);
    uint16_t *box_of_rank = calloc((size_t)options->ranks + 1, sizeof *box_of_rank);
    unsigned char *ranks = calloc((size_t)options->ranks + RANKS_ALIGNMENT, RANK_BYTES);
    spc_subtree_t *subtrees = calloc((size_t)options->ranks + 1, sizeof *subtrees);
    if (made == NULL || box_of_rank == NULL || ranks == NULL || subtrees == NULL) {
        free(made);
        free(box_of_rank);
        free(ranks);
        free(subtrees);
        return SPC_ENOMEM;
    }
    if (options->ranks > 0) {
        memcpy(box_of_rank, options->box_of_rank, options->ranks * sizeof *box_of_rank);
    }
    made->options = *options;
    made->options.box_of_rank = box_of_rank;
    made->ranks = ranks;
    made->subtrees = subtrees;
    *job = made;
    return SPC_OK;
}

void spc_server_job_destroy(spc_server_job_t *job) {
    if (job != NULL) {
        free_phases(job);
        free((void *)(uintptr_t)job->options.box_of_rank);
        free(job->ranks);
        free(job->subtrees);
        free(job);
    }
}

void spc_server_job_end_box(spc_server_job_t *job, uint16_t box) {
    job->ended |= UINT64_C(1) << box;
}

uint64_t spc_server_job_collected(const spc_server_job_t *job) {
    return job->collected_bytes;
}

/* ---- messages */

static uint16_t rank_at(const unsigned char *ranks, uint32_t i) {
    return (uint16_t)(ranks[RANK_BYTES * i] | ranks[RANK_BYTES * i + 1] << 8);
}

static size_t ranks_bytes(uint32_t count) {
    return (size_t)spc_round_up((uint64_t)count * RANK_BYTES, RANKS_ALIGNMENT);
}

/* The boxes of these ranks; 0: one of them is not a rank. */
static uint64_t boxes_of(const spc_server_job_t *job, const unsigned char *ranks, uint32_t count) {
    uint64_t boxes = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint16_t rank = rank_at(ranks, i);
        if (rank >= job->options.ranks) {
            return 0;
        }
        boxes |= UINT64_C(1) << job->options.box_of_rank[rank];
    }
    return boxes;
}

/* Puts those of the ranks that are in this box into job->ranks, padded; returns how many. */
static uint16_t select_ranks(spc_server_job_t *job, uint16_t box, const unsigned char *ranks,
                             uint32_t count) {
    uint16_t selected = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (job->options.box_of_rank[rank_at(ranks, i)] == box) {
            memcpy(job->ranks + (size_t)RANK_BYTES * selected, ranks + (size_t)RANK_BYTES * i, RANK_BYTES);
            selected++;
        }
    }
    size_t used = (size_t)selected * RANK_BYTES;
    memset(job->ranks + used, 0, ranks_bytes(selected) - used);
    return selected;
}

static int multicast(spc_server_job_t *job, uint64_t boxes, const spc_frame_t *frame,
                     const unsigned char *body) {
    const size_t before = ranks_bytes(frame->count);
    spc_link_body_t *payload;
    int status = share(job, body + before, frame->length_bytes - before, &payload);
    if (status != SPC_OK) {
        return status;
    }
    for (uint16_t box = 0; box < job->options.boxes && status == SPC_OK; box++) {
        if (boxes >> box & 1) {
            spc_frame_t part = *frame;
            part.destination = box;
            part.count = select_ranks(job, box, body, frame->count);
            const spc_frame_piece_t piece = {job->ranks, ranks_bytes(part.count)};
            status = emit_frame(job, box, &part, &piece, 1, payload);
        }
    }
    spc_link_body_release(payload);
    return status;
}

static int take_message(spc_server_job_t *job, const spc_frame_t *frame, const unsigned char *body) {
    if (frame->count == 0 || frame->count > job->options.ranks
        || ranks_bytes(frame->count) > frame->length_bytes) {
        return SPC_EINVAL;
    }
    uint64_t boxes = boxes_of(job, body, frame->count);
    if (boxes == 0) {
        return SPC_EINVAL;
    }
    if ((boxes & (boxes - 1)) != 0) {
        return multicast(job, boxes, frame, body);
    }
    spc_frame_t same = *frame;
    same.keeps_body_sum = true;
    same.destination = job->options.box_of_rank[rank_at(body, 0)];
    const spc_frame_piece_t piece = {body, frame->length_bytes};
    return emit_frame(job, same.destination, &same, &piece, 1, NULL);
}

/* ---- the other frames */

static int hand_on_to_others(spc_server_job_t *job, uint16_t from, const spc_frame_t *frame,
                             const unsigned char *body) {
    spc_link_body_t *shared;
    spc_frame_t same = *frame;
    same.keeps_body_sum = true;
    int status = share(job, body, frame->length_bytes, &shared);
    if (status != SPC_OK) {
        return status;
    }
    for (uint16_t box = 0; box < job->options.boxes && status == SPC_OK; box++) {
        if (box != from) {
            status = emit_frame(job, box, &same, NULL, 0, shared);
        }
    }
    spc_link_body_release(shared);
    return status;
}

int spc_server_job_take(spc_server_job_t *job, uint16_t box, const spc_frame_t *frame,
                        const unsigned char *body) {
    if (!spc_frame_is_of_box(frame, box, job->options.box_of_rank, job->options.ranks)) {
        return SPC_EINVAL;
    }
    if (frame->kind == SPC_FRAME_MESSAGE) {
        return take_message(job, frame, body);
    }
    if (frame->kind == SPC_FRAME_ARRIVE && (frame->flags & SPC_FRAME_FORWARD) == 0) {
        return arrive(job, box, frame, body);
    }
    if ((frame->flags & SPC_FRAME_OTHERS) != 0) {
        return hand_on_to_others(job, box, frame, body);
    }
    if (frame->destination >= job->options.boxes) {
        return SPC_EINVAL;
    }
    spc_frame_t same = *frame;
    same.keeps_body_sum = true;
    const spc_frame_piece_t piece = {body, frame->length_bytes};
    return emit_frame(job, frame->destination, &same, &piece, 1, NULL);
}
