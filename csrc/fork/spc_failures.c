/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "fork/spc_failures.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/spc_cgroup.h"
#include "base/spc_error.h"
#include "base/spc_process.h"
#include "diagnose/spc_deadlock_report.h"

enum { SPC_TEXT_KEPT = 1 << 20 };

int spc_failures_init(spc_failures_t *failures, uint32_t nodes) {
    *failures = (spc_failures_t){.nodes = nodes, .first = -1, .first_lost = -1};
    failures->oom_kills = spc_cgroup_oom_kills("");
    failures->node = calloc(nodes, sizeof(*failures->node));
    return failures->node != NULL ? SPC_OK : SPC_ENOMEM;
}

static void count(spc_failures_t *failures, uint32_t rank) {
    const spc_failure_t *failure = &failures->node[rank];
    if (failures->closed || failures->first >= 0) {
        return;
    }
    if (failure->kind == SPC_REPORT_LOST) {
        failures->first_lost = failures->first_lost >= 0 ? failures->first_lost : (int32_t)rank;
    } else if (failure->kind != SPC_REPORT_NONE || failure->status != 0 || failure->vanished) {
        failures->first = (int32_t)rank;
    }
}

static void keep_text(spc_failure_t *failure, const char *piece, uint32_t bytes) {
    if (failure->text_bytes + bytes > SPC_TEXT_KEPT) {
        return;
    }
    char *grown = realloc(failure->text, failure->text_bytes + bytes);
    if (grown != NULL) {
        memcpy(grown + failure->text_bytes, piece, bytes);
        failure->text = grown;
        failure->text_bytes += bytes;
    }
}

void spc_failures_reported(spc_failures_t *failures, uint32_t rank, spc_report_kind_t kind,
                           const char *payload, uint32_t bytes) {
    spc_failure_t *failure = &failures->node[rank];
    if (kind == SPC_REPORT_TEXT) {
        keep_text(failure, payload, bytes);
        return;
    }
    uint32_t kept = bytes < sizeof failure->detail - 1 ? bytes : (uint32_t)sizeof failure->detail - 1;
    failure->known = true;
    failure->kind = kind;
    memcpy(failure->detail, payload, kept);
    failure->detail[kept] = '\0';
    count(failures, rank);
}

void spc_failures_ended(spc_failures_t *failures, uint32_t rank, int status) {
    spc_failure_t *failure = &failures->node[rank];
    failure->ended = true;
    failure->status = status;
    if (status == 0 && !failure->known) {
        return;
    }
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    bool by_us = number == SIGINT || number == SIGKILL || number == SIGTERM;
    failure->known = true;
    failure->out_of_memory = number == SIGKILL && spc_cgroup_oom_kills("") > failures->oom_kills;
    failure->stopped = failures->closed && by_us && failures->first >= 0;
    count(failures, rank);
}

void spc_failures_vanished(spc_failures_t *failures, uint32_t rank) {
    failures->node[rank].known = true;
    failures->node[rank].ended = true;
    failures->node[rank].vanished = true;
    count(failures, rank);
}

void spc_failures_settle(spc_failures_t *failures) {
    failures->first = failures->first >= 0 ? failures->first : failures->first_lost;
}

