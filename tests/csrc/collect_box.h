/* SPDX-License-Identifier: MIT */
/*
 * collect_box: reductions of arrays, for tests: inputs that follow from a seed, and what must come out of them,
 * combined in the simplest way along the one tree.
 */
#ifndef COLLECT_BOX_H
#define COLLECT_BOX_H

#include "comm_box.h"

#include "comm/spc_collect.h"
#include "spcomm/simtime.h"

/* One case: what all nodes call, and where their inputs come from. */
typedef struct collect_case {
    spc_collect_call_t call; /* without input and memory */
    uint64_t counts[CHECK_MAX_RANKS]; /* of REDUCE_SCATTER */
    uint64_t seed;
} collect_case_t;

static inline bool is_scattered(const collect_case_t *it) {
    return it->call.operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER;
}

static inline bool is_prefix(const collect_case_t *it) {
    return it->call.operation == SPC_OPERATION_ARRAY_SCAN || it->call.operation == SPC_OPERATION_ARRAY_EXSCAN;
}

static inline bool is_whole(const collect_case_t *it) {
    return !is_scattered(it) && !is_prefix(it);
}

/* Parts of different lengths, some of them empty. */
static inline void divide(collect_case_t *it, uint32_t size) {
    uint64_t state = it->seed, left = it->call.count;
    for (uint32_t rank = 0; rank < size; rank++) {
        uint64_t share = check_below(&state, 3) == 0 ? 0 : check_below(&state, 2 * left / (size - rank) + 1);
        share = share < left ? share : left;
        it->counts[rank] = rank + 1 == size ? left : share;
        left -= it->counts[rank];
    }
    it->call.counts = it->counts;
}

/* Values that round when they are added, and often meet their like. */
static inline void fill_element(uint32_t type, unsigned char *at, uint64_t number, uint64_t *state) {
    const uint64_t random = check_random(state);
    const double real = (double)(int64_t)random * 0x1p-60;
    const float narrow[2] = {(float)real, (float)(real * 3)};
    const double wide[2] = {real, real / 3};
    const spc_pair_t whole = {.value.bytes = random % 3, .index = (int64_t)(random >> 60) + (int64_t)number};
    spc_pair_t pair = whole;
    const spcomm_simtime_t time = {real, {(int32_t)(random % 3), (int32_t)number, 0, 1}};
    switch (type) {
    case SPC_TYPE_FLOAT32:
    case SPC_TYPE_COMPLEX64:
        memcpy(at, narrow, spc_type_size(type));
        break;
    case SPC_TYPE_FLOAT64:
    case SPC_TYPE_COMPLEX128:
        memcpy(at, wide, spc_type_size(type));
        break;
    case SPC_TYPE_BOOL:
        *at = random % 5 != 0;
        break;
    case SPC_TYPE_SIMTIME:
        memcpy(at, &time, sizeof(time));
        break;
    case SPC_TYPE_PAIR_FLOAT32:
        pair.value.FLOAT32 = (float)(random % 3);
        memcpy(at, &pair, sizeof(pair));
        break;
    case SPC_TYPE_PAIR_FLOAT64:
        pair.value.FLOAT64 = (double)(random % 3);
        memcpy(at, &pair, sizeof(pair));
        break;
    default:
        memcpy(at, spc_type_size(type) == sizeof(whole) ? (const void *)&whole : (const void *)&random,
               spc_type_size(type));
    }
}

static inline void fill_input(const collect_case_t *it, uint32_t rank, unsigned char *to) {
    uint64_t state = it->seed * 1000 + rank;
    const uint32_t bytes = spc_type_size(it->call.type);
    for (uint64_t i = 0; i < it->call.count; i++) {
        fill_element(it->call.type, to + i * bytes, i, &state);
    }
}

/* v[i] = v[i] op v[i + 2^k], over the first `nodes` inputs; the caller frees it. */
static inline unsigned char *expected_of(const collect_case_t *it, uint32_t nodes) {
    const uint64_t bytes = it->call.count * spc_type_size(it->call.type), stride = bytes + 8;
    const spc_field_t field = {it->call.type, (uint32_t)it->call.count};
    unsigned char *values = malloc(nodes * stride);
    CHECK(values != NULL);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        fill_input(it, rank, values + rank * stride);
    }
    for (uint32_t step = 1; step < nodes; step *= 2) {
        for (uint32_t i = 0; i + step < nodes; i += 2 * step) {
            unsigned char *right = malloc(stride), *left = malloc(stride); /* aligned, whatever `bytes` is */
            memcpy(left, values + i * stride, bytes);
            memcpy(right, values + (i + step) * stride, bytes);
            CHECK_OK(spc_ops_combine(it->call.operator, &field, 1, left, right));
            memcpy(values + i * stride, left, bytes);
            free(left);
            free(right);
        }
    }
    if (nodes == 1) {
        unsigned char *alone = malloc(stride);
        memcpy(alone, values, bytes);
        spc_ops_alone(it->call.operator, &field, 1, alone);
        memcpy(values, alone, bytes);
        free(alone);
    }
    return values;
}

