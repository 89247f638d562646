/* SPDX-License-Identifier: MIT */
/*
 * spc_comm_making: the steps that all ways to make a communicator share, once its members are known: the number, the
 * memory, and this node's own half.
 *
 * The first member in each box takes a block of its arena, zeroed, and sends it to all members there like any large
 * message. They hold the block as long as they have the communicator, so it is freed when the last member has destroyed
 * the communicator, or has died. If there are members in other boxes, this box's gateway gets it, too, behind a table
 * of the members: it stands in for them (spc_gateway.h). In a run of several boxes some may have no room, so all report
 * it to each other.
 */
#ifndef SPC_COMM_MAKING_H
#define SPC_COMM_MAKING_H

#include "comm/spc_comm_private.h"

/* ---- the number ---- */

/* With the lock: the number that is reserved is free again, for no node has got it agreed upon. */
void spc_making_give_back(spc_comm_t *comm, spc_splitting_t *splitting);

/* ---- the memory, of which the first member of a box takes care ---- */

/* That member, as a rank of the parent. */
uint32_t spc_making_first_here(const spc_comm_t *comm, const spc_splitting_t *splitting);

/* The members in this box, as ranks of the parent. */
uint32_t spc_making_members_here(const spc_comm_t *comm, const spc_splitting_t *splitting,
                                 int32_t ranks[SPC_NODES_MAX]);

/* The message that brings the memory, without its content. */
spc_payload_t spc_making_payload(const spc_comm_t *comm, const spc_splitting_t *splitting);

/* Writes it. Needs no lock. */
void spc_making_fill(const spc_comm_t *comm, const spc_splitting_t *splitting, const spc_payload_t *payload,
                     spc_block_shared_t *block);

/* With the lock: sends the filled block to the members here, and to the gateway if it is to know them. SPC_ENOMEM. */
int spc_making_send_block(spc_comm_t *comm, const spc_splitting_t *splitting, const spc_payload_t *payload,
                          spc_block_shared_t *block);

/* The message has come: it is moved to splitting->block. One without a block reports that there is no room. */
void spc_making_take_block(spc_splitting_t *splitting, spc_message_t *message);

/* ---- the communicator ---- */

/* Makes this node's half, which then has the block; or nothing, because this node belongs to no part or there is no
 * room: the status says so. Without the lock. */
int spc_making_part(spc_comm_t *parent, spc_splitting_t *splitting, spc_comm_t **part);

/* Frees what the making still has, and zeroes it. */
void spc_making_settle(spc_comm_t *comm, spc_splitting_t *splitting);

#endif
