/* SPDX-License-Identifier: MIT */
/* Fuzzy barriers, with one thread being all nodes. */
#include "reduce_box.h"

#include "reduce/spc_fuzzy.h"

#define NODES 3

static box_t box;
static spc_fuzzy_t fuzzy[NODES];

static void open_all(uint32_t fanin) {
    box_open(&box, NODES, fanin, 64);
    for (uint32_t rank = 0; rank < NODES; rank++) {
        spc_fuzzy_init(&fuzzy[rank], box.reduce[rank]);
    }
}

static uint64_t enter(uint32_t rank) {
    uint64_t phase = 0;
    CHECK_OK(spc_fuzzy_enter(&fuzzy[rank], &phase));
    return phase;
}

/* A barrier as spc_comm does it. */
static uint64_t barrier(uint32_t rank) {
    spc_fuzzy_settle(&fuzzy[rank]);
    return box_enter(&box, rank, SPC_OPERATION_BARRIER);
}

static void barrier_of_all(void) {
    uint64_t phase = 0;
    for (uint32_t rank = 0; rank < NODES; rank++) {
        phase = barrier(rank);
    }
    for (uint32_t rank = 0; rank < NODES; rank++) {
        CHECK(spc_reduce_test(box.reduce[rank], phase));
        CHECK_OK(spc_reduce_finish(box.reduce[rank], phase, NULL, 0));
    }
}

TEST(it_is_done_when_all_have_entered) {
    open_all(2);
    uint64_t phase = enter(2);
    CHECK_EQ_U(enter(0), phase);
    CHECK(!spc_reduce_test(fuzzy[0].reduce, phase));
    CHECK(!spc_reduce_test(fuzzy[1].reduce, phase));
    CHECK_EQ(spc_fuzzy_leave(&fuzzy[0], phase), SPC_EAGAIN);
    CHECK_EQ_U(enter(1), phase);
    for (uint32_t rank = 0; rank < NODES; rank++) {
        CHECK(spc_reduce_test(fuzzy[rank].reduce, phase));
        CHECK_OK(spc_fuzzy_leave(&fuzzy[rank], phase));
        CHECK_EQ(spc_fuzzy_leave(&fuzzy[rank], phase), SPC_EINVAL);
        CHECK(spc_reduce_test(fuzzy[rank].reduce, phase));
    }
    CHECK_EQ(spc_fuzzy_leave(&fuzzy[0], phase + 1), SPC_EINVAL);
    CHECK(!spc_reduce_test(fuzzy[0].reduce, phase + 1));
    box_close(&box);
}

TEST(eight_may_be_open_and_no_more) {
    open_all(8);
    uint64_t phases[SPC_FUZZY_MAX], listed[SPC_FUZZY_MAX], phase = 0;
    for (uint32_t i = 0; i < SPC_FUZZY_MAX; i++) {
        CHECK_EQ_U(spc_fuzzy_open(&fuzzy[0], listed), i);
        phases[i] = enter(0);
    }
    CHECK_EQ(spc_fuzzy_enter(&fuzzy[0], &phase), SPC_ELIMIT);
    CHECK_EQ_U(spc_fuzzy_open(&fuzzy[0], listed), SPC_FUZZY_MAX);
    CHECK_MEM(listed, phases, sizeof phases);
    for (uint32_t rank = 1; rank < NODES; rank++) {
        for (uint32_t i = 0; i < SPC_FUZZY_MAX; i++) {
            CHECK_EQ_U(enter(rank), phases[i]);
        }
    }
    /* Complete, but open until it is left; left in another order than entered. */
    CHECK_EQ(spc_fuzzy_enter(&fuzzy[0], &phase), SPC_ELIMIT);
    CHECK_OK(spc_fuzzy_leave(&fuzzy[0], phases[3]));
    CHECK_EQ_U(spc_fuzzy_open(&fuzzy[0], listed), SPC_FUZZY_MAX - 1);
    CHECK_EQ_U(listed[2], phases[2]);
    CHECK_EQ_U(listed[3], phases[4]);
    CHECK_OK(spc_fuzzy_enter(&fuzzy[0], &phase));
    CHECK_EQ_U(phase, phases[SPC_FUZZY_MAX - 1] + 1);
    box_close(&box);
}

