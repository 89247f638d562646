/* SPDX-License-Identifier: MIT */
/* Receipts: numbers, laps, waits that were given up. */
#include "comm_box.h"

#include "message/spc_receipt.h"

typedef struct office {
    comm_box_t box;
    spc_receipts_t *receipts; /* of node 0 */
    spc_row_shared_t *row; /* of node 0 in node 1's mailbox */
} office_t;

static office_t open_office(void) {
    office_t office = {.box = comm_box_open((spc_config_t){.nodes = 2})};
    const spc_segment_t *segment = &office.box.segment;
    CHECK_OK(spc_receipts_create(segment, 0, &office.receipts));
    office.row = spc_mailbox_row(spc_segment_part(segment, SPC_REGION_MAILBOX, 1), 0, segment->config->slots);
    return office;
}

static void close_office(office_t *office) {
    spc_receipts_destroy(office->receipts);
    comm_box_close(&office->box);
}

static uint64_t ask(office_t *office) {
    uint64_t number;
    CHECK_OK(spc_receipts_next(office->receipts, 1, &number));
    spc_receipts_note_sent(office->receipts, 1, number);
    return number;
}

static bool given(const office_t *office, uint64_t number) {
    return spc_receipts_given(office->receipts, 1, number);
}

TEST(numbers_follow_each_other_for_many_laps) {
    office_t office = open_office();
    for (uint32_t i = 0; i < 5 * SPC_RECEIPTS_MAX + 3; i++) {
        CHECK_EQ_U(ask(&office), i);
        CHECK(!given(&office, i));
        spc_receipt_give(office.row, i);
        CHECK(given(&office, i));
        spc_receipts_settle(office.receipts, 1, i);
    }
    close_office(&office);
}

/* Each is told of its own, in laps of both kinds. */
TEST(in_any_order) {
    office_t office = open_office();
    for (uint32_t round = 0; round < 2 * SPC_RECEIPTS_MAX; round++) {
        const uint32_t first = (uint32_t)ask(&office), second = (uint32_t)ask(&office),
                       third = (uint32_t)ask(&office);
        spc_receipt_give(office.row, second);
        CHECK(!given(&office, first) && given(&office, second) && !given(&office, third));
        spc_receipt_give(office.row, third);
        CHECK(!given(&office, first) && given(&office, third));
        spc_receipt_give(office.row, first);
        for (uint32_t number = first; number <= third; number++) {
            CHECK(given(&office, number));
            spc_receipts_settle(office.receipts, 1, number);
        }
    }
    close_office(&office);
}

/* A bit must not stand for another message while somebody may still look for it: what has none gets an answer. */
TEST(without_a_bit) {
    office_t office = open_office();
    for (uint32_t i = 0; i < SPC_RECEIPTS_MAX; i++) {
        CHECK_EQ_U(ask(&office), i);
    }
    CHECK_EQ_U(ask(&office), SPC_RECEIPT_ANSWER);
    spc_receipt_give(office.row, 0);
    CHECK_EQ_U(ask(&office), SPC_RECEIPT_ANSWER + 1); /* its waiter has not seen it */
    spc_receipts_settle(office.receipts, 1, 0);
    CHECK_EQ_U(ask(&office), SPC_RECEIPTS_MAX);
    CHECK(!given(&office, SPC_RECEIPTS_MAX));
    CHECK(!given(&office, SPC_RECEIPT_ANSWER) && !given(&office, SPC_RECEIPT_ANSWER + 1));
    close_office(&office);
}

TEST(given_up_and_received_later) {
    office_t office = open_office();
    for (uint32_t i = 0; i < SPC_RECEIPTS_MAX; i++) {
        spc_receipts_settle(office.receipts, 1, ask(&office));
    }
    spc_receipt_give(office.row, 1);
    CHECK_EQ_U(ask(&office), SPC_RECEIPT_ANSWER); /* they come in order */
    spc_receipt_give(office.row, 0);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ_U(ask(&office), SPC_RECEIPTS_MAX + i);
        CHECK(!given(&office, SPC_RECEIPTS_MAX + i));
    }
    CHECK_EQ_U(ask(&office), SPC_RECEIPT_ANSWER + 1);
    close_office(&office);
}

/* Answers come in any order, and their places are used again; meanwhile more of them are made. */
TEST(answers_in_any_order) {
    enum { OPEN = 700 };
    office_t office = open_office();
    uint64_t numbers[OPEN], next = SPC_RECEIPT_ANSWER;
    for (uint32_t i = 0; i < SPC_RECEIPTS_MAX; i++) {
        (void)ask(&office);
    }
    for (uint32_t round = 1; round < 40; round++) {
        const uint32_t open = round * 17, half = open / 2;
        CHECK(open <= OPEN);
        for (uint32_t i = 0; i < open; i++) {
            numbers[i] = ask(&office);
            CHECK_EQ_U(numbers[i], next++);
            if (i >= half && i % 2 == 0) { /* of the first half, while more are asked for */
                spc_receipts_note_answer(office.receipts, 1, numbers[i - half]);
            }
        }
        for (uint32_t i = 0; i < open; i++) {
            CHECK(given(&office, numbers[i]) == (i + half < open && (i + half) % 2 == 0));
        }
        for (uint32_t i = open; i-- > 0;) {
            spc_receipts_note_answer(office.receipts, 1, numbers[i]);
            CHECK(given(&office, numbers[i]));
            CHECK(i == 0
                  || given(&office, numbers[i - 1]) == (i - 1 + half < open && (i - 1 + half) % 2 == 0));
        }
    }
    close_office(&office);
}

TEST_MAIN()
