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

/* How a wait failed that needed somebody who has ended. */
typedef struct spc_culprit {
    int32_t rank;
    spc_node_state_t state;
    int32_t reason;
} spc_culprit_t;

struct spc_comm {
    spc_segment_t segment;
    const spc_config_t *config;
    uint32_t rank;
    uint32_t size;
    uint32_t polls; /* of the poll_ calls; 0 where cores are shared */
    spc_owner_mark_t owner;
    _Atomic bool closed;
    int (*check)(void *argument);
    void *check_argument;

    spc_status_shared_t *status;
    spc_event_shared_t *events; /* of all nodes */
    spc_event_shared_t *event;  /* this node's */

    pthread_mutex_t lock; /* inbox and outbox; held for a match or a copy, never while waiting or calling back */
    spc_inbox_t *inbox;
    spc_outbox_t *outbox;

    /* Waiting together: spc_comm_wait.c. */
    _Atomic uint32_t draining;  /* 1: a thread waits on the node's event and drains for all */
    _Atomic uint32_t followers; /* threads that wait on `handover` */
    _Atomic uint32_t handover;  /* bumped when followers should look again; private to the process */
    spc_waiter_t waiter;        /* of the draining thread */

    /* Collectives: one thread at a time, the owner of `collective`. */
    _Atomic uintptr_t collective; /* the thread inside, or 0 */
    spc_reduce_t *reduce;
    spc_fuzzy_t fuzzy;
    pthread_mutex_t fuzzy_lock; /* the list of fuzzy barriers, which any thread may leave */
    _Atomic uint32_t fuzzy_open; /* its length: nothing to settle if 0 */
    spc_pending_t pending;
    uint64_t last_phase; /* of the last GATHER or mismatch */
    spc_culprit_t culprit;
};

/* A wait of one thread. `test` and `doomed` run without the lock. */
typedef struct spc_comm_wait {
    spc_comm_t *comm;
    bool (*test)(struct spc_comm_wait *wait);
    /* Somebody has ended: can the wait still be satisfied? SPC_OK, or SPC_ELOST/SPC_EFINISHED with comm->culprit. */
    int (*doomed)(struct spc_comm_wait *wait);
    void *argument;
    int status;     /* what test found */
    uint32_t epoch; /* ends that have been considered */
    bool leads;     /* this thread drains for the others */
} spc_comm_wait_t;

/* SPC_OK when test said so; else as spc_wait. */
int spc_comm_wait_for(spc_comm_wait_t *wait, uint64_t deadline_ns);

/* Sends what is queued and drains what arrived. */
void spc_comm_progress(spc_comm_t *comm);

/* Records that `rank` ended; gives the status to return. */
int spc_comm_blame(spc_comm_t *comm, uint32_t rank);

static inline bool spc_comm_has_ended(const spc_comm_t *comm, uint32_t rank) {
    return spc_status_state(comm->status, rank) >= SPC_NODE_FINISHED;
}

#endif
