/* SPDX-License-Identifier: MIT */
/*
 * reduce_box: the reducers of n nodes over shared memory, for tests. Nothing in spc_reduce waits, so one
 * thread can be all nodes, in any order; threads or forked processes may also be one each.
 */
#ifndef REDUCE_BOX_H
#define REDUCE_BOX_H

#include "check.h"

#include <sys/mman.h>

#include "base/spc_error.h"
#include "reduction.h"

static const uint32_t fanins[] = {2, 4, 8, 64};
#define FANINS (sizeof fanins / sizeof fanins[0])
#define BOX_NODES_MAX 64

typedef struct box {
    uint32_t nodes;
    uint64_t scratch_bytes; /* of a half */
    unsigned char *memory;  /* events, reducer, scratch */
    uint64_t memory_bytes;
    spc_event_shared_t *events;
    spc_reduce_t *reduce[BOX_NODES_MAX];
} box_t;

static inline void box_open(box_t *box, uint32_t nodes, uint32_t fanin, uint64_t scratch_bytes) {
    const uint64_t event_bytes = nodes * sizeof(spc_event_shared_t);
    const uint64_t reduce_bytes = spc_round_up(spc_reduce_bytes(nodes, fanin), SPC_CACHE_LINE);
    CHECK(nodes <= BOX_NODES_MAX && reduce_bytes > 0);
    box->nodes = nodes;
    box->scratch_bytes = scratch_bytes;
    box->memory_bytes = event_bytes + reduce_bytes + nodes * 2 * scratch_bytes;
    box->memory = mmap(NULL, box->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(box->memory != MAP_FAILED);
    box->events = (spc_event_shared_t *)(void *)box->memory;
    for (uint32_t rank = 0; rank < nodes; rank++) {
        const spc_reduce_options_t options = {
            .shared = box->memory + event_bytes,
            .base = box->memory,
            .scratch = box->memory + event_bytes + reduce_bytes + rank * 2 * scratch_bytes,
            .scratch_bytes = scratch_bytes,
            .rank = rank,
            .nodes = nodes,
            .fanin = fanin,
            .events = box->events,
            .features = spc_platform_features(0),
        };
        CHECK_OK(spc_reduce_create(&options, &box->reduce[rank]));
    }
}

static inline void box_close(box_t *box) {
    for (uint32_t rank = 0; rank < box->nodes; rank++) {
        spc_reduce_destroy(box->reduce[rank]);
    }
    munmap(box->memory, box->memory_bytes);
}

/* The signature of an operation without values. */
static inline spc_signature_t box_plain(spc_operation_t operation) {
    return (spc_signature_t){.operation = (uint8_t)operation};
}

static inline int box_start(box_t *box, uint32_t rank, const spc_signature_t *signature,
                            const spc_field_t *fields, const void *value, uint64_t *phase) {
    return spc_reduce_start(box->reduce[rank], signature, fields, value, signature->length_bytes, phase);
}

/* Starts something without values on one node; returns the phase. */
static inline uint64_t box_enter(box_t *box, uint32_t rank, spc_operation_t operation) {
    const spc_signature_t signature = box_plain(operation);
    uint64_t phase = 0;
    CHECK_OK(box_start(box, rank, &signature, NULL, NULL, &phase));
    CHECK(phase > 0);
    return phase;
}

/* A random order of the ranks. */
static inline void box_shuffle(uint32_t *order, uint32_t count, uint64_t *state) {
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t j = (uint32_t)check_below(state, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

/* The result of the fixed tree, as the contract words it; `values` (one a rank) is used up. */
static inline double box_model_sum(double *values, uint32_t nodes) {
    for (uint32_t step = 1; step < nodes; step *= 2) {
        for (uint32_t i = 0; i + step < nodes; i += 2 * step) {
            values[i] += values[i + step];
        }
    }
    return values[0];
}

/* One sum of `count` doubles a node, with values whose sum depends on the order of additions. */
static inline void box_check_sum(box_t *box, uint32_t count, uint64_t *state) {
    enum { COUNT_MAX = 100 };
    static double values[BOX_NODES_MAX][COUNT_MAX], column[BOX_NODES_MAX], result[COUNT_MAX];
    const spc_field_t field = {SPC_TYPE_FLOAT64, count};
    const spc_signature_t signature = reduction_signature(SPC_SUM, &field, 1);
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

#endif
