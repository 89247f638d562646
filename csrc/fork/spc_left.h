/* SPDX-License-Identifier: MIT */
/*
 * spc_left: at the end of a run that went well, says which messages nobody received and which barriers are open.
 *
 * Whether there are any is read from the memory of the run. The words, and whether such a warning is an error
 * (SPCOMM_STRICT=1), are Python's: `spcomm.diagnose.unmatched`, executed in a process of its own.
 */
#ifndef SPC_LEFT_H
#define SPC_LEFT_H

#include <stdint.h>

#include "segment/spc_segment.h"

typedef struct spc_left {
    int descriptor;             /* of the segment */
    const char *const
        *command; /* at most 8 words, and NULL; NULL: spcomm left. Descriptor and ranks follow it */
} spc_left_t;

/* When all nodes here have ended, of these ranks. Returns the exit code of the run, 0 or 1; 0 also where the command
 * cannot be executed. Waits for it. */
int spc_left_report(const spc_left_t *self, const spc_segment_t *segment, const uint32_t *ranks,
                    uint32_t count);

#endif
