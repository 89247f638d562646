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
#include <stdint.h>
#include <stdio.h>

#include "diagnose/spc_deadlock.h"
#include "diagnose/spc_waits.h"
#include "reduce/spc_reduce.h"
#include "segment/spc_board.h"

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

/* ---- texts of calls: of a wait, from its status board, and of collective operations
 *
 * Pure functions on the caller's copy of an entry; each writes UTF-8 and no line break. */

/* "recv(source=1, tag=7)", "barrier()". `peer`: the text instead of the rank; NULL: the rank. */
void spc_call_text_write(const spc_board_entry_t *entry, const char *peer, FILE *out);

/* "barrier()", "global_sum() of an array of float64, 80 bytes"; the caller frees it. Shapes are not in a signature.
 * NULL: no memory. */
char *spc_call_text_collective(const spc_signature_t *call);

/* "float64"; "numbers" if the core has no name for it. */
const char *spc_call_text_type(uint32_t type);

/* "ring.py:12 in step"; empty if it is not known. */
void spc_call_text_write_place(const spc_board_entry_t *entry, FILE *out);

/* "node 3", "nodes 0-2, 5"; `word` is "node", or "Node" at the start of a sentence. */
void spc_call_text_write_ranks(const char *word, const bool *chosen, uint32_t nodes, FILE *out);

#endif
