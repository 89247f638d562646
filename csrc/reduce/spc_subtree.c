/* SPDX-License-Identifier: MIT */
#include "reduce/spc_subtree.h"

#include <stdbool.h>

#include "base/spc_error.h"

/* The least power of two that is not less. */
static uint64_t width_of(uint32_t span) {
    uint64_t width = 1;
    while (width < span) {
        width *= 2;
    }
    return width;
}

/* Whether this node is in the tree. A member at the end stands alone on several levels, with the same value: these are
 * one subtree. */
static bool is_complete(const spc_subtree_t *subtree, uint32_t members) {
    const uint64_t width = width_of(subtree->span), end = (uint64_t)subtree->first + subtree->span;
    return subtree->span != 0 && end <= members && subtree->first % width == 0
           && (subtree->span == width || end == members);
}

static bool are_valid(const spc_subtree_t *subtrees, uint32_t count, uint32_t members) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (subtrees[i].first < end || !is_complete(&subtrees[i], members)) {
            return false;
        }
        end = (uint64_t)subtrees[i].first + subtrees[i].span;
    }
    return true;
}

static bool knows_types(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count) {
    for (uint32_t i = 0; i < field_count; i++) {
        if (!spc_ops_has(operator, fields[i].type)) {
            return false;
        }
    }
    return true;
}

/* Whether these are the children of one node. The left child is never cut short: the members end in the right one. */
static bool are_siblings(const spc_subtree_t *left, const spc_subtree_t *right, uint32_t members) {
    const uint64_t width = left->span, middle = left->first + width;
    return width_of(left->span) == width && left->first % (2 * width) == 0 && right->first == middle
           && (right->span == width || (right->span < width && middle + right->span == members));
}

int spc_subtree_combine(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count,
                        uint32_t members, spc_subtree_t *subtrees, uint32_t *count) {
    if (!are_valid(subtrees, *count, members) || !knows_types(operator, fields, field_count)) {
        return SPC_EINVAL;
    }
    uint32_t left = 0; /* a stack of the remaining subtrees, at the start of `subtrees` */
    int outcome = SPC_OK;
    for (uint32_t i = 0; i < *count; i++) {
        subtrees[left++] = subtrees[i];
        while (left > 1 && are_siblings(&subtrees[left - 2], &subtrees[left - 1], members)) {
            spc_subtree_t *into = &subtrees[left - 2];
            left--;
            const int status =
                spc_ops_combine(operator, fields, field_count, into->value, subtrees[left].value);
            outcome = status != SPC_OK ? status : outcome;
            into->span += subtrees[left].span;
        }
    }
    *count = left;
    return outcome;
}
