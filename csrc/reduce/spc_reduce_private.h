/* SPDX-License-Identifier: MIT */
/*
 * spc_reduce_private: shared parts of the two files of the reducer; no other file includes it.
 *
 *   spc_reduce.c       layout, phases, counters, release
 *   spc_reduce_tree.c  combining a group's values
 */
#ifndef SPC_REDUCE_PRIVATE_H
#define SPC_REDUCE_PRIVATE_H

#include "reduce/spc_reduce.h"

#define SPC_REDUCE_LEVELS_MAX 16 /* fan-in 2, 65535 nodes */

typedef struct spc_reduce_level {
    uint32_t width; /* how many arrive at this level's groups */
    uint32_t first_counter;
} spc_reduce_level_t;

typedef struct spc_reduce_bank {
    spc_reduce_release_shared_t *release;
    spc_reduce_counter_shared_t *counters; /* of all levels, from the nodes upwards */
    spc_reduce_line_shared_t *lines;       /* by rank */
} spc_reduce_bank_t;

struct spc_reduce {
    spc_reduce_options_t options;
    uint64_t phase; /* the last one started */
    uint32_t half;  /* of the scratch, to be used next */
    uint32_t shift; /* log2 of the fan-in */
    uint32_t level_count;
    spc_reduce_level_t levels[SPC_REDUCE_LEVELS_MAX];
    spc_reduce_bank_t banks[SPC_BANKS];
    spc_signature_t known; /* a signature and its hash */
    uint64_t known_hash;
};

/* Arguments of one start; lives as long as that call. */
typedef struct spc_reduce_call {
    spc_signature_t signature;
    const spc_field_t *fields;
    uint64_t length_bytes;
    bool has_total; /* its value is the combined one already */
} spc_reduce_call_t;

static inline const spc_reduce_bank_t *spc_reduce_bank(const spc_reduce_t *reduce, uint64_t phase) {
    return &reduce->banks[phase % SPC_BANKS];
}

/* The nodes that arrive at a group: the fan-in, or the remainder for the last group of a level. */
static inline uint32_t spc_reduce_members(const spc_reduce_t *reduce, uint32_t level, uint32_t group) {
    const uint32_t rest = reduce->levels[level].width - (group << reduce->shift);
    const uint32_t fanin = 1u << reduce->shift;
    return rest < fanin ? rest : fanin;
}

/* Whether a value that is combined travels in the lines themselves. */
static inline bool spc_reduce_is_short(const spc_reduce_call_t *call) {
    return call->length_bytes <= SPC_LINE_VALUE_BYTES;
}

/* Combines the values of a group's members, all of which have arrived: into the line (or scratch) of its
 * first one, or at the top into the release. SPC_OK, SPC_EMISMATCH or SPC_EWIDE. */
int spc_reduce_combine_group(const spc_reduce_t *reduce, const spc_reduce_bank_t *bank,
                             const spc_reduce_call_t *call, uint32_t level, uint32_t group);

/* Takes the value of this node's line (or scratch) into the release as the combined one. */
void spc_reduce_release_total(const spc_reduce_t *reduce, const spc_reduce_bank_t *bank,
                              const spc_reduce_call_t *call);

#endif
