/* SPDX-License-Identifier: MIT */
/* Outcomes of the reducer other than SPC_OK: they are the same on all nodes, and the next phase works. As in
 * test_reduce.c one thread is all nodes. */
#include "reduce_box.h"

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
    box_check_sum(box, 3, state);
    box_check_sum(box, 7, state);
}

/* Something that a node may call: a signature and what belongs to it. */
typedef struct call {
    spc_signature_t signature;
    spc_field_t fields[2];
} call_t;

static call_t reduction(spc_operator_t operator, spc_type_t type, uint32_t count) {
    call_t call = {.fields = {{type, count}}};
    call.signature = reduction_signature(operator, call.fields, 1);
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
TEST(different_calls_are_a_mismatch_everywhere) {
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
TEST(two_halves_that_differ_are_a_mismatch) {
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
TEST(a_wide_integer_makes_all_wide) {
    uint64_t state = 5;
    for (uint32_t count = 1; count <= 6; count += 5) { /* in the line, in the scratch */
        for (uint32_t f = 0; f < FANINS; f++) {
            for (uint32_t who = 0; who < 7; who++) {
                const spc_field_t small = {SPC_TYPE_INT, count}, wide = {SPC_TYPE_WIDE, count};
                const spc_signature_t signatures[] = {reduction_signature(SPC_MAX, &small, 1),
                                                      reduction_signature(SPC_MAX, &wide, 1)};
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

TEST(an_overflow_makes_all_wide) {
    const spc_field_t field = {SPC_TYPE_INT, 1};
    const spc_signature_t signature = reduction_signature(SPC_SUM, &field, 1);
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
TEST(a_mismatch_outranks_a_wide_integer) {
    const spc_field_t wide = {SPC_TYPE_WIDE, 1};
    const spc_signature_t signature = reduction_signature(SPC_SUM, &wide, 1);
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

TEST_MAIN()
