/* SPDX-License-Identifier: MIT */
/* Messages, and frames that are handed on as they are. */
#include "net/spc_server_job_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_atomic.h"
#include "base/spc_error.h"

enum { RANK_BYTES = 2, RANKS_ALIGNMENT = 8 };

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
    if (made == NULL || box_of_rank == NULL || ranks == NULL) {
        free(made);
        free(box_of_rank);
        free(ranks);
        return SPC_ENOMEM;
    }
    if (options->ranks > 0) {
        memcpy(box_of_rank, options->box_of_rank, options->ranks * sizeof *box_of_rank);
    }
    made->options = *options;
    made->options.box_of_rank = box_of_rank;
    made->ranks = ranks;
    *job = made;
    return SPC_OK;
}

void spc_server_job_destroy(spc_server_job_t *job) {
    if (job != NULL) {
        spc_server_job_free_phases(job);
        free((void *)(uintptr_t)job->options.box_of_rank);
        free(job->ranks);
        free(job);
    }
}

void spc_server_job_end_box(spc_server_job_t *job, uint16_t box) {
    job->ended |= UINT64_C(1) << box;
}

uint64_t spc_server_job_collected(const spc_server_job_t *job) {
    return job->collected_bytes;
}

int spc_server_job_emit(spc_server_job_t *job, uint16_t box, const spc_frame_t *frame,
                        const spc_frame_piece_t *pieces, uint32_t count, spc_link_body_t *shared) {
    if (job->ended >> box & 1) {
        return SPC_OK;
    }
    return job->options.emit(job->options.argument, box, frame, pieces, count, shared);
}

/* A copy that several links share. */
static int share(const spc_server_job_t *job, const unsigned char *bytes, size_t length_bytes,
                 spc_link_body_t **shared) {
    int status = spc_link_body_create(job->options.pool, length_bytes, shared);
    if (status == SPC_OK && length_bytes > 0) {
        memcpy(spc_link_body_start(*shared), bytes, length_bytes);
    }
    return status;
}

/* ---- messages */

static uint16_t rank_at(const unsigned char *ranks, uint32_t i) {
    return (uint16_t)(ranks[RANK_BYTES * i] | ranks[RANK_BYTES * i + 1] << 8);
}

static size_t ranks_bytes(uint32_t count) {
    return (size_t)spc_round_up((uint64_t)count * RANK_BYTES, RANKS_ALIGNMENT);
}

/* The boxes of these ranks; 0: one of them is no rank. */
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

/* Those of the ranks that are in this box, into job->ranks, padded; returns how many. */
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
            status = spc_server_job_emit(job, box, &part, &piece, 1, payload);
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
    return spc_server_job_emit(job, same.destination, &same, &piece, 1, NULL);
}

/* ---- the others */

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
            status = spc_server_job_emit(job, box, &same, NULL, 0, shared);
        }
    }
    spc_link_body_release(shared);
    return status;
}

int spc_server_job_take(spc_server_job_t *job, uint16_t box, const spc_frame_t *frame,
                        const unsigned char *body) {
    if (frame->kind == SPC_FRAME_MESSAGE) {
        return take_message(job, frame, body);
    }
    if (frame->kind == SPC_FRAME_ARRIVE) {
        return spc_server_job_arrive(job, box, frame, body);
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
    return spc_server_job_emit(job, frame->destination, &same, &piece, 1, NULL);
}
