/* SPDX-License-Identifier: MIT */
#include "comm/spc_collect.h"

#include <stdlib.h>
#include <string.h>

#include "comm/spc_collect_private.h"

/* ---- choice of the algorithm */

/* Measured crossovers, in bytes of a node's input: docs/internals/collectives.md has the table. */
enum {
    SLICES_FROM_BYTES_A_NODE = 8192, /* against TREE: its two phases take as many turns as there are nodes */
    SLICES_FROM_BYTES = 65536, /* the latest crossover: the length of the reducer's scratch memory */
    SCATTERED_SLICES_FROM_BYTES = 16384, /* against FLAT, without TREE */
};

static bool may_combine_at_once(const spc_collect_call_t *call) {
    return call->operation == SPC_OPERATION_ARRAY_ALLREDUCE || call->operation == SPC_OPERATION_ARRAY_REDUCE;
}

static spc_collect_algorithm_t choose_default(uint32_t size, const spc_collect_call_t *call) {
    const uint64_t bytes = call->count * spc_type_size(call->type);
    if (!may_combine_at_once(call)) {
        return bytes < SCATTERED_SLICES_FROM_BYTES ? SPC_COLLECT_FLAT : SPC_COLLECT_SLICES;
    }
    uint64_t from_bytes = (uint64_t)size * SLICES_FROM_BYTES_A_NODE;
    from_bytes = from_bytes < SLICES_FROM_BYTES ? from_bytes : SLICES_FROM_BYTES;
    return bytes < from_bytes ? SPC_COLLECT_TREE : SPC_COLLECT_SLICES;
}

/* Blocks exist for the nodes of one box only. */
static spc_collect_algorithm_t without_blocks(const spc_collect_call_t *call) {
    if (call->algorithm == SPC_COLLECT_FLAT || !may_combine_at_once(call)) {
        return SPC_COLLECT_FLAT;
    }
    return SPC_COLLECT_TREE;
}

/* The algorithm that DEFAULT means for this call; any other stands for itself, but a single node uses FLAT. */
static spc_collect_algorithm_t choose(const spc_comm_t *comm, const spc_collect_call_t *call) {
    if (spc_comm_is_wide(comm)) {
        return without_blocks(call);
    }
    if (call->algorithm != SPC_COLLECT_DEFAULT && spc_comm_size(comm) > 1) {
        return call->algorithm;
    }
    return spc_comm_size(comm) == 1 ? SPC_COLLECT_FLAT : choose_default(spc_comm_size(comm), call);
}

/* ---- in one step */

bool spc_collect_is_short(const spc_comm_t *comm, const spc_collect_call_t *call) {
    const uint64_t bytes = call->count * spc_type_size(call->type);
    if (bytes == 0 || bytes % 8 != 0 || bytes > spc_comm_scratch_bytes(comm) || !may_combine_at_once(call)
        || call->algorithm != SPC_COLLECT_DEFAULT) {
        return false;
    }
    return spc_comm_size(comm) == 1 || choose(comm, call) == SPC_COLLECT_TREE;
}

void spc_collect_describe_short(const spc_collect_call_t *call, spc_signature_t *signature,
                                spc_field_t *field) {
    *field = (spc_field_t){call->type, (uint32_t)call->count};
    *signature = (spc_signature_t){
        .operation = (uint8_t)call->operation,
        .operator = (uint8_t)call->operator,
        .root = call->root,
        .type = (uint8_t)call->type,
        .field_count = 1,
        .length_bytes = call->count * spc_type_size(call->type),
        .layout = spc_layout_of(call->kind, call->hash, 0),
    };
}

/* ---- description of a call */

uint64_t spc_collect_memory_bytes(const spc_comm_t *comm, const spc_collect_call_t *call) {
    const spc_collect_algorithm_t algorithm = choose(comm, call);
    const uint64_t element_bytes = spc_type_size(call->type);
    if (!spc_collect_has_result(call, spc_comm_rank(comm))) {
        return 0;
    }
    if (call->operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER) {
        return call->counts[spc_comm_rank(comm)] * element_bytes;
    }
    const bool by_pieces = algorithm == SPC_COLLECT_TREE || algorithm == SPC_COLLECT_FLAT;
    return by_pieces ? call->count * element_bytes : 0;
}

static bool counts_add_up(const spc_collect_call_t *call, uint32_t size) {
    uint64_t left = call->count;
    for (uint32_t rank = 0; rank < size; rank++) {
        if (call->counts[rank] > left) {
            return false;
        }
        left -= call->counts[rank];
    }
    return left == 0;
}

