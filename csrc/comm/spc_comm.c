/* SPDX-License-Identifier: MIT */
#include "comm/spc_comm.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_clock.h"
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
    /* First: a survivor that the end wakes may count what the dead one held at once. */
    spc_status_set_gone(spc_segment_part(segment, SPC_REGION_STATUS, 0), rank,
                        spc_segment_part(segment, SPC_REGION_EVENT, 0), segment->config->nodes + 1,
                        segment->config->features);
    spc_comm_mark_ending(segment, rank, state, reason);
}

/* ---- what is left open */

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

/* After it has closed: fuzzy barriers and a cycle that are open. */
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

void spc_comm_destroy(spc_comm_t *comm) {
    if (comm == NULL) {
        return;
    }
    spc_coordinated_destroy(comm->cycle.account);
    spc_reduce_destroy(comm->reduce);
    if (comm->node != NULL) {
        spc_message_release(comm, &comm->block); /* after everything that looks into the area */
        spc_node_release(comm->node);
    }
    pthread_mutex_destroy(&comm->fuzzy_lock);
    free(comm->splitting.members);
    free(comm->members);
    free(comm->rank_of);
    free(comm);
}

/* The run goes on without this node in this communicator; who waits for it here is told. */
static int close_split(spc_comm_t *comm, uint64_t deadline_ns) {
    spc_node_t *node = comm->node;
    int status = spc_node_flush(node, deadline_ns);
    if (status == SPC_EINTERRUPTED) {
        return status;
    }
    atomic_fetch_or_explicit(&comm->gate, SPC_GATE_CLOSED, memory_order_release);
    /* Release: who sees it sees what this node has announced here. Pairs with spc_comm_has_left. */
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

/* ---- small questions */

uint32_t spc_comm_rank(const spc_comm_t *comm) {
    return comm->rank;
}

uint32_t spc_comm_size(const spc_comm_t *comm) {
    return comm->size;
}

bool spc_comm_is_wide(const spc_comm_t *comm) {
    return spc_comm_spans(comm);
}

uint32_t spc_comm_box(const spc_comm_t *comm, uint32_t rank) {
    return spc_segment_box(&comm->node->segment, spc_comm_member(comm, rank));
}

const spc_config_t *spc_comm_config(const spc_comm_t *comm) {
    return comm->config;
}

uint64_t spc_comm_scratch_bytes(const spc_comm_t *comm) {
    return comm->area.scratch_bytes;
}

uint32_t spc_comm_rank_in_run(const spc_comm_t *comm, uint32_t rank) {
    return spc_comm_member(comm, rank);
}

spc_trace_t *spc_comm_trace(const spc_comm_t *comm) {
    const spc_node_t *node = comm->node;
    return node->tracing != NULL && spc_owner_mark_holds(&node->owner) ? node->tracing : NULL;
}

void spc_comm_trace_call(const spc_comm_t *comm, uint32_t what, uint32_t place, uint32_t detail) {
    spc_trace_event_t event = {.kind = SPC_TRACE_CALL, .what = what, .place = place, .number = detail};
    if (comm->number != 0) {
        event.context = (uint16_t)comm->number;
        event.peer = (int32_t)spc_comm_member(comm, 0);
        event.tag = (int32_t)comm->rank;
        event.bytes = comm->size;
    }
    spc_trace_record(comm->node->tracing, &event);
}

int spc_comm_usable(const spc_comm_t *comm) {
    return spc_comm_check_usable(comm);
}

bool spc_comm_has_left(const spc_comm_t *comm, uint32_t rank) {
    if (spc_node_has_ended(comm->node, spc_comm_member(comm, rank))) {
        return true;
    }
    /* Pairs with close_split. */
    return comm->area.left != NULL && atomic_load_explicit(&comm->area.left[rank], memory_order_acquire) != 0;
}

int spc_comm_blame(spc_comm_t *comm, uint32_t rank) {
    atomic_store_explicit(&comm->culprit, (int32_t)rank, memory_order_relaxed);
    bool died = spc_status_state(comm->node->status, spc_comm_member(comm, rank)) == SPC_NODE_DIED;
    return died ? SPC_ELOST : SPC_EFINISHED;
}

int32_t spc_comm_lost_box(const spc_comm_t *comm) {
    const spc_node_t *node = comm->node;
    return atomic_load_explicit(&node->status->line[node->size].reason, memory_order_relaxed);
}

int32_t spc_comm_culprit(const spc_comm_t *comm, spc_node_state_t *state, int32_t *reason) {
    int32_t rank = atomic_load_explicit(&comm->culprit, memory_order_relaxed);
    uint32_t member = spc_comm_member(comm, (uint32_t)rank);
    *state = spc_status_state(comm->node->status, member);
    *reason = atomic_load_explicit(&comm->node->status->line[member].reason, memory_order_relaxed);
    return rank;
}

/* ---- memory that the nodes use together */

void spc_comm_share_block(spc_comm_t *comm, spc_block_shared_t *block) {
    pthread_mutex_lock(&comm->node->lock);
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        spc_block_pin(block, spc_comm_member(comm, rank));
    }
    pthread_mutex_unlock(&comm->node->lock);
}

