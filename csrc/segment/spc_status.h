/* SPDX-License-Identifier: MIT */
/*
 * spc_status: state of each node: present, finished or died.
 *
 * A node writes its own LIVE and FINISHED; the supervisor writes FINISHED or DIED for a node whose process has ended or
 * has reported that it fails. The end that is written first stays. The epoch is raised after each end, and all nodes
 * are woken: a wait that needs the node looks at its line then. A node that sees an end (acquire) also sees all earlier
 * announcements of that node.
 *
 * One more line follows the nodes' lines: that of the box's connection to the others. It is DIED once nothing comes
 * from them any more, and its reason is the box whose connection broke. Then no wait can succeed.
 *
 * A node that has finished, or has reported its failure, may still hold received messages; only when it is gone may its
 * memory be taken from it. When a process ends without a report, the supervisor publishes that it is gone before it
 * publishes the end, so survivors that the end wakes find that memory free (tests/models/arena_moves.pml). When the
 * failure was reported first, a node that counts memory in use waits until the dead node is gone.
 */
#ifndef SPC_STATUS_H
#define SPC_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_atomic.h"
#include "segment/spc_event.h"

typedef enum spc_node_state {
    SPC_NODE_STARTING, /* zero: the process may not even exist yet */
    SPC_NODE_LIVE,
    SPC_NODE_FINISHED,
    SPC_NODE_DIED,
} spc_node_state_t;

typedef struct spc_status_line_shared {
    _Atomic uint32_t state;
    _Atomic int32_t reason; /* FINISHED, DIED: exit code, or minus the signal; valid once the state is set */
    _Atomic int32_t process; /* its process id, once LIVE */
    _Atomic uint32_t gone; /* 1: its process no longer reads or writes the segment */
    _Atomic uint32_t told; /* 1: the epoch has been raised for its end, and the events of all nodes */
    _Atomic uint32_t raised; /* errors that are alive in this node, and that it has sent to others */
    /* Relaxed, by the node, for messages from SPC_STATUS_LARGE_BYTES on: twice the bytes, plus 1 if it sends; 0:
     * none. A reader that finds `moved` changed, or equal to all of it, knows that the node is busy with it. */
    _Atomic uint64_t moving;
    _Atomic uint64_t moved;
    unsigned char padding[SPC_CACHE_LINE - 40];
} spc_status_line_shared_t;

typedef struct spc_status_shared {
    _Atomic uint32_t epoch; /* how many nodes have ended, or left a communicator */
    uint32_t nodes; /* written once, at creation */
    unsigned char padding[SPC_CACHE_LINE - 8];
    spc_status_line_shared_t line[]; /* one line for each node, and one for the connection */
} spc_status_shared_t;

_Static_assert(sizeof(spc_status_line_shared_t) == 64, "spc_status_line_shared_t lies in shared memory");
_Static_assert(sizeof(spc_status_shared_t) == 64, "spc_status_shared_t lies in shared memory");

uint64_t spc_status_bytes(uint32_t lines);

#define SPC_STATUS_SERVER (-1) /* not a box: the server to which all boxes are connected */

/* Called by the node itself. */
void spc_status_set_live(spc_status_shared_t *status, uint32_t rank, int32_t process);

/* Called by the node at its end (state FINISHED), or by the supervisor, for a process that is gone or has reported its
 * failure. Only the first end of a node counts: a process that fails after its node has closed did not die for the
 * others. But a process that is killed while it ends may not have notified all: then the second call does. Wakes all
 * nodes: `events` is the array of all events. */
void spc_status_end(spc_status_shared_t *status, uint32_t rank, spc_node_state_t state, int32_t reason,
                    spc_event_shared_t *events, uint32_t event_count, uint32_t features);

/* Called by a node that has published elsewhere that it leaves an operation for good: raises the epoch, wakes all
 * nodes. */
void spc_status_news(spc_status_shared_t *status, spc_event_shared_t *events, uint32_t event_count,
                     uint32_t features);

