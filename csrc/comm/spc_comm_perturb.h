/* SPDX-License-Identifier: MIT */
/*
 * spc_comm_perturb: the schedule perturber: makes rare but legal schedules frequent.
 *
 * In a perturbed run (spc_config_t: perturb), calls of the communicator are delayed at random
 * before and after they do their work, a receive from ANY chooses at random among the senders with a message for it,
 * calls that never wait find nothing now and then, and, if requested, sends of a certain length wait until they have
 * been received. All of that may happen in any run: a program that breaks under it is wrong. Messages of one sender
 * stay in order.
 *
 * Choices follow from the seed, the node's rank in the run and the number of the call on this node, nothing else: the
 * same seed gives the same choices. (With several threads the numbers depend on the order of their calls; and the
 * alternatives of a choice depend on the other nodes.)
 *
 * Calls ask it where they begin: spc_comm_check_callable returns SPC_PERTURBED. Most calls that never wait leave the
 * operation to the one that waits then, with SPC_EAGAIN. An unperturbed run pays nothing.
 *
 * Any thread, no lock held. Delays are no waits: the node makes no progress in them, as if it computed.
 */
#ifndef SPC_COMM_PERTURB_H
#define SPC_COMM_PERTURB_H

#include "comm/spc_comm_private.h"

/* Whether its schedule is perturbed. (Or only sends wait: SPC_PERTURB_RENDEZVOUS.) */
static inline bool spc_comm_is_perturbed(const spc_comm_t *comm) {
    return (comm->config->perturb & SPC_PERTURB_SCHEDULE) != 0;
}

void spc_comm_perturb_before(spc_comm_t *comm);

/* The status of check_callable, in a call that may take its time: SPC_PERTURBED becomes SPC_OK, after a delay. Another
 * status stays. */
static inline int spc_comm_perturb(spc_comm_t *comm, int status) {
    if (__builtin_expect(status == SPC_PERTURBED, 0)) {
        spc_comm_perturb_before(comm);
        return SPC_OK;
    }
    return status;
}

/* Called after such a call has done its work. */
void spc_comm_perturb_after(spc_comm_t *comm);

/* In a call that never waits: true if it must find nothing this time. */
bool spc_comm_perturb_blinds(spc_comm_t *comm);

/* Called when a node joins: nodes begin at different times. */
void spc_comm_perturb_start(spc_comm_t *comm);

/* ---- receives from ANY */

/* A number for this call, from which its choices follow. */
uint64_t spc_comm_perturb_number(spc_comm_t *comm);

/* This call's preference for that sender: it takes from the sender with the highest one. Never 0. */
uint64_t spc_comm_perturb_liking(const spc_comm_t *comm, uint64_t number, uint32_t rank);

/* The sleep once the first message is there, so that other senders may be chosen; 0: none. */
uint64_t spc_comm_perturb_lingering_ns(const spc_comm_t *comm, uint64_t number);
void spc_comm_perturb_sleep(const spc_comm_t *comm, uint64_t duration_ns);

#endif
