/* SPDX-License-Identifier: MIT */
/*
 * spc_server_job: applies a frame from one box of a job to the others. No sockets, no links, no clock: frames go in,
 * and come out by a callback, so that tests can drive all of it.
 *
 *   MESSAGE   body: `count` ranks (u16, padded to 8 bytes), payload. Each box that has some of the ranks gets one
 *             frame, with its ranks only; all frames share one copy of the payload.
 *   ARRIVE    context, tag and offset (the phase) name the phase; a box sends phases in order. Body: the mask of the
 *             boxes that take part (u64), then this box's contributions. SPC_FRAME_LAST: the box contributes nothing
 *             more. Once all boxes have sent that, each box of the mask gets a frame with SPC_FRAME_LAST: the mask, and
 *               - for a barrier, or a reduction with an operator of reduce/spc_ops.h, that all members called in the
 *                 same way and that was not forwarded in part (below): one arrival for all members, with the combined
 *                 value if there is one; the same frame for all boxes;
 *               - else all other boxes' contributions that it has not received yet, in order of arrival; in several
 *                 frames if they are too long for one, and then the last has the flag. The gateways judge bytes that
 *                 are not an arrival of net/wire/spc_arrival.h.
 *             SPC_FRAME_URGENT: the contributions to this phase and to the phases before it go to all boxes of the
 *             mask at once, phase by phase, and so do later ones. An urgent frame without a contribution concerns the
 *             box's earlier contributions; the phase may be complete by then.
 *   others    to box `destination`, or with SPC_FRAME_OTHERS to all other boxes, as they are.
 *
 * Frames leave in order of arrival. A box that has ended gets nothing, and frames to it are no error. One thread at a
 * time for each job.
 */
#ifndef SPC_SERVER_JOB_H
#define SPC_SERVER_JOB_H

#include <stdint.h>

#include "net/link/spc_link.h"
#include "net/wire/spc_frame.h"

enum { SPC_SERVER_JOB_BOXES_MAX = 64, SPC_SERVER_JOB_MASK_BYTES = 8 };

typedef struct spc_server_job spc_server_job_t;

/* Sends a frame to this box: its body is these pieces (valid until this returns), then all of `shared`, if that is not
 * NULL. A status other than SPC_OK ends spc_server_job_take, which returns it. */
typedef int spc_server_emit_t(void *argument, uint16_t box, const spc_frame_t *frame,
                              const spc_frame_piece_t *pieces, uint32_t count, spc_link_body_t *shared);

typedef struct spc_server_job_options {
    uint16_t boxes;
    uint32_t ranks;
    const uint16_t *box_of_rank; /* copied */
    uint64_t collected_max;      /* bytes of contributions to phases that are not complete */
    spc_server_emit_t *emit;
    void *argument; /* of `emit` */
    spc_pool_t *pool; /* body shared by several boxes; NULL: none */
} spc_server_job_options_t;

/* SPC_EINVAL: no box, too many, or a rank in a box that does not exist; SPC_ENOMEM. */
int spc_server_job_create(const spc_server_job_options_t *options, spc_server_job_t **job);
void spc_server_job_destroy(spc_server_job_t *job); /* NULL is allowed */

/* Takes a frame from this box. SPC_EINVAL: it makes no sense; SPC_ELIMIT: more than collected_max; SPC_ENOMEM; or the
 * status of emit. */
int spc_server_job_take(spc_server_job_t *job, uint16_t box, const spc_frame_t *frame,
                        const unsigned char *body);

/* Emits nothing more for this box. */
void spc_server_job_end_box(spc_server_job_t *job, uint16_t box);

/* Bytes of incomplete phases: contributions and bookkeeping. */
uint64_t spc_server_job_collected(const spc_server_job_t *job);

#endif
