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

enum { SPC_TEXT_KEPT = 1 << 20 };

static void write_frame(FILE *out, uint32_t rank, spc_report_kind_t kind, const char *payload,
                        uint32_t bytes) {
    const char header[SPC_REPORT_HEADER] = {(char)(rank & 0xff), (char)(rank >> 8), [4] = (char)kind,
                                            (char)(bytes & 0xff), (char)(bytes >> 8)};
    fwrite(header, 1, sizeof header, out);
    fwrite(payload, 1, bytes, out);
}

void spc_failures_note(spc_failures_t *failures, uint32_t rank, spc_report_kind_t kind, const char *text) {
    write_frame(failures->record, rank, kind, text, (uint32_t)strlen(text));
}

static void note_number(spc_failures_t *failures, uint32_t rank, spc_report_kind_t kind, int number) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    spc_failures_note(failures, rank, kind, text);
}

int spc_failures_init(spc_failures_t *failures, uint32_t nodes) {
    *failures = (spc_failures_t){.nodes = nodes, .first = -1, .first_lost = -1};
    failures->node = calloc(nodes, sizeof(*failures->node));
    failures->record = open_memstream(&failures->record_text, &failures->record_bytes);
    failures->texts = open_memstream(&failures->texts_text, &failures->texts_bytes);
    if (failures->node == NULL || failures->record == NULL || failures->texts == NULL) {
        spc_failures_fini(failures);
        return SPC_ENOMEM;
    }
    note_number(failures, nodes, SPC_RECORD_BEGUN, (int)spc_cgroup_oom_kills(""));
    return SPC_OK;
}

void spc_failures_fini(spc_failures_t *failures) {
    if (failures->record != NULL) {
        fclose(failures->record);
    }
    if (failures->texts != NULL) {
        fclose(failures->texts);
    }
    free(failures->record_text);
    free(failures->texts_text);
    free(failures->node);
}

/* ---- the first failure */

static void count(spc_failures_t *failures, uint32_t rank, int code) {
    spc_failure_t *failure = &failures->node[rank];
    failure->known = true;
    failure->code = code != 0 ? code : failure->code;
    if (failures->closed || failures->first >= 0) {
        return;
    }
    if (failure->kind == SPC_REPORT_LOST) {
        failures->first_lost = failures->first_lost >= 0 ? failures->first_lost : (int32_t)rank;
    } else if (failure->code != 0) {
        failures->first = (int32_t)rank;
    }
}

void spc_failures_reported(spc_failures_t *failures, uint32_t rank, spc_report_kind_t kind,
                           const char *payload, uint32_t bytes) {
    spc_failure_t *failure = &failures->node[rank];
    if (kind == SPC_REPORT_TEXT) {
        if (failure->text_bytes + bytes <= SPC_TEXT_KEPT) {
            failure->text_bytes += bytes;
            write_frame(failures->texts, rank, kind, payload, bytes);
        }
        return;
    }
    char number[8] = {0};
    memcpy(number, payload, bytes < sizeof number - 1 ? bytes : sizeof number - 1);
    failure->kind = kind;
    write_frame(failures->record, rank, kind, payload, bytes);
    count(failures, rank,
          kind == SPC_REPORT_INTERRUPTED ? 128 + SIGINT
          : kind == SPC_REPORT_EXITING   ? atoi(number) & 0xff
                                         : 1);
}

void spc_failures_ended(spc_failures_t *failures, uint32_t rank, int status) {
    const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const bool by_us = failures->closed && failures->first >= 0
                       && (number == SIGINT || number == SIGKILL || number == SIGTERM);
    note_number(failures, rank, SPC_RECORD_ENDED, status);
    if (status != 0 || failures->node[rank].known) {
        count(failures, rank, by_us ? 0 : number != 0 ? 128 + number : WEXITSTATUS(status));
    }
}

void spc_failures_vanished(spc_failures_t *failures, uint32_t rank) {
    spc_failures_note(failures, rank, SPC_RECORD_VANISHED, "");
    count(failures, rank, failures->node[rank].code == 0);
}

void spc_failures_settle(spc_failures_t *failures) {
    if (!failures->closed) {
        failures->first = failures->first >= 0 ? failures->first : failures->first_lost;
    }
}

void spc_failures_close(spc_failures_t *failures) {
    if (!failures->closed) {
        failures->closed = true;
        note_number(failures, 0, SPC_RECORD_FIRST, failures->first);
    }
}

int spc_failures_code(const spc_failures_t *failures) {
    return failures->first < 0 ? 0 : failures->node[failures->first].code;
}
