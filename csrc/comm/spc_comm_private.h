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

/* The collective that a node is inside, or that a timeout left. */
typedef struct spc_pending {
    _Atomic bool entered; /* relaxed: a send of another thread reads it, perhaps earlier */
    uint64_t phase;
    spc_signature_t signature;
} spc_pending_t;

/* A communicator in the making. An interruption leaves it in place. */
typedef struct spc_splitting {
    uint32_t reserved; /* a number that no other communicator of this node has; 0: nothing is under way;
                          SPC_COMMUNICATORS_MAX: there was no free one */
    uint8_t wraps; /* how often the search has begun again, at 1 */
    uint32_t number; /* once all nodes have reserved the same, and the members are known; else 0 */
    uint32_t generation; /* the reservation's; once there are members: the first member's */
    uint32_t size; /* 0: this node belongs to none */
    uint32_t rank;
    uint32_t *members; /* ranks in the parent, by rank in the new communicator */
    bool announced; /* the first member of this box: the memory is on its way */
    bool received; /* it has come: in `block`, unless `memory` has the reason */
    int memory;
    spc_message_t block;
} spc_splitting_t;

/* The offer of a node in a round of an agreement, or of all that have taken part so far. */
typedef struct spc_offer {
    uint32_t number; /* reserved by the node; the largest of all */
    uint32_t differs; /* 0: all have offered the same number */
    uint32_t generation; /* of the node, in a group: of the first member */
} spc_offer_t;

/* A call of spc_comm_create_group that an interruption has left, or that is under way. */
typedef struct spc_grouping {
    struct spc_grouping *next;
    spc_splitting_t splitting; /* its members and size are those of the call */
    uint32_t tag;
    bool told; /* a member: its offer of this round is sent */
    uint32_t heard; /* the first member: the others up to this one have made their offers of this round, */
    spc_offer_t offers; /* which are these, with its own */
} spc_grouping_t;

/* The cycle of coordinated messages. All fields except the account belong to the thread that is inside a receive. */
typedef struct spc_cycle {
    spc_coordinated_t *account; /* with the node's lock */
    bool entered; /* the phase has been entered, and has not been a mismatch so far */
    bool complete; /* and all nodes have entered it */
    uint64_t phase;
} spc_cycle_t;

struct spc_comm {
    spc_node_t *node;
    const spc_config_t *config;
    uint32_t number; /* 0: the whole run's; contexts follow from it */
    uint32_t rank;
    uint32_t size;
    uint32_t here; /* how many of its members are in this box */
    uint32_t *members; /* ranks in the segment, by rank here; NULL: they are the same */
    int32_t *rank_of; /* the inverse; -1: not a member. NULL as above */
    spc_comm_area_t area;
    spc_message_t block; /* of a split communicator: holds the area */
    /* SPC_GATE_…, 0: calls pass. Closed, of a split one: release by close, acquire by calls */
    _Atomic uint32_t gate;

    /* Collectives: one thread at a time, the owner of `collective`. */
    _Atomic uintptr_t collective; /* the thread inside, or 0 */
    bool waits; /* it does, and may call anything meanwhile except another collective; this thread's alone */
    spc_reduce_t *reduce;
    spc_fuzzy_t fuzzy;
    pthread_mutex_t fuzzy_lock; /* the list of fuzzy barriers, which any thread may leave */
    _Atomic uint32_t fuzzy_open; /* its length: 0: nothing to settle */
    spc_pending_t pending;
    spc_cycle_t cycle;
    spc_splitting_t splitting;
    spc_grouping_t *groupings; /* those that interruptions have left; with the node's lock */
    uint32_t duplicates; /* how many duplicates have been begun; with the node's lock */
    /* The phase of the last GATHER or mismatch. Relaxed: its reader was just notified of it. */
    _Atomic uint64_t last_phase;
    _Atomic int32_t culprit; /* relaxed: the rank that made a call fail; threads may overwrite each other's */
};

/* ---- areas: spc_comm_area.h ---- */

/* The communicator's own half of its area, after members, rank and area are set. */
int spc_comm_attach(spc_comm_t *comm);

/* ---- members ---- */

/* Converts a rank here to a rank in the segment. */
static inline uint32_t spc_comm_member(const spc_comm_t *comm, uint32_t rank) {
    return comm->members == NULL ? rank : comm->members[rank];
}

/* Whether there are members in other boxes: then shared memory does not reach all. */
static inline bool spc_comm_spans(const spc_comm_t *comm) {
    return comm->here != comm->size;
}

