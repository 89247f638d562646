/* SPDX-License-Identifier: MIT */
/* The reducer, with one thread being all nodes: every order of arrival can be had, and nothing depends on
 * time. */
#include "reduce_box.h"

#include "spcomm/simtime.h"

/* All but the last to arrive see an open phase, whatever the order, the number of nodes and the tree. */
TEST(a_barrier_opens_with_the_last_arrival) {
    uint64_t state = 1;
    for (uint32_t nodes = 1; nodes <= 33; nodes++) {
        for (uint32_t f = 0; f < FANINS; f++) {
            box_t box;
            box_open(&box, nodes, fanins[f], 64);
            for (uint64_t round = 1; round <= 3 * SPC_BANKS; round++) {
                uint32_t order[BOX_NODES_MAX];
                box_shuffle(order, nodes, &state);
                for (uint32_t i = 0; i < nodes; i++) {
                    CHECK(!spc_reduce_test(box.reduce[order[i]], round));
                    CHECK(!spc_reduce_arrived(box.reduce[0], round, order[i]));
                    CHECK_EQ_U(box_enter(&box, order[i], SPC_OPERATION_BARRIER), round);
                    CHECK(spc_reduce_arrived(box.reduce[0], round, order[i]));
                }
                for (uint32_t rank = 0; rank < nodes; rank++) {
                    CHECK(spc_reduce_test(box.reduce[rank], round));
                    CHECK_OK(spc_reduce_finish(box.reduce[rank], round, NULL, 0));
                }
            }
            box_close(&box);
        }
    }
}

/* Figure 1 of the SpeedesComm paper: the largest of 8, 2, 5, 9 and 7. */
TEST(the_figure_of_the_paper) {
    static const int64_t values[] = {8, 2, 5, 9, 7};
    const spc_field_t field = {SPC_TYPE_INT, 1};
    const spc_signature_t signature = reduction_signature(SPC_MAX, &field, 1);
    for (uint32_t f = 0; f < FANINS; f++) {
        box_t box;
        uint64_t phase = 0;
        box_open(&box, 5, fanins[f], 64);
        for (uint32_t rank = 0; rank < 5; rank++) {
            CHECK_OK(box_start(&box, rank, &signature, &field, &values[rank], &phase));
        }
        for (uint32_t rank = 0; rank < 5; rank++) {
            int64_t result = 0;
            CHECK_OK(spc_reduce_finish(box.reduce[rank], phase, &result, sizeof result));
            CHECK_EQ(result, 9);
        }
        box_close(&box);
    }
}

TEST(sums_are_bitwise_those_of_the_fixed_tree) {
    uint64_t state = 2;
    for (uint32_t nodes = 1; nodes <= 33; nodes++) {
        for (uint32_t f = 0; f < FANINS; f++) {
            box_t box;
            box_open(&box, nodes, fanins[f], 800);
            for (int round = 0; round < 6; round++) {
                box_check_sum(&box, 1, &state);
                box_check_sum(&box, 4, &state);   /* just fits into a line */
                box_check_sum(&box, 5, &state);   /* just does not */
                box_check_sum(&box, 100, &state); /* just fits into the scratch */
            }
            box_close(&box);
        }
    }
}

/* A tuple of an integer, a double and three bytes: too long for a line, with a gap after it. */
TEST(tuples_are_reduced_field_by_field) {
    typedef struct {
        int64_t integer;
        double number;
        uint8_t bytes[3];
        uint8_t gap[5];
        int64_t more[3];
    } value_t;
    const spc_field_t fields[] = {
        {SPC_TYPE_INT, 1}, {SPC_TYPE_FLOAT64, 1}, {SPC_TYPE_UINT8, 3}, {SPC_TYPE_INT64, 3}};
    const spc_signature_t signature = reduction_signature(SPC_MIN, fields, 4);
    box_t box;
    uint64_t phase = 0;
    box_open(&box, 3, 2, 64);
    for (uint32_t rank = 0; rank < 3; rank++) {
        const int r = (int)rank;
        value_t value = {10 - r, r + 0.5, {(uint8_t)r, (uint8_t)(5 - r), 7}, {0}, {r, -r, (r - 1) * (r - 1)}};
        CHECK_OK(box_start(&box, rank, &signature, fields, &value, &phase));
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        const value_t expected = {8, 0.5, {0, 3, 7}, {0}, {0, -2, 0}};
        value_t result;
        CHECK_OK(spc_reduce_finish(box.reduce[rank], phase, &result, sizeof result));
        CHECK_MEM(&result, &expected, sizeof result);
    }
    box_close(&box);
}