static inline void check_result(const collect_case_t *it, uint32_t rank, uint32_t size, const void *result) {
    const uint64_t element_bytes = spc_type_size(it->call.type);
    uint32_t nodes = size;
    uint64_t first = 0, count = it->call.count;
    if (it->call.operation == SPC_OPERATION_ARRAY_REDUCE && rank != it->call.root) {
        nodes = 0;
    } else if (is_prefix(it)) {
        nodes = it->call.operation == SPC_OPERATION_ARRAY_SCAN ? rank + 1 : rank;
    } else if (is_scattered(it)) {
        for (uint32_t i = 0; i < rank; i++) {
            first += it->counts[i];
        }
        count = it->counts[rank];
    }
    if (nodes == 0) {
        CHECK(result == NULL);
        return;
    }
    unsigned char *expected = expected_of(it, nodes);
    CHECK(result != NULL);
    if (memcmp(result, expected + first * element_bytes, count * element_bytes) != 0) {
        CHECK_FAIL("node %u of %u: operation %d, algorithm %d, operator %d, type %u, %llu elements, root %u: "
                   "another result",
                   rank, size, (int)it->call.operation, (int)it->call.algorithm, (int)it->call.operator,
                   it->call.type, (unsigned long long)it->call.count, it->call.root);
    }
    free(expected);
}

/* A node's part in a case. */
typedef struct collect_part {
    const collect_case_t *it;
    spc_comm_t *comm;
    spc_block_shared_t *input_block; /* NULL: the input is private */
    unsigned char *input;
    unsigned char *memory;
    spc_collect_t *collect;
} collect_part_t;

/* The input lies in a block if that is wanted and there is room. */
static inline collect_part_t part_open(spc_comm_t *comm, const collect_case_t *it, bool in_block) {
    collect_part_t part = {.it = it, .comm = comm};
    const uint64_t bytes = it->call.count * spc_type_size(it->call.type);
    if (in_block && spc_comm_take_block(comm, bytes, &part.input_block) == SPC_OK) {
        part.input = spc_block_payload(part.input_block);
    } else {
        part.input_block = NULL;
        part.input = malloc(bytes + 1);
    }
    fill_input(it, spc_comm_rank(comm), part.input);
    spc_collect_call_t call = it->call;
    call.input = part.input;
    part.memory = malloc(spc_collect_memory_bytes(comm, &call) + 1);
    call.memory = part.memory;
    CHECK_OK(spc_collect_create(comm, &call, &part.collect));
    return part;
}

static inline void part_close(collect_part_t *part) {
    spc_collect_destroy(part->collect);
    if (part->input_block != NULL) {
        spc_comm_release_block(part->comm, part->input_block);
    } else {
        free(part->input);
    }
    free(part->memory);
}

/* After it is over. */
static inline void part_check(collect_part_t *part) {
    spc_block_shared_t *block;
    const void *result = spc_collect_take_result(part->collect, &block);
    const uint32_t rank = spc_comm_rank(part->comm);
    check_result(part->it, rank, spc_comm_size(part->comm), result);
    unsigned char *same = malloc(part->it->call.count * spc_type_size(part->it->call.type) + 1);
    fill_input(part->it, rank, same);
    CHECK_MEM(part->input, same, part->it->call.count * spc_type_size(part->it->call.type));
    free(same);
    if (block != NULL) {
        CHECK_EQ_PTR(result, spc_block_payload(block));
        spc_comm_release_block(part->comm, block);
    }
}

/* All of an arena is free again: one block can have nearly all of it. */
static inline bool arena_is_free(spc_comm_t *comm) {
    spc_block_shared_t *block;
    const int status = spc_comm_take_block(comm, spc_comm_config(comm)->arena_bytes - UINT64_C(2048), &block);
    if (status == SPC_OK) {
        spc_comm_release_block(comm, block);
    }
    return status == SPC_OK;
}

#endif
