/* SPDX-License-Identifier: MIT */
/*
 * spc_config: the numbers that all nodes of a box must agree on. The launcher chooses them, once; they lie in the
 * segment's first page, and no process writes them afterwards.
 */
#ifndef SPC_CONFIG_H
#define SPC_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define SPC_NODES_MAX 1024
#define SPC_BOXES_MAX 64
#define SPC_TRACE_EVENTS_MAX (UINT64_C(1) << 24)

/* X(name, minimum, maximum, default): numbers that a user may set, in slots, bytes or nodes. */
#define SPC_CONFIG_LIMITS(X)                                    \
    X(slots, 1, 4096, 32)                                       \
    X(ring_bytes, 1024, UINT64_C(1) << 32, UINT64_C(1) << 20)   \
    X(arena_bytes, 0, UINT64_C(1) << 40, UINT64_C(256) << 20)   \
    X(scratch_bytes, 256, UINT64_C(1) << 24, UINT64_C(1) << 16) \
    X(queue_limit_bytes, 1024, UINT64_C(1) << 44, UINT64_C(0))  \
    X(fanin, 2, 64, 8)

enum { /* a mask */
       SPC_PERTURB_SCHEDULE = 1, /* delays, and arrivals in another order */
       SPC_PERTURB_RENDEZVOUS = 2,
};

typedef struct spc_config {
    uint32_t nodes;             /* in the whole run, in all boxes */
    uint32_t features;          /* spc_platform_features, the same for all nodes */
    uint32_t slots;             /* announcements per pair of nodes */
    uint32_t fanin;             /* nodes per group of the reducer, where it is a tree */
    uint64_t ring_bytes;        /* per sender; divided into 4 to 32 chunks */
    uint64_t arena_bytes;       /* per sender; 0: no arena */
    uint64_t scratch_bytes;     /* per node and half, for long reductions */
    uint64_t queue_limit_bytes; /* for messages sent and not received: spc_config_share_bytes */
    uint32_t shared_cores; /* 1: more users of cores than cores */
    uint32_t sleep_at_once; /* 1: waiting never polls (for comparison) */
    uint64_t made_ns; /* origin of the run's time, the same in all boxes; 0: when the segment is made */
    uint64_t perturb_seed; /* of the schedule perturber: spc_comm_perturb.h */
    /* Sends of this many bytes or more wait for their receivers; if `perturb` has it. */
    uint64_t rendezvous_bytes;
    uint32_t perturb; /* SPC_PERTURB_… or 0 */
    uint32_t prefault; /* 1: a node touches its ring and its arena before it begins */
    uint32_t boxes; /* of the run; each has a segment, laid out for all nodes (SPC_REGION_PLACE) */
    uint32_t box; /* which of them this one is */
    uint64_t trace_events; /* events that a node keeps, the last ones; 0: there is no trace */
    uint32_t counts_times; /* 1: each node counts its times, on its board */
} spc_config_t;

_Static_assert(sizeof(spc_config_t) == 112, "spc_config_t lies in shared memory");

/* Replaces zeros by defaults that fit this machine (memory limit, room for a segment that is not sparse), rounds
 * sizes, makes fanin a power of two (>= nodes: flat), and sets shared_cores if there are more nodes than cores (a 1
 * given stays). `features` must be set before. An arena of less than a page means none. A second call changes
 * nothing. SPC_EINVAL if a number is outside its limits. */
int spc_config_complete(spc_config_t *config);

/* The bytes that each node keeps for each sender without counting them against that sender's limit: a part of its own
 * limit, but never less than a few ordinary messages. Further bytes are lent: they count against the sender's limit,
 * together with the messages that wait at the sender. So all nodes together keep at most twice the limit for each
 * node. */
uint64_t spc_config_share_bytes(const spc_config_t *config);

#endif
