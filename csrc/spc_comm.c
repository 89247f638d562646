/* SPDX-License-Identifier: MIT */
#include "spc_comm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spc_comm_private.h"

int spc_comm_plan(const spc_config_t *config, spc_segment_plan_t *plan) {
    memset(plan, 0, sizeof(*plan));
    plan->config = *config;
    int status = spc_config_complete(&plan->config);
    if (status != SPC_OK) {
        return status;
    }
    const spc_config_t *complete = &plan->config;
    uint32_t nodes = complete->nodes;
#define SPC_PLAN(name, bytes, parts)                  \
    plan->region[SPC_REGION_##name].stride = (bytes); \
    plan->region[SPC_REGION_##name].count = (parts)
    SPC_PLAN(STATUS, spc_status_bytes(nodes), 1);
    SPC_PLAN(EVENT, sizeof(spc_event_shared_t), nodes + 1);
    SPC_PLAN(REDUCE, spc_reduce_bytes(nodes, complete->fanin), 1);
    SPC_PLAN(SCRATCH, 2 * complete->scratch_bytes, nodes);
    SPC_PLAN(MAILBOX, spc_mailbox_bytes(nodes + 1, complete->slots), nodes + 1);
    SPC_PLAN(RING, complete->ring_bytes, nodes + 1);
    SPC_PLAN(ARENA, complete->arena_bytes, complete->arena_bytes != 0 ? nodes + 1 : 0);
#undef SPC_PLAN
    return SPC_OK;
}

void spc_comm_mark_ending(const spc_segment_t *segment, uint32_t rank, spc_node_state_t state,
                          int32_t reason) {
    spc_status_end(spc_segment_part(segment, SPC_REGION_STATUS, 0), rank, state, reason,
                   spc_segment_part(segment, SPC_REGION_EVENT, 0), segment->config->nodes + 1,
                   segment->config->features);
}

void spc_comm_mark_ended(const spc_segment_t *segment, uint32_t rank, spc_node_state_t state,
                         int32_t reason) {
    spc_comm_mark_ending(segment, rank, state, reason);
    spc_status_set_gone(spc_segment_part(segment, SPC_REGION_STATUS, 0), rank,
                        spc_segment_part(segment, SPC_REGION_EVENT, 0), segment->config->nodes + 1,
                        segment->config->features);
}

static int create_reducer(spc_comm_t *comm) {
    const spc_config_t *config = comm->config;
    spc_reduce_options_t options = {
        .shared = spc_segment_part(&comm->segment, SPC_REGION_REDUCE, 0),
        .base = comm->segment.base,
        .scratch = spc_segment_part(&comm->segment, SPC_REGION_SCRATCH, comm->rank),
        .scratch_bytes = config->scratch_bytes,
        .rank = comm->rank,
        .nodes = comm->size,
        .fanin = config->fanin,
        .events = comm->events,
        .features = config->features,
    };
    int status = spc_reduce_create(&options, &comm->reduce);
    if (status == SPC_OK) {
        spc_fuzzy_init(&comm->fuzzy, comm->reduce);
    }
    return status;
}

static int create_boxes(spc_comm_t *comm) {
    spc_inbox_options_t inbox = {&comm->segment, comm->status, comm->events, comm->rank};
    spc_outbox_options_t outbox = {&comm->segment, comm->status, comm->events, comm->rank};
    int status = spc_inbox_create(&inbox, &comm->inbox);
    return status != SPC_OK ? status : spc_outbox_create(&outbox, &comm->outbox);
}

static void choose_waiting(spc_comm_t *comm) {
    const spc_config_t *config = comm->config;
    spc_wait_policy_t policy = config->sleep_at_once  ? SPC_WAIT_SLEEP
                               : config->shared_cores ? SPC_WAIT_SHARED_CORES
                                                      : SPC_WAIT_FREE_CORES;
    spc_waiter_init(&comm->waiter, policy, config->features);
    spc_comm_choose_polls(comm);
}

static int set_up(spc_comm_t *comm, const spc_comm_options_t *options) {
    int status = SPC_OK;
    if (!comm->segment_is_borrowed) {
        status = spc_segment_attach(&comm->segment, options->descriptor);
    }
    if (status != SPC_OK) {
        return status;
    }
    comm->config = comm->segment.config;
    comm->size = comm->config->nodes;
    if (options->rank >= comm->size) {
        return SPC_ERANK;
    }
    comm->status = spc_segment_part(&comm->segment, SPC_REGION_STATUS, 0);
    comm->events = spc_segment_part(&comm->segment, SPC_REGION_EVENT, 0);
    comm->event = &comm->events[comm->rank];
    choose_waiting(comm);
    status = spc_owner_mark_init(&comm->owner, comm->config->features);
    status = status != SPC_OK ? status : create_boxes(comm);
    return status != SPC_OK ? status : create_reducer(comm);
}

int spc_comm_create(const spc_comm_options_t *options, spc_comm_t **comm) {
    return spc_comm_create_within(NULL, options, comm);
}

int spc_comm_create_within(const spc_segment_t *segment, const spc_comm_options_t *options,
                           spc_comm_t **comm) {
    spc_comm_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    pthread_mutex_init(&made->lock, NULL);
    pthread_mutex_init(&made->fuzzy_lock, NULL);
    if (segment != NULL) {
        made->segment = *segment;
        made->segment_is_borrowed = true;
    }
    made->rank = options->rank;
    made->check = options->check;
    made->check_argument = options->check_argument;
    int status = set_up(made, options);
    if (status != SPC_OK) {
        spc_comm_destroy(made);
        return status;
    }
    spc_status_set_live(made->status, made->rank, (int32_t)getpid());
    *comm = made;
    return SPC_OK;
}

void spc_comm_destroy(spc_comm_t *comm) {
    if (comm == NULL) {
        return;
    }
    spc_reduce_destroy(comm->reduce);
    spc_outbox_destroy(comm->outbox);
    spc_inbox_destroy(comm->inbox);
    spc_owner_mark_fini(&comm->owner);
    if (!comm->segment_is_borrowed) {
        spc_segment_detach(&comm->segment);
    }
    pthread_mutex_destroy(&comm->fuzzy_lock);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

static bool test_sent(spc_comm_wait_t *wait) {
    spc_comm_t *comm = wait->comm;
    pthread_mutex_lock(&comm->lock);
    spc_outbox_flush(comm->outbox);
    bool empty = spc_outbox_is_empty(comm->outbox);
    pthread_mutex_unlock(&comm->lock);
    return empty;
}

int spc_comm_close(spc_comm_t *comm, uint64_t deadline_ns) {
    int status = spc_comm_usable(comm);
    if (status != SPC_OK) {
        return status;
    }
    spc_comm_wait_t wait = {.comm = comm, .test = test_sent};
    status = test_sent(&wait) ? SPC_OK : spc_comm_wait_for(&wait, deadline_ns);
    if (status == SPC_EINTERRUPTED) {
        return status; /* the caller decides whether to come again */
    }
    atomic_store_explicit(&comm->closed, true, memory_order_release);
    spc_status_end(comm->status, comm->rank, SPC_NODE_FINISHED, 0, comm->events, comm->size + 1,
                   comm->config->features);
    /* Nobody can ask for what has come: its senders get their room back. What this node has taken stays its own. */
    pthread_mutex_lock(&comm->lock);
    spc_inbox_discard(comm->inbox);
    spc_comm_unlock(comm);
    return status;
}

uint32_t spc_comm_rank(const spc_comm_t *comm) {
    return comm->rank;
}

uint32_t spc_comm_size(const spc_comm_t *comm) {
    return comm->size;
}

const spc_config_t *spc_comm_config(const spc_comm_t *comm) {
    return comm->config;
}

int spc_comm_usable(const spc_comm_t *comm) {
    return spc_comm_check_usable(comm);
}

int spc_comm_blame(spc_comm_t *comm, uint32_t rank) {
    atomic_store_explicit(&comm->culprit, (int32_t)rank, memory_order_relaxed);
    return spc_status_state(comm->status, rank) == SPC_NODE_DIED ? SPC_ELOST : SPC_EFINISHED;
}

int32_t spc_comm_culprit(const spc_comm_t *comm, spc_node_state_t *state, int32_t *reason) {
    int32_t rank = atomic_load_explicit(&comm->culprit, memory_order_relaxed);
    *state = spc_status_state(comm->status, (uint32_t)rank);
    *reason = atomic_load_explicit(&comm->status->line[rank].reason, memory_order_relaxed);
    return rank;
}
