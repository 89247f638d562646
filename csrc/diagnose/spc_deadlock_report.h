/* SPDX-License-Identifier: MIT */
/*
 * spc_deadlock_report: the report of a deadlock (SP101), in words: which node waits for which, where, why, and advice.
 *
 * For the launcher and for runs without one. Pure functions on waits that have been read (spc_waits): a caller may have
 * combined those of several boxes. Nodes that do the same share a row. The advice names the functions of the language
 * in which all of these nodes are written.
 */
#ifndef SPC_DEADLOCK_REPORT_H
#define SPC_DEADLOCK_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "diagnose/spc_waits.h"

typedef struct spc_deadlock_report_options {
    const char *group; /* " of group 2", where a run has several groups; or NULL */
    bool in_vain; /* a warning: these waits never succeed, but other nodes still run, and may end */
    /* In place of the report's own on nodes that receive, where no message nearly matches; or NULL. */
    const char *advice;
    /* A warning: these nodes have waited for so long, and only their own program may end that; 0: no warning. */
    uint64_t waited_s;
    bool has_launcher; /* there is a launcher, whose options may be named */
} spc_deadlock_report_options_t;

/* UTF-8, with its last line break. SPC_OK; SPC_ENOMEM: the text is incomplete. */
int spc_deadlock_report_write(const spc_waits_t *waits, const spc_deadlock_report_options_t *options,
                              FILE *out);

/* The report of nodes that a look of `found` has found; `least_s`: only if all have waited for so long, as a warning.
 * The caller frees the text. NULL: not now. */
char *spc_deadlock_report_text(const spc_segment_t *segment, const spc_deadlock_t *found, uint64_t least_s,
                               size_t *bytes);

/* A row of nodes that do the same: `ranks` has a true for each; the call, "recv(source=rank+1, tag=7)"; the place,
 * "ring.py:12 in step", or nothing. Both texts last until it returns. A status other than SPC_OK: no more rows. */
typedef int spc_deadlock_report_row_t(void *argument, const bool *ranks, const char *call, const char *place);

/* Only the rows of the table, by their first nodes. SPC_ENOMEM, or the status of `row`. */
int spc_deadlock_report_rows(const spc_waits_t *waits, spc_deadlock_report_row_t *row, void *argument);

#endif
