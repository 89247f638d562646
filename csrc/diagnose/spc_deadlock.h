/* SPDX-License-Identifier: MIT */
/*
 * spc_deadlock: proves that some nodes wait for ever.
 *
 * The supervisor looks now and then; a look takes nothing from the nodes. Nodes whose boards are published may be
 * stuck. The *able* ones among these are struck out again and again until none is left:
 *
 *   - its event has been raised since its last test: it has been told of something that it has not looked at
 *   - its wait may end by itself (spc_board doubts), or it has not considered all ends of nodes yet
 *   - something has come to it that it has not read
 *   - it has something queued: nodes that wait read what comes, and so make room
 *   - it has message handlers, and any node is able: that one may send, and the handler do anything
 *   - RECEIVE     one of those it needs is able
 *   - PHASE       all have arrived, or one that has not is able: it may arrive, or end, which ends the wait
 *   - CYCLE       all have arrived, or one of those it needs is able: it may still have queued messages for it
 *   - SEND        any node is able: it may give back room
 *   - RECEIPT     it is given, or the one it needs is able
 *
 * A node that does not wait is able; one that has ended, and of whose end all have been told, is not. If the boards of
 * those that are left are still the same then, none of them has done anything while we looked, so all was read as of
 * one moment. And none will ever do anything: each waits for what only others of them could do, and has been told of
 * all that they did before. docs/internals/deadlock.md argues it, tests/models/deadlock.pml checks it.
 *
 * Waiting in vain is a weaker question: may any of them get what it waits for? There a PHASE is not struck out
 * once one that has not arrived is left, because no end completes it: it makes it fail. A program may catch that and
 * go on, so that is worth a warning, and is no proof that the run is over.
 *
 * Over several boxes each one reads the boards of its own nodes by spc_deadlock_read, and the detector looks at what
 * all of them have read, put together: net/gateway/spc_gateway_deadlock.c.
 *
 * Memory: private to the caller, 6 bytes a node. Cost of a look: a load a node; where nodes wait for long, eight cache
 * lines each; where they may be stuck, two for each pair of them.
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

/* Before the first look: it is to find those who wait in vain, until a wait of one of them fails. */
void spc_deadlock_find_vain(spc_deadlock_t *deadlock);

/* How many nodes are proven to wait for ever: 0, until two looks in a row have found the same ones. */
uint32_t spc_deadlock_look(spc_deadlock_t *deadlock);

/* How many the last look has found by itself, whatever the one before did. */
uint32_t spc_deadlock_suspects(const spc_deadlock_t *deadlock);

/* What this node waits for; `pair`: nodes + 1 of them. False: it runs, or what lies in this segment may end its wait.
 * Who else may is not asked: whom it needs, and who may make room for what it has queued. */
bool spc_deadlock_read(spc_deadlock_t *deadlock, uint32_t rank, spc_board_entry_t *entry,
                       spc_board_pair_t *pair);

/* Is this one of them? As of the last look. */
bool spc_deadlock_has(const spc_deadlock_t *deadlock, uint32_t rank);

#endif
