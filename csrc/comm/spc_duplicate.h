/* SPDX-License-Identifier: MIT */
/*
 * spc_duplicate: a communicator with the members of another one, which is made without waiting for them.
 *
 * Any number of duplicates, of one communicator or of several, may be under way. The members of a communicator begin
 * its duplicates in the same order; they may end them in any.
 *
 * A duplicate is one receive (spc_request.h) that is posted again for each message that this node needs, one after the
 * other; what this node has to send it sends when one has come, in any wait or poll of the node. Messages have a tag of
 * their own for each duplicate of a communicator.
 *
 * The number. Each member sends the number that it has reserved to the first member. If all have reserved the same, as
 * nearly always, the first member tells them that it is the one. Else it asks all which numbers are free, and lets them
 * try one that is free everywhere, until all could reserve it. Of numbers that collide, because several duplicates are
 * under way, each would chase the other for ever; so after its first attempt each tries one of the next numbers at
 * random, of ever more.
 *
 * Then the memory comes, as in a split, and with several boxes the members report to the first one whether
 * it has come, and it answers.
 */
#ifndef SPC_DUPLICATE_H
#define SPC_DUPLICATE_H

#include "comm/spc_request.h"

typedef struct spc_duplicate spc_duplicate_t;

/* Begins one, and never waits. SPC_ENOMEM, SPC_ECLOSED, SPC_EFORKED. */
int spc_duplicate_begin(spc_comm_t *comm, spc_duplicate_t **duplicate);

/* Its request, which is done when all members have begun it and nothing is left to wait for; a part of one of kind
 * ALL, since its sources change. */
spc_request_t *spc_duplicate_request(spc_duplicate_t *duplicate);

/* Once, after its request is done: makes the communicator. Fails on all members: SPC_ENOMEM, as in spc_comm_split;
 * SPC_ELIMIT: there is no number that is free on all. */
int spc_duplicate_finish(spc_duplicate_t *duplicate, spc_comm_t **made);

/* Frees it, done or not; NULL is allowed. The others then wait for this node in vain if it was not done. */
void spc_duplicate_end(spc_duplicate_t *duplicate);

#endif
