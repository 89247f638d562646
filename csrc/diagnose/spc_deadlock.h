/* SPDX-License-Identifier: MIT */
/*
 * spc_deadlock: proves that some nodes wait for ever.
 *
 * The supervisor looks now and then; a look takes nothing from the nodes. Nodes whose boards are published may be
 * stuck. The *able* ones among these are struck out again and again until none is left:
 *
 *   - its event has been raised since its last test: it has not looked at that change yet
 *   - its wait may end by itself (spc_board doubts), or it has not considered all ends of nodes yet
 *   - a message has come to it that it has not read
 *   - it has a queued message: nodes that wait read arriving messages, and so make room
 *   - it has message handlers, and any node is able: that one may send, and the handler do anything
 *   - RECEIVE     one of those it needs is able
 *   - PHASE       all have arrived, or one that has not is able: it may arrive, or end, which ends the wait
 *   - CYCLE       all have arrived, or one of those it needs is able: it may still have queued messages for it
 *   - SEND        any node is able: it may give back room
 *   - RECEIPT     it is given, or the one it needs is able
 *
 * A node that does not wait is able; a node whose end is known to all is not. If the boards of the remaining nodes are
 * then still the same, none of these nodes has done anything during the look, so all reads are of one moment. And none
 * will ever do anything: each waits for an action of another one of them, and knows all their earlier actions.
 * docs/internals/deadlock.md gives the argument, tests/models/deadlock.pml checks it.
 *
 * Waiting in vain is a weaker question: can the wait of any of them succeed? There a PHASE is not struck out once a
 * node that has not arrived is left, because an end does not complete it, but makes it fail. A program may catch that
 * and continue, so that is worth a warning, and is no proof that the run is over.
 *
 * Over several boxes each box reads the boards of its own nodes by spc_deadlock_read, and the detector examines the
 * combined results of all boxes: net/gateway/spc_gateway_deadlock.c.
 *
 * Memory: private to the caller, 6 bytes a node. Cost of a look: a load for each node; eight cache lines for each node
 * that waits for long; two for each pair of nodes that may be stuck.
 */
#ifndef SPC_DEADLOCK_H
#define SPC_DEADLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/spc_board.h"
#include "segment/spc_segment.h"

typedef struct spc_deadlock spc_deadlock_t;

/* `segment` stays the caller's, and outlives it. SPC_ENOMEM. */
int spc_deadlock_create(const spc_segment_t *segment, spc_deadlock_t **deadlock);
void spc_deadlock_destroy(spc_deadlock_t *deadlock);

/* Called before the first look, to find nodes that wait in vain, until a wait of one of them fails. */
void spc_deadlock_find_vain(spc_deadlock_t *deadlock);

/* Called before the first look, to find nodes that wait for ever unless one of these doubts (spc_board) ends it. */
void spc_deadlock_overlook(spc_deadlock_t *deadlock, uint32_t doubts);

/* The number of nodes proven to wait for ever: 0, until two looks in a row have found the same ones. */
uint32_t spc_deadlock_look(spc_deadlock_t *deadlock);

/* The number found by the last look alone, whatever the look before found. */
uint32_t spc_deadlock_suspects(const spc_deadlock_t *deadlock);

/* The wait of this node; `pair`: nodes + 1 of them. False: it runs, or its wait may end by something in this segment.
 * Nodes elsewhere are not considered: those it needs, and those that may make room for its queued messages. */
bool spc_deadlock_read(spc_deadlock_t *deadlock, uint32_t rank, spc_board_entry_t *entry,
                       spc_board_pair_t *pair);

/* Whether this node is one of them, as of the last look. */
bool spc_deadlock_has(const spc_deadlock_t *deadlock, uint32_t rank);

#endif
