/* SPDX-License-Identifier: MIT */
/*
 * Binary swap (ACLMPL 4). Before round k the nodes stand in groups of 2^k ranks, each of which holds the combination of
 * its inputs, divided among its nodes by halving, bit 0 of the rank first. In round k two neighbouring groups become
 * one: node i and node i + 2^k hold the same part, each combines one half of it, and reads the other's there. So the
 * values are combined along the tree, whose right operand is the group of the higher ranks.
 *
 * Where the number of nodes is no power of two, the last group is smaller than its neighbour. It is folded into it: the
 * nodes of the left group keep their parts whole, find the other's in the hands of those that hold it there, and the
 * latter are idle from then on. A group with no neighbour waits for the next round.
 *
 * What a node holds lies in its block, where a round only writes what this node keeps, and its partner reads what it
 * does not. A phase of the communicator separates the rounds. In the last one each part that is finished goes to all
 * that want it: in the block of node p only p's own part is still read then, by p and its partner, who keep to theirs.
 */
#include <string.h>

#include "base/spc_atomic.h"
#include "collect/spc_collect_private.h"

typedef struct part {
    uint64_t first;
    uint64_t end;
} part_t;

/* What a node holds whose group has come together in `rounds` rounds, all of them exchanges. */
static part_t part_of(const spc_collect_t *collect, uint32_t rank, uint32_t rounds) {
    part_t part = {0, collect->call.count};
    for (uint32_t k = 0; k < rounds; k++) {
        uint64_t middle = part.first + spc_round_up((part.end - part.first) / 2, SPC_COLLECT_GRAIN);
        middle = middle < part.end ? middle : part.end;
        if ((rank >> k & 1) == 0) {
            part.end = middle;
        } else {
            part.first = middle;
        }
    }
    return part;
}

static uint32_t log2_below(uint32_t number) {
    uint32_t log = 0;
    while (number >> 1 >> log != 0) {
        log++;
    }
    return log;
}

/* What becomes of a node in a round. */
typedef struct turn {
    enum { WAITS, EXCHANGES, FOLDS } what; /* FOLDS: its own group takes over the neighbour's */
    uint32_t partner; /* who holds the other operand */
    bool is_left;
} turn_t;

static turn_t turn_of(uint32_t rank, uint32_t round, uint32_t size) {
    const uint32_t width = 1u << round;
    const uint32_t group = rank & ~(2 * width - 1); /* the pair of groups begins here */
    const uint32_t right = group + width;
    const bool is_left = rank < right;
    if (right >= size) {
        return (turn_t){.what = WAITS};
    }
    if (size - right >= width) {
        return (turn_t){.what = EXCHANGES, .partner = rank ^ width, .is_left = is_left};
    }
    if (!is_left) {
        return (turn_t){.what = WAITS};
    }
    const uint32_t holders = 1u << log2_below(size - right); /* in the group on the right */
    return (turn_t){.what = FOLDS, .partner = right + (rank & (holders - 1)), .is_left = true};
}

/* Where `rank` holds its part before `round`: once it has combined something in its block, else where its input is. */
static const void *held_by(const spc_collect_t *collect, uint32_t rank, uint32_t round, uint64_t element) {
    for (uint32_t earlier = 0; earlier < round; earlier++) {
        if (turn_of(rank, earlier, collect->size).what != WAITS) {
            return spc_collect_result_of(collect, rank, element);
        }
    }
    if (rank == collect->rank) {
        return (const unsigned char *)collect->call.input + element * collect->element_bytes;
    }
    return spc_collect_input_of(collect, rank, element);
}

static void deliver(const spc_collect_t *collect, part_t part) {
    const uint64_t bytes = (part.end - part.first) * collect->element_bytes;
    const void *from = spc_collect_result_of(collect, collect->rank, part.first);
    for (uint32_t rank = 0; rank < collect->size; rank++) {
        if (rank != collect->rank && spc_collect_has_result(&collect->call, rank) && bytes != 0) {
            memcpy(spc_collect_result_of(collect, rank, part.first), from, bytes);
        }
    }
}

/* A tile is delivered while it is in the cache. */
static void play(spc_collect_t *collect, uint32_t round, bool is_last) {
    const turn_t turn = turn_of(collect->rank, round, collect->size);
    if (turn.what == WAITS) {
        return;
    }
    const part_t part = part_of(collect, collect->rank, turn.what == EXCHANGES ? round + 1 : round);
    for (uint64_t at = part.first; at < part.end; at += collect->tile) {
        const uint64_t elements = part.end - at < collect->tile ? part.end - at : collect->tile;
        const void *mine = held_by(collect, collect->rank, round, at);
        const void *other = held_by(collect, turn.partner, round, at);
        collect->sources[0] = turn.is_left ? mine : other;
        collect->sources[1] = turn.is_left ? other : mine;
        spc_collect_combine(collect, 2, elements, spc_collect_result_of(collect, collect->rank, at));
        if (is_last) {
            deliver(collect, (part_t){at, at + elements});
        }
    }
}

/* Others need nothing of what this node keeps for itself in the first round. */
static void prepare(spc_collect_t *collect) {
    part_t kept = {collect->call.count, collect->call.count};
    if (turn_of(collect->rank, 0, collect->size).what == EXCHANGES) {
        kept = part_of(collect, collect->rank, 1);
    }
    spc_collect_prepare(collect, true, kept.first, kept.end);
    collect->stage = SPC_COLLECT_SHOWING;
}

/* The first round follows the phase in which all have shown their inputs, each other one a phase of its own, in which
 * all have played the one before. */
static int play_all(spc_collect_t *collect, uint64_t deadline_ns) {
    const uint32_t rounds = log2_below(2 * collect->size - 1); /* rounded up */
    while (collect->done < rounds) {
        if (collect->done != 0) {
            int status = spc_collect_phase(collect, NULL, NULL, 0, NULL, deadline_ns);
            if (status != SPC_OK) {
                return status;
            }
        }
        play(collect, (uint32_t)collect->done, collect->done + 1 == rounds);
        collect->done++;
    }
    collect->stage = SPC_COLLECT_ENDING;
    return SPC_OK;
}

int spc_collect_run_swap(spc_collect_t *collect, uint64_t deadline_ns) {
    int status = SPC_OK;
    if (collect->stage == SPC_COLLECT_START) {
        prepare(collect);
    }
    if (collect->stage == SPC_COLLECT_SHOWING) {
        status = spc_collect_show(collect, deadline_ns);
    }
    if (collect->stage == SPC_COLLECT_WORKING && status == SPC_OK) {
        status = play_all(collect, deadline_ns);
    }
    return status != SPC_OK ? status : spc_collect_end(collect, deadline_ns);
}
