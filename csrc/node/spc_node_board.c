/* SPDX-License-Identifier: MIT */
/*
 * State that a long wait publishes: spc_board.
 *
 *     first slice    nothing: most waits that sleep at all end within it (a build with endless slices has none)
 *     then           the binding finds out once where the caller is; that may run any code. Again after a message
 *                    handler, and as long as there are doubts that may pass
 *     each sleep     the board is published just before it, and retracted just after it
 *
 * A run of one node that no other process watches looks at its own board, each time it has published it. Calls that
 * need not wait pay nothing for that.
 *
 * Only the leader publishes. Followers are other threads of this node, so the leader's wait proves nothing.
 */
#include <signal.h>
#include <string.h>

#include "base/spc_clock.h"
#include "base/spc_process.h"
#include "node/spc_node.h"

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

int spc_node_locate(spc_node_wait_t *wait) {
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

uint64_t spc_node_settle(spc_node_wait_t *wait, uint32_t seen) {
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
        spc_node_wake(wait);
        return SPC_WAIT_NO_SLEEP;
    }
    return PUBLISHED_SLICE_NS;
}

void spc_node_wake(spc_node_wait_t *wait) {
    if (wait->is_published) {
        spc_board_retract(wait->node->board);
        wait->is_published = false;
    }
}
