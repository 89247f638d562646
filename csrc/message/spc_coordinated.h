/* SPDX-License-Identifier: MIT */
/*
 * spc_coordinated: counts coordinated messages (SpeedesComm 2.3), to determine when a node has received all of a cycle.
 *
 * In a cycle of a communicator, all nodes send any number of messages, then all receive until each has been handed all
 * messages sent to it. No node knows their number beforehand. So every node counts its messages, by destination: its
 * row. Its first receive of the cycle publishes the row, and enters one phase of the reducer. When the phase is
 * complete all rows are there; a node must be handed as many messages as the sum of its column, and then the cycle is
 * over for it.
 *
 * This module has the account of one node, and the rows in shared memory. It does not wait, and knows neither messages
 * nor phases: the communicator (spc_comm_coordinated.c) sends, receives and enters phases, and reports that. Use it
 * under the node's lock, from one thread at a time; any thread may call spc_coordinated_is_open at any time.
 *
 * Why no node ends a cycle too early, or waits for ever
 * - A send raises the row and hands its message to the outbox within one hold of the lock, and only while the row is
 *   not published. So a row published by another thread counts exactly the messages that the outbox has taken. A
 *   message that the outbox refuses is uncounted within the same hold.
 * - Rows are added up only after the phase is complete: then all of them have been published, and none changes.
 * - A message carries the number of its cycle and is handed over in no other; from one sender none is lost and none
 *   comes twice. So the expected total from all senders means all messages from each.
 *
 * Why two halves suffice. A node publishes cycle k in half k mod 2, where its row of k - 2 lies. It has ended k - 1, so
 * all have entered the phase of k - 1, hence has ended k - 2 and reads no row of it any more; the phase orders
 * those reads before this write. With one half it would overwrite the row of k - 1, which a slower node, whose phase is
 * complete too, has not read yet. For the same reason no node is more than one cycle ahead of another: to end k + 1 it
 * needs all nodes in the phase of k + 1.
 *
 * Numbers. Cycles are counted in 32 bits, and messages carry 31 of them as their tag. Both wrap, and they are compared
 * only for equality, between numbers that differ by two at most. A half's stamp is the cycle's number + 1, so that
 * zeroed memory is of no cycle; when that wraps to 0 the half holds the stamp of two cycles before.
 *
 * tests/models/coordinated.pml has the proof, and variants of it that fail.
 */
#ifndef SPC_COORDINATED_H
#define SPC_COORDINATED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_atomic.h"

typedef struct spc_coordinated_half_shared { /* two for each node; its node writes, all read */
    _Atomic uint32_t stamp; /* cycle + 1; release: the counts are written */
    uint32_t padding;
    uint64_t count[]; /* messages of that cycle, by destination */
} spc_coordinated_half_shared_t;

_Static_assert(sizeof(spc_coordinated_half_shared_t) == 8,
               "spc_coordinated_half_shared_t lies in shared memory");

typedef struct spc_coordinated spc_coordinated_t; /* private to a node */

/* Shared bytes for all nodes of a communicator together. All zeros is the valid start. */
uint64_t spc_coordinated_bytes(uint32_t nodes);

/* `shared`: those bytes, the same for all nodes, aligned to cache lines. `cycle`: the number of the first cycle; 0,
 * except for tests. SPC_EINVAL, SPC_ENOMEM. */
int spc_coordinated_create(void *shared, uint32_t rank, uint32_t nodes, uint32_t cycle,
                           spc_coordinated_t **coordinated);
void spc_coordinated_destroy(spc_coordinated_t *coordinated);

/* Whether the node is inside a cycle: from its first send or receive until the cycle is over. One relaxed load; any
 * thread. */
bool spc_coordinated_is_open(const spc_coordinated_t *coordinated);

/* The tag of messages of this node's cycle. */
int32_t spc_coordinated_tag(const spc_coordinated_t *coordinated);

/* Before a message is handed to the outbox: raises the row once for each destination. SPC_ECYCLE if the row has been
 * published: nothing was done. No destination at all begins a cycle, too. */
int spc_coordinated_note_send(spc_coordinated_t *coordinated, const int32_t *destinations, uint32_t count);

/* Undoes it for a message that the outbox has not taken for this destination; before the lock is released. The cycle
 * has not begun if this was all of it. */
void spc_coordinated_undo_send(spc_coordinated_t *coordinated, int32_t destination);

/* Called by the first receive, before it enters the phase: this node sends nothing more in this cycle. */
void spc_coordinated_publish(spc_coordinated_t *coordinated);
bool spc_coordinated_is_published(const spc_coordinated_t *coordinated);

/* After the phase is complete: adds up this node's column. Cost: a load from each node. False, and nothing was done, if
 * some row belongs to another cycle: then so did the phase. */
bool spc_coordinated_count(spc_coordinated_t *coordinated);
bool spc_coordinated_is_counted(const spc_coordinated_t *coordinated);

/* Records that a message of this cycle goes to the caller, or that the caller gave it back. */
void spc_coordinated_note_handed(spc_coordinated_t *coordinated, int32_t source);
void spc_coordinated_undo_handed(spc_coordinated_t *coordinated, int32_t source);

/* After counting: number of messages of `source` that are still to come. */
uint64_t spc_coordinated_missing(const spc_coordinated_t *coordinated, uint32_t source);

/* True: the column is counted, and all its messages are handed over. */
bool spc_coordinated_is_over(const spc_coordinated_t *coordinated);

/* The row that `rank` published last, and its stamp; and the same row as read by another box's gateway: for gateways,
 * between the arrival at a cycle's phase and its completion. */
uint32_t spc_coordinated_read_row(const void *shared, uint32_t rank, uint32_t nodes, uint64_t counts[]);
void spc_coordinated_write_row(void *shared, uint32_t rank, uint32_t nodes, uint32_t stamp,
                               const uint64_t counts[]);

/* After is_over: moves to the next cycle, which has not begun yet. */
void spc_coordinated_next(spc_coordinated_t *coordinated);

#endif
