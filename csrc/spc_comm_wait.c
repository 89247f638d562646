/* SPDX-License-Identifier: MIT */
/*
 * How the threads of a node wait together.
 *
 * One of them leads: it polls, yields and sleeps on the node's event, and moves everybody's messages along. The
 * others follow: they sleep on `handover`, a private word, and look again when somebody has drained something, when the
 * leader is about to sleep (again), and when it leaves; then one of them becomes the leader. So one thread polls,
 * however many wait.
 */
#include "spc_comm_private.h"

#define POLLS_MAX 60

static void rouse_followers(spc_comm_t *comm) {
    /* seq_cst: pairs with a follower's registration before its test. Either it is seen here, or its test comes after
     * what this thread has done. */
    if (atomic_load_explicit(&comm->followers, memory_order_seq_cst) != 0) {
        atomic_fetch_add_explicit(&comm->handover, 1, memory_order_seq_cst);
        spc_platform_wake(comm->config->features, &comm->handover);
    }
}

uintptr_t spc_comm_this_thread(void) {
    static _Thread_local char token; /* its address is the thread's name; it is never written */
    return (uintptr_t)&token;
}

/* seq_cst pairs with stop_leading: a follower that finds the place taken is roused after it has become free. */
static bool try_to_lead(spc_comm_t *comm) {
    uintptr_t nobody = 0;
    return atomic_compare_exchange_strong_explicit(&comm->leader, &nobody, spc_comm_this_thread(),
                                                   memory_order_seq_cst, memory_order_seq_cst);
}

/* True in a wait that the leader's own `check` began: then it leads itself, or nobody would. */
static bool leads_already(spc_comm_t *comm) {
    return atomic_load_explicit(&comm->leader, memory_order_relaxed) == spc_comm_this_thread();
}

static void stop_leading(spc_comm_t *comm) {
    atomic_store_explicit(&comm->leader, 0, memory_order_seq_cst);
    rouse_followers(comm);
}

void spc_comm_unlock(spc_comm_t *comm) {
    uint32_t news = spc_inbox_news(comm->inbox);
    pthread_mutex_unlock(&comm->lock);
    if (__builtin_expect(news == 0, 1)) {
        return;
    }
    if (news & SPC_INBOX_STORED) {
        rouse_followers(comm);
    }
    if (news & SPC_INBOX_REOPENED) {
        /* The leader may sleep for what lies in a row that was refused. Pairs, through the lock, with its test. */
        spc_event_notify(comm->event, comm->config->features);
    }
}

void spc_comm_progress(spc_comm_t *comm) {
    pthread_mutex_lock(&comm->lock);
    if (!spc_outbox_is_empty(comm->outbox)) {
        spc_outbox_flush(comm->outbox);
    }
    (void)spc_inbox_drain(comm->inbox);
    spc_comm_unlock(comm);
}

/* Has somebody ended whom this wait needs? `ended` says how it fails then. */
static void look_at_ends(spc_comm_wait_t *wait) {
    spc_comm_t *comm = wait->comm;
    uint32_t epoch = spc_status_epoch(comm->status);
    if (epoch == wait->epoch) {
        return;
    }
    wait->epoch = epoch;
    int status = spc_comm_usable(comm); /* another thread may have closed it */
    if (status == SPC_OK && wait->doomed != NULL) {
        status = wait->doomed(wait);
    }
    /* First who has ended, then what came from them: a row may hold what its sender announced without living to ring
     * the bell, and that counts more than its end. */
    pthread_mutex_lock(&comm->lock);
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (spc_comm_has_ended(comm, rank)) {
            spc_inbox_drain_row(comm->inbox, rank);
        }
    }
    spc_comm_unlock(comm);
    wait->done = wait->test(wait);
    if (status == SPC_EAGAIN) {
        wait->epoch--; /* look again */
    } else if (!wait->done) {
        wait->ended = status;
    }
}

