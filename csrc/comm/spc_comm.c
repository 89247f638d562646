/* SPDX-License-Identifier: MIT */
#include "comm/spc_comm.h"

#include <stdlib.h>
#include <string.h>

#include "comm/spc_comm_perturb.h"
#include "comm/spc_comm_private.h"

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
    SPC_PLAN(PLACE, nodes * sizeof(uint16_t), complete->boxes > 1 ? 1 : 0);
    SPC_PLAN(STATUS, spc_status_bytes(nodes + 1), 1);
    SPC_PLAN(EVENT, sizeof(spc_event_shared_t), nodes + 1);
    SPC_PLAN(REDUCE, spc_reduce_bytes(nodes, complete->fanin), 1);
    SPC_PLAN(SCRATCH, spc_comm_scratch_stride(complete), nodes);
    SPC_PLAN(COORDINATED, spc_coordinated_bytes(nodes), 1);
    SPC_PLAN(BOARD, spc_board_bytes(nodes), nodes);
    SPC_PLAN(NOTE, sizeof(spc_note_shared_t), nodes);
    SPC_PLAN(TRACE, spc_trace_bytes(complete->trace_events), complete->trace_events != 0 ? nodes : 0);
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

void spc_comm_mark_disconnected(const spc_segment_t *segment, int32_t culprit) {
    spc_comm_mark_ending(segment, segment->config->nodes, SPC_NODE_DIED, culprit);
}

void spc_comm_mark_ended(const spc_segment_t *segment, uint32_t rank, spc_node_state_t state,
                         int32_t reason) {
    /* First: a survivor that the end wakes may at once count the messages that the dead node held. */
    spc_status_set_gone(spc_segment_part(segment, SPC_REGION_STATUS, 0), rank,
                        spc_segment_part(segment, SPC_REGION_EVENT, 0), segment->config->nodes + 1,
                        segment->config->features);
    spc_comm_mark_ending(segment, rank, state, reason);
}

/* ---- operations left open */

static void note_open(const spc_comm_t *comm, spc_note_kind_t kind, uint32_t count) {
    spc_note_t note;
    if (count == 0) {
        return;
    }
    if (!spc_note_read(comm->node->notes, kind, &note)) {
        memset(&note, 0, sizeof(note));
    }
    note.count += count;
    spc_note_write(comm->node->notes, kind, &note);
}

/* After the node has closed: counts fuzzy barriers and a cycle that are open. */
static void spc_comm_note_left_open(const spc_comm_t *comm) {
    bool in_cycle = spc_coordinated_is_open(comm->cycle.account);
    pthread_mutex_lock(&comm->node->lock);
    /* Acquire pairs with the release in fuzzy_leave. */
    note_open(comm, SPC_NOTE_FUZZY, atomic_load_explicit(&comm->fuzzy_open, memory_order_acquire));
    note_open(comm, SPC_NOTE_CYCLE, in_cycle);
    pthread_mutex_unlock(&comm->node->lock);
}

/* ---- life */

int spc_comm_create(const spc_comm_options_t *options, spc_comm_t **comm) {
    return spc_comm_create_within(NULL, options, comm);
}

int spc_comm_create_within(const spc_segment_t *segment, const spc_comm_options_t *options,
                           spc_comm_t **comm) {
    spc_node_options_t place = {
        .segment = segment,
        .descriptor = options->descriptor,
        .rank = options->rank,
        .check = options->check,
        .handle = options->handle,
        .locate = options->locate,
        .check_argument = options->check_argument,
        .own_signals = options->own_signals,
    };
    spc_comm_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    pthread_mutex_init(&made->fuzzy_lock, NULL);
    int status = spc_node_create(&place, &made->node);
    if (status == SPC_OK) {
        made->config = made->node->config;
        made->rank = options->rank;
        made->size = made->node->size;
        made->area = spc_comm_area_of_run(&made->node->segment);
        status = spc_comm_attach(made);
    }
    if (status == SPC_OK) {
        spc_comm_perturb_start(made);
    }
    if (status != SPC_OK) {
        spc_comm_destroy(made);
        return status;
    }
    *comm = made;
    return SPC_OK;
}

/* Frees what interrupted calls of spc_comm_create_group have left. */
static void forget_groupings(spc_comm_t *comm) {
    while (comm->groupings != NULL) {
        spc_grouping_t *grouping = comm->groupings;
        comm->groupings = grouping->next;
        if (grouping->splitting.received) {
            spc_message_release(comm, &grouping->splitting.block);
        }
        free(grouping->splitting.members);
        free(grouping);
    }
}

/* Tells the members, this node included, that it sends nothing more in this communicator: no call is inside it now.
 * Without memory or after the node's end the number stays taken. */
static void give_up_number(spc_comm_t *comm) {
    spc_node_t *node = comm->node;
    const bool is_made = comm->reduce != NULL; /* else it may have no list of members either */
    if (comm->number == 0 || !is_made || spc_node_check_usable(node) != SPC_OK) {
        return;
    }
    pthread_mutex_lock(&node->lock);
    /* Again: a call that was inside when it was closed may have put something there since. */
    spc_inbox_close_contexts(node->inbox, spc_comm_context(comm, 0), SPC_CONTEXT_KINDS);
    spc_outbox_flush(node->outbox);
    spc_outbox_send_last(node->outbox, comm->members, comm->size,
                         spc_comm_context(comm, SPC_CONTEXT_INTERNAL));
    spc_node_unlock(node);
}

void spc_comm_destroy(spc_comm_t *comm) {
    if (comm == NULL) {
        return;
    }
    forget_groupings(comm);
    if (comm->node != NULL) {
        give_up_number(comm);
    }
    spc_coordinated_destroy(comm->cycle.account);
    spc_reduce_destroy(comm->reduce);
    if (comm->node != NULL) {
        spc_message_release(comm, &comm->block); /* after all calls that read the area */
        spc_node_release(comm->node);
    }
    pthread_mutex_destroy(&comm->fuzzy_lock);
    free(comm->splitting.members);
    free(comm->members);
    free(comm->rank_of);
    free(comm);
}

/* The run goes on without this node in this communicator; nodes that wait for it here are notified. */
static int close_split(spc_comm_t *comm, uint64_t deadline_ns) {
    spc_node_t *node = comm->node;
    int status = spc_node_flush(node, deadline_ns);
    if (status == SPC_EINTERRUPTED) {
        return status;
    }
    atomic_fetch_or_explicit(&comm->gate, SPC_GATE_CLOSED, memory_order_release);
    /* Release: a node that sees it also sees the messages announced here. Pairs with spc_comm_has_left. */
    atomic_store_explicit(&comm->area.left[comm->rank], 1, memory_order_release);
    spc_status_news(node->status, node->events, node->size + 1, node->config->features);
    pthread_mutex_lock(&node->lock);
    spc_inbox_close_contexts(node->inbox, spc_comm_context(comm, 0), SPC_CONTEXT_KINDS);
    spc_node_unlock(node);
    return status;
}

int spc_comm_close(spc_comm_t *comm, uint64_t deadline_ns) {
    int status = spc_comm_usable(comm);
    if (status != SPC_OK) {
        return status;
    }
    status = comm->number == 0 ? spc_node_close(comm->node, deadline_ns) : close_split(comm, deadline_ns);
    if (status != SPC_EINTERRUPTED) {
        spc_comm_note_left_open(comm);
    }
    return status;
}
