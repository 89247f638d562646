/* SPDX-License-Identifier: MIT */
#include "reduce/spc_subtree.h"

#include "base/spc_error.h"
#include "reduce/spc_tree.h"

static spc_tree_node_t node_of(const spc_subtree_t *subtree) {
    return (spc_tree_node_t){subtree->first, subtree->span};
}

static bool are_valid(const spc_subtree_t *subtrees, uint32_t count, uint32_t members) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (subtrees[i].first < end || !spc_tree_has(node_of(&subtrees[i]), members)) {
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

int spc_subtree_combine(spc_operator_t operator, const spc_field_t *fields, uint32_t field_count,
                        uint32_t members, spc_subtree_t *subtrees, uint32_t *count) {
    if (!are_valid(subtrees, *count, members) || !knows_types(operator, fields, field_count)) {
        return SPC_EINVAL;
    }
    uint32_t left = 0; /* a stack of the remaining subtrees, at the start of `subtrees` */
    int outcome = SPC_OK;
    for (uint32_t i = 0; i < *count; i++) {
        subtrees[left++] = subtrees[i];
        while (
            left > 1
            && spc_tree_are_siblings(node_of(&subtrees[left - 2]), node_of(&subtrees[left - 1]), members)) {
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
