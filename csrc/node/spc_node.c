/* SPDX-License-Identifier: MIT */
#include "node/spc_node.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/spc_clock.h"
#include "base/spc_platform.h"
#include "base/spc_process.h"

/* ---- state that a long wait publishes: spc_board
 *
 *     first slice    nothing: most waits that sleep at all end within it (a build with endless slices has none)
 *     then           the binding finds out once where the caller is; that may run any code. Again after a message
 *                    handler, and as long as there are doubts that may pass
 *     each sleep     the board is published just before it, and retracted just after it
 *
 * A run of one node that no other process watches looks at its own board, each time it has published it. Calls that
 * need not wait pay nothing for that.
 *
 * Only the leader publishes. Followers are other threads of this node, so the leader's wait proves nothing. */

#define FIRST_SLICE_NS UINT64_C(5000000)
#define INTERRUPT \
    (UINT64_C(1) << (SIGINT - 1)) /* a person at the keyboard: nothing that the run does by itself */
#define WARN_AFTER_NS UINT64_C(3000000000) /* of a node that watches itself */
#define PUBLISHED_SLICE_NS UINT64_C(500000000) /* the board changes with each slice */

/* A thread ends, a timer is disarmed, an idle thread is not idle yet: checked again before each sleep. */
#define PASSING_DOUBTS ((uint32_t)SPC_BOARD_OWN_DOUBTS)

#ifdef SPC_WAIT_ENDLESS_SLICES
#define HAS_FIRST_SLICE 0 /* no board would ever be published after it */
#else
#define HAS_FIRST_SLICE 1
#endif

/* Ctrl-C ends a run whatever its nodes wait for; but a node that watches itself may have been started to wait for
 * that. */
static uint64_t harmless_signals(const spc_node_t *node, uint64_t own_signals) {
    return node->deadlock == NULL ? own_signals | INTERRUPT : own_signals;
}

static uint32_t find_doubts(const spc_node_t *node, const spc_node_wait_t *wait, int32_t threads,
                            uint64_t own_signals) {
    uint32_t doubts = wait->describe == NULL ? SPC_BOARD_UNKNOWN : 0;
    if (wait->deadline_ns != SPC_NO_DEADLINE) {
        doubts |= SPC_BOARD_TIMED;
    }
    if (threads < 0) {
        threads = (int32_t)spc_process_threads() - 1;
    }
    if (threads != 0) {
        doubts |= threads > 0 ? SPC_BOARD_THREADS : SPC_BOARD_UNCOUNTED;
    }
    if (spc_process_has_timer()) {
        doubts |= SPC_BOARD_TIMER;
    }
    if ((spc_process_handled_signals() & ~harmless_signals(node, own_signals)) != 0) {
        doubts |= SPC_BOARD_HANDLER;
    }
    return doubts;
}

/* With the board of the last sleep, which this thread has written if it has located this wait. */
static bool is_worth_a_warning(const spc_node_t *node, const spc_node_wait_t *wait) {
    const spc_board_entry_t *entry = &node->entry;
    return node->deadlock != NULL && !node->has_warned && pthread_equal(node->first, pthread_self())
           && node->located == wait && wait->is_located && entry->kind != SPC_BOARD_NOTHING
           && entry->doubts != 0 && (entry->doubts & ~PASSING_DOUBTS) == 0
           && spc_clock_now_ns() - entry->since_ns >= WARN_AFTER_NS;
}

/* Whether such a program is right, only its user knows. */
static int warn_once(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    if (!is_worth_a_warning(node, wait)) {
        return SPC_OK;
    }
    node->has_warned = true;
    return node->warn(node->check_argument) == SPC_OK ? SPC_OK : SPC_EINTERRUPTED;
}

