/* SPDX-License-Identifier: MIT */
/*
 * spc_server_job: applies a frame from one box of a job to the others. No sockets, no links, no clock: frames go
 * in, and come out by a callback, so that tests can play all of it.
 *
 *   MESSAGE   body: `count` ranks (u16, padded to 8 bytes), payload. Each box that has some of the ranks gets one
 *             frame, with its ranks only; the payload is one piece of memory for all of them.
 *   ARRIVE    context, tag and offset (the phase) say to what; a box sends phases in order. Body: the mask of the boxes
 *             that take part (u64), then what this box contributes. SPC_FRAME_LAST: the box contributes nothing more.
 *             Once all have said that, each box of the mask gets a frame with SPC_FRAME_LAST: the mask, and
 *               - of a reduction of which no part was forwarded (below), and which all members have called in the same
 *                 way, with an operator of reduce/spc_ops.h: one arrival for all members, with the combined value; the
 *                 same frame for all boxes;
 *               - else the contributions of all others that it has not got yet, in the order in which they came; in
 *                 several frames if they are too long for one, the last has the flag. What is no arrival as of
 *                 net/wire/spc_arrival.h is for the gateways to judge.
 *             SPC_FRAME_URGENT: the contributions to this phase and to the phases before it go to all boxes of the
 *             mask at once, phase by phase, and so do those that come later. An urgent frame without a contribution
 *             concerns what the box has sent before; the phase may be complete by then.
 *   others    to box `destination`, or with SPC_FRAME_OTHERS to all other boxes, as they are.
 *
 * Frames leave in the order in which they came. A box that has ended gets nothing, and is nobody's mistake.
 * One thread at a time for each job.
 */
#ifndef SPC_SERVER_JOB_H
#define SPC_SERVER_JOB_H

#include <stdint.h>

#include "net/link/spc_link.h"
#include "net/wire/spc_frame.h"

enum { SPC_SERVER_JOB_BOXES_MAX = 64, SPC_SERVER_JOB_MASK_BYTES = 8 };

typedef struct spc_server_job spc_server_job_t;

/* A frame for this box: its body is these pieces (which last until this returns), and then all of `shared`, if that is
 * not NULL. Other than SPC_OK ends spc_server_job_take, which returns that. */
typedef int spc_server_emit_t(void *argument, uint16_t box, const spc_frame_t *frame,
                              const spc_frame_piece_t *pieces, uint32_t count, spc_link_body_t *shared);

typedef struct spc_server_job_options {
    uint16_t boxes;
    uint32_t ranks;
    const uint16_t *box_of_rank; /* copied */
    uint64_t collected_max;      /* bytes of contributions to phases that are not complete */
    spc_server_emit_t *emit;
    void *argument; /* of `emit` */
    spc_pool_t *pool; /* for what several boxes are sent; NULL: none */
} spc_server_job_options_t;

/* SPC_EINVAL: no box, too many, or a rank in a box that is not there; SPC_ENOMEM. */
int spc_server_job_create(const spc_server_job_options_t *options, spc_server_job_t **job);
void spc_server_job_destroy(spc_server_job_t *job); /* NULL is allowed */

/* A frame that came from this box. SPC_EINVAL: it makes no sense; SPC_ELIMIT: more than collected_max; SPC_ENOMEM; or
 * what emit returned. */
int spc_server_job_take(spc_server_job_t *job, uint16_t box, const spc_frame_t *frame,
                        const unsigned char *body);

/* Nothing more is emitted for this box. */
void spc_server_job_end_box(spc_server_job_t *job, uint16_t box);

/* Of phases that are not complete: contributions, and what is kept about them. */
uint64_t spc_server_job_collected(const spc_server_job_t *job);

#endif