/* Whether this member is in this box. */
static inline bool spc_comm_is_here(const spc_comm_t *comm, uint32_t rank) {
    return spc_segment_is_here(&comm->node->segment, spc_comm_member(comm, rank));
}

/* Notes that this member leaves for the others. */
static inline const spc_note_shared_t *spc_comm_notes(const spc_comm_t *comm, uint32_t rank) {
    return spc_segment_part(&comm->node->segment, SPC_REGION_NOTE, spc_comm_member(comm, rank));
}

/* Whether `rank` has ended, or closed this communicator. */
static inline bool spc_comm_has_left(const spc_comm_t *comm, uint32_t rank) {
    if (spc_node_has_ended(comm->node, spc_comm_member(comm, rank))) {
        return true;
    }
    /* Pairs with close_split. */
    return comm->area.left != NULL && atomic_load_explicit(&comm->area.left[rank], memory_order_acquire) != 0;
}

/* Records that `rank` made a call fail; returns the status to return. SPC_EDISCONNECTED if the connection to a box is
 * lost: `rank` has ended because of that. */
static inline int spc_comm_blame(spc_comm_t *comm, uint32_t rank) {
    if (spc_node_is_disconnected(comm->node)) {
        return SPC_EDISCONNECTED;
    }
    atomic_store_explicit(&comm->culprit, (int32_t)rank, memory_order_relaxed);
    bool died = spc_status_state(comm->node->status, spc_comm_member(comm, rank)) == SPC_NODE_DIED;
    return died ? SPC_ELOST : SPC_EFINISHED;
}

/* The context of its messages of this kind. */
static inline uint16_t spc_comm_context(const spc_comm_t *comm, uint16_t kind) {
    return (uint16_t)(comm->number * SPC_CONTEXT_KINDS + kind);
}

/* A mask. PERTURBED: the schedule is perturbed, or sends wait: for the life of the communicator. */
enum { SPC_GATE_CLOSED = 1, SPC_GATE_PERTURBED = 2 };

/* Like spc_comm_usable. */
static inline int spc_comm_check_usable(const spc_comm_t *comm) {
    int status = spc_node_check_usable(comm->node);
    if (status == SPC_OK
        && (atomic_load_explicit(&comm->gate, memory_order_acquire) & SPC_GATE_CLOSED) != 0) {
        return SPC_ECLOSED;
    }
    return status;
}

/* A status that no caller of the communicator sees, beside those of spc_error.h: the call is allowed, and the perturber
 * has a part in it (spc_comm_perturb.h). */
enum { SPC_PERTURBED = 1 };

/* The same where calls begin: or SPC_PERTURBED. An unperturbed run pays nothing for the difference. */
static inline int spc_comm_check_callable(const spc_comm_t *comm) {
    int status = spc_node_check_usable(comm->node);
    if (status == SPC_OK) {
        uint32_t gate = atomic_load_explicit(&comm->gate, memory_order_acquire);
        if (__builtin_expect(gate != 0, 0)) {
            return (gate & SPC_GATE_CLOSED) != 0 ? SPC_ECLOSED : SPC_PERTURBED;
        }
    }
    return status;
}

/* The status of check_callable, in a call that returns rather than wait: its caller goes on with the call that waits,
 * and the perturber has its part in that. */
static inline int spc_comm_defer_perturbed(int status) {
    return status == SPC_PERTURBED ? SPC_EAGAIN : status;
}

/* ---- messages ---- */

/* Sends the message if there is room, even if it takes a while to copy. SPC_EAGAIN: not yet. Without the node's
 * lock. */
int spc_comm_attempt_send(spc_node_t *node, spc_send_call_t *call);

/* One destination of a message whose receipt is awaited. */
typedef struct spc_awaited {
    int32_t destination; /* rank of the segment */
    uint32_t rank; /* the same as a rank of the communicator */
    uint64_t number; /* of the message: spc_receipt.h */
} spc_awaited_t;

/* A send that waits until the message has been taken. */
typedef struct spc_synchronous_call {
    spc_send_call_t *send; /* which points back */
    spc_awaited_t *awaited; /* room for all destinations */
    uint32_t count; /* of them */
    uint32_t next; /* all destinations before this one have taken it */
    bool sent; /* before, it waits for room in the queue */
    bool content; /* not an ssend: the node itself does not count, nor do nodes that end without taking it */
} spc_synchronous_call_t;

/* Whether the message has been taken. Without the lock. */
bool spc_comm_is_taken(const spc_comm_t *comm, const spc_awaited_t *awaited);

