/* SPDX-License-Identifier: MIT */
/*
 * spc_verdict: the report of a proven deadlock (SP101), for a run without a launcher.
 *
 * Heading, table and circle; spc_waits reads what they are about, spc_advice says why, and what to try. The words are
 * those of spcomm/diagnose/deadlock.py; a test compares the two. Reads the boards of the nodes that are proven to wait
 * for ever, so it is called before these are told to end.
 */
#ifndef SPC_VERDICT_H
#define SPC_VERDICT_H

#include <stdio.h>

#include "diagnose/spc_deadlock.h"

/* After a look that has proven something. SPC_OK; SPC_EAGAIN: no board could be read; SPC_ENOMEM. What has been written
 * when it fails is not the whole. */
int spc_verdict_write(const spc_segment_t *segment, const spc_deadlock_t *deadlock, FILE *out);

#endif
