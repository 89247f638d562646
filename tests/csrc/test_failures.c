/* SPDX-License-Identifier: MIT */
/* The first failure, and the record of it: the table failures.txt holds for `spcomm run`, too. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "check.h"

#include "base/spc_error.h"
#include "base/spc_process.h"
#include "fork/spc_failures.h"

enum { KILLED = SIGKILL, TERMINATED = SIGTERM };

static void begin(spc_failures_t *failures, uint32_t nodes) {
    CHECK_OK(spc_failures_init(failures, nodes));
}

static void report(spc_failures_t *failures, uint32_t rank, spc_report_kind_t kind, const char *text) {
    spc_failures_reported(failures, rank, kind, text, (uint32_t)strlen(text));
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

/* The words are Python's. */
static void check_row(char *row) {
    char *rest = NULL;
    int code = 0, first = 0;
    char *expected = strstr(row, " -> ");
    CHECK(expected != NULL);
    *expected = '\0';
    CHECK_EQ(sscanf(expected + 4, "%d: node %d", &code, &first), 2);
    spc_failures_t failures;
    begin(&failures, 4);
    for (char *event = strtok_r(row, ";", &rest); event != NULL; event = strtok_r(NULL, ";", &rest)) {
        apply(&failures, event);
    }
    spc_failures_settle(&failures);
    CHECK_EQ(spc_failures_code(&failures), code);
    CHECK_EQ(failures.first, first);
    spc_failures_fini(&failures);
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

/* ---- the record */

/* Without the header of each frame. */
static void check_record(spc_failures_t *failures, const char *expected, uint64_t texts_bytes) {
    char kinds[64] = "";
    fflush(failures->record);
    fflush(failures->texts);
    for (size_t at = 0, to = 0; at < failures->record_bytes && to < sizeof kinds - 1; to++) {
        const unsigned char *frame = (const unsigned char *)failures->record_text + at;
        kinds[to] = (char)frame[4];
        at += SPC_REPORT_HEADER + (size_t)(frame[5] | frame[6] << 8);
        CHECK(at <= failures->record_bytes);
    }
    CHECK_STR(kinds, expected);
    CHECK_EQ_U(failures->texts_bytes, texts_bytes);
    spc_failures_fini(failures);
}

TEST(a_victim_is_not_first_if_there_is_another) {
    spc_failures_t failures;
    begin(&failures, 4);
    report(&failures, 1, SPC_REPORT_LOST, "NodeLostError");
    report(&failures, 1, SPC_REPORT_TEXT, "lost\n");
    CHECK_EQ(failures.first, -1);
    CHECK_EQ(failures.first_lost, 1);
    spc_failures_ended(&failures, 3, KILLED);
    spc_failures_close(&failures);
    spc_failures_ended(&failures, 0, TERMINATED);
    spc_failures_ended(&failures, 1, 1 << 8);
    CHECK_EQ(failures.first, 3);
    CHECK_EQ(spc_failures_code(&failures), 137);
    check_record(&failures, "BLWFWW", SPC_REPORT_HEADER + 5);
}

TEST(what_follows_the_end_does_not_count) {
    spc_failures_t failures;
    begin(&failures, 2);
    spc_failures_close(&failures);
    spc_failures_vanished(&failures, 0);
    spc_failures_ended(&failures, 1, 1 << 8);
    report(&failures, 1, SPC_REPORT_LOST, "NodeLostError");
    spc_failures_settle(&failures);
    spc_failures_close(&failures);
    CHECK_EQ(failures.first, -1);
    CHECK_EQ(spc_failures_code(&failures), 0);
    check_record(&failures, "BFVWL", 0);
}

TEST(a_caller_that_vanishes_has_failed) {
    spc_failures_t failures;
    begin(&failures, 2);
    spc_failures_ended(&failures, 1, 0);
    CHECK_EQ(failures.first, -1);
    spc_failures_vanished(&failures, 0);
    spc_failures_note(&failures, 0, SPC_RECORD_SAID, "");
    CHECK_EQ(failures.first, 0);
    CHECK_EQ(spc_failures_code(&failures), 1);
    check_record(&failures, "BWVR", 0);
}

TEST(tracebacks_are_kept_up_to_a_limit) {
    static char piece[4001];
    spc_failures_t failures;
    begin(&failures, 1);
    memset(piece, 'p', sizeof piece - 1);
    report(&failures, 0, SPC_REPORT_RAISED, "ValueError");
    for (int i = 0; i < 1000; i++) {
        report(&failures, 0, SPC_REPORT_TEXT, piece);
    }
    check_record(&failures, "BE", (1 << 20) / 4000 * (4000 + SPC_REPORT_HEADER));
}

TEST(signals_have_names) {
    char buffer[24];
    CHECK_STR(spc_process_signal_name(SIGSEGV, buffer, sizeof buffer), "SIGSEGV");
    CHECK_STR(spc_process_signal_name(63, buffer, sizeof buffer), "signal 63");
}

TEST_MAIN()