/* Checks a receive, and determines its match for the inbox; or SPC_PERTURBED. Inline, because every receive begins with
 * it. */
static inline int spc_comm_match(const spc_comm_t *comm, int32_t source, int32_t tag, uint16_t kind,
                                 spc_match_t *match) {
    if (source != SPC_ANY_SOURCE && (uint32_t)source >= comm->size) {
        return SPC_ERANK;
    }
    match->source = source;
    match->tag = tag;
    match->context = spc_comm_context(comm, kind);
    match->posted = NULL;
    if (comm->members != NULL && source != SPC_ANY_SOURCE) {
        match->source = (int32_t)comm->members[source];
    }
    return spc_comm_check_callable(comm);
}

/* For spc_node_wait_t.doomed: whether a message that matches may still come. */
int spc_comm_doomed_match(spc_comm_t *comm, const spc_match_t *match);

/* The source of the taken message, as a rank of this communicator. Returns the status. */
static inline int spc_comm_name_source(const spc_comm_t *comm, int status, spc_message_t *message) {
    if (comm->rank_of != NULL && status == SPC_OK) {
        message->source = comm->rank_of[message->source];
    }
    return status;
}

/* ---- descriptions of waits: for spc_node_wait_t.describe, with the node's lock ---- */

static inline void spc_comm_describe(const spc_comm_t *comm, spc_board_kind_t kind, int32_t source,
                                     int32_t tag, spc_board_entry_t *entry) {
    entry->kind = kind;
    entry->communicator = comm->number;
    entry->rank = comm->rank;
    entry->size = comm->size;
    entry->source = source;
    entry->tag = tag;
}

static inline void spc_comm_need(const spc_comm_t *comm, uint32_t rank, spc_board_pair_t *pairs) {
    pairs[spc_comm_member(comm, rank)].needed = rank + 1;
}

static inline void spc_comm_need_others(const spc_comm_t *comm, spc_board_pair_t *pairs) {
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (rank != comm->rank) {
            spc_comm_need(comm, rank, pairs);
        }
    }
}

static inline int32_t spc_comm_rank_of(const spc_comm_t *comm, int32_t member) {
    return member < 0 || comm->rank_of == NULL ? member : comm->rank_of[member];
}

void spc_comm_describe_match(const spc_comm_t *comm, const spc_match_t *match, spc_board_entry_t *entry,
                             spc_board_pair_t *pairs);
void spc_comm_describe_receipt(const spc_comm_t *comm, const spc_synchronous_call_t *call,
                               spc_board_entry_t *entry, spc_board_pair_t *pairs);
void spc_comm_describe_phase(const spc_comm_t *comm, spc_board_kind_t kind, uint64_t phase,
                             spc_board_entry_t *entry, spc_board_pair_t *pairs);

/* ---- collectives ---- */

static inline bool spc_comm_is_pending(const spc_comm_t *comm) {
    return atomic_load_explicit(&comm->pending.entered, memory_order_relaxed);
}

/* Before a phase is entered: settles open fuzzy barriers whose bank it may need. */
static inline void spc_comm_settle_fuzzy(spc_comm_t *comm) {
    /* Acquire pairs with the release in fuzzy_leave; barriers are only opened by the thread that is inside. */
    if (atomic_load_explicit(&comm->fuzzy_open, memory_order_acquire) != 0) {
        pthread_mutex_lock(&comm->fuzzy_lock);
        spc_fuzzy_settle(&comm->fuzzy);
        pthread_mutex_unlock(&comm->fuzzy_lock);
    }
}

/* True if this thread may continue: it has entered now, or was inside already (after a poll that was not over). False
 * in functions that a wait of this thread calls. */
static inline bool spc_comm_enter(spc_comm_t *comm) {
    uintptr_t nobody = 0;
    uintptr_t self = spc_node_this_thread();
    /* Acquire pairs with the release in leave: the last thread's changes to the reducer are visible. */
    return atomic_compare_exchange_strong_explicit(&comm->collective, &nobody, self, memory_order_acquire,
                                                   memory_order_relaxed)
           || (nobody == self && !comm->waits);
}

static inline void spc_comm_leave(spc_comm_t *comm) { /* pairs with enter */
    atomic_store_explicit(&comm->collective, 0, memory_order_release);
}

/* spc_comm_collective, after enter and before leave. */
int spc_comm_collective_inside(spc_comm_t *comm, const spc_signature_t *signature, const spc_field_t *fields,
                               const void *value, uint64_t length_bytes, void *result, uint64_t deadline_ns);

#endif
