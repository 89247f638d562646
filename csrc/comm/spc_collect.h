/* SPDX-License-Identifier: MIT */
/*
 * spc_collect: reductions of arrays, element by element, over the nodes of a communicator.
 *
 * Five operations. All nodes call the same one with the same operator, type, count, root, counts and algorithm:
 *
 *   ALLREDUCE        every node gets the combination of all inputs
 *   REDUCE           the root gets it
 *   REDUCE_SCATTER   node i gets elements counts[0] + … + counts[i-1] and on, counts[i] of them
 *   SCAN             node i gets the combination of the inputs of nodes 0 to i
 *   EXSCAN           node i gets the combination of the inputs of nodes 0 to i - 1, node 0 nothing
 *
 * SPC_OPERATION_REDUCE, which is global_sum and its like, is an ALLREDUCE by TREE.
 *
 * Association. As spc_reduce: along the tree of spc_tree.h, over all ranks, or over those of a prefix (a SCAN gives
 * node i the result of an ALLREDUCE of nodes 0 to i alone). So floating-point results are bitwise the same
 * on all nodes, in all runs and with every algorithm:
 *
 *   TREE          the reducer, in pieces as long as its scratch memory, one by one. ALLREDUCE, REDUCE
 *   FLAT          each node reads all inputs, in such pieces, and combines the elements it needs
 *   SLICES        inputs lie in blocks of the arenas; each node combines its own slice and writes it to all nodes that
 *                 want it
 *   BINARY_SWAP   as ACLMPL 4: in each round two nodes exchange halves of their parts. ALLREDUCE, REDUCE
 *   DEFAULT       chosen by constants of operation, nodes and bytes
 *
 * A call is an object: create, run until it is over, ask for the result, destroy. After SPC_ETIMEDOUT and
 * SPC_EINTERRUPTED the operation stays entered, and the next run continues it; input, result memory and counts must
 * stay until it is over or destroyed. Errors are those of spc_comm_collective, on all nodes alike: SPC_EMISMATCH before
 * any memory was touched. SPC_ENOMEM, by SLICES and BINARY_SWAP, on all nodes: some node's arena has no room;
 * spc_collect_use_no_blocks goes on with TREE or FLAT, which need none. (SPC_ENOMEM by create: this node has no private
 * memory.)
 *
 * Blocks. A result of SLICES or BINARY_SWAP (but of REDUCE_SCATTER) is a block of this node's own arena, into which the
 * others write; all others go to the caller's memory. An input that lies in the segment is read in place, by all nodes;
 * any other is copied into the block first, except for elements that only this node reads. A block stays pinned by all
 * nodes until all have arrived at the end, so that a block which its owner gives up after a death is reused only when
 * no live node can write to it any more.
 *
 * One thread of a node at a time, as for every collective of a communicator; run may wait, no other function does.
 */
#ifndef SPC_COLLECT_H
#define SPC_COLLECT_H

#include "comm/spc_comm.h"

typedef enum spc_collect_algorithm {
    SPC_COLLECT_DEFAULT,
    SPC_COLLECT_TREE,
    SPC_COLLECT_FLAT,
    SPC_COLLECT_SLICES,
    SPC_COLLECT_BINARY_SWAP,
    SPC_COLLECT_ALGORITHM_COUNT
} spc_collect_algorithm_t;

typedef struct spc_collect_call {
    spc_operation_t operation; /* SPC_OPERATION_ARRAY_…, or SPC_OPERATION_REDUCE */
    spc_collect_algorithm_t algorithm;
    spc_operator_t operator;
    uint32_t type; /* spc_type_t; not INT, WIDE or NONE */
    uint32_t root; /* of REDUCE, else 0 */
    uint64_t count; /* elements of the input */
    const uint64_t *counts; /* of REDUCE_SCATTER: a number for each node, together `count` */
    uint64_t kind; /* spc_kind_t, for the text of a mismatch */
    uint64_t hash; /* of further values that must be equal (spc_layout_mix): shape, dtype */
    const void *input;
    /* for the result, if spc_collect_memory_bytes asks for it; with TREE and FLAT it may be the input */
    void *memory;
} spc_collect_call_t;

typedef struct spc_collect spc_collect_t;

/* Bytes of call->memory that the result takes on this node; 0: it has none, or it will be a block. */
uint64_t spc_collect_memory_bytes(const spc_comm_t *comm, const spc_collect_call_t *call);

/* The party that combines the values of a call. */
typedef enum spc_collect_combiner {
    /* the reducer, in one step: a spc_comm_collective as spc_collect_describe_short has it, without an object; all
     * nodes get the combination. A number (after SPC_EWIDE: BY_CALLER), or a short array */
    SPC_COLLECT_AT_ONCE,
    SPC_COLLECT_BY_CORE, /* an object, as below */
    /* the caller, along the same tree, in rounds of spc_comm_gathering: the core does not know operator or type, or it
     * is a number that the reducer cannot combine: by PROD, in a SCAN, by an algorithm that was named */
    SPC_COLLECT_BY_CALLER
} spc_collect_combiner_t;

typedef struct spc_collect_way {
    spc_collect_combiner_t combiner;
    spc_collect_algorithm_t algorithm; /* of BY_CALLER; not DEFAULT */
} spc_collect_way_t;

/* The one place where this is decided, for nodes in all languages: it depends on what all nodes must have alike. A
 * number, a time or a tuple of these has another `kind` than SPC_KIND_ARRAY. If the type is SPC_TYPE_NONE, `kind` is 0
 * and `count` the number of bytes of an array whose parts may be combined apart, else 0. */
spc_collect_way_t spc_collect_way(const spc_comm_t *comm, const spc_collect_call_t *call);

void spc_collect_describe_short(const spc_collect_call_t *call, spc_signature_t *signature,
                                spc_field_t *field);

/* Never waits, and publishes nothing. SPC_EINVAL: the operator does not know the type, counts do not add up, there is
 * no such root, or the algorithm is not one for this operation. Copies the call, but not the memory it points to. */
int spc_collect_create(spc_comm_t *comm, const spc_collect_call_t *call, spc_collect_t **collect);

/* Takes part until the operation is over: SPC_OK. Other statuses: see above. */
int spc_collect_run(spc_collect_t *collect, uint64_t deadline_ns);

/* After SPC_ENOMEM of a run: begins again, on all nodes alike, with the algorithm that needs no blocks. `memory`: for
 * the result, on nodes that have one (as spc_collect_has_result). */
void spc_collect_use_no_blocks(spc_collect_t *collect, void *memory);

/* Whether this rank gets a result. */
bool spc_collect_has_result(const spc_collect_call_t *call, uint32_t rank);

/* After SPC_OK: the address of the result; NULL: this node has none. If it is a block, the caller gets it in *block,
 * and ends it by spc_comm_release_block; else *block is NULL. Call it once. */
void *spc_collect_take_result(spc_collect_t *collect, spc_block_shared_t **block);

/* Also for a call that is not over: its blocks are given back once no node uses them any more. */
void spc_collect_destroy(spc_collect_t *collect);

#endif
