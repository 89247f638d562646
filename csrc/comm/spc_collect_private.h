/* SPDX-License-Identifier: MIT */
/*
 * spc_collect_private: an array collective under way, for its two files only. Callers see spc_collect.c: it chooses an
 * algorithm and owns the memory. spc_collect_algorithms.c has the algorithms, and calls no function of the other file.
 */
#ifndef SPC_COLLECT_PRIVATE_H
#define SPC_COLLECT_PRIVATE_H

#include "comm/spc_collect.h"

/* Arrays are divided at multiples of this many elements: no two nodes write to one cache line. */
#define SPC_COLLECT_GRAIN 64

/* A tile is combined while it is in a core's own cache; all tiles under way, and the halves made of them, have to
 * fit. */
#define SPC_COLLECT_TILE_BYTES UINT64_C(32768)
#define SPC_COLLECT_WORK_BYTES (4 * SPC_COLLECT_TILE_BYTES)

/* A node's memory, as published to the others in its scratch. */
typedef struct spc_collect_place {
    uint64_t input; /* offset of its input; of a copy without the elements that only it reads */
    uint64_t result; /* offset of the place where others may write; 0: nowhere */
    uint64_t block; /* offset of the block with that place */
    uint64_t has_room; /* 1, or 0: it has no memory to show */
} spc_collect_place_shared_t;

_Static_assert(sizeof(spc_collect_place_shared_t) == 32, "spc_collect_place_shared_t lies in shared memory");

typedef enum spc_collect_stage {
    SPC_COLLECT_START,
    SPC_COLLECT_SHOWING, /* blocks are taken and filled; waits until all nodes have shown theirs */
    SPC_COLLECT_WORKING,
    SPC_COLLECT_ENDING, /* this node's work is done, waits for the others' */
    SPC_COLLECT_OVER
} spc_collect_stage_t;

struct spc_collect {
    spc_comm_t *comm;
    spc_collect_call_t call; /* DEFAULT is resolved */
    spc_signature_t signature;
    uint64_t hash;
    uint32_t rank;
    uint32_t size;
    uint64_t element_bytes;
    uint64_t bytes; /* of the input */
    uint64_t first; /* of REDUCE_SCATTER: this node's first element */
    spc_collect_stage_t stage;
    uint32_t step; /* number of phases that are over */
    uint64_t done; /* TREE and FLAT: elements; BINARY_SWAP: rounds */
    void *result; /* NULL: none yet */
    spc_block_shared_t *block; /* of this node, or NULL */
    bool input_is_copied; /* copy the input into the block: others read it there */
    bool is_shared; /* all nodes have a pin in the block */
    uint64_t tile; /* elements */
    unsigned char *work; /* memory for partial results: SPC_COLLECT_WORK_BYTES */
    const void **sources; /* room for one per node */
    void **targets; /* the same */
    spc_collect_place_shared_t *places; /* by rank, once stage is WORKING */
};

/* The algorithms: each continues at `stage`, `step` and `done`. */
int spc_collect_run_tree(spc_collect_t *collect, uint64_t deadline_ns);
int spc_collect_run_flat(spc_collect_t *collect, uint64_t deadline_ns);
int spc_collect_run_slices(spc_collect_t *collect, uint64_t deadline_ns);
int spc_collect_run_swap(spc_collect_t *collect, uint64_t deadline_ns);

/* Bytes of work memory per element for these sources: a tile's length follows from it. */
uint32_t spc_collect_partials(uint32_t size);

/* Gives its blocks back. From stage WORKING on others hold this node's block, and this node theirs. Each node releases
 * a block when it no longer uses it, and the last one gives it back. In stage SHOWING the others' blocks are not known;
 * a live node that leaves an operation there makes all others wait for it anyway. */
void spc_collect_drop(spc_collect_t *collect);

static inline bool spc_collect_is_prefix(const spc_collect_call_t *call) {
    return call->operation == SPC_OPERATION_ARRAY_SCAN || call->operation == SPC_OPERATION_ARRAY_EXSCAN;
}

#endif
