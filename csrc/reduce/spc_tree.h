/* SPDX-License-Identifier: MIT */
/*
 * spc_tree: the one tree along which all values are combined, its shape and the walk from left to right.
 *
 * Shape. The leaves are the values of the ranks 0 … n - 1, and v[i] = v[i] op v[i + 2^k] for growing k: the order of
 * binary swap in ACLMPL 4, with any number of ranks. So the node above a leaf at level k stands for 2^k leaves from a
 * multiple of 2^k on, or for fewer where the leaves end. A left child is always whole; only the right one may be cut
 * short. A node without a sibling stands alone on the next level, with the same value: both levels are one node.
 *
 * Whichever party combines some of the values (the reducer's groups, tiles of arrays, rounds of binary swap, a server
 * between boxes, Python) asks this header which operands belong together. Hence the same bits everywhere.
 *
 * Walk. Leaves are pushed on a stack in ascending order, and whenever the topmost two values are siblings they become
 * one: every leaf is read once, and the stack has at most SPC_TREE_STACK_MAX values.
 *
 * Pure functions over the caller's memory; any thread may call them. At most UINT16_MAX leaves in a walk, and
 * UINT32_MAX elsewhere.
 */
#ifndef SPC_TREE_H
#define SPC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/spc_error.h"
#include "reduce/spc_ops.h"

/* ---- the shape ---- */

typedef struct spc_tree_node {
    uint32_t first; /* the leaves below it: `span` from here on */
    uint32_t span;
} spc_tree_node_t;

/* The log2 of a number that is not 0, rounded down. */
static inline uint32_t spc_tree_log2(uint32_t number) {
    return 31 - (uint32_t)__builtin_clz(number);
}

/* Levels above so many leaves, at least one: their log2, rounded up. */
static inline uint32_t spc_tree_levels(uint32_t leaves) {
    return leaves < 2 ? 0 : spc_tree_log2(leaves - 1) + 1;
}

/* The node above a leaf at a level; level 0 is the leaf. */
static inline spc_tree_node_t spc_tree_above(uint32_t leaf, uint32_t level, uint32_t leaves) {
    const uint32_t width = 1u << level, first = leaf >> level << level, rest = leaves - first;
    return (spc_tree_node_t){first, rest < width ? rest : width};
}

/* Whether the tree has this node. */
static inline bool spc_tree_has(spc_tree_node_t node, uint32_t leaves) {
    const uint64_t width = UINT64_C(1) << spc_tree_levels(node.span), end = (uint64_t)node.first + node.span;
    return node.span != 0 && end <= leaves && node.first % width == 0
           && (node.span == width || end == leaves);
}

/* Whether two nodes of the tree are the children of one. */
static inline bool spc_tree_are_siblings(spc_tree_node_t left, spc_tree_node_t right, uint32_t leaves) {
    const spc_tree_node_t parent = {left.first, left.span + right.span};
    return left.first + left.span == right.first && spc_tree_has(parent, leaves)
           && left.span == 1u << (spc_tree_levels(parent.span) - 1);
}

/* ---- the walk ---- */

#define SPC_TREE_STACK_MAX 17 /* log2 of the largest number of leaves, and one that was just pushed */

typedef struct spc_tree_stack {
    spc_operator_t operator;
    const spc_field_t *fields;
    uint32_t field_count;
    /* Where combined values go, by their number on the stack; NULL: in place of the left one. */
    unsigned char *slots;
    uint64_t slot_bytes;
    const void *value[SPC_TREE_STACK_MAX];
    uint32_t count;
    int status; /* SPC_OK, or SPC_EWIDE: then the values are undefined */
} spc_tree_stack_t;

static inline void spc_tree_start(spc_tree_stack_t *stack, spc_operator_t operator, const spc_field_t *fields,
                                  uint32_t field_count, void *slots, uint64_t slot_bytes) {
    stack->operator = operator;
    stack->fields = fields;
    stack->field_count = field_count;
    stack->slots = slots;
    stack->slot_bytes = slot_bytes;
    stack->value[0] = NULL;
    stack->count = 0;
    stack->status = SPC_OK;
}

