/* SPDX-License-Identifier: MIT */
/*
 * spc_deadlock: proves that some nodes wait for ever.
 *
 * The agent looks now and then; a look takes nothing from the nodes. Nodes that have published the same board since the
 * last look may be stuck. Of these, the *able* ones are struck out again and again until none is left:
 *
 *   - something has come to it that it has not read, from a node that it does not refuse
 *   - it has something queued for a node that does not refuse it
 *   - its wait may end by itself (spc_board doubts), or it has not considered all ends of nodes yet
 *   - RECEIVE     one of those it needs is able
 *   - PHASE       all of those it needs have arrived or are able
 *   - CYCLE       all have arrived, or one who has not is able
 *   - SEND        one of those for whom it has something queued is able
 *   - RECEIPT     it is given, or the one it needs is able
 *
 * A node that does not wait is able; one that has ended is not. If the boards of those that are left are still the same
 * then, none of them has done anything while we looked, so all was read as of one moment. And none will ever do
 * anything: each waits for what only others of them could do. tests/models/deadlock.pml has the proof.
 *
 * Memory: private to the caller, 8 bytes a node. Cost of a look: a load a node; where nodes are stuck, two cache lines
 * for each pair of them.
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

/* How many nodes are proven to wait for ever: 0, until two looks in a row have found the same ones. */
uint32_t spc_deadlock_look(spc_deadlock_t *deadlock);

/* Is this one of them? As of the last look. */
bool spc_deadlock_has(const spc_deadlock_t *deadlock, uint32_t rank);

#endif