/* For a wait that leads: finds out where the caller is, without any lock. SPC_OK, SPC_EINTERRUPTED. */
static int locate(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    int status = warn_once(wait);
    if (status != SPC_OK) {
        return status;
    }
    if (node->board == NULL || (wait->slices++ == 0 && HAS_FIRST_SLICE)) {
        return SPC_OK;
    }
    bool is_known = node->located == wait && wait->is_located;
    if (is_known && (node->entry.doubts & PASSING_DOUBTS) == 0) {
        return SPC_OK;
    }
    uint64_t since_ns = is_known ? node->entry.since_ns : spc_clock_now_ns() - FIRST_SLICE_NS;
    /* First the call that runs code, which may wait itself and come here. */
    spc_board_entry_t entry = {.flags = node->locate == NULL ? SPC_BOARD_IN_C : 0};
    uint64_t own_signals = node->own_signals;
    int32_t threads = node->locate != NULL ? node->locate(node->check_argument, &entry, &own_signals) : -1;
    if (threads == SPC_NODE_INTERRUPTED) {
        return SPC_EINTERRUPTED;
    }
    if (node->annotate != NULL) {
        node->annotate(&entry);
    }
    entry.doubts |= find_doubts(node, wait, threads, own_signals);
    entry.since_ns = since_ns;
    node->entry = entry;
    node->located = wait;
    wait->is_located = true;
    return SPC_OK;
}

static void describe(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    memset(node->pairs, 0, (node->size + 1) * sizeof(*node->pairs));
    pthread_mutex_lock(&node->lock);
    for (uint32_t rank = 0; rank <= node->size; rank++) {
        node->pairs[rank].received = spc_inbox_received(node->inbox, rank);
        node->pairs[rank].queued = rank < node->size ? spc_outbox_waiting(node->outbox, rank) : 0;
        node->pairs[rank].lent = rank < node->size && spc_outbox_is_lent(node->outbox, rank);
    }
    node->entry.flags |= spc_inbox_has_filters(node->inbox) ? SPC_BOARD_HANDLES : 0;
    if (wait->describe != NULL) {
        wait->describe(wait, &node->entry, node->pairs);
    }
    pthread_mutex_unlock(&node->lock);
    node->entry.epoch = wait->epoch;
    if (atomic_load_explicit(&node->followers, memory_order_relaxed) != 0) {
        node->entry.doubts |= SPC_BOARD_THREADS;
    }
}

/* Two looks are a proof. Nothing can happen between them: this thread is all that could do anything. */
static bool is_endless(const spc_node_t *node) {
    return node->deadlock != NULL
           && (spc_deadlock_look(node->deadlock) != 0 || spc_deadlock_look(node->deadlock) != 0);
}

/* For a wait that leads, just after a sleep; the next one just before it. */
static void retract_board(spc_node_wait_t *wait) {
    if (wait->is_published) {
        spc_board_retract(wait->node->board);
        wait->is_published = false;
    }
}

static uint64_t publish_board(spc_node_wait_t *wait, uint32_t seen) {
    spc_node_t *node = wait->node;
    if (node->located != wait || !wait->is_located) {
        return node->board == NULL ? 0 : FIRST_SLICE_NS;
    }
    describe(wait);
    node->entry.word = seen;
    spc_board_publish(node->board, &node->entry, node->pairs, node->size + 1);
    wait->is_published = true;
    if (is_endless(node)) {
        wait->ended = SPC_EDEADLOCK;
        retract_board(wait);
        return SPC_WAIT_NO_SLEEP;
    }
    return PUBLISHED_SLICE_NS;
}

/* ---- waiting of the threads of a node, together
 *
 * One of them leads: it polls, yields and sleeps on the node's event, and moves the messages of all threads along. The
 * others follow: they sleep on `handover`, a private word, and look again when a thread has drained something, when the
 * leader is about to sleep (again), and when it leaves; then one of them becomes the leader. So one thread polls,
 * however many wait. */

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
    return status == SPC_OK ? locate(wait) : status;
}

/* A message for a handler may have come after the check, which alone may call it; a message that comes after this wakes
 * the thread. */
