/* SPDX-License-Identifier: MIT */
/*
 * State of a communicator and its members: queries that never wait, descriptions of waits, and the notes that it
 * leaves.
 */
#include <stdio.h>
#include <string.h>

#include "base/spc_clock.h"
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

bool spc_comm_has_left(const spc_comm_t *comm, uint32_t rank) {
    if (spc_node_has_ended(comm->node, spc_comm_member(comm, rank))) {
        return true;
    }
    /* Pairs with close_split. */
    return comm->area.left != NULL && atomic_load_explicit(&comm->area.left[rank], memory_order_acquire) != 0;
}

int spc_comm_blame(spc_comm_t *comm, uint32_t rank) {
    if (spc_node_is_disconnected(comm->node)) {
        return SPC_EDISCONNECTED;
    }
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

/* ---- descriptions of long waits */

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
    entry->near_count = spc_inbox_near(comm->node->inbox, match, 0, &entry->near_source, &entry->near_tag);
    entry->near_source = entry->near_count != 0 ? rank_of(comm, entry->near_source) : 0;
    entry->flags &= ~(uint32_t)SPC_BOARD_ELSEWHERE;
    if (entry->near_count == 0) {
        entry->near_count = spc_inbox_near(comm->node->inbox, match, SPC_CONTEXT_KINDS, &entry->near_source,
                                           &entry->near_tag);
        entry->flags |= entry->near_count != 0 ? SPC_BOARD_ELSEWHERE : 0;
    }
}

void spc_comm_describe_send(const spc_comm_t *comm, const spc_send_call_t *call, spc_board_entry_t *entry) {
    int32_t destination =
        call->destination_count == 1 ? rank_of(comm, call->destinations[0]) : SPC_ANY_SOURCE;
    describe(comm, SPC_BOARD_SEND, destination, call->tag, entry);
    entry->phase =
        spc_outbox_limit_for(comm->node->outbox, call->payload->meta_bytes + call->payload->data_bytes);
}

/* In a collective that moves data, after all have entered it: `source` has not sent its part; SPC_ANY_SOURCE: this
 * node's own data have no room. */
void spc_comm_describe_gathering(const spc_comm_t *comm, int32_t source, int32_t tag,
                                 spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    bool receives = source != SPC_ANY_SOURCE;
    describe(comm, receives ? SPC_BOARD_GATHERING : SPC_BOARD_SEND, source, tag, entry);
    if (receives) {
        need(comm, (uint32_t)source, pairs);
    }
    memcpy(entry->call, &comm->pending.signature, sizeof(comm->pending.signature));
}

/* In spc_comm_create_group: `source` has not taken its part in it yet. */
void spc_comm_describe_grouping(const spc_comm_t *comm, uint32_t source, spc_board_entry_t *entry,
                                spc_board_pair_t *pairs) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_CREATE_GROUP};
    describe(comm, SPC_BOARD_GATHERING, (int32_t)source, 0, entry);
    need(comm, source, pairs);
    memcpy(entry->call, &signature, sizeof(signature));
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
