/* SPDX-License-Identifier: MIT */
#include "segment/spc_config.h"

#include "base/spc_atomic.h"
#include "base/spc_error.h"
#include "base/spc_platform.h"

enum {
    SPC_FLAT_NODES = 8,   /* up to here one group is faster than a tree */
    SPC_PAGE = 4096,
    SPC_NODE_BYTES = 8192, /* status, event, reducer of one node: a generous guess */
    SPC_ROW_BYTES = 192,   /* a mailbox row beside its slots, likewise */
    SPC_SHARE_BYTES_MIN = 65536,
};

/* A node's part of the value travels in one frame. */
#define SPC_SCRATCH_BETWEEN_BOXES UINT64_C(65536)

/* Memory that is reserved at once should not be memory that hardly any run touches. */
#define SPC_RESERVED_ARENA_BYTES (UINT64_C(8) << 20)
#define SPC_LEAST_ARENA_BYTES (UINT64_C(1) << 20)

static bool is_allowed(uint64_t value, uint64_t minimum, uint64_t maximum) {
    return value == 0 || (value >= minimum && value <= maximum);
}

static uint32_t power_of_two(uint32_t at_least) {
    uint32_t power = 2;
    while (power < at_least) {
        power *= 2;
    }
    return power;
}

static int check_limits(const spc_config_t *config) {
    if (config->nodes < 1 || config->nodes > SPC_NODES_MAX || config->boxes > SPC_BOXES_MAX
        || config->boxes > config->nodes || (config->box != 0 && config->box >= config->boxes)
        || config->trace_events > SPC_TRACE_EVENTS_MAX) {
        return SPC_EINVAL;
    }
    spc_config_t asked = *config;
    if (asked.fanin == power_of_two(asked.nodes)) {
        asked.fanin = 0; /* flat, as chosen by an earlier call: allowed beyond the limit */
    }
#define SPC_CONFIG_CHECK(name, minimum, maximum, standard) \
    if (!is_allowed(asked.name, minimum, maximum)) {       \
        return SPC_EINVAL;                                 \
    }
    SPC_CONFIG_LIMITS(SPC_CONFIG_CHECK)
#undef SPC_CONFIG_CHECK
    return SPC_OK;
}

/* Approximate size of a segment of this configuration. */
static uint64_t estimate_bytes(const spc_config_t *config) {
    uint64_t nodes = config->nodes;
    uint64_t row = (uint64_t)config->slots * SPC_CACHE_LINE + SPC_ROW_BYTES;
    uint64_t buffers = config->ring_bytes + config->arena_bytes + 2 * config->scratch_bytes;
    return (nodes + 1) * (buffers + SPC_NODE_BYTES + (nodes + 1) * row); /* one more: the gateway's */
}

/* The bytes that the private queues of all nodes may take together: each node's limit, and all the shares of its
 * inbox. */
static uint64_t queues_bytes(const spc_config_t *config) {
    return 2 * (uint64_t)config->nodes * config->queue_limit_bytes;
}

/* Shrinks the next number that the user left open: first those that only speed up large messages. Communicators lie in
 * arenas, so that one goes only when nothing else is left to shrink. */
static bool shrink(spc_config_t *config, const spc_config_t *asked) {
    if (asked->arena_bytes == 0 && config->arena_bytes > SPC_LEAST_ARENA_BYTES) {
        config->arena_bytes /= 2;
    } else if (asked->ring_bytes == 0 && config->ring_bytes > UINT64_C(65536)) {
        config->ring_bytes /= 2;
    } else if (asked->scratch_bytes == 0 && config->scratch_bytes > 4096) {
        config->scratch_bytes /= 2;
    } else if (asked->slots == 0 && config->slots > 4) {
        config->slots /= 2;
    } else if (asked->ring_bytes == 0 && config->ring_bytes > 4096) {
        config->ring_bytes /= 2;
    } else if (asked->arena_bytes == 0 && config->arena_bytes > 0) {
        config->arena_bytes = 0;
    } else {
        return false;
    }
    return true;
}

/* Segment and queues take at most a quarter of the memory, the segment half of that if it can be chosen. Where all of
 * it is reserved at once, the limit is a sixteenth, and an eighth of the mount stays free for other users. The segment
 * is a file, so it also stays an eighth below the limit of those: its size is an estimate. Numbers that the user set
 * are not reduced. */