/* A test that has said yes has done the work, and must not do it again. Ends belong to the test, for a sleeper must not
 * miss one between two looks: who ends raises the epoch before waking. */
static bool is_over(spc_comm_wait_t *wait) {
    wait->done = wait->done || wait->test(wait);
    if (!wait->done && wait->ended == SPC_OK) {
        look_at_ends(wait);
    }
    return wait->done || wait->ended != SPC_OK;
}

static bool leader_test(void *argument) {
    return is_over(argument);
}

static void leader_progress(void *argument) {
    spc_comm_wait_t *wait = argument;
    spc_comm_t *comm = wait->comm;
    spc_comm_progress(comm);
    /* About to sleep: followers test now, after `sleeping` is set. Whoever makes their wait true later sees it and
     * wakes this thread, which comes back here. Without this, what comes before `sleeping` is set is told to nobody. */
    if (atomic_load_explicit(&comm->event->sleeping, memory_order_relaxed) != 0) {
        rouse_followers(comm);
    }
}

static int check_signals(void *argument) {
    const spc_comm_t *comm = ((spc_comm_wait_t *)argument)->comm;
    if (comm->check != NULL && comm->check(comm->check_argument) != SPC_OK) {
        return SPC_EINTERRUPTED;
    }
    return SPC_OK;
}

static bool follower_test(void *argument) {
    spc_comm_wait_t *wait = argument;
    if (is_over(wait)) {
        return true;
    }
    wait->leads = try_to_lead(wait->comm);
    return wait->leads;
}

void spc_comm_choose_polls(spc_comm_t *comm) {
    /* polls_limit is 0 where cores are shared, or sleeping is asked for. */
    uint32_t worth = comm->waiter.polls_limit == 0 ? 0 : comm->waiter.polls;
    atomic_store_explicit(&comm->polls, worth < POLLS_MAX ? worth : POLLS_MAX, memory_order_relaxed);
}

static int lead(spc_comm_wait_t *wait, uint64_t deadline_ns) {
    static const spc_wait_callbacks_t callbacks = {leader_test, leader_progress, check_signals};
    spc_comm_t *comm = wait->comm;
    int status =
        spc_wait(&comm->waiter, &comm->event->word, &comm->event->sleeping, &callbacks, wait, deadline_ns);
    spc_comm_choose_polls(comm);
    return status;
}

static int follow(spc_comm_wait_t *wait, uint64_t deadline_ns) {
    static const spc_wait_callbacks_t callbacks = {follower_test, NULL, check_signals};
    spc_comm_t *comm = wait->comm;
    spc_waiter_t waiter;
    _Atomic uint32_t sleeping = 0; /* nobody asks: the leader looks at `followers` */
    spc_waiter_init(&waiter, SPC_WAIT_SLEEP, comm->config->features);
    /* seq_cst, before the first test: pairs with rouse_followers. */
    atomic_fetch_add_explicit(&comm->followers, 1, memory_order_seq_cst);
    int status = spc_wait(&waiter, &comm->handover, &sleeping, &callbacks, wait, deadline_ns);
    atomic_fetch_sub_explicit(&comm->followers, 1, memory_order_seq_cst);
    return status;
}

static int lead_or_follow(spc_comm_wait_t *wait, uint64_t deadline_ns) {
    if (leads_already(wait->comm)) {
        return lead(wait, deadline_ns);
    }
    wait->leads = try_to_lead(wait->comm);
    if (!wait->leads) {
        int status = follow(wait, deadline_ns);
        if (!wait->leads) {
            return status;
        }
    }
    int status = lead(wait, deadline_ns);
    stop_leading(wait->comm);
    return status;
}

int spc_comm_wait_for(spc_comm_wait_t *wait, uint64_t deadline_ns) {
    int status = lead_or_follow(wait, deadline_ns);
    return status == SPC_OK ? wait->ended : status;
}
