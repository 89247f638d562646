/* SPDX-License-Identifier: MIT */
/*
 * spc_node: one process in its run: its attachment to the segment, its inbox and outbox, and the way its threads wait.
 *
 * There is one per process (ranks that are threads have one each); the communicators of that node share it. It knows
 * nothing of collectives, contexts or members: those belong to the communicators (spc_comm.h). Ranks here are the
 * segment's.
 *
 * Progress. Every wait of any kind sends queued messages and drains arrivals. One waiting thread, the leader, drains
 * for all of the node; the others sleep on a private word, and one of them takes over when it leaves.
 *
 * Used by the files of spc_comm only. `lock` guards inbox and outbox; it is held for a match or a copy, never while
 * waiting or calling back. A node lives until the last of its communicators is destroyed.
 */
#ifndef SPC_NODE_H
#define SPC_NODE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/spc_error.h"
#include "base/spc_platform.h"
#include "base/spc_wait.h"
#include "diagnose/spc_deadlock.h"
#include "message/spc_inbox.h"
#include "message/spc_outbox.h"
#include "message/spc_receipt.h"
#include "node/spc_node_times.h"
#include "segment/spc_board.h"
#include "segment/spc_event.h"
#include "segment/spc_note.h"
#include "segment/spc_segment.h"
#include "segment/spc_status.h"
#include "segment/spc_trace.h"

typedef struct spc_node {
    spc_segment_t segment;
    bool segment_is_borrowed;
    const spc_config_t *config;
    uint32_t rank;
    uint32_t size;
    spc_owner_mark_t owner;
    _Atomic bool closed;         /* release by close, acquire by calls: they see its end as complete */
    _Atomic int32_t failure;     /* the exit code with which its process will fail; relaxed: its thread's */
    _Atomic uint32_t references; /* communicators that are not destroyed */
    _Atomic uint32_t polls;      /* polls of a poll_ call: as many as have been worth it; relaxed: a hint */
    int (*check)(void *argument);
    int (*handle)(void *argument);
    int32_t (*locate)(void *argument, spc_board_entry_t *entry, uint64_t *own_signals);
    void *check_argument;
    /* NULL, or adds what the MPI library knows of the calling thread's call: its name, in C its line. */
    void (*annotate)(spc_board_entry_t *entry);
    uint64_t own_signals;
    _Atomic uint64_t perturbed_calls; /* relaxed; counted only in a perturbed run: spc_comm_perturb.h */

    spc_status_shared_t *status;
    spc_event_shared_t *events; /* of all nodes */
    spc_event_shared_t *event;  /* this node's */

    pthread_mutex_t lock;
    spc_note_shared_t *notes; /* this node's; written with the lock */
    spc_inbox_t *inbox;
    spc_outbox_t *outbox;
    spc_receipts_t *receipts; /* NULL until a send asks for one; with the lock */
    /* Receives that wait for their messages (comm/spc_request.h), in posting order; with the lock. */
    struct spc_request *posted; /* NULL: none */
    struct spc_request **posted_end;
    void (*claim)(struct spc_node *node); /* not NULL once something was posted */
    bool posted_again; /* a receive that has got a message now waits for another one */
    spc_numbers_t *numbers; /* of its communicators; with the lock */

    spc_trace_t trace;
    spc_trace_t *tracing; /* &trace, or NULL: nothing is recorded */
    spc_node_times_t times;
    spc_node_times_t *timing; /* &times, or NULL: nothing is counted */
    pthread_t first; /* the thread that has created the node: its times count; the next two are its own */
    uint64_t core_ticks; /* when it was last looked up */
    uint64_t core_wait_ns;

    /* Waiting together. */
    _Atomic uintptr_t leader; /* the thread that waits on the node's event and drains for all, or 0 */
    _Atomic uint32_t followers; /* threads that wait on `handover` */
    _Atomic uint32_t handover; /* bumped when followers should look again; private to the process */
    spc_waiter_t waiter; /* of the leader */
    _Atomic bool moved; /* part of a message has come; relaxed: the leader polls for the next part */

    /* The leader's published state. */
    spc_board_shared_t *board; /* NULL: there is none */
    const struct spc_node_wait *located; /* the thread whose caller `entry` names */
    spc_board_entry_t entry;
    spc_board_pair_t *pairs; /* of all nodes, and of the gateway */
    spc_deadlock_t *deadlock; /* NULL unless spc_comm_watch_itself was called; the same for the next two */
    int (*warn)(void *argument);
    bool has_warned; /* read and written by the first thread */
} spc_node_t;

/* Looks for a message while the lock is held once: a fraction of a microsecond, in which other threads may want it. */
enum { SPC_NODE_LOOKS = 8 };

#define SPC_NODE_INTERRUPTED INT32_MIN /* in place of a number of threads: a signal came meanwhile */

typedef struct spc_node_options {
    const spc_segment_t *segment; /* borrowed; NULL: attach by descriptor */
    int descriptor;
    uint32_t rank;
    int (*check)(void *argument); /* may be NULL; see spc_comm_options_t */
    int (*handle)(void *argument); /* may be NULL; the same */
    void *check_argument;
    int32_t (*locate)(void *argument, spc_board_entry_t *entry, uint64_t *own_signals); /* the same */
    uint64_t own_signals; /* a bit a signal, 1 << (number - 1), with a handler known to be harmless */
} spc_node_options_t;

