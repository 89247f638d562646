/* SPDX-License-Identifier: MIT */
/*
 * spc_failures: finds the first failure and words it, by the same rules and in the same words as `spcomm run`.
 *
 * The first failure is the one that was reported first: an exception is reported when it is raised, any other failure
 * when the process has ended. A failure because of a lost node counts only if there is no other failure. Nothing that
 * happens after the supervisor has told the nodes to end counts.
 *
 * Only the supervisor uses it, in one thread. Text of nodes is kept up to a limit each.
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
} spc_report_kind_t;

#define SPC_REPORT_HEADER 7
#define SPC_REPORT_BYTES 4096

typedef struct spc_failure {
    spc_report_kind_t kind; /* of its report */
    bool known;
    bool ended;    /* status shows how */
    bool vanished; /* node 0, whose end is unknown */
    bool stopped;  /* by the supervisor */
    bool out_of_memory; /* killed by the kernel, which says so in the control group */
    bool elsewhere; /* in another box, whose supervisor judges it */
    int status;    /* as of waitpid */
    char detail[120];
    char *text;
    uint32_t text_bytes;
} spc_failure_t;

typedef struct spc_failures {
    spc_failure_t *node;
    uint32_t nodes;
    int32_t first; /* -1: none but victims of a lost node */
    int32_t first_lost;
    uint64_t oom_kills; /* of the control group so far */
    bool closed; /* the nodes have been told to end: later failures do not count */
} spc_failures_t;

/* SPC_ENOMEM. Only the supervisor's end frees it. */
int spc_failures_init(spc_failures_t *failures, uint32_t nodes);

void spc_failures_reported(spc_failures_t *failures, uint32_t rank, spc_report_kind_t kind,
                           const char *payload, uint32_t bytes);

/* A node's process has ended. A status of 0 without a report is no failure. */
void spc_failures_ended(spc_failures_t *failures, uint32_t rank, int status);

/* Node 0's process is gone, and has not reported how. */
void spc_failures_vanished(spc_failures_t *failures, uint32_t rank);

/* No other failure has come: the first victim is to blame. */
void spc_failures_settle(spc_failures_t *failures);

/* The exit code of a run whose first failure this is. */
int spc_failures_code(const spc_failures_t *failures);

/* The tracebacks worth showing, the first failure's last. `interrupted`: Ctrl-C explains those of KeyboardInterrupt. */
void spc_failures_write_texts(const spc_failures_t *failures, bool labels, bool interrupted, FILE *out);

/* "node 2 was killed by SIGSEGV (exit code 139); the other nodes were stopped" */
void spc_failures_write_sentence(const spc_failures_t *failures, FILE *out);

/* A line for each place at which Ctrl-C interrupted nodes, if any has reported one. */
void spc_failures_write_places(const spc_failures_t *failures, FILE *out);

#endif
