/* SPDX-License-Identifier: MIT */
/*
 * How the threads of a node wait together.
 *
 * One of them leads: it polls, yields and sleeps on the node's event, and moves everybody's messages along. The others
 * follow: they sleep on `handover`, a private word, and look again when the leader has drained something, was woken,
 * or leaves; then one of them becomes the leader. So one thread polls, however many wait.
 */
#include "spc_comm_private.h"

static void rouse_followers(spc_comm_t *comm) {
    /* seq_cst: pairs with a follower's registration before its test. Either it is seen here, or its test comes after
     * what this thread has done. */
    if (atomic_load_explicit(&comm->followers, memory_order_seq_cst) != 0) {
        atomic_fetch_add_explicit(&comm->handover, 1, memory_order_seq_cst);
        spc_platform_wake(comm->config->features, &comm->handover);
    }
}

static bool try_to_lead(spc_comm_t *comm) {
    uint32_t nobody = 0;
    return atomic_compare_exchange_strong_explicit(&comm->draining, &nobody, 1, memory_order_seq_cst,
                                                   memory_order_seq_cst);
}

static void stop_leading(spc_comm_t *comm) {
    atomic_store_explicit(&comm->draining, 0, memory_order_seq_cst);
    rouse_followers(comm);
}

void spc_comm_progress(spc_comm_t *comm) {
    pthread_mutex_lock(&comm->lock);
    if (!spc_outbox_is_empty(comm->outbox)) {
        spc_outbox_flush(comm->outbox);
    }
    uint32_t arrived = spc_inbox_drain(comm->inbox);
    pthread_mutex_unlock(&comm->lock);
    if (arrived != 0) {
        rouse_followers(comm);
    }
}

static bool leader_test(void *argument) {
    spc_comm_wait_t *wait = argument;
    return wait->test(wait);
}

static void leader_progress(void *argument) {
    spc_comm_wait_t *wait = argument;
    spc_comm_progress(wait->comm);
}

static int check_signals(spc_comm_t *comm) {
    if (comm->check != NULL && comm->check(comm->check_argument) != SPC_OK) {
        return SPC_EINTERRUPTED;
    }
    return SPC_OK;
}

static int check_ends(spc_comm_wait_t *wait) {
    spc_comm_t *comm = wait->comm;
    uint32_t epoch = spc_status_epoch(comm->status);
    if (epoch == wait->epoch) {
        return SPC_OK;
    }
    /* A row may hold what its sender announced without living to ring the bell. */
    pthread_mutex_lock(&comm->lock);
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (spc_comm_has_ended(comm, rank)) {
            spc_inbox_drain_row(comm->inbox, rank);
        }
    }
    pthread_mutex_unlock(&comm->lock);
    if (wait->test(wait)) {
        return SPC_OK; /* spc_wait tests again before it sleeps */
    }
    wait->epoch = epoch;
    return wait->doomed != NULL ? wait->doomed(wait) : SPC_OK;
}

static int leader_check(void *argument) {
    spc_comm_wait_t *wait = argument;
    /* The event may have been raised for what a follower waits for: a release, an end. */
    rouse_followers(wait->comm);
    int status = check_signals(wait->comm);
    return status != SPC_OK ? status : check_ends(wait);
}

static bool follower_test(void *argument) {
    spc_comm_wait_t *wait = argument;
    if (wait->test(wait)) {
        return true;
    }
    wait->leads = try_to_lead(wait->comm);
    return wait->leads;
}

static int follower_check(void *argument) {
    spc_comm_wait_t *wait = argument;
    int status = check_signals(wait->comm);
    return status != SPC_OK ? status : check_ends(wait);
}

static int lead(spc_comm_wait_t *wait, uint64_t deadline_ns) {
    static const spc_wait_callbacks_t callbacks = {leader_test, leader_progress, leader_check};
    spc_comm_t *comm = wait->comm;
    int status = spc_wait(&comm->waiter, &comm->event->word, &comm->event->sleeping, &callbacks, wait, deadline_ns);
    stop_leading(comm);
    return status;
}

static int follow(spc_comm_wait_t *wait, uint64_t deadline_ns) {
    static const spc_wait_callbacks_t callbacks = {follower_test, NULL, follower_check};
    spc_comm_t *comm = wait->comm;
    spc_waiter_t waiter;
    _Atomic uint32_t sleeping = 0; /* nobody asks: the leader looks at `followers` */
    spc_waiter_init(&waiter, SPC_WAIT_SLEEP, comm->config->features);
    atomic_fetch_add_explicit(&comm->followers, 1, memory_order_seq_cst);
    int status = spc_wait(&waiter, &comm->handover, &sleeping, &callbacks, wait, deadline_ns);
    atomic_fetch_sub_explicit(&comm->followers, 1, memory_order_seq_cst);
    return status;
}

int spc_comm_wait_for(spc_comm_wait_t *wait, uint64_t deadline_ns) {
    wait->leads = try_to_lead(wait->comm);
    if (!wait->leads) {
        int status = follow(wait, deadline_ns);
        if (!wait->leads) {
            return status;
        }
    }
    return lead(wait, deadline_ns);
}