/* Called by the supervisor: the process no longer exists, so it uses nothing. Before spc_status_end, unless the failure
 * was reported first. Wakes nodes that need room. */
void spc_status_set_gone(spc_status_shared_t *status, uint32_t rank, spc_event_shared_t *events,
                         uint32_t event_count, uint32_t features);

/* Called by the node: counts one more error (1), or one less (-1), that it sends to others. As long as one is alive, it
 * may yet end the node, and is to blame then for its consequences elsewhere. */
static inline void spc_status_count_raised(spc_status_shared_t *status, uint32_t rank, int32_t change) {
    /* Pairs with spc_status_has_raised: before others get it, and after the node has reported that it fails. */
    atomic_fetch_add_explicit(&status->line[rank].raised, (uint32_t)change, memory_order_seq_cst);
}

static inline bool spc_status_has_raised(const spc_status_shared_t *status, uint32_t rank) {
    /* Pairs with spc_status_count_raised: a reader of 0 for an error that was reported finds the report. */
    return atomic_load_explicit(&status->line[rank].raised, memory_order_seq_cst) != 0;
}

#define SPC_STATUS_LARGE_BYTES (UINT64_C(16) << 20)

/* Called by the node, before a single copy of that many bytes, and with 0 after it. */
static inline void spc_status_set_copying(spc_status_shared_t *status, uint32_t rank, uint64_t bytes) {
    const uint64_t moving = bytes >= SPC_STATUS_LARGE_BYTES ? 2 * bytes + 1 : 0;
    atomic_store_explicit(&status->line[rank].moved, bytes, memory_order_relaxed);
    atomic_store_explicit(&status->line[rank].moving, moving, memory_order_relaxed);
}

/* Called by the node, after each part of a message that it copies. */
static inline void spc_status_set_moved(spc_status_shared_t *status, uint32_t rank, bool sends,
                                        uint64_t bytes, uint64_t moved_bytes) {
    if (bytes >= SPC_STATUS_LARGE_BYTES) {
        const uint64_t moving = moved_bytes < bytes ? 2 * bytes + sends : 0;
        atomic_store_explicit(&status->line[rank].moved, moved_bytes, memory_order_relaxed);
        atomic_store_explicit(&status->line[rank].moving, moving, memory_order_relaxed);
    }
}

/* The message that it copies, as above, and how far it is: a hint, for a display. */
static inline uint64_t spc_status_moving(const spc_status_shared_t *status, uint32_t rank,
                                         uint64_t *moved_bytes) {
    *moved_bytes = atomic_load_explicit(&status->line[rank].moved, memory_order_relaxed);
    return atomic_load_explicit(&status->line[rank].moving, memory_order_relaxed);
}

static inline bool spc_status_is_gone(const spc_status_shared_t *status, uint32_t rank) {
    /* seq_cst: part of the second test of a sender that waits for room. Pairs with spc_status_set_gone. */
    return atomic_load_explicit(&status->line[rank].gone, memory_order_seq_cst) != 0;
}

/* Whether all nodes have been notified of its end. A node that then reads the epoch reads one that counts it. */
static inline bool spc_status_is_told(const spc_status_shared_t *status, uint32_t rank) {
    /* Pairs with spc_status_end. */
    return atomic_load_explicit(&status->line[rank].told, memory_order_seq_cst) != 0;
}

static inline spc_node_state_t spc_status_state(const spc_status_shared_t *status, uint32_t rank) {
    /* Pairs with the release in spc_status_end and spc_status_set_live. */
    return (spc_node_state_t)atomic_load_explicit(&status->line[rank].state, memory_order_acquire);
}

/* 0 until it is LIVE. */
static inline int32_t spc_status_process(const spc_status_shared_t *status, uint32_t rank) {
    return atomic_load_explicit(&status->line[rank].process, memory_order_relaxed); /* written once */
}

static inline uint32_t spc_status_epoch(const spc_status_shared_t *status) {
    /* seq_cst: part of the sleeper's second test. Pairs with the addition in spc_status_end. */
    return atomic_load_explicit(&status->epoch, memory_order_seq_cst);
}

#endif