static uint64_t leader_settle(void *argument, uint32_t seen) {
    spc_node_wait_t *wait = argument;
    const bool has_work = wait->node->handle != NULL && has_filtered(wait->node);
    return has_work ? SPC_WAIT_NO_SLEEP : publish_board(wait, seen);
}

static void leader_wake(void *argument) {
    retract_board(argument);
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

/* Number of polls of a poll_ call, learnt from the leader's waits: about two microseconds at most, which is less than
 * releasing an interpreter's lock and taking it again may cost. */
static void choose_polls(spc_node_t *node) {
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
    choose_polls(node);
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

/* ---- life */

static int create_boxes(spc_node_t *node) {
    int status = spc_numbers_create(&node->numbers);
    if (status != SPC_OK) {
        return status;
    }
    spc_outbox_options_t outbox = {&node->segment, node->status, node->events, node->rank,
                                   node->notes,    false,        node->tracing};
    status = spc_outbox_create(&outbox, &node->outbox);
    spc_inbox_options_t inbox = {&node->segment, node->status,  node->events,  node->rank,
                                 node->notes,    node->tracing, node->numbers, node->outbox};
    return status != SPC_OK ? status : spc_inbox_create(&inbox, &node->inbox);
}

static void open_trace(spc_node_t *node) {
    spc_trace_shared_t *shared = spc_segment_part(&node->segment, SPC_REGION_TRACE, node->rank);
    if (shared != NULL) {
        spc_trace_open(&node->trace, shared, spc_segment_stride(&node->segment, SPC_REGION_TRACE));
        node->tracing = &node->trace;
    }
}

static void choose_waiting(spc_node_t *node) {
    const spc_config_t *config = node->config;
    spc_wait_policy_t policy = config->sleep_at_once  ? SPC_WAIT_SLEEP
                               : config->shared_cores ? SPC_WAIT_SHARED_CORES
                                                      : SPC_WAIT_FREE_CORES;
    spc_waiter_init(&node->waiter, policy, config->features);
    spc_waiter_expect_turns(&node->waiter, config->nodes);
    choose_polls(node);
}

static int attach(spc_node_t *node, const spc_node_options_t *options) {
    if (options->segment != NULL) {
        node->segment = *options->segment;
        node->segment_is_borrowed = true;
        return SPC_OK;
    }
    return spc_segment_attach(&node->segment, options->descriptor);
}

/* No other thread writes here before this node is live. */
static void touch(const spc_node_t *node, spc_region_t region) {
    void *part = spc_segment_part(&node->segment, region, node->rank);
    if (part != NULL) {
        spc_platform_memory_touch(part, spc_segment_stride(&node->segment, region));
    }
}

static int set_up(spc_node_t *node, const spc_node_options_t *options) {
    int status = attach(node, options);
    if (status != SPC_OK) {
        return status;
    }
    node->config = node->segment.config;
    node->size = node->config->nodes;
    if (options->rank >= node->size) {
        return SPC_ERANK;
    }
    node->status = spc_segment_part(&node->segment, SPC_REGION_STATUS, 0);
    node->events = spc_segment_part(&node->segment, SPC_REGION_EVENT, 0);
    node->event = &node->events[node->rank];
    node->notes = spc_segment_part(&node->segment, SPC_REGION_NOTE, node->rank);
    node->board = spc_segment_part(&node->segment, SPC_REGION_BOARD, node->rank);
    node->pairs = calloc(node->size + 1, sizeof(*node->pairs));
    if (node->pairs == NULL) {
        return SPC_ENOMEM;
    }
    choose_waiting(node);
    open_trace(node);
    if (node->config->prefault != 0) {
        touch(node, SPC_REGION_RING);
        touch(node, SPC_REGION_ARENA);
    }
    status = spc_owner_mark_init(&node->owner, node->config->features);
    return status != SPC_OK ? status : create_boxes(node);
}

int spc_node_create(const spc_node_options_t *options, spc_node_t **node) {
    spc_node_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    pthread_mutex_init(&made->lock, NULL);
    made->references = 1;
    made->rank = options->rank;
    made->check = options->check;
    made->handle = options->handle;
    made->locate = options->locate;
    made->check_argument = options->check_argument;
    made->own_signals = options->own_signals;
    made->posted_end = &made->posted;
    int status = set_up(made, options);
    if (status != SPC_OK) {
        spc_node_release(made);
        return status;
    }
    spc_status_set_live(made->status, made->rank, (int32_t)getpid());
    made->first = pthread_self();
    if (made->config->counts_times != 0 && made->board != NULL) {
        made->timing = &made->times;
        spc_node_times_start(made->timing, &made->board->times, spc_clock_now_ns, spc_platform_core_wait);
    }
    if (made->tracing != NULL) {
        spc_trace_record(made->tracing, &(spc_trace_event_t){.kind = SPC_TRACE_START});
        made->core_ticks = spc_trace_now(made->tracing);
        spc_platform_core_wait(&made->core_wait_ns); /* without it no later look-up succeeds either */
    }
    *node = made;
    return SPC_OK;
}

void spc_node_retain(spc_node_t *node) {
    atomic_fetch_add_explicit(&node->references, 1, memory_order_relaxed);
}

void spc_node_release(spc_node_t *node) {
    /* Release: this communicator's changes to the node. Acquire, for the last: the changes by all others. */
    if (atomic_fetch_sub_explicit(&node->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    spc_receipts_destroy(node->receipts);
    spc_deadlock_destroy(node->deadlock);
    spc_outbox_destroy(node->outbox);
    spc_inbox_destroy(node->inbox);
    spc_numbers_destroy(node->numbers);
    spc_owner_mark_fini(&node->owner);
    if (!node->segment_is_borrowed) {
        spc_segment_detach(&node->segment);
    }
    pthread_mutex_destroy(&node->lock);
    free(node->pairs);
    free(node);
}

int spc_node_close(spc_node_t *node, uint64_t deadline_ns) {
    int status = spc_node_flush(node, deadline_ns);
    if (status == SPC_EINTERRUPTED) {
        return status; /* the caller decides whether to try again */
    }
    atomic_store_explicit(&node->closed, true, memory_order_release);
    if (node->timing != NULL) {
        spc_node_times_close(node->timing, pthread_equal(node->first, pthread_self()) != 0);
    }
    /* A process that is about to fail closes, too, and may be here before the supervisor has learnt of the failure. */
    int32_t failure = atomic_load_explicit(&node->failure, memory_order_relaxed);
    /* SIGINT reaches all nodes: the supervisor hands it on before it publishes the end of a node that answered it. */
    if (failure != 128 + SIGINT) {
        spc_status_end(node->status, node->rank, failure == 0 ? SPC_NODE_FINISHED : SPC_NODE_DIED, failure,
                       node->events, node->size + 1, node->config->features);
    }
    /* No receive can take the messages that have come: their senders get their room back. Messages that this node has
     * taken stay its own. */
    pthread_mutex_lock(&node->lock);
    spc_inbox_discard(node->inbox);
    spc_note_settle(node->notes);
    spc_node_unlock(node);
    return status;
}

static void describe_flush(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    (void)pairs; /* the queued messages describe the wait */
    entry->kind = SPC_BOARD_SEND;
    entry->size = wait->node->size;
    entry->rank = wait->node->rank;
    entry->source = SPC_ANY_SOURCE;
    entry->tag = SPC_ANY_TAG;
}

static bool test_sent(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    pthread_mutex_lock(&node->lock);
    spc_outbox_flush(node->outbox);
    bool empty = spc_outbox_is_empty(node->outbox);
    pthread_mutex_unlock(&node->lock);
    return empty;
}

int spc_node_flush(spc_node_t *node, uint64_t deadline_ns) {
    spc_node_wait_t wait = {.node = node, .test = test_sent, .describe = describe_flush};
    return spc_node_test_or_wait(&wait, deadline_ns);
}