/* Node 0 runs ahead as far as it may: eight entries and a barrier, before anybody else does anything. */
TEST(a_node_may_run_ahead_of_all_others) {
    for (uint32_t fanin = 2; fanin <= 4; fanin *= 2) {
        open_all(fanin);
        for (int round = 0; round < 2 * SPC_BANKS; round++) {
            uint64_t phases[SPC_FUZZY_MAX], last = 0;
            for (uint32_t rank = 0; rank < NODES; rank++) {
                for (uint32_t i = 0; i < SPC_FUZZY_MAX; i++) {
                    phases[i] = enter(rank);
                    CHECK_EQ(spc_reduce_test(fuzzy[0].reduce, phases[i]), rank == NODES - 1);
                }
                last = barrier(rank);
                CHECK_EQ(spc_reduce_test(box.reduce[0], last), rank == NODES - 1);
            }
            for (uint32_t rank = 0; rank < NODES; rank++) {
                CHECK_OK(spc_reduce_finish(box.reduce[rank], last, NULL, 0));
                for (uint32_t i = 0; i < SPC_FUZZY_MAX; i++) {
                    CHECK_OK(spc_fuzzy_leave(&fuzzy[rank], phases[i]));
                }
            }
        }
        box_close(&box);
    }
}

static void enter_and_leave_all(int times) {
    for (int i = 0; i < times; i++) {
        uint64_t phase = 0;
        for (uint32_t rank = 0; rank < NODES; rank++) {
            phase = enter(rank);
        }
        for (uint32_t rank = 0; rank < NODES; rank++) {
            CHECK_OK(spc_fuzzy_leave(&fuzzy[rank], phase));
        }
    }
}

/* Goes on alone until it may not: SPC_FUZZY_MAX entries, and a sum, whose value is written into the line. */
static void run_ahead(uint32_t rank) {
    const spc_field_t field = {SPC_TYPE_FLOAT64, 4};
    const spc_signature_t sum = reduction_signature(SPC_SUM, &field, 1);
    const double values[4] = {1, 2, 3, 4};
    uint64_t phase = 0;
    for (int i = 0; i < SPC_FUZZY_MAX; i++) {
        enter(rank);
    }
    spc_fuzzy_settle(&fuzzy[rank]);
    CHECK_OK(box_start(&box, rank, &sum, &field, values, &phase));
    CHECK(!spc_reduce_test(box.reduce[rank], phase));
}

/* No line of a phase changes before this node has started SPC_BANKS - SPC_FUZZY_MAX - 1 later ones,
 * however far the others are. Each node in turn is the slow one. */
TEST(lines_outlive_the_slowest_reader) {
    const spc_signature_t gather = box_plain(SPC_OPERATION_GATHER);
    const uint64_t values[NODES] = {7, 8, 9};
    for (uint32_t slow = 0; slow < NODES; slow++) {
        uint64_t gathered = 0;
        open_all(2);
        for (uint32_t rank = 0; rank < NODES; rank++) {
            CHECK_OK(spc_reduce_start(box.reduce[rank], &gather, NULL, values, 8 + 8 * rank, &gathered));
        }
        enter_and_leave_all(SPC_BANKS - SPC_FUZZY_MAX - 2);
        for (uint32_t rank = 0; rank < NODES; rank++) {
            if (rank != slow) {
                run_ahead(rank);
            }
        }
        for (uint32_t rank = 0; rank < NODES; rank++) {
            const void *bytes = NULL;
            uint64_t length_bytes = 0;
            spc_signature_t seen;
            spc_reduce_contribution(box.reduce[slow], gathered, rank, &bytes, &length_bytes);
            CHECK_EQ_U(length_bytes, 8 + 8 * rank);
            CHECK_MEM(bytes, values, length_bytes);
            CHECK(spc_reduce_signature(box.reduce[slow], gathered, rank, &seen));
            CHECK_MEM(&seen, &gather, sizeof seen);
        }
        box_close(&box);
    }
}

