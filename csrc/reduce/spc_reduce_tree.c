/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/spc_error.h"
#include "reduce/spc_reduce_private.h"

#define PARTIALS_MAX 17 /* log2 of the largest group, and one that was just pushed */

/* Partial results of a group, left to right, as a stack. Members are pushed by rank, and whenever the
 * topmost two stand for equally many members they become one: the tree of v[i] op= v[i + 2^k], with every
 * member read once. */
typedef struct partials {
    const spc_reduce_call_t *call;
    void *value[PARTIALS_MAX];
    uint64_t copy[PARTIALS_MAX][SPC_LINE_VALUE_BYTES / 8]; /* of short values: their lines are only read */
    uint32_t count;
    int status;
} partials_t;

static void merge_topmost(partials_t *partials) {
    const spc_reduce_call_t *call = partials->call;
    const uint32_t right = --partials->count;
    const int status = spc_ops_combine(call->signature.operator, call->fields, call->signature.field_count,
                                       partials->value[right - 1], partials->value[right]);
    partials->status = status != SPC_OK ? status : partials->status;
}

/* Short values are combined in a copy, long ones where they lie. */
static void push(partials_t *partials, spc_reduce_line_shared_t *line, unsigned char *base) {
    const uint32_t top = partials->count++;
    if (spc_reduce_is_short(partials->call)) {
        memcpy(partials->copy[top], line->value.bytes, SPC_LINE_VALUE_BYTES);
        partials->value[top] = partials->copy[top];
    } else {
        partials->value[top] = base + line->value.scratch.offset;
    }
}

static bool same_kind(const spc_reduce_call_t *call, const spc_reduce_line_shared_t *line) {
    return memcmp(&line->signature, &call->signature, sizeof call->signature) == 0
           && (spc_reduce_is_short(call) || line->value.scratch.length_bytes == call->length_bytes);
}

/* Hands the group's value on: to the next level in the line of its first node, from the top to all nodes. A long value
 * is already in the scratch of its first node, where the next level looks for it. */
static void hand_on(const spc_reduce_t *reduce, const spc_reduce_bank_t *bank,
                    spc_reduce_line_shared_t *first, const partials_t *partials, bool top) {
    if (spc_reduce_is_short(partials->call)) {
        unsigned char *place = top ? bank->release->value.bytes : first->value.bytes;
        memcpy(place, partials->value[0], SPC_LINE_VALUE_BYTES);
    } else if (top) {
        bank->release->value.offset = (uint64_t)((unsigned char *)partials->value[0] - reduce->options.base);
    }
}

int spc_reduce_combine_group(const spc_reduce_t *reduce, const spc_reduce_bank_t *bank,
                             const spc_reduce_call_t *call, uint32_t level, uint32_t group) {
    const uint32_t members = spc_reduce_members(reduce, level, group);
    const uint32_t step_shift = level * reduce->shift; /* a member of this level is 2^step_shift nodes */
    spc_reduce_line_shared_t *first = &bank->lines[(group << reduce->shift) << step_shift];
    partials_t partials;
    partials.call = call;
    partials.count = 0;
    partials.status = SPC_OK;
    for (uint32_t i = 0; i < members; i++) {
        spc_reduce_line_shared_t *line = first + ((uint64_t)i << step_shift);
        if (!same_kind(call, line)) {
            return SPC_EMISMATCH;
        }
        push(&partials, line, reduce->options.base);
        for (uint32_t merged = i; (merged & 1) != 0; merged >>= 1) {
            merge_topmost(&partials);
        }
    }
    while (partials.count > 1) {
        merge_topmost(&partials);
    }
    if (partials.status == SPC_OK) {
        hand_on(reduce, bank, first, &partials, level + 1 == reduce->level_count);
    }
    return partials.status;
}

void spc_reduce_release_total(const spc_reduce_t *reduce, const spc_reduce_bank_t *bank,
                              const spc_reduce_call_t *call) {
    spc_reduce_line_shared_t *line = &bank->lines[reduce->options.rank];
    partials_t partials;
    partials.call = call;
    partials.count = 0;
    push(&partials, line, reduce->options.base);
    hand_on(reduce, bank, line, &partials, true);
}
