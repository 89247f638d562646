/* SPDX-License-Identifier: MIT */
/*
 * spc_coordinated: the counting of coordinated messages (SpeedesComm 2.3): when has a node got all of a cycle?
 *
 * A cycle of a communicator is: all nodes send what they like, then all receive until each has been handed what was
 * sent to it. No node knows beforehand how much that is. So every node counts its messages, by destination: its row.
 * Its first receive of the cycle publishes the row, and enters one phase of the reducer. When the phase is complete
 * all rows are there; what a node must be handed is the sum of its column, and when it has been handed as much, the
 * cycle is over for it.
 *
 * Here is the account of one node, and the rows in shared memory. It does not wait, and knows neither messages nor
 * phases: the communicator (spc_comm_coordinated.c) sends, receives and enters phases, and tells. It is used under the
 * node's lock, by one thread at a time; spc_coordinated_is_open may be asked by any thread at any time.
 *
 * Why no node ends a cycle too early, or waits for ever
 * - A send raises the row and hands its message to the outbox within one hold of the lock, and only while the row is
 *   not published. So whatever another thread publishes holds exactly the messages that the outbox has taken. What the
 *   outbox refuses is undone within the same hold.
 * - Rows are added up only after the phase is complete: then all of them have been published, and none changes.
 * - A message carries the number of its cycle and is handed over in no other; from one sender none is lost and none
 *   comes twice. So as many as expected from all together means all from each.
 *
 * Why two halves suffice. A node publishes cycle k in half k mod 2, where its row of k - 2 lies. It has ended k - 1, so
 * all have entered the phase of k - 1, hence has ended k - 2 and reads no row of it any more; the phase orders
 * those reads before this write. With one half it would overwrite the row of k - 1, which a slower node, whose phase is
 * complete too, has not read yet. For the same reason no node is more than one cycle ahead of another: to end k + 1 it
 * needs all nodes in the phase of k + 1.
 *
 * Numbers. Cycles are counted in 32 bits, and messages carry 31 of them as their tag. Both wrap, and nothing is ever
 * compared but for equality, between numbers that differ by two at most. A half's stamp is the cycle's number + 1, so
 * that zeroed memory is of no cycle; when that wraps to 0 the half holds the stamp of two cycles before.
 *
 * tests/models/coordinated.pml has the proof, and variants of it that fail.
 */
#ifndef SPC_COORDINATED_H
#define SPC_COORDINATED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_atomic.h"

typedef struct spc_coordinated_half_shared { /* two a node; its node writes, all read */
    _Atomic uint32_t stamp; /* cycle + 1; release: the counts are written */
    uint32_t padding;
    uint64_t count[]; /* messages of that cycle, by destination */
} spc_coordinated_half_shared_t;

_Static_assert(sizeof(spc_coordinated_half_shared_t) == 8,
               "spc_coordinated_half_shared_t lies in shared memory");

typedef struct spc_coordinated spc_coordinated_t; /* private to a node */

/* Shared bytes for all nodes of a communicator together. All zeros is the valid start. */
uint64_t spc_coordinated_bytes(uint32_t nodes);

/* `shared`: those bytes, the same for all nodes, aligned to cache lines. `cycle`: the number of the first one; 0, but
 * for tests. SPC_EINVAL, SPC_ENOMEM. */
int spc_coordinated_create(void *shared, uint32_t rank, uint32_t nodes, uint32_t cycle,
                           spc_coordinated_t **coordinated);
void spc_coordinated_destroy(spc_coordinated_t *coordinated);

/* Inside a cycle: from its first send or receive until it is over. One relaxed load; any thread. */
bool spc_coordinated_is_open(const spc_coordinated_t *coordinated);

/* The tag that messages of this node's cycle carry. */
int32_t spc_coordinated_tag(const spc_coordinated_t *coordinated);

/* Before a message is handed to the outbox: raises the row once for each destination. SPC_ECYCLE if the row has been
 * published: nothing was done. No destination at all begins a cycle, too. */
int spc_coordinated_note_send(spc_coordinated_t *coordinated, const int32_t *destinations, uint32_t count);

/* The outbox has not taken the message for this destination; before the lock is let go. The cycle has not begun if
 * this was all of it. */
void spc_coordinated_undo_send(spc_coordinated_t *coordinated, int32_t destination);

/* By the first receive, before it enters the phase: this node sends nothing more in this cycle. */
void spc_coordinated_publish(spc_coordinated_t *coordinated);
bool spc_coordinated_is_published(const spc_coordinated_t *coordinated);

/* After the phase is complete: adds up this node's column. Cost: a load from each node. False, and nothing was done, if
 * some row is not of this cycle: then the phase was not. */
bool spc_coordinated_count(spc_coordinated_t *coordinated);
bool spc_coordinated_is_counted(const spc_coordinated_t *coordinated);

/* A message of this cycle goes to the caller, or was given back by it. */
void spc_coordinated_note_handed(spc_coordinated_t *coordinated, int32_t source);
void spc_coordinated_undo_handed(spc_coordinated_t *coordinated, int32_t source);

/* After counting: messages of `source` that are still to come. */
uint64_t spc_coordinated_missing(const spc_coordinated_t *coordinated, uint32_t source);

/* Counted, and all handed over. */
bool spc_coordinated_is_over(const spc_coordinated_t *coordinated);

/* The row that `rank` published last, and its stamp; and the same row as another box's gateway has read it: for
 * gateways, between the arrival at a cycle's phase and its completion. */
uint32_t spc_coordinated_read_row(const void *shared, uint32_t rank, uint32_t nodes, uint64_t counts[]);
void spc_coordinated_write_row(void *shared, uint32_t rank, uint32_t nodes, uint32_t stamp,
                               const uint64_t counts[]);

/* After is_over: the next cycle, which has not begun yet. */
void spc_coordinated_next(spc_coordinated_t *coordinated);

#endif