static int exit_code(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int code_of(const spc_failure_t *failure) {
    if (failure->ended && !failure->stopped && exit_code(failure->status) != 0) {
        return exit_code(failure->status);
    }
    return failure->kind == SPC_REPORT_EXITING       ? atoi(failure->detail) & 0xff
           : failure->kind == SPC_REPORT_INTERRUPTED ? 128 + SIGINT
                                                     : 1;
}

int spc_failures_code(const spc_failures_t *failures) {
    return failures->first < 0 ? 0 : code_of(&failures->node[failures->first]);
}

/* ---- words */

typedef bool chosen_t(const spc_failures_t *failures, uint32_t rank, const void *argument);

static uint32_t how_many(const spc_failures_t *failures, chosen_t chosen, const void *argument) {
    uint32_t found = 0;
    for (uint32_t rank = 0; rank < failures->nodes; rank++) {
        found += chosen(failures, rank, argument);
    }
    return found;
}

/* "node 3", "nodes 0-2, 5": those that are chosen; returns the number of characters. */
static int write_ranks(const spc_failures_t *failures, chosen_t choose, const void *argument, FILE *out) {
    bool chosen[SPC_NODES_MAX];
    for (uint32_t rank = 0; rank < failures->nodes; rank++) {
        chosen[rank] = choose(failures, rank, argument);
    }
    return spc_call_text_write_ranks("node", chosen, failures->nodes, out);
}

static void write_failure(const spc_failures_t *failures, FILE *out) {
    const spc_failure_t *failure = &failures->node[failures->first];
    bool by_signal = failure->ended && !failure->stopped && WIFSIGNALED(failure->status);
    char buffer[24];
    fprintf(out, "node %d ", failures->first);
    if (by_signal && failure->kind != SPC_REPORT_INTERRUPTED) {
        int number = WTERMSIG(failure->status);
        fprintf(out, "was killed by %s (exit code %d)",
                failure->out_of_memory ? "the kernel: out of memory"
                                       : spc_process_signal_name(number, buffer, sizeof buffer),
                128 + number);
    } else if (failure->kind == SPC_REPORT_RAISED || failure->kind == SPC_REPORT_LOST) {
        fprintf(out, "ended with an uncaught %s (exit code %d)", failure->detail, code_of(failure));
    } else if (failure->kind == SPC_REPORT_INTERRUPTED) {
        fprintf(out, "ended with an uncaught KeyboardInterrupt (exit code %d)", code_of(failure));
    } else if (failure->vanished) {
        fprintf(out, "died");
    } else {
        fprintf(out, "ended with exit code %d", code_of(failure));
    }
}

static bool same_text(const spc_failure_t *one, const spc_failure_t *other) {
    return one->text_bytes == other->text_bytes && other->text_bytes > 0
           && memcmp(one->text, other->text, one->text_bytes) == 0;
}

static bool is_victim(const spc_failures_t *failures, uint32_t rank, const void *unused) {
    (void)unused;
    return (int32_t)rank != failures->first && failures->node[rank].text_bytes > 0
           && failures->node[rank].kind == SPC_REPORT_LOST;
}

static bool is_same(const spc_failures_t *failures, uint32_t rank, const void *unused) {
    return (int32_t)rank != failures->first && !is_victim(failures, rank, unused) && failures->first >= 0
           && same_text(&failures->node[rank], &failures->node[failures->first]);
}

static bool was_stopped(const spc_failures_t *failures, uint32_t rank, const void *unused) {
    const spc_failure_t *failure = &failures->node[rank];
    (void)unused;
    if ((int32_t)rank == failures->first || (failure->known && failure->kind != SPC_REPORT_NONE)) {
        return failure->kind == SPC_REPORT_STOPPED;
    }
    return failure->vanished
           || (failure->ended && WIFSIGNALED(failure->status)
               && (WTERMSIG(failure->status) == SIGTERM || WTERMSIG(failure->status) == SIGKILL));
}

static bool is_victim_by(const spc_failures_t *failures, uint32_t rank, const void *name) {
    return is_victim(failures, rank, NULL) && strcmp(failures->node[rank].detail, name) == 0;
}

/* "; nodes 1, 3 raised NodeLostError because of it", for each name of an exception. */
static void write_victims(const spc_failures_t *failures, FILE *out) {
    for (uint32_t rank = 0; rank < failures->nodes; rank++) {
        const char *name = failures->node[rank].detail;
        bool is_new = is_victim(failures, rank, NULL);
        for (uint32_t before = 0; before < rank && is_new; before++) {
            is_new = !is_victim_by(failures, before, name);
        }
        if (is_new) {
            fprintf(out, "; ");
            write_ranks(failures, is_victim_by, name, out);
            fprintf(out, " raised %s because of it", name);
        }
    }
}

void spc_failures_write_sentence(const spc_failures_t *failures, FILE *out) {
    write_failure(failures, out);
    if (how_many(failures, is_same, NULL) > 0) {
        fprintf(out, "; ");
        write_ranks(failures, is_same, NULL, out);
        fprintf(out, " failed in the same way");
    }
    write_victims(failures, out);
    uint32_t stopped = how_many(failures, was_stopped, NULL);
    if (stopped > 0 && stopped == failures->nodes - 1) {
        fprintf(out, stopped > 1 ? "; the other nodes were stopped" : "; the other node was stopped");
    } else if (stopped > 0) {
        fprintf(out, "; ");
        write_ranks(failures, was_stopped, NULL, out);
        fprintf(out, stopped > 1 ? " were stopped" : " was stopped");
    }
}

static void write_text(const spc_failure_t *failure, uint32_t rank, bool labels, FILE *out) {
    const char *at = failure->text, *end = failure->text + failure->text_bytes;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        if (labels) {
            fprintf(out, "[%u] ", rank);
        }
        fwrite(at, 1, (size_t)(stop - at), out);
        fputc('\n', out);
        at = stop + 1;
    }
}

void spc_failures_write_texts(const spc_failures_t *failures, bool labels, bool interrupted, FILE *out) {
    for (uint32_t rank = 0; rank < failures->nodes; rank++) {
        const spc_failure_t *failure = &failures->node[rank];
        bool explained = interrupted && failure->kind == SPC_REPORT_INTERRUPTED;
        if ((int32_t)rank != failures->first && !explained && failure->kind != SPC_REPORT_LOST
            && !is_same(failures, rank, NULL)) {
            write_text(failure, rank, labels, out);
        }
    }
    if (failures->first >= 0
        && !(interrupted && failures->node[failures->first].kind == SPC_REPORT_INTERRUPTED)) {
        write_text(&failures->node[failures->first], (uint32_t)failures->first, labels, out);
    }
}

static const char *place(const spc_failures_t *failures, uint32_t rank) {
    const spc_failure_t *failure = &failures->node[rank];
    if (failure->kind == SPC_REPORT_INTERRUPTED && failure->detail[0] != '\0') {
        return failure->detail;
    }
    if (failure->elsewhere) {
        return "in another box";
    }
    return failure->ended && failure->status == 0 && !failure->vanished ? "finished" : "no answer";
}

static bool is_there(const spc_failures_t *failures, uint32_t rank, const void *where) {
    return strcmp(place(failures, rank), where) == 0;
}

static bool has_said(const spc_failures_t *failures, uint32_t rank, const void *unused) {
    (void)unused;
    return failures->node[rank].kind == SPC_REPORT_INTERRUPTED && failures->node[rank].detail[0] != '\0';
}

void spc_failures_write_places(const spc_failures_t *failures, FILE *out) {
    if (how_many(failures, has_said, NULL) == 0) {
        return;
    }
    fprintf(out, "spcomm: where the nodes were:\n");
    for (uint32_t rank = 0; rank < failures->nodes; rank++) {
        bool is_new = true;
        for (uint32_t before = 0; before < rank; before++) {
            is_new = is_new && !is_there(failures, before, place(failures, rank));
        }
        if (is_new) {
            fprintf(out, "  ");
            int width = write_ranks(failures, is_there, place(failures, rank), out);
            fprintf(out, "%*s%s\n", width < 12 ? 12 - width : 2, "", place(failures, rank));
        }
    }
}