static inline void spc_tree_combine(spc_tree_stack_t *stack, void *to, const void *left, const void *right) {
    const int status =
        spc_ops_combine_to(stack->operator, stack->fields, stack->field_count, to, left, right);
    stack->status = status != SPC_OK ? status : stack->status;
}

/* The slot of the value that is pushed next: what is written there stays until it is combined. */
static inline void *spc_tree_slot(const spc_tree_stack_t *stack) {
    return stack->slots + stack->count * stack->slot_bytes;
}

/* The topmost two values become one. */
static inline void spc_tree_merge(spc_tree_stack_t *stack) {
    const void *right = stack->value[--stack->count], *left = stack->value[--stack->count];
    void *to = stack->slots == NULL ? (void *)(uintptr_t)left : spc_tree_slot(stack);
    spc_tree_combine(stack, to, left, right);
    stack->value[stack->count++] = to;
}

/* Pushes the value of a leaf, and combines the whole subtrees that it completes: one for each 1 at the end of its
 * number. */
static inline void spc_tree_push(spc_tree_stack_t *stack, uint32_t leaf, const void *value) {
    stack->value[stack->count++] = value;
    for (uint32_t siblings = leaf; (siblings & 1) != 0; siblings >>= 1) {
        spc_tree_merge(stack);
    }
}

/* After the last leaf: combines the rest, whose right nodes are cut short. The value is value[0]. */
static inline void spc_tree_finish(spc_tree_stack_t *stack) {
    while (stack->count > 1) {
        spc_tree_merge(stack);
    }
}

/* As finish, of at least two values, but the stack stays as it is, and the result goes to `to`. That may be where one
 * of the topmost two lies: only the first combination reads these. */
static inline void spc_tree_finish_to(spc_tree_stack_t *stack, void *to) {
    const void *right = stack->value[stack->count - 1];
    for (uint32_t left = stack->count - 1; left > 0; left--, right = to) {
        spc_tree_combine(stack, to, stack->value[left - 1], right);
    }
}

/* ---- rounds, in which ranks exchange halves of what they hold (binary swap) ---- */

/*
 * Before round k the ranks stand in groups, the nodes of level k, each of which holds its node's value, divided among
 * its ranks. In round k two siblings become one. If both are whole, rank i and rank i + 2^k hold the same part, and
 * exchange halves of it. If the right one is cut short, the left one absorbs it: its ranks keep their parts whole, and
 * read the right one's values from the ranks that hold them, as many as the largest power of two there; those of the
 * right one are idle from then on. There are spc_tree_levels(ranks) rounds.
 */

typedef enum spc_tree_role { SPC_TREE_WAITS, SPC_TREE_EXCHANGES, SPC_TREE_ABSORBS } spc_tree_role_t;

typedef struct spc_tree_turn {
    spc_tree_role_t role;
    uint32_t partner; /* unless it waits: the rank that holds the other operand */
    bool is_left; /* this rank's own operand is the left one */
} spc_tree_turn_t;

static inline spc_tree_turn_t spc_tree_turn(uint32_t rank, uint32_t round, uint32_t ranks) {
    const spc_tree_node_t parent = spc_tree_above(rank, round + 1, ranks);
    const uint32_t width = 1u << round, right = parent.first + width;
    const bool is_left = rank < right, is_whole = parent.span == 2 * width;
    if (parent.span <= width || (!is_whole && !is_left)) {
        return (spc_tree_turn_t){.role = SPC_TREE_WAITS};
    }
    if (is_whole) {
        return (spc_tree_turn_t){SPC_TREE_EXCHANGES, rank ^ width, is_left};
    }
    const uint32_t holders = 1u << spc_tree_log2(parent.span - width);
    return (spc_tree_turn_t){SPC_TREE_ABSORBS, right + (rank & (holders - 1)), is_left};
}

#endif
