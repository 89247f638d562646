/* SPDX-License-Identifier: MIT */
/* Values that boxes combine one after the other: the largest complete subtrees, and the bits of the one reducer. */
#include "reduce/spc_subtree.h"

#include "reduce_box.h"

enum { BOXES_MAX = 8, FIELDS_MAX = 3, COUNT_MAX = 40, VALUE_MAX = FIELDS_MAX * (COUNT_MAX * 24 + 8) };

static unsigned char values[BOX_NODES_MAX][VALUE_MAX] __attribute__((aligned(16)));

/* ---- what is reduced */

typedef struct operation {
    spc_operator_t operator;
    uint32_t field_count;
    spc_field_t fields[FIELDS_MAX];
    uint64_t bytes;
} operation_t;

static operation_t any_operation(uint64_t *state) {
    operation_t made = {.operator = (spc_operator_t)check_below(state, SPC_OPERATOR_COUNT),
                        .field_count = 1 + (uint32_t)check_below(state, FIELDS_MAX)};
    for (uint32_t i = 0; i < made.field_count; i++) {
        do {
            made.fields[i].type = 1 + (uint32_t)check_below(state, SPC_TYPE_COUNT - 1);
        } while (!spc_ops_has(made.operator, made.fields[i].type) || made.fields[i].type == SPC_TYPE_WIDE);
        made.fields[i].count = (uint32_t)check_below(state, check_below(state, 2) == 0 ? 3 : COUNT_MAX + 1);
    }
    made.bytes = spc_fields_bytes(made.fields, made.field_count);
    return made;
}

/* Sums whose bits depend on the order; integers of Python that overflow now and then; otherwise any bytes. */
static void fill(const operation_t *operation, unsigned char *value, uint64_t *state) {
    const bool is_small = check_below(state, 8) != 0;
    for (uint32_t i = 0; i < operation->field_count; i++) {
        const spc_field_t field = operation->fields[i];
        for (uint32_t k = 0; k < spc_fields_bytes(&field, 1) / 8; k++, value += 8) {
            const double number = (double)(int64_t)check_random(state) / 1e12;
            const int64_t integer = (int64_t)check_random(state) >> (is_small ? 48 : 1);
            memcpy(value, field.type == SPC_TYPE_INT ? (const void *)&integer : (const void *)&number, 8);
        }
    }
}

/* The outcome for the nodes of one box: status and value. */
static int reduce_in_one_box(const operation_t *operation, uint32_t nodes, unsigned char *result) {
    box_t box;
    uint64_t phase = 0;
    box_open(&box, nodes, 64, VALUE_MAX);
    const spc_signature_t signature =
        reduction_signature(operation->operator, operation->fields, operation->field_count);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        CHECK_OK(box_start(&box, rank, &signature, operation->fields, values[rank], &phase));
    }
    const int status = spc_reduce_finish(box.reduce[0], phase, result, operation->bytes);
    box_close(&box);
    return status;
}

/* ---- where the nodes are */

static void lay_out(uint32_t nodes, uint32_t boxes, uint32_t *box_of, uint64_t *state) {
    static const uint32_t TABLE_1[] = {0, 0, 1, 0, 1}; /* of the paper */
    const uint64_t kind = check_below(state, 4);
    for (uint32_t i = 0; i < nodes; i++) {
        box_of[i] = kind == 0   ? i * boxes / nodes
                    : kind == 1 ? i % boxes
                    : kind == 2 ? TABLE_1[i % 5] % boxes
                                : (uint32_t)check_below(state, boxes);
    }
}

typedef struct part {
    uint32_t count;
    spc_subtree_t subtrees[BOX_NODES_MAX];
} part_t;

/* The largest complete subtrees of a set of members, from the root of the tree down. */
static void expect(uint64_t members, uint32_t nodes, uint32_t first, uint32_t width, part_t *expected) {
    const uint32_t span = first + width < nodes ? width : nodes - first;
    const uint64_t all = (span == 64 ? UINT64_MAX : (UINT64_C(1) << span) - 1) << first;
    if ((members & all) == all) {
        expected->subtrees[expected->count++] = (spc_subtree_t){.first = first, .span = span};
    } else if ((members & all) != 0) {
        expect(members, nodes, first, width / 2, expected);
        if (first + width / 2 < nodes) {
            expect(members, nodes, first + width / 2, width / 2, expected);
        }
    }
}