/* Joins the run as this rank: its state becomes LIVE. The caller holds the one reference. */
int spc_node_create(const spc_node_options_t *options, spc_node_t **node);

void spc_node_retain(spc_node_t *node);

/* In a traced run, when a computation or a wait ends, at `ticks` by spc_trace_now: records how long the node's first
 * thread waited for a core in it. Any thread; does nothing in others, and within a millisecond of the last look-up. */
void spc_node_trace_core(spc_node_t *node, uint64_t ticks);

/* The last reference frees it. It does not leave the run: close does. */
void spc_node_release(spc_node_t *node);

/* Waits until nothing is queued any more. */
int spc_node_flush(spc_node_t *node, uint64_t deadline_ns);

/* Sends queued messages (until the deadline), then publishes FINISHED. SPC_ETIMEDOUT if some message could not be sent;
 * finished all the same. SPC_EINTERRUPTED: nothing has changed. */
int spc_node_close(spc_node_t *node, uint64_t deadline_ns);

/* ---- waiting ---- */

/* A wait of one thread. `test` and `doomed` run without the lock. */
typedef struct spc_node_wait {
    spc_node_t *node;
    bool (*test)(struct spc_node_wait *wait);
    /* A node has ended or left: can the wait still be satisfied? SPC_OK, or the reason why not; SPC_EAGAIN: that may
     * change without another end. */
    int (*doomed)(struct spc_node_wait *wait);
    /* With the lock: describes the call, and in pairs[].needed the nodes it needs. NULL: there is no description. */
    void (*describe)(const struct spc_node_wait *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs);
    void *owner; /* the communicator */
    void *argument; /* the call */
    int status; /* result of test */
    uint32_t epoch; /* number of ends that have been considered */
    int ended; /* SPC_OK, or why it cannot be satisfied any more */
    bool done; /* test has succeeded: it is not called again, for it may have taken a message */
    bool leads; /* this thread drains for the others */
    uint64_t deadline_ns;
    uint32_t slices; /* duration of sleep, so far */
    bool is_located;
    bool is_published;
} spc_node_wait_t;

/* SPC_OK when test succeeds; else as spc_wait, or the status of doomed. */
int spc_node_wait_for(spc_node_wait_t *wait, uint64_t deadline_ns);

/* Tests, and waits if that was in vain: the status that the successful test has left, or that of the wait. */
static inline int spc_node_test_or_wait(spc_node_wait_t *wait, uint64_t deadline_ns) {
    const int status = wait->test(wait) ? SPC_OK : spc_node_wait_for(wait, deadline_ns);
    return status == SPC_OK ? wait->status : status;
}

/* Sends queued messages and drains arrivals. */
void spc_node_progress(spc_node_t *node);

/* With the lock: hands messages to posted receives, which come before any receive that is called later. */
static inline void spc_node_claim(spc_node_t *node) {
    if (__builtin_expect(node->posted != NULL, 0)) {
        node->claim(node);
    }
}

/* With the lock, while there are posted receives: takes only what they have been offered. A message that arrives just
 * now may be for one of them. */
int spc_node_take_behind(spc_node_t *node, const spc_match_t *match, spc_message_t *message);

/* With the lock: as spc_inbox_take, for a receive that posted ones come before. */
static inline int spc_node_take(spc_node_t *node, const spc_match_t *match, spc_message_t *message) {
    if (__builtin_expect(node->posted == NULL, 1)) {
        return spc_inbox_take(node->inbox, match, message);
    }
    return spc_node_take_behind(node, match, message);
}

/* Unlocks after the inbox was used: wakes threads of this node whose waits may now be satisfied. */
void spc_node_unlock(spc_node_t *node);

/* A name for the calling thread; never 0. */
uintptr_t spc_node_this_thread(void);

/* ---- simple queries ---- */

/* SPC_OK, SPC_ECLOSED or SPC_EFORKED. */
static inline int spc_node_check_usable(const spc_node_t *node) {
    if (!spc_owner_mark_holds(&node->owner)) {
        return SPC_EFORKED;
    }
    return atomic_load_explicit(&node->closed, memory_order_acquire) ? SPC_ECLOSED : SPC_OK;
}

/* A poll has found nothing. Relaxed: a hint for the supervisor. */
static inline void spc_node_note_vain(const spc_node_t *node) {
    if (node->board != NULL) {
        atomic_fetch_add_explicit(&node->board->vain, 1, memory_order_relaxed);
    }
}

/* With several boxes: whether nothing can come from the others any more. */
static inline bool spc_node_is_disconnected(const spc_node_t *node) {
    return spc_status_state(node->status, node->size) == SPC_NODE_DIED;
}

static inline bool spc_node_has_ended(const spc_node_t *node, uint32_t rank) {
    return spc_status_state(node->status, rank) >= SPC_NODE_FINISHED;
}

#endif