static void fit_memory(spc_config_t *config, const spc_config_t *asked, uint64_t memory_bytes) {
    uint64_t budget_bytes = memory_bytes / 8;
    if (asked->queue_limit_bytes != 0 && queues_bytes(asked) > budget_bytes) {
        uint64_t queued_bytes = queues_bytes(asked);
        budget_bytes = queued_bytes < memory_bytes / 4 ? memory_bytes / 4 - queued_bytes : 0;
    }
    if (!spc_platform_memory_is_sparse(config->features)) {
        uint64_t room_bytes = spc_platform_memory_room();
        room_bytes -= room_bytes / 8;
        budget_bytes = room_bytes < memory_bytes / 16 ? room_bytes : memory_bytes / 16;
        if (asked->arena_bytes == 0 && config->arena_bytes > SPC_RESERVED_ARENA_BYTES) {
            config->arena_bytes = SPC_RESERVED_ARENA_BYTES;
        }
    }
    uint64_t file_bytes = spc_platform_file_limit();
    file_bytes -= file_bytes / 8;
    budget_bytes = file_bytes < budget_bytes ? file_bytes : budget_bytes;
    while (estimate_bytes(config) > budget_bytes && shrink(config, asked)) {
    }
}

/* The rest of the quarter after the segment, divided among the queues of all nodes. */
static uint64_t default_queue_limit(const spc_config_t *config, uint64_t memory_bytes) {
    uint64_t budget_bytes = memory_bytes / 4;
    uint64_t taken_bytes = estimate_bytes(config);
    uint64_t left_bytes = taken_bytes < budget_bytes ? budget_bytes - taken_bytes : 0;
    uint64_t limit_bytes = left_bytes / (2 * (uint64_t)config->nodes);
    uint64_t lowest_bytes = UINT64_C(1) << 18;
    uint64_t highest_bytes = UINT64_C(1) << 44;
    limit_bytes = limit_bytes > lowest_bytes ? limit_bytes : lowest_bytes;
    return limit_bytes < highest_bytes ? limit_bytes : highest_bytes;
}

/* Flat where context switches dominate the cost, or with few nodes; always a power of two. */
static uint32_t choose_fanin(const spc_config_t *asked, bool shared_cores, uint32_t standard) {
    if (asked->boxes > 1) {
        return power_of_two(
            asked->nodes); /* nodes' own values stay where the gateway reads them: spc_reduce.h */
    }
    if (asked->fanin != 0) {
        return power_of_two(asked->fanin);
    }
    bool flat = asked->nodes <= SPC_FLAT_NODES || shared_cores;
    return flat ? power_of_two(asked->nodes) : standard;
}

int spc_config_complete(spc_config_t *config) {
    int status = check_limits(config);
    if (status != SPC_OK) {
        return status;
    }
    config->boxes = config->boxes != 0 ? config->boxes : 1;
    spc_config_t asked = *config;
    uint64_t memory_bytes = spc_platform_memory_limit();
#define SPC_CONFIG_DEFAULT(name, minimum, maximum, standard) \
    if (config->name == 0) {                                 \
        config->name = standard;                             \
    }
    SPC_CONFIG_LIMITS(SPC_CONFIG_DEFAULT)
#undef SPC_CONFIG_DEFAULT
    if (config->shared_cores == 0 && (double)config->nodes > spc_platform_cores()) {
        config->shared_cores = 1;
    }
    if (config->boxes > 1 && config->scratch_bytes > SPC_SCRATCH_BETWEEN_BOXES) {
        config->scratch_bytes = SPC_SCRATCH_BETWEEN_BOXES;
    }
    config->fanin = choose_fanin(&asked, config->shared_cores != 0, config->fanin);
    fit_memory(config, &asked, memory_bytes);
    if (config->queue_limit_bytes == 0) {
        config->queue_limit_bytes = default_queue_limit(config, memory_bytes);
    }
    config->ring_bytes = spc_round_up(config->ring_bytes, 8 * SPC_CACHE_LINE); /* eight chunks */
    config->scratch_bytes = spc_round_up(config->scratch_bytes, SPC_CACHE_LINE);
    config->arena_bytes -= config->arena_bytes % SPC_PAGE;
    return SPC_OK;
}

uint64_t spc_config_share_bytes(const spc_config_t *config) {
    const uint64_t limit_bytes = config->queue_limit_bytes;
    const uint64_t share_bytes = limit_bytes / config->nodes;
    const uint64_t least_bytes = limit_bytes < SPC_SHARE_BYTES_MIN ? limit_bytes : SPC_SHARE_BYTES_MIN;
    return share_bytes > least_bytes ? share_bytes : least_bytes;
}
