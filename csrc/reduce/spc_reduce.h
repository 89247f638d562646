/* SPDX-License-Identifier: MIT */
/*
 * spc_reduce: barriers and reductions of the nodes of one communicator in one box (SpeedesComm 3.1).
 *
 * Each collective operation takes the next phase, a 64-bit number: the paper's toggle, without its ABA. A
 * node writes its signature and value into its own line for that phase, then counts itself in at its group.
 * The last to arrive at a group combines the group's values and climbs; the last to arrive at the top compares all
 * signatures and releases all nodes. So an operation completes while nodes compute (fuzzy barriers need no helper), and
 * needs no more context switches than nodes. With shared cores, and up to eight nodes, there is one group: it is flat.
 *
 * Association. Values are combined along the tree of spc_tree.h, whatever the groups and whichever node combines:
 * groups are aligned powers of two, so each combines complete subtrees. Floating-point results are bitwise the same on
 * all nodes, in all runs, with any fan-in.
 *
 * Matching. Nodes that call different operations all get SPC_EMISMATCH for that phase, and the next one works
 * again. The counters add up hashes of the signatures; the last to arrive at the top compares the sum with that of
 * equal signatures. Barriers need no more, and so read no other node's line. A node that combines values compares the
 * signatures themselves, since it reads those lines anyway, and so never misreads a value of another kind.
 *
 * Writers. A line belongs to its node until it arrives (the counter's release), then to the last arriver of its group,
 * which may combine into the first line of the group, until the release; after that it is the node's again. Counters
 * are the only words with several writers: arriving nodes add to them, and the last one clears them.
 *
 * Banks. A phase's bank is used again SPC_BANKS phases later, when all have left it. A node that starts phase
 * q has at most SPC_FUZZY_MAX incomplete ones, all fuzzy barriers: spc_comm starts nothing while another
 * operation of this node is incomplete, nor within a cycle of coordinated messages, whose phase so is complete
 * and kept, too. Phases complete in order, so q - SPC_FUZZY_MAX - 1 is complete and all nodes have arrived at it: no
 * node reads lines of q - SPC_BANKS any more. The release of that phase is overwritten once all have arrived at q, and
 * before that they have kept its outcome (spc_fuzzy_settle). tests/models/combining_barrier.pml has the proof.
 *
 * Values longer than a line (SPC_LINE_VALUE_BYTES) lie in the node's scratch, in two halves used in turn: a node writes
 * a half again only after its use of the other half is complete, when all nodes have arrived there and so have copied
 * the value in the first half.
 *
 * Several boxes. Each box has all lines. For nodes of other boxes its gateway starts their halves, when their
 * contributions have come over the network; and it arrives once for itself (spc_reduce_pass), after it has read the
 * contributions of the nodes here. There is one group then. So the values are combined after that, in every box by its
 * gateway, along the same tree; or the server has combined them (spc_subtree.h), along the same tree again, and the
 * gateway starts the halves with only that total (spc_reduce_start_combined).
 *
 * One thread of a node at a time (spc_comm ensures that). No function here waits: start, then test.
 */
#ifndef SPC_REDUCE_H
#define SPC_REDUCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_atomic.h"
#include "reduce/spc_ops.h"
#include "segment/spc_event.h"

#define SPC_BANKS 16
#define SPC_FUZZY_MAX 8
#define SPC_LINE_VALUE_BYTES 32
#define SPC_REDUCE_FIELDS_BYTES (SPC_FIELDS_MAX * sizeof(spc_field_t))

/*
 * X(name, public function; NULL: it depends on the operator, or there is none).
 *
 * COORDINATED is the first receive of a cycle of coordinated messages. After REDUCE every node gets the combined value;
 * after GATHER every node may read the bytes of all nodes, of any length up to the scratch; SPLIT and DATA_… are the
 * same, for dividing a communicator and for moving data; CREATE_GROUP is no phase, only the name of a wait. ARRAY_… are
 * steps of the reductions of arrays (comm/spc_collect.h): as REDUCE where there are fields, else as GATHER.
 */
#define SPC_OPERATIONS(X)                     \
    X(NONE, NULL)                             \
    X(BARRIER, "barrier")                     \
    X(FUZZY, "fuzzy_barrier")                 \
    X(COORDINATED, "coordinated_recv")        \
    X(REDUCE, NULL)                           \
    X(GATHER, NULL)                           \
    X(SPLIT, "split")                         \
    X(CREATE_GROUP, "create_group")           \
    X(DATA_BCAST, "bcast")                    \
    X(DATA_GATHER, "gather")                  \
    X(DATA_ALLGATHER, "allgather")            \
    X(DATA_SCATTER, "scatter")                \
    X(DATA_ALLTOALL, "alltoall")              \
    X(ARRAY_ALLREDUCE, "allreduce")           \
    X(ARRAY_REDUCE, "reduce")                 \
    X(ARRAY_REDUCE_SCATTER, "reduce_scatter") \
    X(ARRAY_SCAN, "scan")                     \
    X(ARRAY_EXSCAN, "exscan")

