/* SPDX-License-Identifier: MIT */
/* The reducer, with one thread being all nodes: every order of arrival can be had, and nothing depends on
 * time. */
#include "reduce_box.h"

#include "spcomm/simtime.h"

static const uint32_t fanins[] = {2, 4, 8, 64};
#define FANINS (sizeof fanins / sizeof fanins[0])

/* All but the last to arrive see an open phase, whatever the order, the number of nodes and the tree. */
static void a_barrier_opens_with_the_last_arrival(void) {
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
static void the_figure_of_the_paper(void) {
    static const int64_t values[] = {8, 2, 5, 9, 7};
    const spc_field_t field = {SPC_TYPE_INT, 1};
    const spc_signature_t signature = box_reduction(SPC_MAX, &field, 1);
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

/* One sum of `count` doubles a node, with values whose sum depends on the order of additions. */
static void check_sum(box_t *box, uint32_t count, uint64_t *state) {
    enum { COUNT_MAX = 100 };
    static double values[BOX_NODES_MAX][COUNT_MAX], column[BOX_NODES_MAX], result[COUNT_MAX];
    const spc_field_t field = {SPC_TYPE_FLOAT64, count};
    const spc_signature_t signature = box_reduction(SPC_SUM, &field, 1);
    uint32_t order[BOX_NODES_MAX];
    uint64_t phase = 0;
    CHECK(count <= COUNT_MAX);
    for (uint32_t rank = 0; rank < box->nodes; rank++) {
        for (uint32_t i = 0; i < count; i++) {
            const double numerator = (double)(int64_t)check_random(state);
            values[rank][i] = numerator / (double)(1 + check_below(state, 1000000));
        }
    }
    box_shuffle(order, box->nodes, state);
    for (uint32_t i = 0; i < box->nodes; i++) {
        CHECK_OK(box_start(box, order[i], &signature, &field, values[order[i]], &phase));
    }
    for (uint32_t rank = 0; rank < box->nodes; rank++) {
        CHECK(spc_reduce_test(box->reduce[rank], phase));
        CHECK_OK(spc_reduce_finish(box->reduce[rank], phase, result, count * sizeof(double)));
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t other = 0; other < box->nodes; other++) {
                column[other] = values[other][i];
            }
            const double expected = box_model_sum(column, box->nodes);
            CHECK_MEM(&result[i], &expected, sizeof expected);
        }
    }
}

static void sums_are_bitwise_those_of_the_fixed_tree(void) {
    uint64_t state = 2;
    for (uint32_t nodes = 1; nodes <= 33; nodes++) {
        for (uint32_t f = 0; f < FANINS; f++) {
            box_t box;
            box_open(&box, nodes, fanins[f], 800);
            for (int round = 0; round < 6; round++) {
                check_sum(&box, 1, &state);
                check_sum(&box, 4, &state);   /* just fits into a line */
                check_sum(&box, 5, &state);   /* just does not */
                check_sum(&box, 100, &state); /* just fits into the scratch */
            }
            box_close(&box);
        }
    }
}