/* A later phase that is complete means that the earlier ones are. */
TEST(barriers_between_entry_and_end_complete_it) {
    open_all(2);
    uint64_t phase = 0;
    for (uint32_t rank = 0; rank < NODES; rank++) {
        phase = enter(rank);
    }
    barrier_of_all();
    CHECK(spc_reduce_test(fuzzy[0].reduce, phase));
    CHECK_OK(spc_fuzzy_leave(&fuzzy[0], phase));
    CHECK_OK(spc_fuzzy_leave(&fuzzy[1], phase));
    CHECK_OK(spc_fuzzy_leave(&fuzzy[2], phase));
    box_close(&box);
}

/* One node calls something else, once; its outcome outlives the bank, whatever the others have become. */
TEST(outcomes_are_kept_until_somebody_asks) {
    for (uint32_t fanin = 2; fanin <= 4; fanin *= 2) {
        open_all(fanin);
        uint64_t good = 0, bad = 0, later = 0;
        for (uint32_t rank = 0; rank < NODES; rank++) {
            good = enter(rank);
        }
        for (uint32_t rank = 0; rank < NODES; rank++) {
            bad = rank == 1 ? barrier(rank) : enter(rank);
        }
        CHECK_EQ(spc_reduce_finish(box.reduce[1], bad, NULL, 0), SPC_EMISMATCH);
        for (uint32_t rank = 0; rank < NODES; rank++) {
            later = enter(rank);
        }
        for (int i = 0; i < 5 * SPC_BANKS; i++) {
            barrier_of_all();
        }
        for (uint32_t rank = 0; rank < NODES; rank++) {
            CHECK_OK(spc_fuzzy_leave(&fuzzy[rank], later));
            CHECK_OK(spc_fuzzy_leave(&fuzzy[rank], good));
            CHECK_EQ(spc_fuzzy_leave(&fuzzy[rank], bad), rank == 1 ? SPC_EINVAL : SPC_EMISMATCH);
        }
        box_close(&box);
    }
}

/* Entering keeps the outcomes of older ones too. */
TEST(entering_others_keeps_an_outcome) {
    open_all(2);
    uint64_t bad = 0;
    for (uint32_t rank = 0; rank < NODES; rank++) {
        bad = rank == 0 ? barrier(rank) : enter(rank);
    }
    enter_and_leave_all(3 * SPC_BANKS);
    CHECK_EQ(spc_fuzzy_leave(&fuzzy[1], bad), SPC_EMISMATCH);
    CHECK_EQ(spc_fuzzy_leave(&fuzzy[2], bad), SPC_EMISMATCH);
    box_close(&box);
}

/* Eight are always open, and the oldest is left each time. */
TEST(a_window_of_eight_slides_over_the_banks) {
    open_all(2);
    for (uint64_t phase = 1; phase <= 6 * SPC_BANKS; phase++) {
        const bool differs = phase % 5 == 0;
        for (uint32_t rank = 0; rank < NODES; rank++) {
            if (phase > SPC_FUZZY_MAX) {
                const uint64_t oldest = phase - SPC_FUZZY_MAX;
                CHECK(spc_reduce_test(fuzzy[rank].reduce, oldest));
                if (rank != 0 || oldest % 5 != 0) {
                    CHECK_EQ(spc_fuzzy_leave(&fuzzy[rank], oldest), oldest % 5 == 0 ? SPC_EMISMATCH : SPC_OK);
                }
            }
            CHECK_EQ_U(differs && rank == 0 ? barrier(rank) : enter(rank), phase);
        }
    }
    box_close(&box);
}

TEST_MAIN()
