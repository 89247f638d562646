/* SPDX-License-Identifier: MIT */
/*
 * spc_comm_private: shared parts of the communicator's files. No other file includes it.
 */
#ifndef SPC_COMM_PRIVATE_H
#define SPC_COMM_PRIVATE_H

#include "comm/spc_comm.h"
#include "comm/spc_comm_area.h"
#include "message/spc_coordinated.h"
#include "node/spc_node.h"
#include "reduce/spc_fuzzy.h"
#include "reduce/spc_reduce.h"

#define SPC_COMMUNICATORS_MAX (UINT32_C(1) << 14) /* context numbers have 16 bits, SPC_CONTEXT_KINDS take 2 */

/* The collective that a node is inside of, or left by a timeout. */
typedef struct spc_pending {
    _Atomic bool entered; /* relaxed: a send of another thread asks, and may as well have asked earlier */
    uint64_t phase;
    spc_signature_t signature;
} spc_pending_t;

/* A split under way. Kept when an interruption leaves it. */
typedef struct spc_splitting {
    uint32_t reserved; /* a number that no other communicator of this node has; 0: no split is under way */
    uint32_t number; /* once all have reserved the same, and the members are known; else 0 */
    uint32_t size; /* 0: this node belongs to none */
    uint32_t rank;
    uint32_t *members; /* ranks in the parent, by rank in the communicator to be */
    bool announced; /* the first member of this box: the memory is on its way */
    bool received; /* it has come: `block`, unless `memory` has the reason */
    int memory;
    spc_message_t block;
} spc_splitting_t;

/* The cycle of coordinated messages. All but the account belongs to the thread that is inside a receive. */
typedef struct spc_cycle {
    spc_coordinated_t *account; /* with the node's lock */
    bool entered; /* the phase has been entered, and was no mismatch so far */
    bool complete; /* and all have */
    uint64_t phase;
} spc_cycle_t;

struct spc_comm {
    spc_node_t *node;
    const spc_config_t *config;
    uint32_t number; /* 0: of the whole run; contexts follow from it */
    uint32_t rank;
    uint32_t size;
    uint32_t here; /* how many of its members are in this box */
    uint32_t *members; /* ranks in the segment, by rank here; NULL: they are the same */
    int32_t *rank_of; /* the other way round; -1: is no member. NULL as above */
    spc_comm_area_t area;
    spc_message_t block; /* holds the area; of a split communicator */
    _Atomic uint32_t
        gate; /* SPC_GATE_…, 0: calls pass. Closed, of a split one: release by close, acquire by calls */

    /* Collectives: one thread at a time, the owner of `collective`. */
    _Atomic uintptr_t collective; /* the thread inside, or 0 */
    bool waits; /* it does, and may call anything meanwhile, but no other collective; this thread's alone */
    spc_reduce_t *reduce;
    spc_fuzzy_t fuzzy;
    pthread_mutex_t fuzzy_lock; /* the list of fuzzy barriers, which any thread may leave */
    _Atomic uint32_t fuzzy_open; /* its length: nothing to settle if 0 */
    spc_pending_t pending;
    spc_cycle_t cycle;
    spc_splitting_t splitting;
    /* Of the last GATHER or mismatch. Relaxed: its reader was just notified of it. */
    _Atomic uint64_t last_phase;
    _Atomic int32_t culprit; /* relaxed: the rank that made a call fail; threads may overwrite each other's */
};

/* ---- areas: spc_comm_area.h ---- */

/* The communicator's own half of its area, after members, rank and area are set. */
int spc_comm_attach(spc_comm_t *comm);

/* ---- members ---- */

/* A rank here as a rank in the segment. */
static inline uint32_t spc_comm_member(const spc_comm_t *comm, uint32_t rank) {
    return comm->members == NULL ? rank : comm->members[rank];
}

/* Are there members in other boxes? Then what lies in shared memory is not there for all. */
static inline bool spc_comm_spans(const spc_comm_t *comm) {
    return comm->here != comm->size;
}

/* Is this member in this box? */
static inline bool spc_comm_is_here(const spc_comm_t *comm, uint32_t rank) {
    return spc_segment_is_here(&comm->node->segment, spc_comm_member(comm, rank));
}

/* Has `rank` ended, or closed this communicator? */
bool spc_comm_has_left(const spc_comm_t *comm, uint32_t rank);

/* Records that `rank` made a call fail; gives the status to return. SPC_EDISCONNECTED if the connection to a box is
 * lost: `rank` has ended because of that. */
int spc_comm_blame(spc_comm_t *comm, uint32_t rank);

/* The number that its messages of this kind carry. */
static inline uint16_t spc_comm_context(const spc_comm_t *comm, uint16_t kind) {
    return (uint16_t)(comm->number * SPC_CONTEXT_KINDS + kind);
}

enum { /* a mask */
       SPC_GATE_CLOSED = 1,
       SPC_GATE_PERTURBED =
           2, /* the schedule is perturbed, or sends wait: for as long as the communicator is there */
};

/* As spc_comm_usable. */
static inline int spc_comm_check_usable(const spc_comm_t *comm) {
    int status = spc_node_check_usable(comm->node);
    if (status == SPC_OK
        && (atomic_load_explicit(&comm->gate, memory_order_acquire) & SPC_GATE_CLOSED) != 0) {
        return SPC_ECLOSED;
    }
    return status;
}

/* The same where calls begin. SPC_EAGAIN: they may, but their schedule is perturbed. So calls that never wait send
 * their callers to those that may, which look into it; and where nothing is perturbed nobody pays for asking. */
