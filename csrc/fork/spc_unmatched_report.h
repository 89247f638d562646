/* SPDX-License-Identifier: MIT */
/*
 * spc_unmatched_report: reports, after a run that went well, messages that nobody received and barriers left open.
 *
 * Whether there are any is read from the memory of the run. The words, and whether such a warning is an error
 * (SPCOMM_STRICT=1), are Python's: `spcomm.diagnose.unmatched`, executed in a process of its own. Of a run on several
 * machines each reports for its own nodes, and only its own exit code is 1.
 */
#ifndef SPC_UNMATCHED_REPORT_H
#define SPC_UNMATCHED_REPORT_H

#include <stdint.h>

#include "segment/spc_segment.h"

typedef struct spc_unmatched_report {
    const spc_segment_t *segment;
    int descriptor; /* of the segment */
    const uint32_t *ranks; /* of the nodes of this machine */
    uint32_t count;
    /* At most 8 words, and NULL; the descriptor and the ranks follow them. NULL: spcomm unmatched. */
    const char *const *command;
} spc_unmatched_report_t;

/* Call it when these nodes have ended. Returns the exit code of the run, 0 or 1; 0 also where the command cannot be
 * executed. Waits for the command, for ten seconds at most. */
int spc_unmatched_report(const spc_unmatched_report_t *self);

#endif
