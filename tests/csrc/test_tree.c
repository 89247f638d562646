/* SPDX-License-Identifier: MIT */
/* The shape of the tree, its walk and its rounds, against the words of the contract: v[i] = v[i] op v[i + 2^k]. */
#include "reduce/spc_tree.h"

#include "reduce_box.h"

enum { LEAVES_MAX = 70, PAIRS_MAX = LEAVES_MAX };

/* The combinations of a tree, in any order: of the leaves from `first` on, `middle` and up to `end`. */
typedef struct pair {
    uint32_t first, middle, end;
} pair_t;

static uint32_t model(uint32_t leaves, pair_t pairs[PAIRS_MAX]) {
    uint32_t end[LEAVES_MAX], count = 0;
    for (uint32_t i = 0; i < leaves; i++) {
        end[i] = i + 1;
    }
    for (uint32_t step = 1; step < leaves; step *= 2) {
        for (uint32_t i = 0; i + step < leaves; i += 2 * step) {
            CHECK_EQ_U(end[i], i + step);
            pairs[count++] = (pair_t){i, i + step, end[i + step]};
            end[i] = end[i + step];
        }
    }
    return count;
}

static bool is_a_pair(const pair_t *pairs, uint32_t count, uint32_t first, uint32_t middle, uint32_t end) {
    for (uint32_t i = 0; i < count; i++) {
        if (pairs[i].first == first && pairs[i].middle == middle && pairs[i].end == end) {
            return true;
        }
    }
    return false;
}

static bool is_a_node(const pair_t *pairs, uint32_t count, uint32_t first, uint32_t end) {
    bool is_node = end == first + 1;
    for (uint32_t i = 0; i < count; i++) {
        is_node = is_node || (pairs[i].first == first && pairs[i].end == end);
    }
    return is_node;
}

TEST(nodes_and_siblings_are_those_of_the_combinations) {
    for (uint32_t leaves = 1; leaves <= 40; leaves++) {
        pair_t pairs[PAIRS_MAX];
        const uint32_t count = model(leaves, pairs);
        for (uint32_t first = 0; first < leaves; first++) {
            CHECK(!spc_tree_has((spc_tree_node_t){first, 0}, leaves));
            CHECK(!spc_tree_has((spc_tree_node_t){first, leaves - first + 1}, leaves));
            for (uint32_t middle = first + 1; middle <= leaves; middle++) {
                const spc_tree_node_t left = {first, middle - first};
                const bool is_node = is_a_node(pairs, count, first, middle);
                CHECK_EQ(spc_tree_has(left, leaves), is_node);
                for (uint32_t end = middle + 1; is_node && end <= leaves; end++) {
                    CHECK_EQ(spc_tree_are_siblings(left, (spc_tree_node_t){middle, end - middle}, leaves),
                             is_a_pair(pairs, count, first, middle, end));
                }
            }
        }
    }
}

TEST(the_node_above_a_leaf_has_the_leaf) {
    for (uint32_t leaves = 1; leaves <= LEAVES_MAX; leaves++) {
        const uint32_t levels = spc_tree_levels(leaves);
        CHECK(1u << levels >= leaves && (levels == 0 || 1u << (levels - 1) < leaves));
        for (uint32_t leaf = 0; leaf < leaves; leaf++) {
            for (uint32_t level = 0; level <= levels; level++) {
                const spc_tree_node_t node = spc_tree_above(leaf, level, leaves);
                CHECK(spc_tree_has(node, leaves) && node.first <= leaf && leaf < node.first + node.span);
                CHECK(node.span == 1u << level || node.first + node.span == leaves);
            }
            CHECK_EQ_U(spc_tree_above(leaf, levels, leaves).span, leaves);
        }
    }
}

