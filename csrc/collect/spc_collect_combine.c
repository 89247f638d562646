/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "collect/spc_collect_private.h"

#define PARTIALS_MAX 17 /* log2 of the most nodes, and one that was just pushed */

/* Partial results, left to right, as a stack: as in spc_reduce_tree.c. */
typedef struct partials {
    const spc_collect_t *collect;
    uint64_t elements;
    uint64_t stride; /* bytes between two of the work memory */
    const void *value[PARTIALS_MAX]; /* a source, or in the work memory at the same number */
    uint32_t count;
} partials_t;

uint32_t spc_collect_partials(uint32_t size) {
    uint32_t partials = 1;
    while (partials < PARTIALS_MAX - 1 && (1u << partials) < size) {
        partials++;
    }
    return partials + 1;
}

static void start(partials_t *partials, const spc_collect_t *collect, uint64_t elements) {
    partials->collect = collect;
    partials->elements = elements;
    partials->stride = collect->tile * collect->element_bytes;
    partials->count = 0;
}

static void *place_of(const partials_t *partials, uint32_t number) {
    return partials->collect->work + number * partials->stride;
}

static void combine(const partials_t *partials, void *to, const void *left, const void *right) {
    const spc_collect_call_t *call = &partials->collect->call;
    const spc_field_t field = {call->type, (uint32_t)partials->elements};
    (void)spc_ops_combine_to(call->operator, &field, 1, to, left, right); /* create has seen that it can */
}

static void copy_alone(const partials_t *partials, void *to, const void *from) {
    const spc_collect_call_t *call = &partials->collect->call;
    const spc_field_t field = {call->type, (uint32_t)partials->elements};
    if (to != from) {
        memcpy(to, from, partials->elements * partials->collect->element_bytes);
    }
    spc_ops_alone(call->operator, &field, 1, to);
}

static void merge_topmost(partials_t *partials) {
    const uint32_t right = --partials->count;
    void *to = place_of(partials, right - 1);
    combine(partials, to, partials->value[right - 1], partials->value[right]);
    partials->value[right - 1] = to;
}

/* Those on the stack are worth 2^k sources each, for falling k: right to left is the tree. */
static void fold(const partials_t *partials, void *to) {
    uint32_t left = partials->count - 1;
    if (left == 0) {
        copy_alone(partials, to, partials->value[0]);
        return;
    }
    const void *right = partials->value[left];
    while (left > 0) {
        left--;
        combine(partials, to, partials->value[left], right);
        right = to;
    }
}

/* The last source stays on the stack, so that the last combinations are fold's and go to `to`, and only the first of
 * those reads sources: so `to` may be one. */
void spc_collect_combine(const spc_collect_t *collect, uint32_t count, uint64_t elements, void *to) {
    partials_t partials;
    start(&partials, collect, elements);
    for (uint32_t i = 0; i < count; i++) {
        partials.value[partials.count++] = collect->sources[i];
        for (uint32_t merged = i; (merged & 1) != 0 && i + 1 < count; merged >>= 1) {
            merge_topmost(&partials);
        }
    }
    fold(&partials, to);
}

void spc_collect_prefixes(const spc_collect_t *collect, uint64_t elements) {
    const bool without_own = collect->call.operation == SPC_OPERATION_ARRAY_EXSCAN;
    const uint64_t bytes = elements * collect->element_bytes;
    partials_t partials;
    start(&partials, collect, elements);
    for (uint32_t i = 0; i < collect->size; i++) {
        void *leaf = place_of(&partials, partials.count); /* a copy: its place may be the target */
        memcpy(leaf, collect->sources[i], bytes);
        if (without_own && i > 0 && collect->targets[i] != NULL) {
            fold(&partials, collect->targets[i]);
        }
        partials.value[partials.count++] = leaf;
        for (uint32_t merged = i; (merged & 1) != 0; merged >>= 1) {
            merge_topmost(&partials);
        }
        if (!without_own && collect->targets[i] != NULL) {
            fold(&partials, collect->targets[i]);
        }
    }
}
