/* SPDX-License-Identifier: MIT */
/*
 * Slices: node i combines the i-th part of all inputs, tile by tile, and writes it wherever it is wanted. Two phases:
 * all inputs are there, all results are there.
 */
#include <string.h>

#include "base/spc_atomic.h"
#include "collect/spc_collect_private.h"

typedef struct slice {
    uint64_t first;
    uint64_t end;
} slice_t;

static uint64_t boundary(const spc_collect_t *collect, uint32_t rank) {
    const uint64_t grains = spc_round_up(collect->call.count, SPC_COLLECT_GRAIN) / SPC_COLLECT_GRAIN;
    const uint64_t at = grains / collect->size * rank + grains % collect->size * rank / collect->size;
    return rank == collect->size ? collect->call.count : at * SPC_COLLECT_GRAIN;
}

static slice_t own_slice(const spc_collect_t *collect) {
    if (collect->call.operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER) {
        return (slice_t){collect->first, collect->first + collect->call.counts[collect->rank]};
    }
    return (slice_t){boundary(collect, collect->rank), boundary(collect, collect->rank + 1)};
}

/* What this node reads of itself is not copied. */
static void find_sources(const spc_collect_t *collect, uint64_t element) {
    for (uint32_t rank = 0; rank < collect->size; rank++) {
        collect->sources[rank] = spc_collect_input_of(collect, rank, element);
    }
    collect->sources[collect->rank] =
        (const unsigned char *)collect->call.input + element * collect->element_bytes;
}

static void combine_tile(spc_collect_t *collect, uint64_t element, uint64_t elements) {
    const uint64_t bytes = elements * collect->element_bytes;
    void *to = (unsigned char *)collect->call.memory + (element - collect->first) * collect->element_bytes;
    uint32_t made_for = collect->rank;
    if (collect->call.operation == SPC_OPERATION_ARRAY_REDUCE) {
        made_for = collect->call.root;
    }
    if (collect->places[made_for].result != 0) {
        to = spc_collect_result_of(collect, made_for, element);
    }
    spc_collect_combine(collect, collect->size, elements, to);
    for (uint32_t rank = 0; rank < collect->size; rank++) {
        if (rank != made_for && collect->places[rank].result != 0) {
            memcpy(spc_collect_result_of(collect, rank, element), to, bytes);
        }
    }
}

static void scan_tile(spc_collect_t *collect, uint64_t element, uint64_t elements) {
    for (uint32_t rank = 0; rank < collect->size; rank++) {
        const bool wanted = collect->places[rank].result != 0;
        collect->targets[rank] = wanted ? spc_collect_result_of(collect, rank, element) : NULL;
    }
    spc_collect_prefixes(collect, elements);
}

static void work(spc_collect_t *collect) {
    const slice_t slice = own_slice(collect);
    for (uint64_t at = slice.first; at < slice.end; at += collect->tile) {
        const uint64_t elements = slice.end - at < collect->tile ? slice.end - at : collect->tile;
        find_sources(collect, at);
        (spc_collect_is_prefix(&collect->call) ? scan_tile : combine_tile)(collect, at, elements);
    }
    if (collect->call.operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER) {
        collect->result = collect->call.memory;
    }
}

int spc_collect_run_slices(spc_collect_t *collect, uint64_t deadline_ns) {
    int status = SPC_OK;
    if (collect->stage == SPC_COLLECT_START) {
        const slice_t slice = own_slice(collect);
        const bool is_scattered = collect->call.operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER;
        spc_collect_prepare(collect, !is_scattered && spc_collect_has_result(&collect->call, collect->rank),
                            slice.first, slice.end);
        collect->stage = SPC_COLLECT_SHOWING;
    }
    if (collect->stage == SPC_COLLECT_SHOWING) {
        status = spc_collect_show(collect, deadline_ns);
    }
    if (collect->stage == SPC_COLLECT_WORKING && status == SPC_OK) {
        work(collect);
        collect->stage = SPC_COLLECT_ENDING;
    }
    return status != SPC_OK ? status : spc_collect_end(collect, deadline_ns);
}
