/* SPDX-License-Identifier: MIT */
/*
 * Waiting of the threads of a node, together.
 *
 * One of them leads: it polls, yields and sleeps on the node's event, and moves the messages of all threads along. The
 * others follow: they sleep on `handover`, a private word, and look again when a thread has drained something, when the
 * leader is about to sleep (again), and when it leaves; then one of them becomes the leader. So one thread polls,
 * however many wait.
 */
#include "node/spc_node.h"

#include "base/spc_platform.h"

#define POLLS_MAX 60

static void rouse_followers(spc_node_t *node) {
    /* seq_cst: pairs with a follower's registration before its test. Either the registration is visible here, or its
     * test comes after this thread's changes. */
    if (atomic_load_explicit(&node->followers, memory_order_seq_cst) != 0) {
        atomic_fetch_add_explicit(&node->handover, 1, memory_order_seq_cst);
        spc_platform_wake(node->config->features, &node->handover);
    }
}

uintptr_t spc_node_this_thread(void) {
    static _Thread_local char token; /* its address is the thread's name; it is never written */
    return (uintptr_t)&token;
}

/* seq_cst pairs with stop_leading: a follower that finds the place taken is roused after it has become free. */
static bool try_to_lead(spc_node_t *node) {
    uintptr_t nobody = 0;
    return atomic_compare_exchange_strong_explicit(&node->leader, &nobody, spc_node_this_thread(),
                                                   memory_order_seq_cst, memory_order_seq_cst);
}

/* True in a wait that the leader's own `check` began: then it leads itself, or no thread would. */
static bool leads_already(spc_node_t *node) {
    return atomic_load_explicit(&node->leader, memory_order_relaxed) == spc_node_this_thread();
}

static void stop_leading(spc_node_t *node) {
    atomic_store_explicit(&node->leader, 0, memory_order_seq_cst);
    rouse_followers(node);
}

void spc_node_unlock(spc_node_t *node) {
    const uint32_t news = spc_inbox_news(node->inbox);
    pthread_mutex_unlock(&node->lock);
    if (__builtin_expect(news == 0, 1)) {
        return;
    }
    if (news & SPC_INBOX_MOVED) {
        atomic_store_explicit(&node->moved, true, memory_order_relaxed);
    }
    if (news & SPC_INBOX_STORED) {
        rouse_followers(node);
    }
}

void spc_node_progress(spc_node_t *node) {
    pthread_mutex_lock(&node->lock);
    spc_outbox_flush(node->outbox);
    (void)spc_inbox_drain(node->inbox);
    spc_node_claim(node);
    spc_node_unlock(node);
}

int spc_node_take_behind(spc_node_t *node, const spc_match_t *match, spc_message_t *message) {
    if (match->source == SPC_ANY_SOURCE) {
        (void)spc_inbox_drain(node->inbox);
    } else {
        (void)spc_inbox_drain_row(node->inbox, (uint32_t)match->source);
    }
    node->claim(node);
    return spc_inbox_take_queued(node->inbox, match, message);
}

/* Whether a node that this wait needs has ended. `ended` gives the status with which it then fails. */
static void look_at_ends(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    uint32_t epoch = spc_status_epoch(node->status);
    if (epoch == wait->epoch) {
        return;
    }
    wait->epoch = epoch;
    int status = spc_node_check_usable(node); /* another thread may have closed it */
    if (status == SPC_OK && spc_node_is_disconnected(node)) {
        status = SPC_EDISCONNECTED; /* whichever node is to blame: others have ended because of it */
    } else if (status == SPC_OK && wait->doomed != NULL) {
        status = wait->doomed(wait);
    }
    /* First the nodes that have ended, then messages from them: a row may hold messages that its sender announced
     * without living to ring the bell, and those count more than its end. */
    pthread_mutex_lock(&node->lock);
    for (uint32_t rank = 0; rank < node->size; rank++) {
        if (spc_node_has_ended(node, rank)) {
            spc_inbox_drain_row(node->inbox, rank);
        }
    }
    spc_node_unlock(node);
    wait->done = wait->test(wait);
    if (status == SPC_EAGAIN) {
        wait->epoch--; /* look again */
    } else if (!wait->done) {
        wait->ended = status;
    }
}

/* A test that has succeeded has done the work, and must not do it again. Ends belong to the test, for a sleeper must
 * not miss one between two looks: an ending node raises the epoch before waking. */
static bool is_over(spc_node_wait_t *wait) {
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
    spc_node_wait_t *wait = argument;
    spc_node_t *node = wait->node;
    spc_node_progress(node);
    /* About to sleep: followers test now, after `sleeping` is set. A process that makes their wait true later sees it
     * and wakes this thread, which comes back here. Without this, no follower would learn of changes made before
     * `sleeping` is set. */
    if (atomic_load_explicit(&node->event->sleeping, memory_order_relaxed) != 0) {
        rouse_followers(node);
    }
}

static int check_signals(void *argument) {
    const spc_node_t *node = ((spc_node_wait_t *)argument)->node;
    if (node->check != NULL && node->check(node->check_argument) != SPC_OK) {
        return SPC_EINTERRUPTED;
    }
    return SPC_OK;
}

static bool has_filtered(spc_node_t *node) {
    pthread_mutex_lock(&node->lock);
    bool has = spc_inbox_has_filtered(node->inbox);
    spc_node_unlock(node);
    return has;
}

enum {
    CORE_TICKS = 1 << 21, /* about a millisecond between two look-ups, each of which takes some µs */
    CORE_WAIT_MIN_NS = 10000,
};

