/* SPDX-License-Identifier: MIT */
/*
 * engine_program: what each node of a simulation does, one action after another.
 *
 * A program is a function of the node's rank and of the number of actions it has done, without memory of its own: a
 * million nodes need one counter each. Messages go to channels of the receiver; a receive takes one message from a
 * channel, whoever sent it.
 */
#ifndef SPCOMM_MODEL_ENGINE_PROGRAM_H
#define SPCOMM_MODEL_ENGINE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* Programs, by the numbers that simulate.py uses. */
enum {
    ENGINE_SERVER_BARRIER,   /* one message to the server, which answers when all have sent */
    ENGINE_SERVER_BROADCAST, /* node 0 sends to its server, which sends copies on */
    ENGINE_TREE_BARRIER,     /* binomial: gather to node 0, then broadcast */
    ENGINE_TREE_BROADCAST,   /* binomial */
    ENGINE_DISSEMINATION,    /* round k: send to rank + 2^k, receive from rank - 2^k */
    ENGINE_BINARY_SWAP,      /* exchange halves, then quarters, …; then back */
    ENGINE_RING,             /* each part of the array goes around twice */
    ENGINE_ALL_TO_ALL,       /* step i: send to rank + i, receive one */
    ENGINE_NEIGHBORS,        /* both neighbors along each dimension of a torus */
    ENGINE_UNBALANCED,       /* a share of all messages goes to node 0, the others to random nodes */
    ENGINE_MULTICAST,        /* node 0 sends along a tree of a given fanout */
    ENGINE_PROGRAMS
};

/* Kinds of messages. Servers pass on the first; they combine, answer and copy the others. */
enum { ENGINE_TO_NODE, ENGINE_ARRIVE, ENGINE_RELEASE, ENGINE_COPY };

enum {
    ENGINE_CHANNELS_MOST = 68, /* rounds of 32 bits, twice, and those of the nodes beyond a power of two */
    ENGINE_DIMENSIONS_MOST = 4
};

typedef enum { ENGINE_SEND, ENGINE_RECEIVE, ENGINE_END } engine_action_kind_t;

typedef struct {
    engine_action_kind_t kind;
    uint32_t peer; /* of a send; UINT32_MAX: the server of this node */
    uint8_t channel, message;
    bool combines; /* the receiver combines two values */
    uint32_t bytes;
} engine_action_t;

typedef struct {
    int program;
    uint32_t nodes, rounds, bytes, fanout, hot_percent;
    uint64_t seed;
    uint32_t log2;        /* rounds of dissemination: the least k with 2^k >= nodes */
    uint32_t pairs;       /* of binary swap: the greatest k with 2^k <= nodes */
    uint32_t dimensions;  /* of the torus, those of one node left out */
    uint32_t length[ENGINE_DIMENSIONS_MOST],
        stride[ENGINE_DIMENSIONS_MOST]; /* ranks differ by that, in each */
    uint32_t *expected;   /* unbalanced: how many messages each node will receive */
} engine_plan_t;

