/* SPDX-License-Identifier: MIT */
/*
 * spc_server: routes frames between the gateways of jobs, collects arrivals, so that an operation costs each link one
 * frame up and one down, and combines the values of reductions (routing rules: spc_server_job.h).
 *
 * One thread calls spc_server_run, which serves all jobs; any thread may call the others, at any time, before, during
 * or after it. Connections arrive authenticated: spc_server_adopt takes the first and every renewed one of a box. A
 * box has ended when its link has finished (spc_link_finish); a job, when all of its boxes have. A box that is silent
 * for limits.timeout_ns, breaks the protocol or makes another link exceed its bound is dead: each other box of the job
 * gets one FAIL frame (source: that box; body: a sentence that names it, no zero at its end), and the server no longer
 * reads from the dead box.
 *
 * Memory is bounded: retained_max for each link, collected_max for each job, one buffer for reading. When no frame
 * arrives, the server looks again a bounded number of times, yielding the core (base/spc_wait.h), and then sleeps.
 */
#ifndef SPC_SERVER_H
#define SPC_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_clock.h"
#include "base/spc_wait.h"
#include "net/link/spc_link.h"
#include "net/wire/spc_frame.h"

#define SPC_SERVER_BOXES_MAX 64
#define SPC_SERVER_SENTENCE_BYTES 256

typedef struct spc_server spc_server_t;

/* Reports why a job failed, or that it ended (sentence: NULL). Runs in the thread of spc_server_run, without a lock of
 * the server: it may call any function of this header except spc_server_run and spc_server_destroy. */
typedef void spc_server_report_t(void *argument, uint32_t job, const char *sentence);

/* A field that is 0 takes the value in brackets. */
typedef struct spc_server_options {
    spc_clock_fn now_ns;      /* [spc_clock_now_ns] */
    spc_wait_policy_t policy; /* [SPC_WAIT_FREE_CORES] */
    spc_link_limits_t limits;
    uint64_t retained_max;  /* [16 MiB, or as in spc_credit.h] of each link */
    uint64_t collected_max; /* [16 MiB] of each job: arrivals at phases that are not complete */
    spc_server_report_t *report; /* may be NULL */
    void *argument;
    uint32_t disabled; /* features of base/spc_platform.h that the server must not use */
    bool keep_running; /* spc_server_run goes on without jobs, until spc_server_stop */
} spc_server_options_t;

/* SPC_ENOMEM, SPC_ESYSTEM (no descriptor left). */
int spc_server_create(const spc_server_options_t *options, spc_server_t **server);
void spc_server_destroy(spc_server_t *server); /* spc_server_run is over; NULL is allowed */

/* Adds a job with this many boxes; rank r lives in box box_of_rank[r], which is copied. SPC_EINVAL: a box beyond the
 * number, or more than SPC_SERVER_BOXES_MAX; SPC_EBUSY: a job with that number exists; SPC_ENOMEM. */
int spc_server_add_job(spc_server_t *server, uint32_t job, uint16_t boxes, const uint16_t *box_of_rank,
                       uint32_t ranks);

/* Adopts the connection of a box, in place of any earlier one. SPC_EINVAL: no such job or box; SPC_ECLOSED: the box has
 * ended, or is dead. Takes the channel in any case. */
int spc_server_adopt(spc_server_t *server, uint32_t job, uint16_t box, spc_channel_t *channel);

/* Ends a job: each box that is still connected gets a FAIL frame with this sentence. A box that never connected counts
 * as dead from then on, whichever box failed. SPC_EINVAL: no such job. */
int spc_server_fail_job(spc_server_t *server, uint32_t job, const char *sentence);

/* Returns once all jobs have ended (with keep_running: never), or after spc_server_stop. SPC_ESYSTEM: waiting
 * failed. */
int spc_server_run(spc_server_t *server);
void spc_server_stop(spc_server_t *server);

/* Forgets a job that has ended; until then its number stays taken and its counts stay readable. SPC_EINVAL: no such
 * job; SPC_EBUSY: it has not ended. */
int spc_server_remove_job(spc_server_t *server, uint32_t job);

/* Counts of a box's link. SPC_EINVAL: no such job or box. */
int spc_server_count(spc_server_t *server, uint32_t job, uint16_t box, spc_link_counts_t *counts);
spc_link_state_t spc_server_link_state(spc_server_t *server, uint32_t job,
                                       uint16_t box); /* DEAD also if there is no such box */

#endif
