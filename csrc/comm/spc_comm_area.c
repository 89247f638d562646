/* SPDX-License-Identifier: MIT */
#include "comm/spc_comm_private.h"

/* A split communicator's scratch: large enough that long reductions are not cut into too many steps, and small enough
 * that its block finds room in the arena beside large messages, and several fit in a small arena. */
#define SPLIT_SCRATCH_MOST UINT64_C(8192)
#define SPLIT_SCRATCH_LEAST UINT64_C(256)
#define SPLIT_ARENA_SHARE 16

spc_comm_area_t spc_comm_area_of_run(const spc_segment_t *segment) {
    return (spc_comm_area_t){
        .reduce = spc_segment_part(segment, SPC_REGION_REDUCE, 0),
        .scratch = spc_segment_part(segment, SPC_REGION_SCRATCH, 0),
        .scratch_stride = spc_segment_stride(segment, SPC_REGION_SCRATCH),
        .scratch_bytes = segment->config->scratch_bytes,
        .coordinated = spc_segment_part(segment, SPC_REGION_COORDINATED, 0),
    };
}

static uint64_t split_scratch_bytes(const spc_config_t *config, uint32_t size) {
    uint64_t share = config->arena_bytes / SPLIT_ARENA_SHARE / (2 * size) / SPC_CACHE_LINE * SPC_CACHE_LINE;
    uint64_t most = config->scratch_bytes < SPLIT_SCRATCH_MOST ? config->scratch_bytes : SPLIT_SCRATCH_MOST;
    share = share > SPLIT_SCRATCH_LEAST ? share : SPLIT_SCRATCH_LEAST;
    return share < most ? share : most;
}

/* Two halves, and in a run of several boxes the data that the gateway needs about them. */
static uint64_t scratch_stride(const spc_config_t *config, uint64_t half_bytes) {
    return 2 * half_bytes + (config->boxes > 1 ? SPC_REDUCE_FIELDS_BYTES : 0);
}

uint64_t spc_comm_scratch_stride(const spc_config_t *config) {
    return scratch_stride(config, config->scratch_bytes);
}

/* [reducer][scratch by rank][coordinated][left by rank], each at a multiple of two cache lines. */
static uint64_t reduce_bytes(const spc_config_t *config, uint32_t size) {
    return spc_round_up(spc_reduce_bytes(size, config->fanin), 2 * SPC_CACHE_LINE);
}

static uint64_t scratch_bytes(const spc_config_t *config, uint32_t size) {
    return spc_round_up(scratch_stride(config, split_scratch_bytes(config, size)) * size, 2 * SPC_CACHE_LINE);
}

static uint64_t coordinated_bytes(uint32_t size) {
    return spc_round_up(spc_coordinated_bytes(size), 2 * SPC_CACHE_LINE);
}

uint64_t spc_comm_area_bytes(const spc_config_t *config, uint32_t size) {
    return reduce_bytes(config, size) + scratch_bytes(config, size) + coordinated_bytes(size)
           + spc_round_up(size, SPC_CACHE_LINE);
}

spc_comm_area_t spc_comm_area_in(const spc_config_t *config, uint32_t size, unsigned char *memory) {
    unsigned char *scratch = memory + reduce_bytes(config, size);
    unsigned char *coordinated = scratch + scratch_bytes(config, size);
    return (spc_comm_area_t){
        .reduce = memory,
        .scratch = scratch,
        .scratch_stride = scratch_stride(config, split_scratch_bytes(config, size)),
        .scratch_bytes = split_scratch_bytes(config, size),
        .coordinated = coordinated,
        .left = (_Atomic uint8_t *)(coordinated + coordinated_bytes(size)),
    };
}

static uint32_t count_here(const spc_comm_t *comm) {
    uint32_t here = 0;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        here += spc_comm_is_here(comm, rank);
    }
    return here;
}

int spc_comm_attach(spc_comm_t *comm) {
    const spc_node_t *node = comm->node;
    comm->here = comm->config->boxes == 1 ? comm->size : count_here(comm);
    spc_reduce_options_t options = {
        .shared = comm->area.reduce,
        .base = node->segment.base,
        .scratch = comm->area.scratch + comm->rank * comm->area.scratch_stride,
        .scratch_bytes = comm->area.scratch_bytes,
        .rank = comm->rank,
        .nodes = comm->size,
        .fanin = comm->config->fanin,
        .events = node->events,
        .members = comm->members,
        .features = comm->config->features,
        .here = comm->here == comm->size ? 0 : comm->here,
        .gateway = comm->here == comm->size ? NULL : &node->events[node->size],
    };
    int status = spc_reduce_create(&options, &comm->reduce);
    if (status == SPC_OK) {
        spc_fuzzy_init(&comm->fuzzy, comm->reduce);
        status =
            spc_coordinated_create(comm->area.coordinated, comm->rank, comm->size, 0, &comm->cycle.account);
    }
    if (comm->config->perturb != 0) {
        atomic_fetch_or_explicit(&comm->gate, SPC_GATE_PERTURBED,
                                 memory_order_relaxed); /* no node calls yet */
    }
    return status;
}

int spc_comm_count_collectives(const spc_segment_t *segment, uint64_t *counts) {
    spc_comm_area_t area = spc_comm_area_of_run(segment);
    spc_reduce_options_t options = {
        .shared = area.reduce,
        .base = segment->base,
        .scratch = area.scratch,
        .scratch_bytes = area.scratch_bytes,
        .nodes = segment->config->nodes,
        .fanin = segment->config->fanin,
    };
    spc_reduce_t *reduce;
    int status = spc_reduce_create(&options, &reduce);
    if (status != SPC_OK) {
        return status;
    }
    for (uint32_t rank = 0; rank < options.nodes; rank++) {
        counts[rank] = spc_reduce_last(reduce, rank);
    }
    spc_reduce_destroy(reduce);
    return SPC_OK;
}