static inline uint64_t
engine_mix(uint64_t word) { /* the finalizer of SplitMix64 (Steele, Lea and Flood, 2014) */
    word += 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

/* A number below `limit`, the same whenever it is drawn for this place. */
static inline uint32_t engine_draw(uint64_t seed, uint64_t who, uint64_t count, uint32_t limit) {
    const uint64_t word = engine_mix(engine_mix(seed + who) + count);
    return (uint32_t)(((word >> 32) * limit) >> 32);
}

static inline uint32_t engine_unbalanced_dest(const engine_plan_t *plan, uint32_t rank, uint32_t number) {
    const uint64_t place = (uint64_t)number * 2;
    if (engine_draw(~plan->seed, rank, place, 100) < plan->hot_percent) {
        return 0;
    }
    return engine_draw(~plan->seed, rank, place + 1, plan->nodes);
}

static inline uint32_t engine_least(uint32_t left, uint32_t right) {
    return left < right ? left : right;
}

/* In the binomial tree of 0, 1, 2, …: node r has the children r + 2^k, for k below this number. */
static inline uint32_t engine_children(uint32_t rank, uint32_t nodes) {
    const uint32_t left = nodes - rank; /* 2^k < left: the least k without a child is ceil(log2(left)) */
    const uint32_t there = left > 1 ? 32 - (uint32_t)__builtin_clz(left - 1) : 0;
    return rank ? engine_least((uint32_t)__builtin_ctz(rank), there) : there;
}

static inline uint32_t engine_tree_parent(uint32_t rank) {
    return rank & (rank - 1);
}

static inline engine_action_t engine_send(uint32_t peer, uint32_t channel, uint32_t bytes, int message) {
    return (engine_action_t){ENGINE_SEND, peer, (uint8_t)channel, (uint8_t)message, false, bytes};
}

static inline engine_action_t engine_receive(uint32_t channel, uint32_t bytes, bool combines) {
    return (engine_action_t){ENGINE_RECEIVE, 0, (uint8_t)channel, 0, combines, bytes};
}

static inline engine_action_t engine_to_server(uint32_t bytes, int message) {
    return engine_send(UINT32_MAX, 0, bytes, message);
}

static inline engine_action_t engine_end(void) {
    return (engine_action_t){.kind = ENGINE_END};
}

/* Part `i` of `bytes`, cut into `parts` that differ by at most one. */
static inline uint32_t engine_part(uint32_t bytes, uint32_t parts, uint32_t i) {
    return bytes / parts + (i < bytes % parts);
}

static inline engine_action_t engine_tree_barrier(const engine_plan_t *plan, uint32_t rank, uint32_t done) {
    const uint32_t children = engine_children(rank, plan->nodes), own = rank ? 2 : 0;
    const uint32_t length = 2 * children + own;
    if (length == 0 || done / length >= plan->rounds) {
        return engine_end();
    }
    const uint32_t at = done % length;
    if (at < children) {
        return engine_receive(0, plan->bytes, true);
    }
    if (at < children + own) {
        return at == children ? engine_send(engine_tree_parent(rank), 0, plan->bytes, ENGINE_TO_NODE)
                              : engine_receive(1, plan->bytes, false);
    }
    return engine_send(rank + (1u << (length - 1 - at)), 1, plan->bytes, ENGINE_TO_NODE);
}

static inline engine_action_t engine_tree_broadcast(const engine_plan_t *plan, uint32_t rank, uint32_t done) {
    const uint32_t children = engine_children(rank, plan->nodes), own = rank ? 1 : 0;
    const uint32_t length = children + own;
    if (length == 0 || done / length >= plan->rounds) {
        return engine_end();
    }
    const uint32_t at = done % length;
    return at < own ? engine_receive(0, plan->bytes, false)
                    : engine_send(rank + (1u << (length - 1 - at)), 0, plan->bytes, ENGINE_TO_NODE);
}

static inline engine_action_t engine_multicast(const engine_plan_t *plan, uint32_t rank, uint32_t done) {
    const uint64_t first = (uint64_t)rank * plan->fanout + 1;
    const uint32_t children =
        first < plan->nodes ? engine_least(plan->fanout, plan->nodes - (uint32_t)first) : 0;
    const uint32_t own = rank ? 1 : 0, length = children + own;
    if (length == 0 || done / length >= plan->rounds) {
        return engine_end();
    }
    const uint32_t at = done % length;
    return at < own ? engine_receive(0, plan->bytes, false)
                    : engine_send((uint32_t)first + at - own, 0, plan->bytes, ENGINE_TO_NODE);
}

static inline engine_action_t engine_dissemination(const engine_plan_t *plan, uint32_t rank, uint32_t done) {
    const uint32_t length = 2 * plan->log2;
    if (length == 0 || done / length >= plan->rounds) {
        return engine_end();
    }
    const uint32_t at = done % length, round = at / 2;
    if (at % 2) {
        return engine_receive(round, plan->bytes, false);
    }
    const uint32_t peer = (uint32_t)((rank + (1ull << round)) % plan->nodes);
    return engine_send(peer, round, plan->bytes, ENGINE_TO_NODE);
}

/* Nodes beyond the power of two give their values to a partner first, and take the result last. */
static inline engine_action_t engine_binary_swap(const engine_plan_t *plan, uint32_t rank, uint32_t done) {
    const uint32_t inside = 1u << plan->pairs, beyond = plan->nodes - inside;
    const uint32_t outer = 2 * plan->pairs; /* this channel and the next are those of the nodes beyond */
    if (rank >= inside) {
        if (done / 2 >= plan->rounds) {
            return engine_end();
        }
        return done % 2 ? engine_receive(outer + 1, plan->bytes, false)
                        : engine_send(rank - inside, outer, plan->bytes, ENGINE_TO_NODE);
    }
    const uint32_t own = rank < beyond ? 1 : 0, length = 4 * plan->pairs + 2 * own;
    if (length == 0 || done / length >= plan->rounds) {
        return engine_end();
    }
    uint32_t at = done % length;
    if (own && at == 0) {
        return engine_receive(outer, plan->bytes, true);
    }
    if (own && at == length - 1) {
        return engine_send(rank + inside, outer + 1, plan->bytes, ENGINE_TO_NODE);
    }
    at -= own;
    const uint32_t step = at / 2;
    const bool back = step >= plan->pairs;
    const uint32_t round = back ? 2 * plan->pairs - 1 - step : step;
    const uint32_t bytes = plan->bytes >> (round + 1);
    return at % 2 ? engine_receive(step, bytes, !back)
                  : engine_send(rank ^ (1u << round), step, bytes, ENGINE_TO_NODE);
}

static inline engine_action_t engine_ring(const engine_plan_t *plan, uint32_t rank, uint32_t done) {
    const uint32_t steps = 2 * (plan->nodes - 1), length = 2 * steps;
    if (length == 0 || done / length >= plan->rounds) {
        return engine_end();
    }
    const uint32_t at = done % length, step = at / 2, nodes = plan->nodes;
    if (at % 2) { /* the left neighbor's part of this step */
        const uint32_t part = (rank + 2 * nodes - 1 - step % nodes) % nodes;
        return engine_receive(0, engine_part(plan->bytes, nodes, part), step < nodes - 1);
    }
    const uint32_t part = (rank + nodes - step % nodes) % nodes;
    return engine_send((rank + 1) % nodes, 0, engine_part(plan->bytes, nodes, part), ENGINE_TO_NODE);
}

static inline engine_action_t engine_all_to_all(const engine_plan_t *plan, uint32_t rank, uint32_t done) {
    const uint32_t length = 2 * (plan->nodes - 1);
    if (length == 0 || done / length >= plan->rounds) {
        return engine_end();
    }
    const uint32_t at = done % length;
    return at % 2 ? engine_receive(0, plan->bytes, false)
                  : engine_send((rank + 1 + at / 2) % plan->nodes, 0, plan->bytes, ENGINE_TO_NODE);
}

static inline engine_action_t engine_neighbors(const engine_plan_t *plan, uint32_t rank, uint32_t done) {
    const uint32_t ways = 2 * plan->dimensions;
    if (ways == 0 || done / (2 * ways) >= plan->rounds) {
        return engine_end();
    }
    const uint32_t at = done % (2 * ways);
    if (at >= ways) {
        return engine_receive(at - ways, plan->bytes, false);
    }
    const uint32_t stride = plan->stride[at / 2], last = plan->length[at / 2] - 1;
    const uint32_t place = rank / stride % (last + 1);
    uint32_t peer = at % 2 ? rank - stride : rank + stride;
    if (place == (at % 2 ? 0 : last)) { /* around the ring of this dimension */
        peer = at % 2 ? rank + stride * last : rank - stride * last;
    }
    return engine_send(peer, at, plan->bytes, ENGINE_TO_NODE);
}

static inline engine_action_t engine_unbalanced(const engine_plan_t *plan, uint32_t rank, uint32_t done) {
    if (done < plan->rounds) {
        return engine_send(engine_unbalanced_dest(plan, rank, done), 0, plan->bytes, ENGINE_TO_NODE);
    }
    return done - plan->rounds < plan->expected[rank] ? engine_receive(0, plan->bytes, false) : engine_end();
}

static inline engine_action_t engine_server_barrier(const engine_plan_t *plan, uint32_t done) {
    if (done / 2 >= plan->rounds) {
        return engine_end();
    }
    return done % 2 ? engine_receive(0, plan->bytes, false) : engine_to_server(plan->bytes, ENGINE_ARRIVE);
}

static inline engine_action_t engine_server_broadcast(const engine_plan_t *plan, uint32_t rank,
                                                      uint32_t done) {
    if (plan->nodes == 1 || done >= plan->rounds) {
        return engine_end();
    }
    return rank ? engine_receive(0, plan->bytes, false) : engine_to_server(plan->bytes, ENGINE_COPY);
}

/* The next action of a node that has done so many. */
static inline engine_action_t engine_next(const engine_plan_t *plan, uint32_t rank, uint32_t done) {
    switch (plan->program) {
    case ENGINE_SERVER_BARRIER:
        return engine_server_barrier(plan, done);
    case ENGINE_SERVER_BROADCAST:
        return engine_server_broadcast(plan, rank, done);
    case ENGINE_TREE_BARRIER:
        return engine_tree_barrier(plan, rank, done);
    case ENGINE_TREE_BROADCAST:
        return engine_tree_broadcast(plan, rank, done);
    case ENGINE_DISSEMINATION:
        return engine_dissemination(plan, rank, done);
    case ENGINE_BINARY_SWAP:
        return engine_binary_swap(plan, rank, done);
    case ENGINE_RING:
        return engine_ring(plan, rank, done);
    case ENGINE_ALL_TO_ALL:
        return engine_all_to_all(plan, rank, done);
    case ENGINE_NEIGHBORS:
        return engine_neighbors(plan, rank, done);
    case ENGINE_UNBALANCED:
        return engine_unbalanced(plan, rank, done);
    default:
        return engine_multicast(plan, rank, done);
    }
}

/* The number of channels that its messages need. */
static inline uint32_t engine_channels(const engine_plan_t *plan) {
    switch (plan->program) {
    case ENGINE_DISSEMINATION:
        return plan->log2 ? plan->log2 : 1;
    case ENGINE_BINARY_SWAP:
        return 2 * plan->pairs + 2;
    case ENGINE_TREE_BARRIER:
        return 2;
    case ENGINE_NEIGHBORS:
        return plan->dimensions ? 2 * plan->dimensions : 1;
    default:
        return 1;
    }
}

#endif