void spc_comm_unshare_block(spc_comm_t *comm, spc_block_shared_t *block) {
    pthread_mutex_lock(&comm->node->lock);
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (rank != comm->rank) {
            /* relaxed: the others' use has happened before, as the caller knows; the arena looks with this lock. */
            atomic_store_explicit(&block->pin[spc_comm_member(comm, rank)], 0, memory_order_relaxed);
        }
    }
    pthread_mutex_unlock(&comm->node->lock);
}

bool spc_comm_offset(const spc_comm_t *comm, const void *address, uint64_t bytes, uint64_t *offset) {
    const spc_segment_t *segment = &comm->node->segment;
    const uintptr_t base = (uintptr_t)segment->base;
    const uintptr_t at = (uintptr_t)address;
    if (at < base || at - base > segment->size_bytes || bytes > segment->size_bytes - (at - base)) {
        return false;
    }
    *offset = at - base;
    return true;
}

void *spc_comm_address(const spc_comm_t *comm, uint64_t offset) {
    return spc_segment_address(&comm->node->segment, offset);
}

/* ---- what a long wait is for */

static void describe(const spc_comm_t *comm, spc_board_kind_t kind, int32_t source, int32_t tag,
                     spc_board_entry_t *entry) {
    entry->kind = kind;
    entry->communicator = comm->number;
    entry->rank = comm->rank;
    entry->size = comm->size;
    entry->source = source;
    entry->tag = tag;
}

static void need(const spc_comm_t *comm, uint32_t rank, spc_board_pair_t *pairs) {
    pairs[spc_comm_member(comm, rank)].needed = rank + 1;
}

static void need_others(const spc_comm_t *comm, spc_board_pair_t *pairs) {
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (rank != comm->rank) {
            need(comm, rank, pairs);
        }
    }
}

static int32_t rank_of(const spc_comm_t *comm, int32_t member) {
    return member < 0 || comm->rank_of == NULL ? member : comm->rank_of[member];
}

void spc_comm_describe_match(const spc_comm_t *comm, const spc_match_t *match, spc_board_entry_t *entry,
                             spc_board_pair_t *pairs) {
    describe(comm, SPC_BOARD_RECEIVE, rank_of(comm, match->source), match->tag, entry);
    if (match->source == SPC_ANY_SOURCE) {
        need_others(comm, pairs);
    } else {
        need(comm, (uint32_t)entry->source, pairs);
    }
    entry->near_count = spc_inbox_near(comm->node->inbox, match, &entry->near_source, &entry->near_tag);
    entry->near_source = entry->near_count != 0 ? rank_of(comm, entry->near_source) : 0;
}

void spc_comm_describe_send(const spc_comm_t *comm, const spc_send_call_t *call, spc_board_entry_t *entry) {
    int32_t destination =
        call->destination_count == 1 ? rank_of(comm, call->destinations[0]) : SPC_ANY_SOURCE;
    describe(comm, SPC_BOARD_SEND, destination, call->tag, entry);
    entry->phase =
        spc_outbox_limit_for(comm->node->outbox, call->payload->meta_bytes + call->payload->data_bytes);
}

/* Of a collective that moves data, after all have entered it: `source` has not sent its part; SPC_ANY_SOURCE: what this
 * node gives has no room. */
void spc_comm_describe_gathering(const spc_comm_t *comm, int32_t source, int32_t tag,
                                 spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    bool receives = source != SPC_ANY_SOURCE;
    describe(comm, receives ? SPC_BOARD_GATHERING : SPC_BOARD_SEND, source, tag, entry);
    if (receives) {
        need(comm, (uint32_t)source, pairs);
    }
    memcpy(entry->call, &comm->pending.signature, sizeof(comm->pending.signature));
}

void spc_comm_describe_receipt(const spc_comm_t *comm, const spc_synchronous_call_t *call,
                               spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const spc_awaited_t *awaited = &call->awaited[call->next];
    describe(comm, SPC_BOARD_RECEIPT, (int32_t)awaited->rank, call->send->tag, entry);
    need(comm, awaited->rank, pairs);
    entry->flags |= call->content ? SPC_BOARD_RENDEZVOUS : 0;
    entry->phase = awaited->number;
    entry->lines_offset = spc_segment_offset(&comm->node->segment,
                                             spc_receipts_row(comm->node->receipts, awaited->destination));
}

void spc_comm_describe_phase(const spc_comm_t *comm, spc_board_kind_t kind, uint64_t phase,
                             spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    spc_signature_t signature;
    _Static_assert(sizeof(signature) == SPC_BOARD_CALL_BYTES, "a board has room for a signature");
    describe(comm, kind, SPC_ANY_SOURCE, SPC_ANY_TAG, entry);
    need_others(comm, pairs);
    entry->phase = phase;
    entry->lines_offset = spc_segment_offset(&comm->node->segment, spc_reduce_lines(comm->reduce, phase));
    if (spc_reduce_signature(comm->reduce, phase, comm->rank, &signature)) {
        memcpy(entry->call, &signature, sizeof(signature));
    }
}

