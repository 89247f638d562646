/* SPDX-License-Identifier: MIT */
#include "node/spc_node.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/spc_clock.h"
#include "base/spc_platform.h"

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
    spc_node_choose_polls(node);
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