static inline int spc_comm_check_callable(const spc_comm_t *comm) {
    int status = spc_node_check_usable(comm->node);
    if (status == SPC_OK) {
        uint32_t gate = atomic_load_explicit(&comm->gate, memory_order_acquire);
        if (__builtin_expect(gate != 0, 0)) {
            return (gate & SPC_GATE_CLOSED) != 0 ? SPC_ECLOSED : SPC_EAGAIN;
        }
    }
    return status;
}

/* ---- messages ---- */

typedef struct spc_send_call {
    const int32_t *destinations; /* ranks of the segment */
    const int32_t *ranks; /* the same as ranks of the communicator */
    uint32_t destination_count;
    uint16_t context;
    int32_t tag;
    const spc_payload_t *payload;
    spc_block_shared_t *
        *block; /* NULL, or where the payload lies: it is moved, and becomes NULL here once it is */
    spc_comm_t *counted_by; /* NULL, or whose cycle counts the message and gives it its tag */
} spc_send_call_t;

/* Of a message of this kind. Destinations are checked, and so is whether the communicator may be used; SPC_EAGAIN: it
 * may, and all is prepared, but see spc_comm_check_callable. */
int spc_comm_prepare_send(const spc_comm_t *comm, spc_send_call_t *call, uint16_t kind);
int spc_comm_try_send_call(spc_comm_t *comm, spc_send_call_t *call);
int spc_comm_send_call(spc_comm_t *comm, spc_send_call_t *call, uint64_t deadline_ns);

/* Sends it if there is room, also what takes a while to copy. SPC_EAGAIN: not yet. Without the node's lock. */
int spc_comm_attempt_send(spc_node_t *node, spc_send_call_t *call);

/* What is received; `match` has the source as a rank of the segment. */
typedef struct spc_recv_call {
    spc_match_t match;
    spc_message_t *message;
} spc_recv_call_t;

/* One destination of a message whose receipt is waited for. */
typedef struct spc_awaited {
    int32_t destination; /* rank of the segment */
    uint32_t rank; /* the same in the communicator */
    uint32_t number; /* of the message: spc_receipt.h */
} spc_awaited_t;

/* A send that waits until the message has been taken. */
typedef struct spc_synchronous_call {
    const spc_send_call_t *send;
    spc_awaited_t *awaited; /* room for all destinations */
    uint32_t count; /* of them */
    uint32_t next; /* all before this one have taken it */
    bool sent; /* before, it waits for room in the queue */
    bool content; /* not an ssend: itself does not count, nor do those that end without taking it */
} spc_synchronous_call_t;

/* The source of the taken message, as a rank of this communicator. Returns the status. */
int spc_comm_name_source(const spc_comm_t *comm, int status, spc_message_t *message);

/* ---- what a wait is for ---- */

/* For spc_node_wait_t.describe: with the node's lock. */
void spc_comm_describe_match(const spc_comm_t *comm, const spc_match_t *match, spc_board_entry_t *entry,
                             spc_board_pair_t *pairs);
void spc_comm_describe_send(const spc_comm_t *comm, const spc_send_call_t *call, spc_board_entry_t *entry);
void spc_comm_describe_gathering(const spc_comm_t *comm, int32_t source, int32_t tag,
                                 spc_board_entry_t *entry, spc_board_pair_t *pairs);
void spc_comm_describe_receipt(const spc_comm_t *comm, const spc_synchronous_call_t *call,
                               spc_board_entry_t *entry, spc_board_pair_t *pairs);
void spc_comm_describe_phase(const spc_comm_t *comm, spc_board_kind_t kind, uint64_t phase,
                             spc_board_entry_t *entry, spc_board_pair_t *pairs);

/* ---- collectives ---- */

static inline bool spc_comm_is_pending(const spc_comm_t *comm) {
    return atomic_load_explicit(&comm->pending.entered, memory_order_relaxed);
}

/* Before a phase is taken: open fuzzy barriers whose bank it may need are settled. */
void spc_comm_settle_fuzzy(spc_comm_t *comm);

/* True if this thread may go on: it has entered now, or was inside already (after a poll that was not over). Not in
 * what a wait of it calls. */
bool spc_comm_enter(spc_comm_t *comm);
void spc_comm_leave(spc_comm_t *comm);

/* A collective call that waits: past the gate, perturbed if the run is, and `inside(comm, call)` between enter and
 * leave. What refuses it is its status. */
typedef int spc_comm_inside_t(spc_comm_t *comm, void *call);
int spc_comm_run_collective(spc_comm_t *comm, spc_comm_inside_t *inside, void *call);

/* Polls a moment for the pending phase. True: it is complete. */
bool spc_comm_poll_phase(spc_comm_t *comm);

/* Its halves, after enter and before leave: starts an operation, or goes on with the same one that was left; waits
 * until all have entered it; returns its status. After the last one the caller ends it: pending.entered = false. */
int spc_comm_start_phase(spc_comm_t *comm, const spc_signature_t *signature, const void *value,
                         uint64_t length_bytes);
int spc_comm_wait_for_phase(spc_comm_t *comm, uint64_t phase, uint64_t deadline_ns);
int spc_comm_outcome(spc_comm_t *comm);

/* spc_comm_collective, after enter and before leave. */
int spc_comm_collective_inside(spc_comm_t *comm, const spc_signature_t *signature, const spc_field_t *fields,
                               const void *value, uint64_t length_bytes, void *result, uint64_t deadline_ns);

#endif