/* Each node gives rank * 3 bytes, the first none; everybody reads them all. */
TEST(a_gather_keeps_every_length) {
    const spc_signature_t signature = box_plain(SPC_OPERATION_GATHER);
    for (uint32_t f = 0; f < FANINS; f++) {
        box_t box;
        box_open(&box, 11, fanins[f], 32);
        for (int round = 0; round < 3 * SPC_BANKS; round++) {
            uint64_t phase = 0;
            for (uint32_t rank = 0; rank < 11; rank++) {
                unsigned char bytes[32];
                memset(bytes, (int)rank + round, sizeof bytes);
                CHECK_OK(spc_reduce_start(box.reduce[rank], &signature, NULL, bytes, rank * 3, &phase));
            }
            for (uint32_t reader = 0; reader < 11; reader++) {
                CHECK_OK(spc_reduce_finish(box.reduce[reader], phase, NULL, 0));
                for (uint32_t rank = 0; rank < 11; rank++) {
                    const void *bytes = NULL;
                    uint64_t length_bytes = 0;
                    unsigned char expected[32];
                    memset(expected, (int)rank + round, sizeof expected);
                    spc_reduce_contribution(box.reduce[reader], phase, rank, &bytes, &length_bytes);
                    CHECK_EQ_U(length_bytes, rank * 3);
                    CHECK_MEM(bytes, expected, length_bytes);
                }
            }
        }
        box_close(&box);
    }
}

/* ---- the rest of the contract ---- */

/* The releaser wakes each sleeper once, but neither itself nor those who do not sleep. */
TEST(a_release_wakes_the_others_that_sleep) {
    box_t box;
    box_open(&box, 4, 2, 64);
    atomic_store(&box.events[0].sleeping, 1);
    atomic_store(&box.events[2].sleeping, 1);
    atomic_store(&box.events[3].sleeping, 1);
    for (uint32_t rank = 0; rank < 4; rank++) {
        for (uint32_t other = 0; other < 4; other++) {
            CHECK_EQ_U(atomic_load(&box.events[other].word), 0);
        }
        box_enter(&box, rank, SPC_OPERATION_BARRIER);
    }
    CHECK_EQ_U(atomic_load(&box.events[0].word), 1);
    CHECK_EQ_U(atomic_load(&box.events[1].word), 0);
    CHECK_EQ_U(atomic_load(&box.events[2].word), 1);
    CHECK_EQ_U(atomic_load(&box.events[3].word), 0);
    box_close(&box);
}

TEST(who_is_missing_can_be_asked) {
    spc_signature_t seen;
    box_t box;
    box_open(&box, 3, 8, 64);
    box_enter(&box, 2, SPC_OPERATION_FUZZY);
    box_enter(&box, 0, SPC_OPERATION_FUZZY);
    CHECK(spc_reduce_arrived(box.reduce[0], 1, 0));
    CHECK(!spc_reduce_arrived(box.reduce[0], 1, 1));
    CHECK(spc_reduce_arrived(box.reduce[0], 1, 2));
    CHECK(!spc_reduce_signature(box.reduce[0], 1, 1, &seen));
    CHECK(spc_reduce_signature(box.reduce[0], 1, 2, &seen));
    CHECK_EQ(seen.operation, SPC_OPERATION_FUZZY);
    CHECK_EQ(spc_reduce_finish(box.reduce[0], 1, NULL, 0), SPC_EINVAL);
    box_close(&box);
}

/* A refused call takes no phase. */
TEST(calls_outside_the_limits_are_refused) {
    const spc_field_t field = {SPC_TYPE_FLOAT64, 9}, unknown = {SPC_TYPE_COUNT, 1};
    spc_signature_t signature = reduction_signature(SPC_SUM, &field, 1);
    const double values[9] = {0};
    uint64_t phase = 0;
    box_t box;
    box_open(&box, 1, 2, 64); /* 72 bytes are too many for the scratch */
    CHECK_EQ(spc_reduce_start(box.reduce[0], &signature, &field, values, 72, &phase), SPC_EINVAL);
    CHECK_EQ(spc_reduce_start(box.reduce[0], &signature, &field, values, 64, &phase), SPC_EINVAL);
    signature.operator = SPC_OPERATOR_COUNT;
    CHECK_EQ(spc_reduce_start(box.reduce[0], &signature, &field, values, 72, &phase), SPC_EINVAL);
    signature = reduction_signature(SPC_SUM, &unknown, 1);
    CHECK_EQ(spc_reduce_start(box.reduce[0], &signature, &unknown, values, 0, &phase), SPC_EINVAL);
    signature = box_plain(SPC_OPERATION_GATHER);
    CHECK_EQ(spc_reduce_start(box.reduce[0], &signature, NULL, values, 65, &phase), SPC_EINVAL);
    signature = box_plain(SPC_OPERATION_BARRIER);
    CHECK_EQ(spc_reduce_start(box.reduce[0], &signature, NULL, values, 8, &phase), SPC_EINVAL);
    signature = box_plain(SPC_OPERATION_COORDINATED);
    CHECK_EQ(spc_reduce_start(box.reduce[0], &signature, NULL, values, 8, &phase), SPC_EINVAL);
    signature = box_plain(SPC_OPERATION_COUNT);
    CHECK_EQ(spc_reduce_start(box.reduce[0], &signature, NULL, NULL, 0, &phase), SPC_EINVAL);
    CHECK_EQ_U(box_enter(&box, 0, SPC_OPERATION_BARRIER), 1);
    box_close(&box);
}