static uint64_t members_of(const part_t *part) {
    uint64_t members = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        for (uint32_t k = 0; k < part->subtrees[i].span; k++) {
            members |= UINT64_C(1) << (part->subtrees[i].first + k);
        }
    }
    return members;
}

static int combine(const operation_t *operation, uint32_t nodes, part_t *part) {
    part_t expected = {0};
    expect(members_of(part), nodes, 0, 64, &expected);
    const int status = spc_subtree_combine(operation->operator, operation->fields, operation->field_count,
                                           nodes, part->subtrees, &part->count);
    CHECK(status == SPC_OK || status == SPC_EWIDE);
    CHECK_EQ_U(part->count, expected.count);
    for (uint32_t i = 0; i < part->count; i++) {
        CHECK_EQ_U(part->subtrees[i].first, expected.subtrees[i].first);
        CHECK_EQ_U(part->subtrees[i].span, expected.subtrees[i].span);
    }
    return status;
}

/* All of the other part's, in order. */
static void merge(part_t *into, const part_t *other) {
    part_t made = {0};
    uint32_t i = 0, k = 0;
    while (i < into->count || k < other->count) {
        const bool is_first =
            k == other->count || (i < into->count && into->subtrees[i].first < other->subtrees[k].first);
        made.subtrees[made.count++] = is_first ? into->subtrees[i++] : other->subtrees[k++];
    }
    *into = made;
}

/* Each box combines its own; then parts meet, any two of them, and combine, until one has all. */
static int reduce_in_parts(const operation_t *operation, uint32_t nodes, uint32_t boxes,
                           const uint32_t *box_of, part_t parts[BOXES_MAX], uint64_t *state) {
    int outcome = SPC_OK;
    for (uint32_t box = 0; box < boxes; box++) {
        parts[box].count = 0;
        for (uint32_t i = 0; i < nodes; i++) {
            if (box_of[i] == box) {
                parts[box].subtrees[parts[box].count++] = (spc_subtree_t){i, 1, values[i]};
            }
        }
        const int status = combine(operation, nodes, &parts[box]);
        outcome = status != SPC_OK ? status : outcome;
    }
    for (; boxes > 1; boxes--) {
        const uint32_t one = (uint32_t)check_below(state, boxes - 1);
        merge(&parts[one], &parts[boxes - 1]);
        const int status = combine(operation, nodes, &parts[one]);
        outcome = status != SPC_OK ? status : outcome;
    }
    return outcome;
}

TEST(all_layouts_give_the_bits_of_one_box) {
    static unsigned char expected[VALUE_MAX];
    static part_t parts[BOXES_MAX];
    uint64_t state = check_seed();
    long wide = 0;
    for (long round = check_scale(4000); round > 0; round--) {
        const uint32_t nodes = 2 + (uint32_t)check_below(&state, check_below(&state, 2) == 0 ? 7 : 63);
        const uint32_t boxes = 1 + (uint32_t)check_below(&state, BOXES_MAX);
        uint32_t box_of[BOX_NODES_MAX];
        const operation_t operation = any_operation(&state);
        lay_out(nodes, boxes, box_of, &state);
        for (uint32_t i = 0; i < nodes; i++) {
            fill(&operation, values[i], &state);
        }
        const int status = reduce_in_one_box(&operation, nodes, expected);
        CHECK_EQ(reduce_in_parts(&operation, nodes, boxes, box_of, parts, &state), status);
        CHECK_EQ_U(parts[0].count, 1);
        if (status == SPC_OK) {
            CHECK_MEM(parts[0].subtrees[0].value, expected, operation.bytes);
        }
        wide += status == SPC_EWIDE;
    }
    CHECK(wide > 0 || check_scale(4000) < 1000);
}

