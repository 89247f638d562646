/* SPDX-License-Identifier: MIT */
/*
 * spc_failures: finds the first failure of a run without a launcher, and keeps the record from which Python words its
 * end (spcomm/launch/supervise/conclude.py).
 *
 * The first failure is the one that was reported first: an exception is reported when it is raised, any other failure
 * when the process has ended. A failure because of a lost node counts only if there is no other failure. Nothing that
 * happens after the supervisor has told the nodes to end counts.
 *
 * The record is a row of frames in the form of spc_fork_report_descriptor: those of the nodes, and the supervisor's
 * own, whose kinds no node sends. Pieces of tracebacks are kept apart, up to a limit for each node, so that the record
 * without them is short.
 *
 * Only the supervisor uses it, in one thread.
 */
#ifndef SPC_FAILURES_H
#define SPC_FAILURES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum spc_report_kind {
    SPC_REPORT_NONE = 0,
    SPC_REPORT_RAISED = 'E',      /* payload: the exception's name */
    SPC_REPORT_LOST = 'L',        /* the same, because a node was lost */
    SPC_REPORT_INTERRUPTED = 'K', /* where */
    SPC_REPORT_EXITING = 'X',     /* the exit code */
    SPC_REPORT_TEXT = 'T',        /* a piece of its traceback */
    SPC_REPORT_OVER = 'Z',        /* node 0 waits for the others, and would exit with this code */
    SPC_REPORT_STOPPED = 'S',     /* node 0 has obeyed the supervisor's SIGTERM and waits */
    /* of the record only; numbers are decimal */
    SPC_RECORD_BEGUN = 'B', /* the kernel's kills in this control group so far; rank: the number of nodes */
    SPC_RECORD_ENDED = 'W', /* the status, as of waitpid */
    SPC_RECORD_VANISHED = 'V', /* a caller's process is gone, and has not reported how */
    SPC_RECORD_FIRST = 'F', /* the nodes are told to end: the first failure; -1: none */
    SPC_RECORD_SIGNAL = 'N', /* the signal that ends the run */
    SPC_RECORD_LATE = 'A', /* the launcher; this node has not called startup() */
    SPC_RECORD_ORPHANED = 'O', /* the launcher, which has ended */
    SPC_RECORD_SAID = 'R', /* nothing: the supervisor prints why the run ends */
} spc_report_kind_t;

#define SPC_REPORT_HEADER 7
#define SPC_REPORT_BYTES 4096

typedef struct spc_failure {
    spc_report_kind_t kind; /* of its report */
    bool known;
    bool elsewhere; /* in another box, whose supervisor judges it */
    int code; /* of the run, if it is the first */
    uint32_t text_bytes;
} spc_failure_t;

typedef struct spc_failures {
    spc_failure_t *node;
    uint32_t nodes;
    int32_t first; /* -1: none but victims of a lost node */
    int32_t first_lost;
    bool closed; /* the nodes have been told to end: later failures do not count */
    FILE *record, *texts;
    char *record_text, *texts_text; /* valid after fflush */
    size_t record_bytes, texts_bytes;
} spc_failures_t;

/* SPC_ENOMEM. The structure stays where it is: its streams know the place of their texts. */
int spc_failures_init(spc_failures_t *failures, uint32_t nodes);
void spc_failures_fini(spc_failures_t *failures);

void spc_failures_reported(spc_failures_t *failures, uint32_t rank, spc_report_kind_t kind,
                           const char *payload, uint32_t bytes);

/* A node's process has ended. A status of 0 without a report is no failure. */
void spc_failures_ended(spc_failures_t *failures, uint32_t rank, int status);

/* A caller's process is gone, and has not reported how. */
void spc_failures_vanished(spc_failures_t *failures, uint32_t rank);

/* No other failure has come: the first victim is to blame. */
void spc_failures_settle(spc_failures_t *failures);

/* The nodes are told to end, or have all ended. Only the first call counts. */
void spc_failures_close(spc_failures_t *failures);

/* Adds to the record; the text is shorter than a frame. */
void spc_failures_note(spc_failures_t *failures, uint32_t rank, spc_report_kind_t kind, const char *text);

/* The exit code of a run whose first failure this is. */
int spc_failures_code(const spc_failures_t *failures);

#endif
