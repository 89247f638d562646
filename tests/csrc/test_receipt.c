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

static uint32_t ask(office_t *office) {
    uint32_t number;
    CHECK_OK(spc_receipts_next(office->receipts, 1, &number));
    spc_receipts_note_sent(office->receipts, 1);
    return number;
}

static bool given(const office_t *office, uint32_t number) {
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
        uint32_t first = ask(&office), second = ask(&office), third = ask(&office);
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

/* A number must not come again while somebody may still look for it. */
TEST(at_most_so_many_at_a_time) {
    office_t office = open_office();
    uint32_t number;
    for (uint32_t i = 0; i < SPC_RECEIPTS_MAX; i++) {
        CHECK_EQ_U(ask(&office), i);
    }
    CHECK_EQ(spc_receipts_next(office.receipts, 1, &number), SPC_ELIMIT);
    spc_receipt_give(office.row, 0);
    CHECK_EQ(spc_receipts_next(office.receipts, 1, &number), SPC_ELIMIT); /* its waiter has not seen it */
    spc_receipts_settle(office.receipts, 1, 0);
    CHECK_EQ_U(ask(&office), SPC_RECEIPTS_MAX);
    CHECK(!given(&office, SPC_RECEIPTS_MAX));
    close_office(&office);
}

TEST(given_up_and_received_later) {
    office_t office = open_office();
    uint32_t number;
    for (uint32_t i = 0; i < SPC_RECEIPTS_MAX; i++) {
        spc_receipts_settle(office.receipts, 1, ask(&office));
    }
    CHECK_EQ(spc_receipts_next(office.receipts, 1, &number), SPC_ELIMIT);
    spc_receipt_give(office.row, 1);
    CHECK_EQ(spc_receipts_next(office.receipts, 1, &number), SPC_ELIMIT); /* they come in order */
    spc_receipt_give(office.row, 0);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ_U(ask(&office), SPC_RECEIPTS_MAX + i);
        CHECK(!given(&office, SPC_RECEIPTS_MAX + i));
    }
    CHECK_EQ(spc_receipts_next(office.receipts, 1, &number), SPC_ELIMIT);
    close_office(&office);
}

TEST_MAIN()