void spc_node_trace_core(spc_node_t *node, uint64_t ticks) {
    if (!pthread_equal(node->first, pthread_self())) {
        return;
    }
    if (ticks - node->core_ticks < CORE_TICKS) {
        return;
    }
    node->core_ticks = ticks;
    uint64_t waited_ns;
    if (!spc_platform_core_wait(&waited_ns)) {
        return;
    }
    const uint64_t more_ns = waited_ns - node->core_wait_ns;
    node->core_wait_ns = waited_ns;
    if (more_ns >= CORE_WAIT_MIN_NS) {
        spc_trace_record(node->tracing,
                         &(spc_trace_event_t){.ticks = ticks, .kind = SPC_TRACE_CORE, .bytes = more_ns});
    }
}

static void record(spc_node_t *node, spc_trace_kind_t kind) {
    if (__builtin_expect(node->timing != NULL, 0) && pthread_equal(node->first, pthread_self())) {
        (kind == SPC_TRACE_WAIT ? spc_node_times_begin_wait : spc_node_times_end_wait)(node->timing);
    }
    if (__builtin_expect(node->tracing != NULL, 0)) {
        const uint64_t ticks = spc_trace_now(node->tracing);
        spc_node_trace_core(node, ticks);
        spc_trace_record(node->tracing, &(spc_trace_event_t){.ticks = ticks, .kind = (uint8_t)kind});
    }
}

/* A handler belongs to the program: the thread does not wait meanwhile. It may start threads or timers. */
static int run_handlers(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    if (node->handle == NULL || !has_filtered(node)) {
        return SPC_OK;
    }
    wait->is_located = false;
    record(node, SPC_TRACE_GO_ON);
    const int status = node->handle(node->check_argument);
    record(node, SPC_TRACE_WAIT);
    return status == SPC_OK ? SPC_OK : SPC_EINTERRUPTED;
}

/* Locates last: the doubts have to be those that handlers leave. */
static int leader_check(void *argument) {
    spc_node_wait_t *wait = argument;
    int status = check_signals(wait);
    status = status == SPC_OK ? run_handlers(wait) : status;
    return status == SPC_OK ? spc_node_locate(wait) : status;
}

/* A message for a handler may have come after the check, which alone may call it; a message that comes after this wakes
 * the thread. */
static uint64_t leader_settle(void *argument, uint32_t seen) {
    spc_node_wait_t *wait = argument;
    const bool has_work = wait->node->handle != NULL && has_filtered(wait->node);
    return has_work ? SPC_WAIT_NO_SLEEP : spc_node_settle(wait, seen);
}

static void leader_wake(void *argument) {
    spc_node_wake(argument);
}

static bool leader_moved(void *argument) {
    spc_node_t *node = ((spc_node_wait_t *)argument)->node;
    return atomic_exchange_explicit(&node->moved, false, memory_order_relaxed);
}

static bool follower_test(void *argument) {
    spc_node_wait_t *wait = argument;
    if (is_over(wait)) {
        return true;
    }
    wait->leads = try_to_lead(wait->node);
    return wait->leads;
}

void spc_node_choose_polls(spc_node_t *node) {
    /* polls_limit is 0 where cores are shared, or sleeping is asked for. */
    uint32_t worth = node->waiter.polls_limit == 0 ? 0 : node->waiter.polls;
    atomic_store_explicit(&node->polls, worth < POLLS_MAX ? worth : POLLS_MAX, memory_order_relaxed);
}

static int lead(spc_node_wait_t *wait, uint64_t deadline_ns) {
    static const spc_wait_callbacks_t callbacks = {leader_test,   leader_progress, leader_check,
                                                   leader_settle, leader_wake,     leader_moved};
    spc_node_t *node = wait->node;
    int status =
        spc_wait(&node->waiter, &node->event->word, &node->event->sleeping, &callbacks, wait, deadline_ns);
    spc_node_choose_polls(node);
    return status;
}

static int follow(spc_node_wait_t *wait, uint64_t deadline_ns) {
    static const spc_wait_callbacks_t callbacks = {.test = follower_test, .check = check_signals};
    spc_node_t *node = wait->node;
    spc_waiter_t waiter;
    _Atomic uint32_t sleeping = 0; /* no waker reads it: the leader checks `followers` */
    spc_waiter_init(&waiter, SPC_WAIT_SLEEP, node->config->features);
    /* seq_cst, before the first test: pairs with rouse_followers. */
    atomic_fetch_add_explicit(&node->followers, 1, memory_order_seq_cst);
    int status = spc_wait(&waiter, &node->handover, &sleeping, &callbacks, wait, deadline_ns);
    atomic_fetch_sub_explicit(&node->followers, 1, memory_order_seq_cst);
    return status;
}

static int lead_or_follow(spc_node_wait_t *wait, uint64_t deadline_ns) {
    if (leads_already(wait->node)) {
        return lead(wait, deadline_ns);
    }
    wait->leads = try_to_lead(wait->node);
    if (!wait->leads) {
        int status = follow(wait, deadline_ns);
        if (!wait->leads) {
            return status;
        }
    }
    int status = lead(wait, deadline_ns);
    stop_leading(wait->node);
    return status;
}

int spc_node_wait_for(spc_node_wait_t *wait, uint64_t deadline_ns) {
    wait->deadline_ns = deadline_ns;
    record(wait->node, SPC_TRACE_WAIT);
    int status = lead_or_follow(wait, deadline_ns);
    record(wait->node, SPC_TRACE_GO_ON);
    status = status == SPC_OK ? wait->ended : status;
    /* Ctrl-C reaches all nodes: a signal that came before the end of another node is what the program is to see. */
    const bool is_lost = status == SPC_ELOST || status == SPC_EFINISHED;
    return is_lost && check_signals(wait) != SPC_OK ? SPC_EINTERRUPTED : status;
}
