/* SPDX-License-Identifier: MIT */
/*
 * spc_collect_private: an array collective under way, for its two files only. spc_collect.c is what callers see: it
 * chooses an algorithm and owns the memory. spc_collect_algorithms.c has the algorithms, and calls nothing of the
 * other.
 */
#ifndef SPC_COLLECT_PRIVATE_H
#define SPC_COLLECT_PRIVATE_H

#include "comm/spc_collect.h"

/* Elements at whose multiples arrays are divided: no two nodes write to one cache line. */
#define SPC_COLLECT_GRAIN 64

/* A tile is combined while it is in a core's own cache; all that are under way, and the halves that were made of them,
 * have to fit. */
#define SPC_COLLECT_TILE_BYTES UINT64_C(32768)
#define SPC_COLLECT_WORK_BYTES (4 * SPC_COLLECT_TILE_BYTES)

/* A node's memory as it publishes it to the others, in its scratch. */
typedef struct spc_collect_place {
    uint64_t input; /* offset of its input; of a copy without what only it reads itself */
    uint64_t result; /* offset of where others may write; 0: nowhere */
    uint64_t block; /* offset of the block of the latter */
    uint64_t has_room; /* 1, or 0: it has no memory to show */
} spc_collect_place_shared_t;

_Static_assert(sizeof(spc_collect_place_shared_t) == 32, "spc_collect_place_shared_t lies in shared memory");

typedef enum spc_collect_stage {
    SPC_COLLECT_START,
    SPC_COLLECT_SHOWING, /* blocks are taken and filled; waits until all have shown theirs */
    SPC_COLLECT_WORKING,
    SPC_COLLECT_ENDING, /* this node's work is done, waits for the others' */
    SPC_COLLECT_OVER
} spc_collect_stage_t;

struct spc_collect {
    spc_comm_t *comm;
    spc_collect_call_t call; /* the algorithm is the chosen one */
    spc_signature_t signature;
    uint64_t hash;
    uint32_t rank;
    uint32_t size;
    uint64_t element_bytes;
    uint64_t bytes; /* of the input */
    uint64_t first; /* of REDUCE_SCATTER: this node's first element */
    spc_collect_stage_t stage;
    uint32_t step; /* phases that are over */
    uint64_t done; /* TREE and FLAT: elements; BINARY_SWAP: rounds */
    void *result; /* NULL: none so far */
    spc_block_shared_t *block; /* of this node, or NULL */
    bool input_is_copied; /* into the block: others read it there */
    bool is_shared; /* all nodes have a pin in the block */
    uint64_t tile; /* elements */
    unsigned char *work; /* memory for partial results: SPC_COLLECT_WORK_BYTES */
    const void **sources; /* room for one a node */
    void **targets; /* the same */
    spc_collect_place_shared_t *places; /* by rank, once stage is WORKING */
};

/* The algorithms: each goes on where `stage`, `step` and `done` are. */
int spc_collect_run_tree(spc_collect_t *collect, uint64_t deadline_ns);
int spc_collect_run_flat(spc_collect_t *collect, uint64_t deadline_ns);
int spc_collect_run_slices(spc_collect_t *collect, uint64_t deadline_ns);
int spc_collect_run_swap(spc_collect_t *collect, uint64_t deadline_ns);

/* Bytes of work memory per element for these: a tile's elements follow. */
uint32_t spc_collect_partials(uint32_t size);

/* Gives its blocks back. From stage WORKING on others hold this node's block, and this node theirs. Each lets go of
 * them when it does nothing there any more, and whoever is the last gives the block back. In stage SHOWING the others'
 * are not known; who leaves an operation there, and lives, makes all others wait for it anyway. */
void spc_collect_drop(spc_collect_t *collect);

static inline bool spc_collect_is_prefix(const spc_collect_call_t *call) {
    return call->operation == SPC_OPERATION_ARRAY_SCAN || call->operation == SPC_OPERATION_ARRAY_EXSCAN;
}

#endif
