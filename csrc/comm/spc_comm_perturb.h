/* SPDX-License-Identifier: MIT */
/*
 * spc_comm_perturb: the schedule perturber: what may happen, but seldom does, happens more often.
 *
 * In a perturbed run (spc_config_t: perturb), calls of the communicator are delayed at random
 * before and after they do their work, a receive from ANY chooses at random among the senders that have something for
 * it, calls that never wait find nothing now and then, and, if that was asked for, sends of a certain length wait
 * until they have been received. All of that may happen in any run: a program that minds is wrong. Messages of one
 * sender stay in order.
 *
 * Choices follow from the seed, the node's rank in the run and the number of the call on this node, nothing else: the
 * same seed gives the same choices. (With several threads the numbers depend on who calls first; and what there is to
 * choose among depends on the others.)
 *
 * Calls ask from their slow paths (spc_comm_send.c, spc_comm_recv.c): spc_comm_check_callable returns SPC_EAGAIN, which
 * elsewhere means "the call that never waits has not done it". Nothing is paid where nothing is perturbed.
 *
 * Any thread, no lock held. Delays are no waits: the node makes no progress in them, as if it computed.
 */
#ifndef SPC_COMM_PERTURB_H
#define SPC_COMM_PERTURB_H

#include "comm/spc_comm_private.h"

/* Is its schedule perturbed? (Or do only sends wait: SPC_PERTURB_RENDEZVOUS.) */
static inline bool spc_comm_is_perturbed(const spc_comm_t *comm) {
    return (comm->config->perturb & SPC_PERTURB_SCHEDULE) != 0;
}

void spc_comm_perturb_before(spc_comm_t *comm);

/* The status of check_callable, in a call that may take its time: SPC_EAGAIN becomes SPC_OK, after a delay.
 * Everything else stays. */
static inline int spc_comm_perturb(spc_comm_t *comm, int status) {
    if (__builtin_expect(status == SPC_EAGAIN, 0)) {
        spc_comm_perturb_before(comm);
        return SPC_OK;
    }
    return status;
}

/* After the work of such a call, when it has been done. */
void spc_comm_perturb_after(spc_comm_t *comm);

/* In a call that never waits: true if it is to find nothing this time. */
bool spc_comm_perturb_blinds(spc_comm_t *comm);

/* When a node joins: nodes begin at different times. */
void spc_comm_perturb_start(spc_comm_t *comm);

/* ---- receives from ANY */

/* A number for this call, by which its choices are made. */
uint64_t spc_comm_perturb_number(spc_comm_t *comm);

/* How much it likes that sender: it takes from the one it likes best. Never 0. */
uint64_t spc_comm_perturb_liking(const spc_comm_t *comm, uint64_t number, uint32_t rank);

/* How long it sleeps once the first message is there, so that other senders may be chosen; 0: not at all. */
uint64_t spc_comm_perturb_lingering_ns(const spc_comm_t *comm, uint64_t number);
void spc_comm_perturb_sleep(const spc_comm_t *comm, uint64_t duration_ns);

#endif
