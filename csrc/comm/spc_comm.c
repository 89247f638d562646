/* SPDX-License-Identifier: MIT */
#include "comm/spc_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/spc_clock.h"
#include "comm/spc_comm_perturb.h"
#include "comm/spc_comm_private.h"
#include "diagnose/spc_failure_text.h"

/* ---- simple queries */

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
    event.ticks = spc_trace_now(comm->node->tracing);
    spc_node_trace_core(comm->node, event.ticks);
    spc_trace_record(comm->node->tracing, &event);
}

int spc_comm_usable(const spc_comm_t *comm) {
    return spc_comm_check_usable(comm);
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

/* ---- memory that the nodes share */

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
            /* relaxed: the others' use has happened before, as the caller knows; the arena reads it with this lock. */
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

/* ---- a node that watches itself */

int spc_comm_watch_itself(spc_comm_t *comm, int (*warn)(void *argument)) {
    comm->node->warn = warn;
    return spc_deadlock_create(&comm->node->segment, &comm->node->deadlock);
}

int spc_comm_report_wait(const spc_comm_t *comm, const char *advice, FILE *out) {
    const spc_node_t *node = comm->node;
    const uint64_t waited_ns = spc_clock_now_ns() - node->entry.since_ns;
    const spc_deadlock_report_options_t options = {
        .advice = advice, .waited_s = node->entry.doubts != 0 ? waited_ns / UINT64_C(1000000000) : 0};
    spc_waits_t waits;
    int status = spc_waits_create(node->size, &waits);
    if (status != SPC_OK) {
        return status;
    }
    waits.known_count = 1;
    waits.known[node->rank] = true;
    waits.entry[node->rank] = node->entry;
    waits.needed[node->rank] = node->pairs[node->rank].needed != 0;
    status = spc_deadlock_report_write(&waits, &options, out);
    spc_waits_free(&waits);
    return status;
}

/* ---- notes for other nodes */

/*
 * Notes that a node leaves for others (segment/spc_note.h): where it ended, its line in a mismatch, operations that it
 * left open.
 */

void spc_comm_note(spc_comm_t *comm, spc_note_kind_t kind, const spc_note_t *note) {
    if (spc_comm_usable(comm) != SPC_OK) {
        return;
    }
    pthread_mutex_lock(&comm->node->lock);
    spc_note_write(comm->node->notes, kind, note);
    pthread_mutex_unlock(&comm->node->lock);
    if (comm->config->boxes > 1) {
        spc_event_raise(&comm->node->events[comm->node->size],
                        comm->config->features); /* the supervisor reports it to others */
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

void spc_comm_forget_sent(spc_comm_t *comm) {
    pthread_mutex_lock(&comm->node->lock);
    spc_note_forget_sent(comm->node->notes);
    pthread_mutex_unlock(&comm->node->lock);
}

bool spc_comm_sent_by(const spc_comm_t *comm, uint32_t rank, int32_t tag, uint32_t format,
                      spc_note_sent_t *sent) {
    return spc_note_find_sent(spc_comm_notes(comm, rank), comm->node->rank, tag, format, sent);
}

/* ---- ends */

/* Killed in a wait: the board is still published. */
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

/* Reads how and where `rank` ended, or was waiting when it was killed. False: that is not known. */
static bool end_of(const spc_comm_t *comm, uint32_t rank, spc_note_t *note) {
    return spc_note_read(spc_comm_notes(comm, rank), SPC_NOTE_END, note) || find_wait(comm, rank, note);
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
    uint32_t count = spc_inbox_near(comm->node->inbox, &match, 0, near_source, near_tag);
    pthread_mutex_unlock(&comm->node->lock);
    if (count != 0 && comm->rank_of != NULL) {
        *near_source = comm->rank_of[*near_source];
    }
    return count;
}

/* ---- why a call has failed */

char *spc_comm_explain(const spc_comm_t *comm, int status, const char *call, const char *since) {
    char *text = NULL;
    size_t bytes;
    spc_failed_call_t failed = {.call = call, .status = status, .since = since};
    if (comm != NULL) {
        failed.rank = spc_comm_member(comm, comm->rank);
        failed.size = comm->size;
        failed.lost_box = spc_comm_lost_box(comm);
    }
    if (status == SPC_ELOST || status == SPC_EFINISHED) {
        const uint32_t culprit = (uint32_t)spc_comm_culprit(comm, &failed.state, &failed.reason);
        failed.culprit = spc_comm_member(comm, culprit);
        failed.has_end = end_of(comm, culprit, &failed.end);
    }
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        return NULL;
    }
    spc_failure_text_write(&failed, out);
    fclose(out);
    return text;
}

char *spc_comm_explain_near(const spc_comm_t *comm, uint16_t context, int32_t source, int32_t tag) {
    int32_t near_source, near_tag;
    char *text = NULL;
    size_t bytes;
    const uint32_t count = spc_comm_near(comm, context, source, tag, &near_source, &near_tag);
    FILE *out = count != 0 ? open_memstream(&text, &bytes) : NULL;
    if (out == NULL) {
        return NULL;
    }
    spc_failure_text_write_near(count, spc_comm_member(comm, (uint32_t)near_source), near_tag,
                                source == SPC_ANY_SOURCE || source == near_source, out);
    fclose(out);
    return text;
}

/* ---- layout of a communicator's shared memory: spc_comm_area.h */

/* A split communicator's scratch: large enough that long reductions are not cut into too many steps, and small enough
 * that its block finds room in the arena beside large messages, and several fit in a small arena. */
#define SPLIT_SCRATCH_MOST UINT64_C(8192)
#define SPLIT_SCRATCH_LEAST UINT64_C(256)
#define SPLIT_ARENA_SHARE 16

spc_comm_area_t spc_comm_area_of_run(const spc_segment_t *segment) {
    return (spc_comm_area_t){
        .reduce = spc_segment_part(segment, SPC_REGION_REDUCE, 0),
        .scratch = spc_segment_part(segment, SPC_REGION_SCRATCH, 0),
        .scratch_stride = spc_segment_stride(segment, SPC_REGION_SCRATCH),
        .scratch_bytes = segment->config->scratch_bytes,
        .coordinated = spc_segment_part(segment, SPC_REGION_COORDINATED, 0),
    };
}

static uint64_t split_scratch_bytes(const spc_config_t *config, uint32_t size) {
    uint64_t share = config->arena_bytes / SPLIT_ARENA_SHARE / (2 * size) / SPC_CACHE_LINE * SPC_CACHE_LINE;
    uint64_t most = config->scratch_bytes < SPLIT_SCRATCH_MOST ? config->scratch_bytes : SPLIT_SCRATCH_MOST;
    share = share > SPLIT_SCRATCH_LEAST ? share : SPLIT_SCRATCH_LEAST;
    return share < most ? share : most;
}

/* Two halves, and in a run of several boxes the data that the gateway needs about them. */
static uint64_t scratch_stride(const spc_config_t *config, uint64_t half_bytes) {
    return 2 * half_bytes + (config->boxes > 1 ? SPC_REDUCE_FIELDS_BYTES : 0);
}

/* In the segment: a node's part of the scratch. */
static uint64_t stride_of_run(const spc_config_t *config) {
    return scratch_stride(config, config->scratch_bytes);
}

/* [reducer][scratch by rank][coordinated][left by rank], each at a multiple of two cache lines. */
static uint64_t reduce_bytes(const spc_config_t *config, uint32_t size) {
    return spc_round_up(spc_reduce_bytes(size, config->fanin), 2 * SPC_CACHE_LINE);
}

static uint64_t scratch_bytes(const spc_config_t *config, uint32_t size) {
    return spc_round_up(scratch_stride(config, split_scratch_bytes(config, size)) * size, 2 * SPC_CACHE_LINE);
}

static uint64_t coordinated_bytes(uint32_t size) {
    return spc_round_up(spc_coordinated_bytes(size), 2 * SPC_CACHE_LINE);
}

uint64_t spc_comm_area_bytes(const spc_config_t *config, uint32_t size) {
    return reduce_bytes(config, size) + scratch_bytes(config, size) + coordinated_bytes(size)
           + spc_round_up(size, SPC_CACHE_LINE);
}

spc_comm_area_t spc_comm_area_in(const spc_config_t *config, uint32_t size, unsigned char *memory) {
    unsigned char *scratch = memory + reduce_bytes(config, size);
    unsigned char *coordinated = scratch + scratch_bytes(config, size);
    return (spc_comm_area_t){
        .reduce = memory,
        .scratch = scratch,
        .scratch_stride = scratch_stride(config, split_scratch_bytes(config, size)),
        .scratch_bytes = split_scratch_bytes(config, size),
        .coordinated = coordinated,
        .left = (_Atomic uint8_t *)(coordinated + coordinated_bytes(size)),
    };
}

static uint32_t count_here(const spc_comm_t *comm) {
    uint32_t here = 0;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        here += spc_comm_is_here(comm, rank);
    }
    return here;
}

int spc_comm_attach(spc_comm_t *comm) {
    const spc_node_t *node = comm->node;
    comm->here = comm->config->boxes == 1 ? comm->size : count_here(comm);
    spc_reduce_options_t options = {
        .shared = comm->area.reduce,
        .base = node->segment.base,
        .scratch = comm->area.scratch + comm->rank * comm->area.scratch_stride,
        .scratch_bytes = comm->area.scratch_bytes,
        .rank = comm->rank,
        .nodes = comm->size,
        .fanin = comm->config->fanin,
        .events = node->events,
        .members = comm->members,
        .features = comm->config->features,
        .here = comm->here == comm->size ? 0 : comm->here,
        .gateway = comm->here == comm->size ? NULL : &node->events[node->size],
    };
    int status = spc_reduce_create(&options, &comm->reduce);
    if (status == SPC_OK) {
        spc_fuzzy_init(&comm->fuzzy, comm->reduce);
        status =
            spc_coordinated_create(comm->area.coordinated, comm->rank, comm->size, 0, &comm->cycle.account);
    }
    if (comm->config->perturb != 0) {
        atomic_fetch_or_explicit(&comm->gate, SPC_GATE_PERTURBED,
                                 memory_order_relaxed); /* no node calls yet */
    }
    return status;
}

int spc_comm_count_collectives(const spc_segment_t *segment, uint64_t *counts) {
    spc_comm_area_t area = spc_comm_area_of_run(segment);
    spc_reduce_options_t options = {
        .shared = area.reduce,
        .base = segment->base,
        .scratch = area.scratch,
        .scratch_bytes = area.scratch_bytes,
        .nodes = segment->config->nodes,
        .fanin = segment->config->fanin,
    };
    spc_reduce_t *reduce;
    int status = spc_reduce_create(&options, &reduce);
    if (status != SPC_OK) {
        return status;
    }
    for (uint32_t rank = 0; rank < options.nodes; rank++) {
        counts[rank] = spc_reduce_last(reduce, rank);
    }
    spc_reduce_destroy(reduce);
    return SPC_OK;
}

/* ---- blocks of the arenas that a caller holds: taken, written and given back (spc_comm_send.c hands them on) */

static int take_block(spc_comm_t *comm, uint64_t length_bytes, bool kept, spc_block_shared_t **block) {
    spc_node_t *node = comm->node;
    int status = spc_comm_check_usable(comm);
    if (status == SPC_OK) {
        pthread_mutex_lock(&node->lock);
        status = kept ? spc_outbox_take_kept(node->outbox, length_bytes, block)
                      : spc_outbox_take_block(node->outbox, length_bytes, block);
        pthread_mutex_unlock(&node->lock);
    }
    return status;
}

int spc_comm_take_block(spc_comm_t *comm, uint64_t length_bytes, spc_block_shared_t **block) {
    return take_block(comm, length_bytes, false, block);
}

int spc_comm_take_kept(spc_comm_t *comm, uint64_t length_bytes, spc_block_shared_t **block) {
    return take_block(comm, length_bytes, true, block);
}

void spc_comm_release_block(spc_comm_t *comm, spc_block_shared_t *block) {
    spc_comm_release_stored(comm, SPC_STORED_ARENA, block);
}

static bool are_dead_gone(spc_node_wait_t *wait) {
    const spc_status_shared_t *status = wait->node->status;
    bool gone = true;
    for (uint32_t rank = 0; rank < wait->node->size && gone; rank++) {
        gone = spc_status_state(status, rank) != SPC_NODE_DIED || spc_status_is_gone(status, rank);
    }
    return gone;
}

int spc_comm_await_gone(spc_comm_t *comm, uint64_t deadline_ns) {
    spc_node_wait_t wait = {.node = comm->node, .test = are_dead_gone};
    return spc_node_wait_for(&wait, deadline_ns);
}

uint64_t spc_comm_block_bytes(spc_comm_t *comm) {
    spc_node_t *node = comm->node;
    pthread_mutex_lock(&node->lock);
    uint64_t bytes = spc_outbox_block_bytes(node->outbox);
    pthread_mutex_unlock(&node->lock);
    return bytes;
}

/* ---- ending received messages */

void spc_message_release(spc_comm_t *comm, spc_message_t *message) {
    if (message->handle != NULL && spc_owner_mark_holds(&comm->node->owner)) {
        spc_inbox_release(comm->node->inbox, message);
    }
}

bool spc_message_claim(spc_comm_t *comm, spc_message_t *message) {
    const spc_node_t *node = comm->node;
    if (message->storage == SPC_STORED_ARENA && !message->sole && message->handle != NULL
        && spc_owner_mark_holds(&node->owner)) {
        message->sole = spc_block_is_sole(message->handle, node->rank, node->config->nodes);
    }
    return message->sole;
}

void spc_comm_release_stored(spc_comm_t *comm, spc_storage_t storage, void *handle) {
    if (storage == SPC_STORED_HEAP) {
        free(handle);
    } else if (spc_owner_mark_holds(&comm->node->owner)) {
        spc_inbox_release_block(comm->node->inbox, handle);
    }
}

/* ---- plan, and ends of nodes */

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
    SPC_PLAN(SCRATCH, stride_of_run(complete), nodes);
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
static void note_left_open(const spc_comm_t *comm) {
    bool in_cycle = spc_coordinated_is_open(comm->cycle.account);
    pthread_mutex_lock(&comm->node->lock);
    /* Acquire pairs with the release in fuzzy_leave. */
    note_open(comm, SPC_NOTE_FUZZY, atomic_load_explicit(&comm->fuzzy_open, memory_order_acquire));
    note_open(comm, SPC_NOTE_CYCLE, in_cycle);
    pthread_mutex_unlock(&comm->node->lock);
}

/* ---- life */

#define START_NS 50000000 /* the latest start of a node in a perturbed run */

/* Nodes begin at different times. */
static void begin_late(spc_comm_t *comm) {
    const uint64_t chosen = spc_comm_perturb_choose(comm, spc_comm_perturb_number(comm), SPC_ABOUT_BEFORE);
    spc_comm_perturb_sleep(comm, chosen % 4 == 0 ? 0 : (chosen >> 16) % START_NS);
}

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
    if (status == SPC_OK && spc_comm_is_perturbed(made)) {
        begin_late(made);
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
        note_left_open(comm);
    }
    return status;
}
