/* SPDX-License-Identifier: MIT */
/*
 * spc_comm_private: what the four files of the communicator share. Nobody else includes it.
 *
 *   spc_comm.c             life, plan, small questions
 *   spc_comm_wait.c        how its threads wait together
 *   spc_comm_message.c     sending and receiving
 *   spc_comm_collective.c  collectives and fuzzy barriers
 */
#ifndef SPC_COMM_PRIVATE_H
#define SPC_COMM_PRIVATE_H

#include <pthread.h>

#include "base/spc_wait.h"
#include "message/spc_inbox.h"
#include "message/spc_outbox.h"
#include "reduce/spc_fuzzy.h"
#include "reduce/spc_reduce.h"
#include "segment/spc_event.h"
#include "spc_comm.h"

/* The collective that a node is inside of, or left by a timeout. */
typedef struct spc_pending {
    bool entered;
    uint64_t phase;
    spc_signature_t signature;
} spc_pending_t;

struct spc_comm {
    spc_segment_t segment;
    bool segment_is_borrowed;
    const spc_config_t *config;
    uint32_t rank;
    uint32_t size;
    _Atomic uint32_t polls; /* of the poll_ calls: as many as have been worth it lately; relaxed: a hint */
    spc_owner_mark_t owner;
    _Atomic bool closed; /* release by close, acquire by calls: they see its end as complete */
    int (*check)(void *argument);
    void *check_argument;

    spc_status_shared_t *status;
    spc_event_shared_t *events; /* of all nodes */
    spc_event_shared_t *event;  /* this node's */

    pthread_mutex_t lock; /* inbox and outbox; for a match or a copy, never while waiting or calling back */
    spc_inbox_t *inbox;
    spc_outbox_t *outbox;

    /* Waiting together: spc_comm_wait.c. */
    _Atomic uintptr_t leader;   /* the thread that waits on the node's event and drains for all, or 0 */
    _Atomic uint32_t followers; /* threads that wait on `handover` */
    _Atomic uint32_t handover;  /* bumped when followers should look again; private to the process */
    spc_waiter_t waiter;        /* of the leader */

    /* Collectives: one thread at a time, the owner of `collective`. */
    _Atomic uintptr_t collective; /* the thread inside, or 0 */
    spc_reduce_t *reduce;
    spc_fuzzy_t fuzzy;
    pthread_mutex_t fuzzy_lock; /* the list of fuzzy barriers, which any thread may leave */
    _Atomic uint32_t fuzzy_open; /* its length: nothing to settle if 0 */
    spc_pending_t pending;
    _Atomic uint64_t last_phase; /* of the last GATHER or mismatch; relaxed: who asks was just told of it */
    _Atomic int32_t culprit; /* relaxed: the rank that made a call fail; threads may overwrite each other's */
};

/* A wait of one thread. `test` and `doomed` run without the lock. */
typedef struct spc_comm_wait {
    spc_comm_t *comm;
    bool (*test)(struct spc_comm_wait *wait);
    /* Somebody has ended: can the wait still be satisfied? SPC_OK, or SPC_ELOST/SPC_EFINISHED with comm->culprit;
     * SPC_EAGAIN: that may change without another end. */
    int (*doomed)(struct spc_comm_wait *wait);
    void *argument;
    int status; /* what test found */
    uint32_t epoch; /* ends that have been considered */
    int ended; /* SPC_OK, or why it cannot be satisfied any more */
    bool done; /* test has said so: it is not asked again, for it may have taken a message */
    bool leads; /* this thread drains for the others */
} spc_comm_wait_t;

/* Polls of a poll_ call, as the leader's waits have found them to be worth: about two microseconds at most, which is
 * less than what giving an interpreter's lock away and taking it again may cost. */
void spc_comm_choose_polls(spc_comm_t *comm);

/* SPC_OK when test said so; else as spc_wait. */
int spc_comm_wait_for(spc_comm_wait_t *wait, uint64_t deadline_ns);

/* Sends what is queued and drains what arrived. */
void spc_comm_progress(spc_comm_t *comm);

/* Unlocks after the inbox was used: wakes the threads of this node that may now find what they wait for. */
void spc_comm_unlock(spc_comm_t *comm);

/* A name for the calling thread; never 0. */
uintptr_t spc_comm_this_thread(void);

/* Records that `rank` ended; gives the status to return. */
int spc_comm_blame(spc_comm_t *comm, uint32_t rank);

/* As spc_comm_usable, where each call passes. */
static inline int spc_comm_check_usable(const spc_comm_t *comm) {
    if (!spc_owner_mark_holds(&comm->owner)) {
        return SPC_EFORKED;
    }
    return atomic_load_explicit(&comm->closed, memory_order_acquire) ? SPC_ECLOSED : SPC_OK;
}

static inline bool spc_comm_has_ended(const spc_comm_t *comm, uint32_t rank) {
    return spc_status_state(comm->status, rank) >= SPC_NODE_FINISHED;
}

#endif