typedef enum spc_operation {
#define SPC_OPERATION_ENUM(name, word) SPC_OPERATION_##name,
    SPC_OPERATIONS(SPC_OPERATION_ENUM)
#undef SPC_OPERATION_ENUM
        SPC_OPERATION_COUNT
} spc_operation_t;

/* Whether it is a reduction of arrays. */
static inline bool spc_operation_is_of_arrays(uint32_t operation) {
    return operation >= SPC_OPERATION_ARRAY_ALLREDUCE && operation <= SPC_OPERATION_ARRAY_EXSCAN;
}

/* Values that must be equal on all nodes; published first, for the comparison and for the error text. */
typedef struct spc_signature {
    uint64_t length_bytes; /* of the whole value; 0 where nodes may differ */
    uint64_t layout; /* a hash of the fields, the step of a long operation, further values to agree */
    uint32_t root;
    uint8_t operation; /* spc_operation_t */
    uint8_t operator; /* spc_operator_t */
    uint8_t type; /* of the first field */
    uint8_t field_count;
} spc_signature_t;

_Static_assert(sizeof(spc_signature_t) == 24, "spc_signature_t lies in shared memory");

/* Whether values are combined, or only kept where others may read them. */
static inline bool spc_reduce_combines(const spc_signature_t *signature) {
    const uint32_t operation = signature->operation;
    return operation == SPC_OPERATION_REDUCE
           || (spc_operation_is_of_arrays(operation) && signature->field_count != 0);
}

/* Whether its phase has no value: that all nodes have arrived is all that the others need to know. */
static inline bool spc_reduce_is_barrier(const spc_signature_t *signature) {
    return signature->operation == SPC_OPERATION_BARRIER || signature->operation == SPC_OPERATION_FUZZY;
}

typedef struct spc_reduce_line_shared { /* one for each node and bank */
    _Atomic uint64_t phase; /* release: signature and value are written */
    spc_signature_t signature;
    union {
        unsigned char bytes[SPC_LINE_VALUE_BYTES];
        struct {
            uint64_t offset; /* of a long value, in the segment */
            uint64_t length_bytes;
        } scratch;
    } value;
} spc_reduce_line_shared_t;

_Static_assert(sizeof(spc_reduce_line_shared_t) == 64, "spc_reduce_line_shared_t lies in shared memory");

typedef struct spc_reduce_release_shared { /* one for each bank */
    _Atomic uint64_t phase; /* seq_cst: part of a sleeper's second test */
    int32_t status; /* SPC_OK, SPC_EMISMATCH, SPC_EWIDE */
    uint32_t padding;
    union {
        unsigned char bytes[SPC_LINE_VALUE_BYTES];
        uint64_t offset;
    } value;
    _Atomic uint32_t here; /* how many nodes of this box have arrived, if the gateway needs to know */
    unsigned char rest[SPC_CACHE_LINE - 52];
} spc_reduce_release_shared_t;

_Static_assert(sizeof(spc_reduce_release_shared_t) == 64, "lies in shared memory");

typedef struct spc_reduce_counter_shared { /* one for each group and bank */
    _Atomic uint64_t arrivals; /* low 16 bits: how many; above: the sum of their signatures' hashes */
    _Atomic int32_t status; /* SPC_OK, or why values cannot be combined: members set it before they arrive */
    unsigned char padding[SPC_CACHE_LINE - 12];
} spc_reduce_counter_shared_t;

_Static_assert(sizeof(spc_reduce_counter_shared_t) == 64, "lies in shared memory");

typedef struct spc_reduce spc_reduce_t; /* private to a node */

typedef struct spc_reduce_options {
    void *shared; /* spc_reduce_bytes() zeroed bytes, aligned to cache lines; the same for all */
    unsigned char *base; /* the segment's base: offsets of scratch count from here */
    void *scratch; /* this node's, 2 * scratch_bytes; and SPC_REDUCE_FIELDS_BYTES more, if `here` is not 0 */
    uint64_t scratch_bytes; /* of a half; a multiple of 8 */
    uint32_t rank;
    uint32_t nodes; /* 65535 at most */
    uint32_t fanin; /* a power of two, or any number ≥ nodes: flat */
    spc_event_shared_t *events; /* of all nodes of the segment */
    const uint32_t *members; /* maps ranks to their events; NULL: the rank's own. Outlives it */
    uint32_t features;
    uint32_t here; /* how many of the nodes are in this box; 0: all */
    spc_event_shared_t *gateway; /* else: notified when these have arrived; NULL: this is the gateway */
} spc_reduce_options_t;

uint64_t spc_reduce_bytes(uint32_t nodes, uint32_t fanin);

