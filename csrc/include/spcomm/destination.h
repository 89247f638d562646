/* SPDX-License-Identifier: MIT */
/*
 * destination: a set of nodes to send to, as a bit set over the ranks 0 to 1023 (SpeedesComm 2.3, SpDestination).
 *
 * For C11 and C++11; stands alone. The structure belongs to the program that declares it, needs no end, and may be
 * copied. All bytes zero is the empty set. Functions that take it `const` may be called by several threads at once; the
 * others, first and next too, write it.
 *
 * A rank outside of 0 to 1023 cannot be in a set: setting or resetting one gives -1 and changes nothing. A send to the
 * set checks whether the run has a node of each rank.
 *
 *     spcomm_destination_t to = {{0}, 0, 0};
 *     spcomm_destination_set(&to, 3);
 *     for (int rank = spcomm_destination_first(&to); rank >= 0; rank = spcomm_destination_next(&to)) ...
 */
#ifndef SPCOMM_DESTINATION_H
#define SPCOMM_DESTINATION_H

#include <stdbool.h>
#include <stdint.h>

#define SPCOMM_DESTINATION_RANKS 1024
#define SPCOMM_DESTINATION_WORDS 16

typedef struct spcomm_destination {
    uint64_t words[SPCOMM_DESTINATION_WORDS]; /* rank r: bit r % 64 of word r / 64 */
    int32_t position;                         /* where spcomm_destination_next looks from */
    int32_t reserved;                         /* 0 */
} spcomm_destination_t;

#ifdef __cplusplus
static_assert(sizeof(spcomm_destination_t) == 136, "spcomm_destination_t is part of a binary interface");
#else
_Static_assert(sizeof(spcomm_destination_t) == 136, "spcomm_destination_t is part of a binary interface");
#endif

/* Empty it. */
static inline void spcomm_destination_clear(spcomm_destination_t *destination) {
    for (int i = 0; i < SPCOMM_DESTINATION_WORDS; i++) {
        destination->words[i] = 0;
    }
    destination->position = 0;
    destination->reserved = 0;
}

/* Put a node in, the paper's Set; 0, also if it was in, or -1: there is no such rank. */
static inline int spcomm_destination_set(spcomm_destination_t *destination, int rank) {
    if (rank < 0 || rank >= SPCOMM_DESTINATION_RANKS) {
        return -1;
    }
    destination->words[rank / 64] |= UINT64_C(1) << (rank % 64);
    return 0;
}

/* Take a node out, the paper's Reset; 0, also if it was not in, or -1: there is no such rank. */
static inline int spcomm_destination_reset(spcomm_destination_t *destination, int rank) {
    if (rank < 0 || rank >= SPCOMM_DESTINATION_RANKS) {
        return -1;
    }
    destination->words[rank / 64] &= ~(UINT64_C(1) << (rank % 64));
    return 0;
}

static inline bool spcomm_destination_contains(const spcomm_destination_t *destination, int rank) {
    return rank >= 0 && rank < SPCOMM_DESTINATION_RANKS
           && (destination->words[rank / 64] >> (rank % 64) & 1) != 0;
}

/* The number of nodes in the set. */
static inline int spcomm_destination_count(const spcomm_destination_t *destination) {
    int count = 0;
    for (int i = 0; i < SPCOMM_DESTINATION_WORDS; i++) {
        count += __builtin_popcountll(destination->words[i]);
    }
    return count;
}

/* Whether the same nodes are in both; the positions of their iterations do not matter. */
static inline bool spcomm_destination_equal(const spcomm_destination_t *left,
                                            const spcomm_destination_t *right) {
    uint64_t difference = 0;
    for (int i = 0; i < SPCOMM_DESTINATION_WORDS; i++) {
        difference |= left->words[i] ^ right->words[i];
    }
    return difference == 0;
}

/* The least rank in the set that is not below `rank`; -1: there is none. */
static inline int spcomm_destination_from(const spcomm_destination_t *destination, int rank) {
    rank = rank < 0 ? 0 : rank;
    if (rank >= SPCOMM_DESTINATION_RANKS) {
        return -1;
    }
    int word = rank / 64;
    uint64_t bits = destination->words[word] & (~UINT64_C(0) << (rank % 64));
    while (bits == 0) {
        if (++word == SPCOMM_DESTINATION_WORDS) {
            return -1;
        }
        bits = destination->words[word];
    }
    return word * 64 + __builtin_ctzll(bits);
}

/* The next node of the iteration, by ascending rank; -1: there is none, until `first` begins again. Without a `first`
 * it begins at the least. Nodes may be set and reset meanwhile; nodes behind the position are not visited. */
static inline int spcomm_destination_next(spcomm_destination_t *destination) {
    const int rank = spcomm_destination_from(destination, destination->position);
    destination->position = rank < 0 ? SPCOMM_DESTINATION_RANKS : rank + 1;
    return rank;
}

/* Begin an iteration: the least rank; -1: the set is empty. */
static inline int spcomm_destination_first(spcomm_destination_t *destination) {
    destination->position = 0;
    return spcomm_destination_next(destination);
}

/* Write the ranks, ascending, but not more than `room`; how many there are. */
static inline int spcomm_destination_to_ranks(const spcomm_destination_t *destination, int32_t *ranks,
                                              int room) {
    int count = 0;
    for (int rank = spcomm_destination_from(destination, 0); rank >= 0;
         rank = spcomm_destination_from(destination, rank + 1)) {
        if (count < room) {
            ranks[count] = rank;
        }
        count++;
    }
    return count;
}

#endif