static bool is_allowed(const spc_collect_call_t *call, uint32_t size) {
    const bool is_scattered = call->operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER;
    const bool is_number = call->type > SPC_TYPE_WIDE && spc_ops_has(call->operator, call->type);
    const bool only_whole = call->algorithm == SPC_COLLECT_TREE || call->algorithm == SPC_COLLECT_BINARY_SWAP;
    return spc_operation_is_of_arrays(call->operation)
           && (unsigned)call->algorithm < SPC_COLLECT_ALGORITHM_COUNT && is_number && call->root < size
           && call->count <= UINT64_MAX / 2 / spc_type_size(call->type)
           && (!only_whole || may_combine_at_once(call)) && (!is_scattered || counts_add_up(call, size));
}

/* ---- life */

static uint64_t hash_of(const spc_collect_call_t *call, uint32_t size) {
    uint64_t hash = spc_layout_mix(spc_layout_mix(call->hash, (uint64_t)call->algorithm), call->type);
    for (uint32_t rank = 0; call->operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER && rank < size; rank++) {
        hash = spc_layout_mix(hash, call->counts[rank]);
    }
    return hash;
}

/* A multiple of the grain: as many elements as fit a tile, and few enough that all partial results fit the work
 * memory. */
static uint64_t choose_tile(uint64_t element_bytes, uint32_t size) {
    uint64_t bytes = SPC_COLLECT_WORK_BYTES / spc_collect_partials(size);
    bytes = bytes < SPC_COLLECT_TILE_BYTES ? bytes : SPC_COLLECT_TILE_BYTES;
    return bytes / element_bytes / SPC_COLLECT_GRAIN * SPC_COLLECT_GRAIN;
}

static uint64_t first_of(const spc_collect_call_t *call, uint32_t rank) {
    uint64_t first = 0;
    for (uint32_t i = 0; call->operation == SPC_OPERATION_ARRAY_REDUCE_SCATTER && i < rank; i++) {
        first += call->counts[i];
    }
    return first;
}

static void fill(spc_collect_t *made, const spc_collect_call_t *call) {
    made->call = *call;
    made->call.algorithm = choose(made->comm, call);
    made->rank = spc_comm_rank(made->comm);
    made->element_bytes = spc_type_size(call->type);
    made->bytes = call->count * made->element_bytes;
    made->first = first_of(call, made->rank);
    made->tile = choose_tile(made->element_bytes, made->size);
    made->hash = hash_of(&made->call, made->size);
    made->signature = (spc_signature_t){
        .length_bytes = made->bytes,
        .root = call->root,
        .operation = (uint8_t)call->operation,
        .operator = (uint8_t)call->operator,
        .type = (uint8_t)call->type,
    };
}

int spc_collect_create(spc_comm_t *comm, const spc_collect_call_t *call, spc_collect_t **collect) {
    const uint32_t size = spc_comm_size(comm);
    if (!is_allowed(call, size)) {
        return SPC_EINVAL;
    }
    spc_collect_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->comm = comm;
    made->size = size;
    made->work = malloc(SPC_COLLECT_WORK_BYTES);
    made->sources = calloc(size + 1, sizeof(*made->sources)); /* two at least */
    made->targets = calloc(size, sizeof(*made->targets));
    made->places = calloc(size, sizeof(*made->places));
    if (made->work == NULL || made->sources == NULL || made->targets == NULL || made->places == NULL) {
        spc_collect_destroy(made);
        return SPC_ENOMEM;
    }
    fill(made, call);
    *collect = made;
    return SPC_OK;
}

void spc_collect_destroy(spc_collect_t *collect) {
    if (collect == NULL) {
        return;
    }
    if (collect->places != NULL) {
        spc_collect_drop(collect);
    }
    free(collect->work);
    free(collect->sources);
    free(collect->targets);
    free(collect->places);
    free(collect);
}

void spc_collect_use_no_blocks(spc_collect_t *collect, void *memory) {
    spc_collect_call_t *call = &collect->call;
    call->algorithm = may_combine_at_once(call) ? SPC_COLLECT_TREE : SPC_COLLECT_FLAT;
    call->memory = memory;
    collect->hash = hash_of(call, collect->size);
    collect->stage = SPC_COLLECT_START;
    collect->step = 0;
    collect->done = 0;
}

/* ---- running */

int spc_collect_run(spc_collect_t *collect, uint64_t deadline_ns) {
    if (collect->stage == SPC_COLLECT_OVER) {
        return SPC_EINVAL;
    }
    switch (collect->call.algorithm) {
    case SPC_COLLECT_TREE:
        return spc_collect_run_tree(collect, deadline_ns);
    case SPC_COLLECT_FLAT:
        return spc_collect_run_flat(collect, deadline_ns);
    case SPC_COLLECT_SLICES:
        return spc_collect_run_slices(collect, deadline_ns);
    default:
        return spc_collect_run_swap(collect, deadline_ns);
    }
}

void *spc_collect_take_result(spc_collect_t *collect, spc_block_shared_t **block) {
    void *result = collect->result; /* NULL until the call is over; then the block is the result, or gone */
    *block = NULL;
    if (result != NULL) {
        *block = collect->block;
        collect->block = NULL;
    }
    collect->result = NULL;
    return result;
}
