/* SPDX-License-Identifier: MIT */
/*
 * spc_server_job_private: the inside of a job's routing, for its files only: spc_server_job.c (messages, and what is
 * handed on) and spc_server_job_arrive.c (phases).
 */
#ifndef SPC_SERVER_JOB_PRIVATE_H
#define SPC_SERVER_JOB_PRIVATE_H

#include <stdbool.h>

#include "net/spc_server_job.h"

enum { SPC_SERVER_JOB_BUCKETS = 256 };

typedef struct spc_server_phase spc_server_phase_t;

struct spc_server_job {
    spc_server_job_options_t options;
    uint64_t ended; /* boxes, a mask */
    unsigned char *ranks; /* where the ranks of one box are put together */
    spc_server_phase_t *phases[SPC_SERVER_JOB_BUCKETS]; /* chains */
    uint64_t collected_bytes;
};

/* A u64, little-endian on every machine. */
uint64_t spc_server_job_get_mask(const unsigned char *bytes);
void spc_server_job_put_mask(unsigned char *bytes, uint64_t mask);

/* Unless the box has ended. */
int spc_server_job_emit(spc_server_job_t *job, uint16_t box, const spc_frame_t *frame,
                        const spc_frame_piece_t *pieces, uint32_t count, spc_link_body_t *shared);

int spc_server_job_arrive(spc_server_job_t *job, uint16_t box, const spc_frame_t *frame,
                          const unsigned char *body);
void spc_server_job_free_phases(spc_server_job_t *job);

#endif
