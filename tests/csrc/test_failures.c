/* SPDX-License-Identifier: MIT */
/* The first failure, and the sentence that says it: the table failures.txt holds for `spcomm run`, too. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"

#include "base/spc_error.h"
#include "base/spc_process.h"
#include "fork/spc_failures.h"

enum { KILLED = SIGKILL, TERMINATED = SIGTERM };

static spc_failures_t fresh(uint32_t nodes) {
    spc_failures_t failures;
    CHECK_OK(spc_failures_init(&failures, nodes));
    return failures;
}

static void report(spc_failures_t *failures, uint32_t rank, spc_report_kind_t kind, const char *text) {
    spc_failures_reported(failures, rank, kind, text, (uint32_t)strlen(text));
}

/* Settles, compares all words with what is expected, and frees. */
static void concludes(spc_failures_t *failures, bool interrupted, int code, const char *expected) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    CHECK(out != NULL);
    spc_failures_settle(failures);
    spc_failures_write_texts(failures, false, interrupted, out);
    if (interrupted) {
        spc_failures_write_places(failures, out);
    } else {
        spc_failures_write_sentence(failures, out);
    }
    fclose(out);
    CHECK_STR(text, expected);
    CHECK_EQ(spc_failures_code(failures), code);
    free(text);
    for (uint32_t rank = 0; rank < failures->nodes; rank++) {
        free(failures->node[rank].text);
    }
    free(failures->node);
}

/* ---- the table that the launcher obeys, too */

static void apply(spc_failures_t *failures, const char *event) {
    unsigned rank = 0;
    int number = 0;
    char kind = 0, detail[64];
    if (sscanf(event, " exit %u %d", &rank, &number) == 2) {
        spc_failures_ended(failures, rank, number << 8);
    } else if (sscanf(event, " signal %u %d", &rank, &number) == 2) {
        spc_failures_ended(failures, rank, number);
    } else if (sscanf(event, " report %u %c %63s", &rank, &kind, detail) == 3) {
        report(failures, rank, (spc_report_kind_t)kind, detail);
    } else {
        CHECK(strstr(event, "closed") != NULL);
        failures->closed = true;
    }
}

static void check_row(char *row) {
    char *rest = NULL, *text = NULL;
    size_t bytes = 0;
    char *expected = strstr(row, " -> ");
    CHECK(expected != NULL);
    *expected = '\0';
    expected += 4;
    spc_failures_t failures = fresh(4);
    for (char *event = strtok_r(row, ";", &rest); event != NULL; event = strtok_r(NULL, ";", &rest)) {
        apply(&failures, event);
    }
    spc_failures_settle(&failures);
    FILE *out = open_memstream(&text, &bytes);
    CHECK(out != NULL);
    fprintf(out, "%d: ", spc_failures_code(&failures));
    spc_failures_write_sentence(&failures, out);
    fclose(out);
    text[strcspn(text, ";")] = '\0'; /* what became of the others is said after it */
    CHECK_STR(text, expected);
    free(text);
    free(failures.node);
}

TEST(rows_of_the_table) {
    char row[256];
    uint32_t count = 0;
    FILE *table = fopen("tests/csrc/failures.txt", "r");
    CHECK(table != NULL);
    while (fgets(row, sizeof row, table) != NULL) {
        row[strcspn(row, "\n")] = '\0';
        if (row[0] != '#') {
            check_row(row);
            count++;
        }
    }
    fclose(table);
    CHECK(count > 10);
}

/* ---- what only a run without a launcher says */

TEST(a_victim_is_not_first_if_there_is_another) {
    spc_failures_t failures = fresh(4);
    report(&failures, 1, SPC_REPORT_LOST, "NodeLostError");
    report(&failures, 1, SPC_REPORT_TEXT, "lost\n");
    CHECK_EQ(failures.first, -1);
    CHECK_EQ(failures.first_lost, 1);
    spc_failures_ended(&failures, 3, KILLED);
    failures.closed = true;
    spc_failures_ended(&failures, 0, TERMINATED);
    spc_failures_ended(&failures, 1, 1 << 8);
    spc_failures_ended(&failures, 2, TERMINATED);
    concludes(
        &failures, false, 137,
        "node 3 was killed by SIGKILL (exit code 137); node 1 raised NodeLostError because of it; nodes 0, 2 "
        "were stopped");
}

TEST(equal_tracebacks_are_shown_once_and_the_first_last) {
    spc_failures_t failures = fresh(4);
    for (uint32_t rank = 0; rank < 4; rank++) {
        report(&failures, rank, SPC_REPORT_RAISED, rank == 3 ? "KeyError" : "ValueError");
        report(&failures, rank, SPC_REPORT_TEXT, rank == 3 ? "other\n" : "same\nline");
        spc_failures_ended(&failures, rank, 1 << 8);
    }
    concludes(&failures, false, 1,
              "other\nsame\nline\nnode 0 ended with an uncaught ValueError (exit code 1); "
              "nodes 1-2 failed in the same way");
}

TEST(what_follows_the_end_does_not_count) {
    spc_failures_t failures = fresh(2);
    spc_failures_vanished(&failures, 0);
    failures.closed = true;
    spc_failures_ended(&failures, 1, TERMINATED);
    concludes(&failures, false, 1, "node 0 died; the other node was stopped");
}

TEST(interruptions_show_places) {
    spc_failures_t failures = fresh(4);
    for (uint32_t rank = 1; rank < 4; rank++) {
        report(&failures, rank, SPC_REPORT_INTERRUPTED, rank == 3 ? "b.py:2 in work" : "a.py:1 in <module>");
        report(&failures, rank, SPC_REPORT_TEXT, "Traceback\n");
        spc_failures_ended(&failures, rank, SIGINT);
    }
    spc_failures_ended(&failures, 0, 0);
    concludes(&failures, true, 130,
              "spcomm: where the nodes were:\n  node 0      finished\n  nodes 1-2   a.py:1 in <module>\n"
              "  node 3      b.py:2 in work\n");
}

TEST(long_reports_are_kept_up_to_a_limit) {
    static char piece[4000];
    spc_failures_t failures = fresh(1);
    memset(piece, 'p', sizeof piece - 1);
    report(&failures, 0, SPC_REPORT_RAISED, piece);
    for (int i = 0; i < 1000; i++) {
        report(&failures, 0, SPC_REPORT_TEXT, piece);
    }
    CHECK(strlen(failures.node[0].detail) == sizeof failures.node[0].detail - 1);
    CHECK(failures.node[0].text_bytes <= 1 << 20 && failures.node[0].text_bytes > (1 << 20) - 4000);
    free(failures.node[0].text);
    free(failures.node);
}

TEST(signals_have_names) {
    char buffer[24];
    CHECK_STR(spc_process_signal_name(SIGSEGV, buffer, sizeof buffer), "SIGSEGV");
    CHECK_STR(spc_process_signal_name(63, buffer, sizeof buffer), "signal 63");
}

TEST_MAIN()