/* A tuple of an integer, a double and three bytes: too long for a line, with a gap after it. */
static void tuples_are_reduced_field_by_field(void) {
    typedef struct {
        int64_t integer;
        double number;
        uint8_t bytes[3];
        uint8_t gap[5];
        int64_t more[3];
    } value_t;
    const spc_field_t fields[] = {
        {SPC_TYPE_INT, 1}, {SPC_TYPE_FLOAT64, 1}, {SPC_TYPE_UINT8, 3}, {SPC_TYPE_INT64, 3}};
    const spc_signature_t signature = box_reduction(SPC_MIN, fields, 4);
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
static void a_gather_keeps_every_length(void) {
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

/* ---- outcomes other than SPC_OK, the same on all nodes, after which the next phase works ---- */

static void check_outcome(box_t *box, uint64_t phase, int expected) {
    unsigned char result[64];
    for (uint32_t rank = 0; rank < box->nodes; rank++) {
        CHECK(spc_reduce_test(box->reduce[rank], phase));
        CHECK_EQ(spc_reduce_finish(box->reduce[rank], phase, result, sizeof result), expected);
    }
}

static void check_next_works(box_t *box, uint64_t *state) {
    uint64_t phase = 0;
    for (uint32_t rank = 0; rank < box->nodes; rank++) {
        phase = box_enter(box, rank, SPC_OPERATION_BARRIER);
    }
    check_outcome(box, phase, SPC_OK);
    check_sum(box, 3, state);
    check_sum(box, 7, state);
}

/* Something that a node may call: a signature and what belongs to it. */
typedef struct call {
    spc_signature_t signature;
    spc_field_t fields[2];
} call_t;

static call_t reduction(spc_operator_t operator, spc_type_t type, uint32_t count) {
    call_t call = {.fields = {{type, count}}};
    call.signature = box_reduction(operator, call.fields, 1);
    return call;
}

static uint32_t all_calls(call_t *calls) {
    uint32_t count = 0;
    calls[count++] = (call_t){.signature = box_plain(SPC_OPERATION_BARRIER)};
    calls[count++] = (call_t){.signature = box_plain(SPC_OPERATION_FUZZY)};
    calls[count++] = (call_t){.signature = box_plain(SPC_OPERATION_COORDINATED)};
    calls[count++] = (call_t){.signature = box_plain(SPC_OPERATION_GATHER)};
    calls[count++] = (call_t){.signature = {.operation = SPC_OPERATION_GATHER, .root = 1}};
    calls[count++] = reduction(SPC_SUM, SPC_TYPE_INT, 1);
    calls[count++] = reduction(SPC_MIN, SPC_TYPE_INT, 1);
    calls[count++] = reduction(SPC_SUM, SPC_TYPE_INT64, 1);
    calls[count++] = reduction(SPC_SUM, SPC_TYPE_FLOAT64, 4);
    calls[count++] = reduction(SPC_SUM, SPC_TYPE_FLOAT64, 5);
    calls[count++] = reduction(SPC_SUM, SPC_TYPE_FLOAT64, 100);
    return count;
}

/* Each pair of calls, with each node being the odd one out, arriving first, in the middle and last. */
static void different_calls_are_a_mismatch_everywhere(void) {
    static const unsigned char value[800];
    call_t calls[16];
    const uint32_t count = all_calls(calls);
    uint64_t state = 3;
    for (uint32_t nodes = 2; nodes <= 9; nodes += nodes == 3 ? 2 : 1) {
        for (uint32_t f = 0; f < FANINS; f++) {
            box_t box;
            box_open(&box, nodes, fanins[f], 800);
            for (uint32_t i = 0; i < count * count; i++) {
                const call_t *most = &calls[i / count], *odd = &calls[i % count];
                const uint32_t who = (uint32_t)check_below(&state, nodes);
                uint32_t order[BOX_NODES_MAX];
                uint64_t phase = 0;
                box_shuffle(order, nodes, &state);
                for (uint32_t k = 0; k < nodes; k++) {
                    const call_t *call = order[k] == who ? odd : most;
                    CHECK_OK(box_start(&box, order[k], &call->signature, call->fields, value, &phase));
                }
                check_outcome(&box, phase, most == odd ? SPC_OK : SPC_EMISMATCH);
                for (uint32_t rank = 0; rank < nodes; rank++) {
                    spc_signature_t seen;
                    CHECK(spc_reduce_signature(box.reduce[0], phase, rank, &seen));
                    CHECK_MEM(&seen, rank == who ? &odd->signature : &most->signature, sizeof seen);
                }
            }
            check_next_works(&box, &state);
            box_close(&box);
        }
    }
}

/* Half the nodes call one thing, half another: no majority, and the sums of the groups are equal in pairs. */
static void two_halves_that_differ_are_a_mismatch(void) {
    uint64_t state = 4;
    for (uint32_t f = 0; f < FANINS; f++) {
        box_t box;
        uint64_t phase = 0;
        box_open(&box, 32, fanins[f], 800);
        for (uint32_t rank = 0; rank < 32; rank++) {
            phase = box_enter(&box, rank, rank % 2 == 0 ? SPC_OPERATION_BARRIER : SPC_OPERATION_FUZZY);
        }
        check_outcome(&box, phase, SPC_EMISMATCH);
        check_next_works(&box, &state);
        box_close(&box);
    }
}

/* One node has an integer that is too wide; the others have small ones, of the same kind. */
static void a_wide_integer_makes_all_wide(void) {
    uint64_t state = 5;
    for (uint32_t count = 1; count <= 6; count += 5) { /* in the line, in the scratch */
        for (uint32_t f = 0; f < FANINS; f++) {
            for (uint32_t who = 0; who < 7; who++) {
                const spc_field_t small = {SPC_TYPE_INT, count}, wide = {SPC_TYPE_WIDE, count};
                const spc_signature_t signatures[] = {box_reduction(SPC_MAX, &small, 1),
                                                      box_reduction(SPC_MAX, &wide, 1)};
                const int64_t values[6] = {0};
                uint32_t order[BOX_NODES_MAX];
                uint64_t phase = 0;
                box_t box;
                box_open(&box, 7, fanins[f], 800);
                box_shuffle(order, 7, &state);
                for (uint32_t i = 0; i < 7; i++) {
                    const bool is_wide = order[i] == who;
                    const spc_field_t *field = is_wide ? &wide : &small;
                    CHECK_OK(box_start(&box, order[i], &signatures[is_wide], field, values, &phase));
                }
                check_outcome(&box, phase, SPC_EWIDE);
                check_next_works(&box, &state);
                box_close(&box);
            }
        }
    }
}

static void an_overflow_makes_all_wide(void) {
    const spc_field_t field = {SPC_TYPE_INT, 1};
    const spc_signature_t signature = box_reduction(SPC_SUM, &field, 1);
    uint64_t state = 6;
    for (uint32_t f = 0; f < FANINS; f++) {
        for (uint32_t who = 1; who < 9; who++) {
            box_t box;
            uint64_t phase = 0;
            box_open(&box, 9, fanins[f], 800);
            for (uint32_t rank = 0; rank < 9; rank++) {
                const int64_t value = rank == 0 || rank == who ? INT64_MAX : 0;
                CHECK_OK(box_start(&box, rank, &signature, &field, &value, &phase));
            }
            check_outcome(&box, phase, SPC_EWIDE);
            check_next_works(&box, &state);
            box_close(&box);
        }
    }
}

/* Being of another kind weighs more than being wide. */
static void a_mismatch_outranks_a_wide_integer(void) {
    const spc_field_t wide = {SPC_TYPE_WIDE, 1};
    const spc_signature_t signature = box_reduction(SPC_SUM, &wide, 1);
    const int64_t value = 0;
    for (uint32_t f = 0; f < FANINS; f++) {
        box_t box;
        uint64_t phase = 0;
        box_open(&box, 5, fanins[f], 64);
        for (uint32_t rank = 0; rank < 4; rank++) {
            CHECK_OK(box_start(&box, rank, &signature, &wide, &value, &phase));
        }
        box_enter(&box, 4, SPC_OPERATION_BARRIER);
        check_outcome(&box, phase, SPC_EMISMATCH);
        box_close(&box);
    }
}

/* ---- the rest of the contract ---- */

/* The releaser wakes each sleeper once, but neither itself nor those who do not sleep. */
static void a_release_wakes_the_others_that_sleep(void) {
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

static void who_is_missing_can_be_asked(void) {
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
static void calls_outside_the_limits_are_refused(void) {
    const spc_field_t field = {SPC_TYPE_FLOAT64, 9}, unknown = {SPC_TYPE_COUNT, 1};
    spc_signature_t signature = box_reduction(SPC_SUM, &field, 1);
    const double values[9] = {0};
    uint64_t phase = 0;
    box_t box;
    box_open(&box, 1, 2, 64); /* 72 bytes are too many for the scratch */
    CHECK_EQ(spc_reduce_start(box.reduce[0], &signature, &field, values, 72, &phase), SPC_EINVAL);
    CHECK_EQ(spc_reduce_start(box.reduce[0], &signature, &field, values, 64, &phase), SPC_EINVAL);
    signature.operator = SPC_OPERATOR_COUNT;
    CHECK_EQ(spc_reduce_start(box.reduce[0], &signature, &field, values, 72, &phase), SPC_EINVAL);
    signature = box_reduction(SPC_SUM, &unknown, 1);
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

static void wrong_options_are_refused(void) {
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

static void hashes_of_signatures_have_48_mixed_bits(void) {
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
static void a_sum_of_one_time_has_no_priorities(void) {
    typedef struct {
        int64_t number;
        spcomm_simtime_t times[2]; /* together too long for a line */
    } value_t;
    const spc_field_t fields[] = {{SPC_TYPE_INT, 1}, {SPC_TYPE_SIMTIME, 2}};
    const value_t value = {7, {{1.5, {1, 2, 3, 4}}, {-2.5, {-1, 0, 0, 9}}}};
    const value_t plain = {7, {{1.5, {0}}, {-2.5, {0}}}};
    for (int operator = SPC_SUM; operator <= SPC_MAX; operator++) {
        const spc_signature_t signature = box_reduction((spc_operator_t)operator, fields, 2);
        const spc_signature_t alone = box_reduction((spc_operator_t)operator, fields + 1, 1);
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

int main(void) {
    RUN(a_barrier_opens_with_the_last_arrival);
    RUN(the_figure_of_the_paper);
    RUN(sums_are_bitwise_those_of_the_fixed_tree);
    RUN(tuples_are_reduced_field_by_field);
    RUN(a_sum_of_one_time_has_no_priorities);
    RUN(a_gather_keeps_every_length);
    RUN(different_calls_are_a_mismatch_everywhere);
    RUN(two_halves_that_differ_are_a_mismatch);
    RUN(a_wide_integer_makes_all_wide);
    RUN(an_overflow_makes_all_wide);
    RUN(a_mismatch_outranks_a_wide_integer);
    RUN(a_release_wakes_the_others_that_sleep);
    RUN(who_is_missing_can_be_asked);
    RUN(calls_outside_the_limits_are_refused);
    RUN(wrong_options_are_refused);
    RUN(hashes_of_signatures_have_48_mixed_bits);
    return check_done();
}