/* The reducer's words, without its code: v[i] = v[i] + v[i + 2^k]. */
TEST(sums_are_those_of_a_plain_fold) {
    uint64_t state = check_seed();
    const spc_field_t field = {SPC_TYPE_FLOAT64, 1};
    for (uint32_t nodes = 1; nodes <= BOX_NODES_MAX; nodes++) {
        double numbers[BOX_NODES_MAX], copies[BOX_NODES_MAX];
        spc_subtree_t subtrees[BOX_NODES_MAX];
        for (uint32_t i = 0; i < nodes; i++) {
            numbers[i] = copies[i] = (double)(int64_t)check_random(&state) / 1e15;
            subtrees[i] = (spc_subtree_t){i, 1, &numbers[i]};
        }
        uint32_t count = nodes;
        CHECK_OK(spc_subtree_combine(SPC_SUM, &field, 1, nodes, subtrees, &count));
        CHECK_EQ_U(count, 1);
        const double expected = box_model_sum(copies, nodes);
        CHECK_MEM(&numbers[0], &expected, sizeof expected);
    }
}

static int try(uint32_t members, uint32_t count, const uint32_t spans[][2]) {
    static const spc_field_t field = {SPC_TYPE_INT64, 1};
    int64_t numbers[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    spc_subtree_t subtrees[8];
    for (uint32_t i = 0; i < count; i++) {
        subtrees[i] = (spc_subtree_t){spans[i][0], spans[i][1], &numbers[i]};
    }
    const uint32_t before = count;
    const int status = spc_subtree_combine(SPC_SUM, &field, 1, members, subtrees, &count);
    CHECK(status == SPC_OK || count == before);
    for (uint32_t i = 0; i < before && status != SPC_OK; i++) {
        CHECK_EQ(numbers[i], 1);
    }
    return status;
}

TEST(what_is_no_subtree_is_refused) {
    CHECK_OK(try(5, 2, (const uint32_t[][2]){{0, 4}, {4, 1}}));
    CHECK_OK(try(7, 1, (const uint32_t[][2]){{4, 3}}));
    CHECK_OK(try(7, 0, NULL));
    CHECK_EQ(try(5, 1, (const uint32_t[][2]){{0, 0}}), SPC_EINVAL);
    CHECK_EQ(try(5, 1, (const uint32_t[][2]){{0, 3}}), SPC_EINVAL); /* no power of two, and not the end */
    CHECK_EQ(try(5, 1, (const uint32_t[][2]){{1, 2}}), SPC_EINVAL); /* of two nodes */
    CHECK_EQ(try(5, 1, (const uint32_t[][2]){{4, 2}}), SPC_EINVAL); /* beyond the end */
    CHECK_EQ(try(5, 1, (const uint32_t[][2]){{UINT32_MAX, 2}}), SPC_EINVAL);
    CHECK_EQ(try(5, 1, (const uint32_t[][2]){{0, UINT32_MAX}}), SPC_EINVAL);
    CHECK_EQ(try(8, 2, (const uint32_t[][2]){{0, 2}, {1, 1}}), SPC_EINVAL); /* twice */
    CHECK_EQ(try(8, 2, (const uint32_t[][2]){{1, 1}, {0, 1}}), SPC_EINVAL); /* in another order */

    int64_t numbers[2] = {1, 2};
    spc_subtree_t subtrees[2] = {{0, 1, &numbers[0]}, {1, 1, &numbers[1]}};
    const spc_field_t fields[2] = {{SPC_TYPE_INT64, 1}, {SPC_TYPE_COUNT, 0}};
    uint32_t count = 2;
    CHECK_EQ(spc_subtree_combine(SPC_SUM, fields, 2, 2, subtrees, &count), SPC_EINVAL);
    CHECK_EQ(spc_subtree_combine(SPC_OPERATOR_COUNT, fields, 1, 2, subtrees, &count), SPC_EINVAL);
    CHECK_EQ(numbers[0], 1);
}

TEST_MAIN()