/* All ways of the walk: in place or into slots, to its end or, for each prefix, beside the stack. */
TEST(walks_give_the_sums_of_the_model) {
    static double slots[SPC_TREE_STACK_MAX];
    const spc_field_t field = {SPC_TYPE_FLOAT64, 1};
    uint64_t state = check_seed();
    for (uint32_t leaves = 1; leaves <= BOX_NODES_MAX; leaves++) {
        double numbers[BOX_NODES_MAX], copies[BOX_NODES_MAX], in_place[BOX_NODES_MAX], total;
        spc_tree_stack_t stack, placed;
        spc_tree_start(&stack, SPC_SUM, &field, 1, slots, sizeof slots[0]);
        spc_tree_start(&placed, SPC_SUM, &field, 1, NULL, 0);
        for (uint32_t i = 0; i < leaves; i++) {
            numbers[i] = in_place[i] = (double)(int64_t)check_random(&state) / 1e15;
            spc_tree_push(&stack, i, &numbers[i]);
            spc_tree_push(&placed, i, &in_place[i]);
            memcpy(copies, numbers, sizeof copies);
            const double expected = box_model_sum(copies, i + 1);
            if (stack.count > 1) {
                spc_tree_finish_to(&stack, &total);
                CHECK_MEM(&total, &expected, sizeof total);
            }
        }
        memcpy(copies, numbers, sizeof copies);
        const double expected = box_model_sum(copies, leaves);
        spc_tree_finish(&stack);
        spc_tree_finish(&placed);
        CHECK_OK(stack.status);
        CHECK(stack.count == 1 && placed.count == 1 && placed.value[0] == &in_place[0]);
        CHECK_MEM(stack.value[0], &expected, sizeof expected);
        CHECK_MEM(placed.value[0], &expected, sizeof expected);
    }
}

/* A rank holds the values of `node`, in the part that its exchanges with lower and upper ranks have left it. */
typedef struct holding {
    spc_tree_node_t node;
    uint32_t part; /* a bit for each exchange: the upper half */
    uint32_t halvings;
} holding_t;

static void play(uint32_t ranks, uint32_t round, const pair_t *pairs, uint32_t count, holding_t *holdings) {
    holding_t before[LEAVES_MAX];
    memcpy(before, holdings, sizeof before);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const spc_tree_turn_t turn = spc_tree_turn(rank, round, ranks);
        if (turn.role == SPC_TREE_WAITS) {
            continue;
        }
        const holding_t *left = &before[turn.is_left ? rank : turn.partner];
        const holding_t *right = &before[turn.is_left ? turn.partner : rank];
        const uint32_t end = right->node.first + right->node.span, common = (1u << right->halvings) - 1;
        CHECK(is_a_pair(pairs, count, left->node.first, right->node.first, end));
        CHECK(left->halvings >= right->halvings && (left->part & common) == right->part);
        holdings[rank].node = (spc_tree_node_t){left->node.first, end - left->node.first};
        if (turn.role == SPC_TREE_EXCHANGES) {
            CHECK_EQ_U(spc_tree_turn(turn.partner, round, ranks).partner, rank);
            CHECK_EQ_U(left->halvings, right->halvings);
            holdings[rank].part |= (rank > turn.partner ? 1u : 0u) << holdings[rank].halvings;
            holdings[rank].halvings++;
        }
    }
}

/* After the last round as many ranks as the largest power of two have everything, each another part of it. */
TEST(rounds_combine_siblings_and_end_with_all_parts) {
    for (uint32_t ranks = 2; ranks <= LEAVES_MAX; ranks++) {
        holding_t holdings[LEAVES_MAX] = {0};
        pair_t pairs[PAIRS_MAX];
        uint64_t parts[2] = {0};
        const uint32_t count = model(ranks, pairs);
        for (uint32_t rank = 0; rank < ranks; rank++) {
            holdings[rank].node = (spc_tree_node_t){rank, 1};
        }
        for (uint32_t round = 0; round < spc_tree_levels(ranks); round++) {
            play(ranks, round, pairs, count, holdings);
        }
        const uint32_t holders = 1u << spc_tree_log2(ranks);
        for (uint32_t rank = 0; rank < holders; rank++) {
            CHECK_EQ_U(holdings[rank].node.span, ranks);
            CHECK_EQ_U(1u << holdings[rank].halvings, holders);
            parts[holdings[rank].part / 64] |= UINT64_C(1) << holdings[rank].part % 64;
        }
        CHECK_EQ(__builtin_popcountll(parts[0]) + __builtin_popcountll(parts[1]), holders);
    }
}

TEST_MAIN()