/* SPC_EINVAL if an option is outside its limits; SPC_ENOMEM. */
int spc_reduce_create(const spc_reduce_options_t *options, spc_reduce_t **reduce);
void spc_reduce_destroy(spc_reduce_t *reduce);

/* Takes the next phase, publishes signature and value and arrives; may combine, release and wake others.
 * `value` has length_bytes bytes (at most the scratch); for REDUCE they are the fields'
 * (spc_fields_bytes), of which there are signature.field_count; `fields` and `value` are not used after
 * the call. Blocking: never. Cost at n = 2: one contended addition, and one contended store by the last to
 * arrive.
 *
 * A field of type WIDE makes the outcome SPC_EWIDE on all nodes, also where the others have INT: these
 * match. So the type is published as INT, and signature.layout must be the same for both.
 *
 * SPC_EINVAL if the value is too long, does not have the fields' length, or an operation, operator or type
 * is unknown; then no phase was taken. */
int spc_reduce_start(spc_reduce_t *reduce, const spc_signature_t *signature, const spc_field_t *fields,
                     const void *value, uint64_t length_bytes, uint64_t *phase);

/* Whether the phase is complete. One load. Later phases complete earlier ones. */
bool spc_reduce_test(const spc_reduce_t *reduce, uint64_t phase);

/* After test: SPC_OK, SPC_EMISMATCH or SPC_EWIDE, and if it is SPC_OK the combined value of a REDUCE, of
 * the length that was started. `result` may be NULL. SPC_EINVAL if the phase is not complete, or its bank
 * was used again. */
int spc_reduce_finish(spc_reduce_t *reduce, uint64_t phase, void *result, uint64_t length_bytes);

/* The contribution of `rank` to a GATHER: after test, until this node starts its next operation of the same
 * communicator (its arrival there allows the others to write that half again). 8-byte aligned. */
void spc_reduce_contribution(const spc_reduce_t *reduce, uint64_t phase, uint32_t rank, const void **bytes,
                             uint64_t *length_bytes);

/* Whether `rank` has arrived at the phase: for reports of missing nodes. */
bool spc_reduce_arrived(const spc_reduce_t *reduce, uint64_t phase, uint32_t rank);

/* The lines of a phase, by rank: for outside readers with the same question. */
const spc_reduce_line_shared_t *spc_reduce_lines(const spc_reduce_t *reduce, uint64_t phase);

/* The contribution of the node of this rank to a phase, in its line and its scratch: for the gateway, from the node's
 * arrival until the phase is complete. False: it has not arrived. `reduce` was created for this rank. */
typedef struct spc_contribution {
    spc_signature_t signature;
    const spc_field_t *fields; /* signature.field_count */
    const void *value;
    uint64_t length_bytes;
} spc_contribution_t;

bool spc_reduce_read(const spc_reduce_t *reduce, uint64_t phase, spc_contribution_t *contribution);

/* Called by the gateway, after it has read the contributions of all nodes here, once a phase: it arrives, too. With the
 * half of one of these nodes. */
void spc_reduce_pass(spc_reduce_t *reduce, uint64_t phase);

/* Called by the gateway, for a node of another box, at a phase whose values have been combined elsewhere: as
 * spc_reduce_start, with the total in place of a value; or without one (NULL), before another call that has it. The
 * call with the total is the last to arrive, and its signature and length are those of the nodes here: no node reads
 * their values. A barrier has no total: all its calls are the same. */
int spc_reduce_start_combined(spc_reduce_t *reduce, const spc_signature_t *signature,
                              const spc_field_t *fields, const void *total, uint64_t length_bytes);

/* A number that grows with each completed phase: for outside readers, which have only `shared`. */
uint64_t spc_reduce_completed(const void *shared, uint32_t nodes, uint32_t fanin);

static inline bool spc_reduce_line_arrived(const spc_reduce_line_shared_t *line, uint64_t phase) {
    /* Pairs with spc_reduce_start. */
    return atomic_load_explicit(&line->phase, memory_order_acquire) >= phase;
}

/* The signature that `rank` published for the phase; false if it has none, or has advanced by SPC_BANKS phases. Valid
 * for a phase that is not complete, or while this node has started at most SPC_BANKS - SPC_FUZZY_MAX - 2 later ones:
 * until then no line of that phase is written again. */
bool spc_reduce_signature(const spc_reduce_t *reduce, uint64_t phase, uint32_t rank,
                          spc_signature_t *signature);

/* The operations that `rank` has started: for a summary, and for nodes that have ended. */
uint64_t spc_reduce_last(const spc_reduce_t *reduce, uint32_t rank);

/* A well-mixed 48-bit hash: the sum of equal ones is n times one of them, and hardly ever otherwise. */
uint64_t spc_signature_hash(const spc_signature_t *signature);

#endif