TEST(wrong_options_are_refused) {
    static _Alignas(SPC_CACHE_LINE) unsigned char shared[SPC_CACHE_LINE];
    const spc_reduce_options_t good = {
        .shared = shared, .base = shared, .scratch = shared, .rank = 0, .nodes = 3, .fanin = 2};
    spc_reduce_options_t options;
    spc_reduce_t *reduce = NULL;
#define CHECK_REFUSED(change)                                       \
    do {                                                            \
        options = good;                                             \
        options.change;                                             \
        CHECK_EQ(spc_reduce_create(&options, &reduce), SPC_EINVAL); \
    } while (0)
    CHECK_REFUSED(nodes = 0);
    CHECK_REFUSED(nodes = 65536);
    CHECK_REFUSED(rank = 3);
    CHECK_REFUSED(fanin = 0);
    CHECK_REFUSED(fanin = 1);
    CHECK_REFUSED(nodes = 7; options.fanin = 6);
    CHECK_REFUSED(shared = shared + 8);
    CHECK_REFUSED(scratch = shared + 4);
    CHECK_REFUSED(scratch_bytes = 12);
    CHECK(reduce == NULL);
    CHECK_EQ_U(spc_reduce_bytes(0, 2), 0);
    CHECK_EQ_U(spc_reduce_bytes(7, 6), 0);
    CHECK(spc_reduce_bytes(6, 6) > 0);
    CHECK(spc_reduce_bytes(65535, 2) > UINT64_C(16) * 65535 * 64);
}

TEST(hashes_of_signatures_have_48_mixed_bits) {
    spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    const uint64_t start = spc_signature_hash(&signature);
    uint64_t changed = 0;
    CHECK_EQ_U(start >> 48, 0);
    for (uint32_t bit = 0; bit < 8 * sizeof signature; bit++) {
        spc_signature_t other = signature;
        unsigned char *bytes = (unsigned char *)&other;
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        const uint64_t flipped = start ^ spc_signature_hash(&other);
        CHECK(__builtin_popcountll(flipped) >= 8);
        changed |= flipped;
    }
    CHECK_EQ_U(changed, (UINT64_C(1) << 48) - 1);
}

/* Where nobody adds anything, too: a sum has no priorities, other results keep theirs. */
TEST(a_sum_of_one_time_has_no_priorities) {
    typedef struct {
        int64_t number;
        spcomm_simtime_t times[2]; /* together too long for a line */
    } value_t;
    const spc_field_t fields[] = {{SPC_TYPE_INT, 1}, {SPC_TYPE_SIMTIME, 2}};
    const value_t value = {7, {{1.5, {1, 2, 3, 4}}, {-2.5, {-1, 0, 0, 9}}}};
    const value_t plain = {7, {{1.5, {0}}, {-2.5, {0}}}};
    for (int operator = SPC_SUM; operator <= SPC_MAX; operator++) {
        const spc_signature_t signature = reduction_signature((spc_operator_t)operator, fields, 2);
        const spc_signature_t alone = reduction_signature((spc_operator_t)operator, fields + 1, 1);
        const value_t *expected = operator == SPC_SUM ? &plain : &value;
        box_t box;
        value_t result;
        uint64_t phase = 0;
        box_open(&box, 1, 2, 64);
        CHECK_OK(box_start(&box, 0, &signature, fields, &value, &phase));
        CHECK_OK(spc_reduce_finish(box.reduce[0], phase, &result, sizeof result));
        CHECK_MEM(&result, expected, sizeof result);
        CHECK_OK(box_start(&box, 0, &alone, fields + 1, value.times, &phase));
        CHECK_OK(spc_reduce_finish(box.reduce[0], phase, result.times, sizeof result.times));
        CHECK_MEM(result.times, expected->times, sizeof result.times);
        box_close(&box);
    }
}

TEST_MAIN()