/* ---- what is left for others to read */

/*
 * What a node leaves for others to read (segment/spc_note.h): where it ended, its line in a mismatch, what it left
 * open.
 */

#define LOOK_NS UINT64_C(200000) /* between two looks for another node's note */

static const spc_note_shared_t *notes_of(const spc_comm_t *comm, uint32_t rank) {
    return spc_segment_part(&comm->node->segment, SPC_REGION_NOTE, spc_comm_member(comm, rank));
}

void spc_comm_note(spc_comm_t *comm, spc_note_kind_t kind, const spc_note_t *note) {
    if (spc_comm_usable(comm) != SPC_OK) {
        return;
    }
    pthread_mutex_lock(&comm->node->lock);
    spc_note_write(comm->node->notes, kind, note);
    pthread_mutex_unlock(&comm->node->lock);
    if (comm->config->boxes > 1) {
        spc_event_raise(&comm->node->events[comm->node->size],
                        comm->config->features); /* the agent tells others */
    }
}

bool spc_comm_has_note(const spc_comm_t *comm, spc_note_kind_t kind) {
    spc_note_t note;
    return spc_note_read(comm->node->notes, kind, &note);
}

void spc_comm_note_failure(spc_comm_t *comm, int32_t exit_code) {
    atomic_store_explicit(&comm->node->failure, exit_code, memory_order_relaxed); /* read in spc_node_close */
}

void spc_comm_note_raised(spc_comm_t *comm, int32_t change) {
    if (spc_comm_usable(comm) == SPC_OK) {
        spc_status_count_raised(comm->node->status, comm->node->rank, change);
    }
}

void spc_comm_note_sent(spc_comm_t *comm, const spc_note_sent_t *sent) {
    pthread_mutex_lock(&comm->node->lock);
    spc_note_add_sent(comm->node->notes, sent);
    pthread_mutex_unlock(&comm->node->lock);
}

/* ---- ends */

/* Killed in a wait: the board is published still. */
static bool find_wait(const spc_comm_t *comm, uint32_t rank, spc_note_t *note) {
    const spc_board_shared_t *board =
        spc_segment_part(&comm->node->segment, SPC_REGION_BOARD, spc_comm_member(comm, rank));
    uint32_t stuck = spc_board_stuck(board);
    spc_board_entry_t entry;
    if (!spc_board_is_stuck(stuck) || !spc_board_read(board, stuck, &entry) || entry.line == 0) {
        return false;
    }
    _Static_assert(sizeof(entry.file) == sizeof(note->file), "places are of one size");
    _Static_assert(sizeof(entry.function) == sizeof(note->function), "places are of one size");
    *note = (spc_note_t){.line = entry.line, .words = "in a call that waited"};
    memcpy(note->function, entry.function, sizeof(note->function));
    memcpy(note->file, entry.file, sizeof(note->file));
    return true;
}

bool spc_comm_end_of(const spc_comm_t *comm, uint32_t rank, spc_note_t *note) {
    return spc_note_read(notes_of(comm, rank), SPC_NOTE_END, note) || find_wait(comm, rank, note);
}

/* ---- mismatches */

/* Phases of different communicators are different operations. Not 0. */
static uint64_t key_of(const spc_comm_t *comm, uint64_t phase) {
    return phase * SPC_COMMUNICATORS_MAX + comm->number;
}

void spc_comm_note_call(spc_comm_t *comm, uint64_t phase, spc_note_t *note) {
    note->key = key_of(comm, phase);
    spc_comm_note(comm, SPC_NOTE_CALL, note);
}

bool spc_comm_call_of(const spc_comm_t *comm, uint32_t rank, uint64_t phase, uint64_t deadline_ns,
                      spc_note_t *note) {
    uint64_t key = key_of(comm, phase);
    for (;;) {
        if (spc_note_read(notes_of(comm, rank), SPC_NOTE_CALL, note) && note->key == key) {
            return true;
        }
        if (spc_comm_has_left(comm, rank) || spc_clock_now_ns() >= deadline_ns) {
            return false;
        }
        spc_clock_sleep_ns(LOOK_NS);
    }
}

/* ---- near misses */

uint32_t spc_comm_near(const spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag,
                       int32_t *near_source, int32_t *near_tag) {
    spc_match_t match = {.source = source, .tag = tag, .context = spc_comm_context(comm, context)};
    if (spc_comm_usable(comm) != SPC_OK || source >= (int32_t)comm->size) {
        return 0;
    }
    if (comm->members != NULL && source >= 0) {
        match.source = (int32_t)comm->members[source];
    }
    pthread_mutex_lock(&comm->node->lock);
    uint32_t count = spc_inbox_near(comm->node->inbox, &match, near_source, near_tag);
    pthread_mutex_unlock(&comm->node->lock);
    if (count != 0 && comm->rank_of != NULL) {
        *near_source = comm->rank_of[*near_source];
    }
    return count;
}
