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

/* ---- choices */

/* The subject of a choice: one call makes several. */
enum {
    SPC_ABOUT_PACE = 1,
    SPC_ABOUT_BEFORE,
    SPC_ABOUT_AFTER,
    SPC_ABOUT_BLINDNESS,
    SPC_ABOUT_LINGERING,
    SPC_ABOUT_SOURCE = 256, /* and one more for each source */
};

enum { SPC_LIVELY_CALLS = 1024 }; /* after these, long runs continue with few delays */

/* A number for this call, from which its choices follow. */
static inline uint64_t spc_comm_perturb_number(spc_comm_t *comm) {
    /* Relaxed: only choices follow from it. */
    return atomic_fetch_add_explicit(&comm->node->perturbed_calls, 1, memory_order_relaxed);
}

uint64_t spc_comm_perturb_choose(const spc_comm_t *comm, uint64_t number, uint32_t about);

/* ---- delays */

static inline void spc_comm_perturb_sleep(const spc_comm_t *comm, uint64_t duration_ns) {
    _Atomic uint32_t nobody_wakes = 0;
    spc_platform_sleep(comm->config->features, &nobody_wakes, 0, duration_ns);
}

/* Sleeps, yields or does nothing, with a number of its own. */
void spc_comm_perturb_delay(spc_comm_t *comm, uint32_t about);

static inline void spc_comm_perturb_before(spc_comm_t *comm) {
    if (spc_comm_is_perturbed(comm)) {
        spc_comm_perturb_delay(comm, SPC_ABOUT_BEFORE);
    }
}

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
static inline void spc_comm_perturb_after(spc_comm_t *comm) {
    if (spc_comm_is_perturbed(comm)) {
        spc_comm_perturb_delay(comm, SPC_ABOUT_AFTER);
    }
}

/* In a call that never waits: true if it must find nothing this time. */
static inline bool spc_comm_perturb_blinds(spc_comm_t *comm) {
    return spc_comm_is_perturbed(comm)
           && spc_comm_perturb_choose(comm, spc_comm_perturb_number(comm), SPC_ABOUT_BLINDNESS) % 4 == 0;
}

#endif
