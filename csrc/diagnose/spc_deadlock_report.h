/* SPDX-License-Identifier: MIT */
/*
 * spc_deadlock_report: the report of a deadlock (SP101), in words: which node waits for which, where, why, and advice.
 *
 * For the launcher and for runs without one. Pure functions on waits that have been read (spc_waits): a caller may
 * have put together those of several boxes. Nodes that do the same share a row. What to try is said with the functions
 * of the language that all of these nodes are written in.
 */
#ifndef SPC_DEADLOCK_REPORT_H
#define SPC_DEADLOCK_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "diagnose/spc_waits.h"

typedef struct spc_deadlock_report_options {
    const char *group; /* " of group 2", where a run has several groups; or NULL */
    bool in_vain; /* a warning: these never get what they wait for, but others still run, and may end */
    bool has_launcher; /* whose options may be named */
} spc_deadlock_report_options_t;

/* UTF-8, with its last line break. SPC_OK; SPC_ENOMEM: what has been written is not the whole. */
int spc_deadlock_report_write(const spc_waits_t *waits, const spc_deadlock_report_options_t *options,
                              FILE *out);

/* Of nodes that do the same: `ranks` has a true for each; the call, "recv(source=rank+1, tag=7)"; the place,
 * "ring.py:12 in step", or nothing. Both texts last until it returns. Other than SPC_OK: no more rows. */
typedef int spc_deadlock_report_row_t(void *argument, const bool *ranks, const char *call, const char *place);

/* The rows of the table alone, by their first nodes. SPC_ENOMEM, or what `row` has returned. */
int spc_deadlock_report_rows(const spc_waits_t *waits, spc_deadlock_report_row_t *row, void *argument);

#endif
