/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "comm/spc_comm_perturb.h"
#include "comm/spc_comm_private.h"
#include "diagnose/spc_deadlock_report.h"
#include "diagnose/spc_mismatch.h"

/* ---- one thread at a time ---- */

typedef int inside_t(spc_comm_t *comm, void *call);

/* A collective call that waits: spc_comm_check_callable, perturbed if the run is, and `inside(comm, call)` between
 * enter and leave. A refusal gives its status. */
static int run_collective(spc_comm_t *comm, inside_t *inside, void *call) {
    int passed = spc_comm_check_callable(comm);
    int status = spc_comm_perturb(comm, passed);
    if (status != SPC_OK) {
        return status;
    }
    if (!spc_comm_enter(comm)) {
        return SPC_EBUSY;
    }
    status = inside(comm, call);
    spc_comm_leave(comm);
    if (passed == SPC_PERTURBED) {
        spc_comm_perturb_after(comm);
    }
    return status;
}

/* Polls a moment for the pending phase. True: it is complete. */
static bool poll_phase(spc_comm_t *comm) {
    bool complete = spc_reduce_test(comm->reduce, comm->pending.phase);
    uint32_t polls = atomic_load_explicit(&comm->node->polls, memory_order_relaxed);
    for (uint32_t i = 0; i < polls && !complete; i++) {
        spc_cpu_relax();
        complete = spc_reduce_test(comm->reduce, comm->pending.phase);
    }
    return complete;
}

/* ---- collectives ---- */

typedef struct collective_call {
    const spc_signature_t *signature;
    const spc_field_t *fields;
    const void *value;
    uint64_t length_bytes;
    void *result;
    uint64_t deadline_ns;
} collective_call_t;

/* Starts the operation, or continues the one that was left. */
static int start_or_resume(spc_comm_t *comm, const collective_call_t *call) {
    spc_pending_t *pending = &comm->pending;
    if (spc_comm_is_pending(comm)) {
        bool same = memcmp(&pending->signature, call->signature, sizeof(pending->signature)) == 0;
        return same ? SPC_OK : SPC_EMISMATCH;
    }
    if (spc_coordinated_is_open(comm->cycle.account)) {
        return SPC_ECYCLE;
    }
    spc_comm_settle_fuzzy(comm);
    int status = spc_reduce_start(comm->reduce, call->signature, call->fields, call->value,
                                  call->length_bytes, &pending->phase);
    if (status == SPC_OK) {
        pending->signature = *call->signature;
        atomic_store_explicit(&pending->entered, true, memory_order_relaxed);
    }
    return status;
}

/* Its halves, after enter and before leave: starts an operation, or continues the same one that was left; waits until
 * all have entered it; returns its status. After the last half the caller ends it: pending.entered = false. */
static int start_phase(spc_comm_t *comm, const spc_signature_t *signature, const void *value,
                       uint64_t length_bytes) {
    const collective_call_t call = {signature, NULL, value, length_bytes, NULL, SPC_NO_DEADLINE};
    return start_or_resume(comm, &call);
}

static int outcome_of_phase(spc_comm_t *comm) {
    atomic_store_explicit(&comm->last_phase, comm->pending.phase, memory_order_relaxed);
    return spc_reduce_finish(comm->reduce, comm->pending.phase, NULL, 0);
}

/* After the phase is complete. */
static int finish(spc_comm_t *comm, const collective_call_t *call) {
    atomic_store_explicit(&comm->pending.entered, false, memory_order_relaxed);
    atomic_store_explicit(&comm->last_phase, comm->pending.phase, memory_order_relaxed);
    return spc_reduce_finish(comm->reduce, comm->pending.phase, call->result,
                             call->result != NULL ? call->length_bytes : 0);
}

static bool test_phase(spc_node_wait_t *wait) {
    const spc_comm_t *comm = wait->owner;
    const uint64_t *phase = wait->argument;
    return spc_reduce_test(comm->reduce, *phase);
}

/* Some node has not arrived, and never will. */
static int doom_of_phase(spc_comm_t *comm, uint64_t phase) {
    int status = spc_comm_check_usable(comm); /* another thread may have closed it */
    for (uint32_t rank = 0; rank < comm->size && status == SPC_OK; rank++) {
        if (spc_comm_has_left(comm, rank) && !spc_reduce_arrived(comm->reduce, phase, rank)) {
            status = spc_comm_blame(comm, rank);
        }
    }
    return status;
}

static int doomed_phase(spc_node_wait_t *wait) {
    const uint64_t *phase = wait->argument;
    return doom_of_phase(wait->owner, *phase);
}

void spc_comm_describe_phase(const spc_comm_t *comm, spc_board_kind_t kind, uint64_t phase,
                             spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    spc_signature_t signature;
    _Static_assert(sizeof(signature) == SPC_BOARD_CALL_BYTES, "a board has room for a signature");
    spc_comm_describe(comm, kind, SPC_ANY_SOURCE, SPC_ANY_TAG, entry);
    spc_comm_need_others(comm, pairs);
    entry->phase = phase;
    entry->lines_offset = spc_segment_offset(&comm->node->segment, spc_reduce_lines(comm->reduce, phase));
    if (spc_reduce_signature(comm->reduce, phase, comm->rank, &signature)) {
        memcpy(entry->call, &signature, sizeof(signature));
    }
}

static void describe_phase(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const uint64_t *phase = wait->argument;
    spc_comm_describe_phase(wait->owner, SPC_BOARD_PHASE, *phase, entry, pairs);
}

static int wait_for_phase(spc_comm_t *comm, uint64_t phase, uint64_t deadline_ns) {
    if (spc_reduce_test(comm->reduce, phase)) {
        return SPC_OK;
    }
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_phase,
                            .doomed = doomed_phase,
                            .describe = describe_phase,
                            .owner = comm,
                            .argument = &phase};
    return spc_node_wait_for(&wait, deadline_ns);
}

static int collect_inside(spc_comm_t *comm, void *argument) {
    const collective_call_t *call = argument;
    int status = start_or_resume(comm, call);
    if (status == SPC_OK) {
        comm->waits = true;
        status = wait_for_phase(comm, comm->pending.phase, call->deadline_ns);
        comm->waits = false;
    }
    return status == SPC_OK ? finish(comm, call) : status;
}

int spc_comm_collective_inside(spc_comm_t *comm, const spc_signature_t *signature, const spc_field_t *fields,
                               const void *value, uint64_t length_bytes, void *result, uint64_t deadline_ns) {
    collective_call_t call = {signature, fields, value, length_bytes, result, deadline_ns};
    return collect_inside(comm, &call);
}

int spc_comm_collective(spc_comm_t *comm, const spc_signature_t *signature, const spc_field_t *fields,
                        const void *value, uint64_t length_bytes, void *result, uint64_t deadline_ns) {
    collective_call_t call = {signature, fields, value, length_bytes, result, deadline_ns};
    return run_collective(comm, collect_inside, &call);
}

int spc_comm_collective_poll(spc_comm_t *comm, const spc_signature_t *signature, const spc_field_t *fields,
                             const void *value, uint64_t length_bytes, void *result) {
    collective_call_t call = {signature, fields, value, length_bytes, result, SPC_NO_DEADLINE};
    int status = spc_comm_check_callable(comm);
    if (status != SPC_OK) {
        return spc_comm_defer_perturbed(status);
    }
    if (!spc_comm_enter(comm)) {
        return SPC_EBUSY;
    }
    status = start_or_resume(comm, &call);
    if (status != SPC_OK) {
        spc_comm_leave(comm);
        return status;
    }
    if (!poll_phase(comm)) {
        return SPC_EAGAIN; /* still inside: this thread's spc_comm_collective continues */
    }
    status = finish(comm, &call);
    spc_comm_leave(comm);
    return status;
}

bool spc_comm_is_entered(const spc_comm_t *comm) {
    return spc_comm_is_pending(comm);
}

void spc_comm_contribution(const spc_comm_t *comm, uint32_t rank, const void **bytes,
                           uint64_t *length_bytes) {
    uint64_t phase = atomic_load_explicit(&comm->last_phase, memory_order_relaxed);
    spc_reduce_contribution(comm->reduce, phase, rank, bytes, length_bytes);
}

bool spc_comm_mismatch(const spc_comm_t *comm, uint32_t rank, spc_signature_t *signature, uint64_t *phase) {
    *phase = spc_comm_is_pending(comm) ? comm->pending.phase
                                       : atomic_load_explicit(&comm->last_phase, memory_order_relaxed);
    return spc_reduce_signature(comm->reduce, *phase, rank, signature);
}

/* ---- mismatches ---- */

/* Phases of different communicators are different operations. Not 0. */
static uint64_t key_of(const spc_comm_t *comm, uint64_t phase) {
    return phase * SPC_COMMUNICATORS_MAX + comm->number;
}

#define LOOK_NS UINT64_C(200000) /* interval between two looks for another node's note */
/* Times to wait for the other nodes' calls: nodes that wait in the operation have learnt of the mismatch; nodes that
 * learn of it only when they ask come later. */
#define AT_ONCE_NS INT64_C(500000000)
#define LATER_NS INT64_C(50000000)

/* Waits for the line of `rank`, whose program may record none. */
static spc_note_t hear_call(const spc_comm_t *comm, uint32_t rank, uint64_t key, uint8_t operation) {
    const bool is_later = operation == SPC_OPERATION_FUZZY || operation == SPC_OPERATION_COORDINATED;
    const uint64_t deadline_ns = spc_clock_deadline_ns(is_later ? LATER_NS : AT_ONCE_NS);
    for (;;) {
        spc_note_t note;
        if (spc_note_read(spc_comm_notes(comm, rank), SPC_NOTE_CALL, &note) && note.key == key) {
            return note;
        }
        if (spc_comm_has_left(comm, rank) || spc_clock_now_ns() >= deadline_ns) {
            return (spc_note_t){.line = 0};
        }
        spc_clock_sleep_ns(LOOK_NS);
    }
}

/* An interruption left that call, which all nodes know alike. */
static void write_unfinished(const spc_comm_t *comm, const spc_called_t *called, FILE *out) {
    char *text = NULL;
    for (uint32_t rank = 0; rank < comm->size && text == NULL; rank++) {
        text = called[rank].is_known ? spc_call_text_collective(&called[rank].signature) : NULL;
    }
    fprintf(out, "node %u has left %s before its end. Finish that first, by the same call again.",
            spc_comm_rank_in_run(comm, comm->rank), text != NULL ? text : "another operation");
    free(text);
}

char *spc_comm_explain_mismatch(spc_comm_t *comm, const spc_note_t *mine) {
    char *text = NULL;
    size_t bytes;
    uint64_t phase = 0;
    spc_called_t *called = calloc(comm->size, sizeof(*called));
    FILE *out = called != NULL ? open_memstream(&text, &bytes) : NULL;
    if (out == NULL) {
        free(called);
        return NULL;
    }
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        called[rank].rank = spc_comm_rank_in_run(comm, rank);
        called[rank].is_known = spc_comm_mismatch(comm, rank, &called[rank].signature, &phase);
    }
    if (spc_mismatch_differs(called, comm->size)) {
        spc_note_t note = *mine;
        note.key = key_of(comm, phase);
        spc_comm_note(comm, SPC_NOTE_CALL, &note);
        for (uint32_t rank = 0; rank < comm->size; rank++) {
            if (called[rank].is_known) {
                called[rank].note = hear_call(comm, rank, note.key, called[rank].signature.operation);
            }
        }
        spc_mismatch_write(called, comm->size, phase, out);
    } else {
        write_unfinished(comm, called, out);
    }
    fclose(out);
    free(called);
    return text;
}

/* ---- fuzzy barriers ---- */

int spc_comm_fuzzy_enter(spc_comm_t *comm, uint64_t *phase) {
    int status = spc_comm_perturb(comm, spc_comm_check_callable(comm));
    if (status != SPC_OK) {
        return status;
    }
    if (!spc_comm_enter(comm)) {
        return SPC_EBUSY;
    }
    if (spc_comm_is_pending(comm)) {
        status = SPC_EMISMATCH;
    } else if (spc_coordinated_is_open(comm->cycle.account)) {
        status = SPC_ECYCLE;
    } else {
        pthread_mutex_lock(&comm->fuzzy_lock);
        status = spc_fuzzy_enter(&comm->fuzzy, phase);
        atomic_store_explicit(&comm->fuzzy_open, comm->fuzzy.count, memory_order_release);
        pthread_mutex_unlock(&comm->fuzzy_lock);
    }
    spc_comm_leave(comm);
    return status;
}

static int fuzzy_leave(spc_comm_t *comm, uint64_t phase) {
    pthread_mutex_lock(&comm->fuzzy_lock);
    int status = spc_fuzzy_leave(&comm->fuzzy, phase);
    atomic_store_explicit(&comm->fuzzy_open, comm->fuzzy.count, memory_order_release);
    pthread_mutex_unlock(&comm->fuzzy_lock);
    if (status == SPC_EMISMATCH) {
        atomic_store_explicit(&comm->last_phase, phase, memory_order_relaxed);
    }
    return status;
}

int spc_comm_fuzzy_done(spc_comm_t *comm, uint64_t phase) {
    int status = spc_comm_check_callable(comm);
    if (status == SPC_PERTURBED) {
        status = spc_comm_perturb_blinds(comm) ? SPC_EAGAIN : SPC_OK;
    }
    if (status != SPC_OK) {
        return status;
    }
    if (spc_reduce_test(comm->reduce, phase)) {
        return fuzzy_leave(comm, phase);
    }
    spc_node_note_vain(comm->node);
    spc_node_progress(comm->node);
    status = spc_status_epoch(comm->node->status) != 0 ? doom_of_phase(comm, phase) : SPC_OK;
    status = spc_node_is_disconnected(comm->node) ? SPC_EDISCONNECTED : status;
    return status != SPC_OK && !spc_reduce_test(comm->reduce, phase) ? status : SPC_EAGAIN;
}

int spc_comm_fuzzy_wait(spc_comm_t *comm, uint64_t phase, uint64_t deadline_ns) {
    int status = spc_comm_perturb(comm, spc_comm_check_callable(comm));
    if (status == SPC_OK && spc_coordinated_is_open(comm->cycle.account)) {
        return SPC_ECYCLE;
    }
    status = status != SPC_OK ? status : wait_for_phase(comm, phase, deadline_ns);
    return status == SPC_OK ? fuzzy_leave(comm, phase) : status;
}

/* ---- collectives that move data: bcast, gather, allgather, scatter, alltoall
 *
 *     entering  one phase, in which each node publishes what it gives, and where the others find it. So when operation
 *               and root have been compared, the data are here, too: no node waits twice, and no message wakes a node.
 *     moving    only where the arena had no room: such payloads go as messages of the internal context, in parts. The
 *               parts of the others name the messages to wait for, so every message that is sent is received.
 *
 * The messages of a phase have its number as their tag. After any failure in between, they cannot be mistaken for those
 * of another phase: TAG_BIT keeps them apart from those of a split, and numbers come again after 2^30 phases only. The
 * phase counts as entered (spc_pending_t) until the last message is here, so no other collective can begin before. The
 * thread that is inside the collective makes all of these calls, without the node's lock. */

#define SPC_GATHERING_TOLD_BYTES 16384 /* of all data that a node publishes */

enum { /* the route of a payload */
       SPC_WAY_NOTHING,
       SPC_WAY_WITH_PHASE, /* behind the parts, in order, each in a multiple of 8 bytes */
       SPC_WAY_IN_BLOCK,
       SPC_WAY_BY_MESSAGE,
       SPC_WAY_FAILURE, /* there is none; the reason follows the part */
};

static bool is_for_each(const spc_gathering_t *call) {
    return call->operation == SPC_OPERATION_DATA_SCATTER || call->operation == SPC_OPERATION_DATA_ALLTOALL;
}

static bool gives(const spc_gathering_t *call, uint32_t from, uint32_t to) {
    switch (call->operation) {
    case SPC_OPERATION_DATA_BCAST:
    case SPC_OPERATION_DATA_SCATTER:
        return from != to && from == call->root;
    case SPC_OPERATION_DATA_GATHER:
        return from != to && to == call->root;
    default:
        return from != to;
    }
}

static bool gives_to_others(const spc_comm_t *comm, const spc_gathering_t *call) {
    return comm->size > 1
           && (gives(call, comm->rank, call->root) || gives(call, comm->rank, comm->rank == 0 ? 1 : 0));
}

static uint32_t count_messages(const spc_comm_t *comm, const spc_gathering_t *call) {
    bool from_one =
        call->operation == SPC_OPERATION_DATA_BCAST || call->operation == SPC_OPERATION_DATA_SCATTER;
    return from_one ? 1 : comm->size;
}

static spc_message_t *message_from(const spc_comm_t *comm, const spc_gathering_t *call, uint32_t rank) {
    return &call->messages[count_messages(comm, call) == 1 ? 0 : rank];
}

#define TAG_BIT UINT64_C(0x40000000)

enum { /* stages; the first is that of a zeroed structure */
       NEW,
       ENTERED,
       MOVING,
       OVER,
};

/* ---- the part that a node publishes in the phase, and those of the others */

/*
 * A node's contribution to the phase of a collective that moves data: a part for each of its payloads, then the bytes
 * of the short payloads. Long payloads lie in blocks of its arena, which the parts name.
 *
 * A block's pins are published by the arrival at the phase, as a message's are by its announcement. Receivers touch it
 * only after a phase that matched. So the owner itself takes the pins back if the phase did not match, or never will.
 */

#define SHORT_BYTES 4096 /* longer payloads cost less in blocks */

/* Description of one payload. Payloads for each rank are listed in order; a payload for all is the only one. */
typedef struct part {
    uint64_t length_bytes;
    uint64_t offset; /* SPC_WAY_IN_BLOCK: offset of the block in the segment */
    uint16_t meta_bytes;
    uint8_t format;
    uint8_t way;
    uint32_t receivers;
} part_t;

_Static_assert(sizeof(part_t) == 24, "part_t lies in shared memory");

/* Lists the receivers of this node's payload, as ranks of the segment; returns how many. */
static uint32_t find_receivers(const spc_comm_t *comm, const spc_gathering_t *call, uint32_t number,
                               int32_t members[]) {
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (gives(call, comm->rank, rank) && (!is_for_each(call) || rank == number)) {
            members[count++] = (int32_t)spc_comm_member(comm, rank);
        }
    }
    return count;
}

/* ---- filling */

/* The arrival publishes the pins. A node that alone gets the block may hand it back before this call has ended: then
 * this node's pin stands for that, so its previous pin ends here. Under the lock, as the arena reads the pins. */
static void give_away(spc_node_t *node, spc_block_shared_t *block, const int32_t *members, uint32_t count) {
    pthread_mutex_lock(&node->lock);
    for (uint32_t i = 0; i < count; i++) {
        spc_block_pin(block, (uint32_t)members[i]);
    }
    spc_block_unpin(block, node->rank);
    pthread_mutex_unlock(&node->lock);
}

/* Copies a payload into a block, without the lock, for its receivers. False: there is no room. */
static bool fill_block(const spc_comm_t *comm, spc_gathering_t *call, uint32_t number, part_t *part) {
    spc_node_t *node = comm->node;
    int32_t members[SPC_NODES_MAX];
    spc_block_shared_t *block;
    pthread_mutex_lock(&node->lock);
    int status = spc_outbox_take_block(node->outbox, part->length_bytes, &block);
    pthread_mutex_unlock(&node->lock);
    if (status != SPC_OK) {
        return false;
    }
    part->receivers = find_receivers(comm, call, number, members);
    spc_payload_fill(&call->payloads[number], part->receivers, spc_block_payload(block));
    give_away(node, block, members, part->receivers);
    part->offset = spc_segment_offset(&node->segment, block);
    call->slots[number].block = block;
    return true;
}

/* Frees the blocks of a phase that did not match, or never will be complete: no receiver takes them. */
static void take_back(const spc_comm_t *comm, spc_gathering_t *call) {
    int32_t members[SPC_NODES_MAX];
    for (uint32_t number = 0; number < call->payload_count; number++) {
        spc_block_shared_t *block = call->slots[number].block;
        uint32_t count = block != NULL ? find_receivers(comm, call, number, members) : 0;
        for (uint32_t i = 0; i < count; i++) {
            spc_block_unpin(block, (uint32_t)members[i]);
        }
        call->slots[number].block = NULL;
    }
}

/* ---- publishing */

static uint64_t tell_failure(const spc_gathering_t *call, uint64_t room, unsigned char *told) {
    part_t part = {.format = SPC_FORMAT_STR, .way = SPC_WAY_FAILURE, .length_bytes = call->failure_bytes};
    if (part.length_bytes > room - sizeof(part)) {
        part.length_bytes = room - sizeof(part);
    }
    memcpy(told, &part, sizeof(part));
    memcpy(told + sizeof(part), call->failure, part.length_bytes);
    return sizeof(part) + part.length_bytes;
}

/* Chooses the route of a payload. `room`: for the bytes behind the parts. */
static part_t describe_part(const spc_comm_t *comm, spc_gathering_t *call, uint32_t number, uint64_t room) {
    const spc_payload_t *payload = &call->payloads[number];
    part_t part = {.length_bytes = payload->meta_bytes + payload->data_bytes,
                   .meta_bytes = payload->meta_bytes,
                   .format = payload->format};
    bool is_given = is_for_each(call) ? gives(call, comm->rank, number) : gives_to_others(comm, call);
    if (!is_given) {
        part.way = SPC_WAY_NOTHING;
    } else if (part.length_bytes <= SHORT_BYTES && part.length_bytes <= room) {
        part.way = SPC_WAY_WITH_PHASE;
    } else {
        /* A node in another box cannot read a block of this one. */
        bool in_block = !spc_comm_spans(comm) && fill_block(comm, call, number, &part);
        part.way = in_block ? SPC_WAY_IN_BLOCK : SPC_WAY_BY_MESSAGE;
    }
    return part;
}

/* Before the phase. Chooses the route of each payload, copies long ones into blocks, and writes the contribution into
 * SPC_GATHERING_TOLD_BYTES: returns how many bytes. Without room for the parts it is empty, and all go as messages. */
static uint64_t publish_parts(const spc_comm_t *comm, spc_gathering_t *call, unsigned char *told) {
    uint64_t room = comm->area.scratch_bytes < SPC_GATHERING_TOLD_BYTES ? comm->area.scratch_bytes
                                                                        : SPC_GATHERING_TOLD_BYTES;
    uint64_t at = call->payload_count * sizeof(part_t);
    if (call->failure != NULL && gives_to_others(comm, call)) {
        return tell_failure(call, room, told);
    }
    for (uint32_t i = 0; i < call->payload_count; i++) {
        if (call->payload_count * sizeof(part_t) > room) {
            bool is_own = is_for_each(call) && i == comm->rank;
            call->slots[i].way =
                is_own || !gives_to_others(comm, call) ? SPC_WAY_NOTHING : SPC_WAY_BY_MESSAGE;
            at = 0;
            continue;
        }
        part_t part = describe_part(comm, call, i, room - at);
        call->slots[i].way = part.way;
        memcpy(told + i * sizeof(part), &part, sizeof(part));
        if (part.way == SPC_WAY_WITH_PHASE) {
            spc_payload_copy(&call->payloads[i], 0, part.length_bytes, told + at);
            at += spc_round_up(part.length_bytes, 8);
        }
    }
    return at;
}

/* ---- reading */

static void take_block(const spc_comm_t *comm, const part_t *part, spc_message_t *message) {
    spc_block_shared_t *block = spc_segment_address(&comm->node->segment, part->offset);
    message->storage = SPC_STORED_ARENA;
    message->handle = block;
    message->bytes = spc_block_payload(block);
    message->sender = block->owner;
    message->sole = part->receivers == 1;
}

static void copy_short(spc_gathering_t *call, const part_t *part, const unsigned char *bytes,
                       spc_message_t *message) {
    message->storage = SPC_STORED_INLINE;
    message->bytes = message->inlined;
    if (part->length_bytes > sizeof(message->inlined)) {
        message->storage = SPC_STORED_HEAP;
        message->handle = message->bytes = malloc(part->length_bytes);
    }
    if (message->bytes == NULL) {
        call->status = SPC_ENOMEM;
        return;
    }
    memcpy(message->bytes, bytes, part->length_bytes);
    message->sole = 1;
}

/* The part for this node, and its bytes. */
static part_t find_part(const spc_comm_t *comm, const spc_gathering_t *call, uint32_t rank,
                        const unsigned char **bytes) {
    const void *told;
    uint64_t length;
    part_t part = {.way = SPC_WAY_BY_MESSAGE};
    spc_comm_contribution(comm, rank, &told, &length);
    if (length == 0) {
        return part;
    }
    memcpy(&part, told, sizeof(part));
    *bytes = (const unsigned char *)told + sizeof(part);
    if (!is_for_each(call) || part.way == SPC_WAY_FAILURE) {
        return part;
    }
    *bytes = (const unsigned char *)told + comm->size * sizeof(part);
    for (uint32_t i = 0; i < comm->rank; i++) {
        memcpy(&part, (const unsigned char *)told + i * sizeof(part), sizeof(part));
        *bytes += part.way == SPC_WAY_WITH_PHASE ? spc_round_up(part.length_bytes, 8) : 0;
    }
    memcpy(&part, (const unsigned char *)told + comm->rank * sizeof(part), sizeof(part));
    return part;
}

/* After a phase that matched: takes the message from `rank`, or notes that it is awaited. */
static void hear(const spc_comm_t *comm, spc_gathering_t *call, uint32_t rank) {
    const unsigned char *bytes = NULL;
    const part_t part = find_part(comm, call, rank, &bytes);
    spc_message_t *message = message_from(comm, call, rank);
    if (part.way == SPC_WAY_BY_MESSAGE) {
        call->slots[rank].awaited = true;
        call->missing++;
        return;
    }
    message->source = (int32_t)rank;
    message->length_bytes = part.length_bytes;
    message->meta_bytes = part.meta_bytes;
    message->format = part.format;
    if (part.way == SPC_WAY_IN_BLOCK) {
        take_block(comm, &part, message);
        return;
    }
    copy_short(call, &part, bytes, message);
    if (part.way == SPC_WAY_FAILURE && call->failed < 0) {
        call->failed = (int32_t)rank;
    }
}

/* ---- entering */

static bool is_valid(const spc_comm_t *comm, const spc_gathering_t *call) {
    uint32_t count = is_for_each(call) ? comm->size : 1;
    return call->operation >= SPC_OPERATION_DATA_BCAST && call->operation <= SPC_OPERATION_DATA_ALLTOALL
           && call->root < comm->size && (call->payload_count == 0 || call->payload_count == count)
           && (call->payload_count != 0 || call->failure != NULL || !gives_to_others(comm, call));
}

static int prepare(const spc_comm_t *comm, spc_gathering_t *call) {
    if (!is_valid(comm, call)) {
        return SPC_EINVAL;
    }
    call->failed = -1;
    const uint32_t messages = count_messages(comm, call);
    if (call->slots == NULL) {
        call->slots = comm->size <= SPC_GATHERING_FEW ? call->few : calloc(comm->size, sizeof(*call->slots));
    }
    if (call->messages == NULL) {
        call->messages = messages == 1 ? &call->one : calloc(messages, sizeof(*call->messages));
    }
    return call->slots != NULL && call->messages != NULL ? SPC_OK : SPC_ENOMEM;
}

/* The structure is new, and so is the phase; unless a lost node has left this one in it before. */
static int enter_first(spc_comm_t *comm, spc_gathering_t *call, const spc_signature_t *signature) {
    unsigned char told[SPC_GATHERING_TOLD_BYTES];
    int status = prepare(comm, call);
    if (status != SPC_OK) {
        return status;
    }
    uint64_t length = publish_parts(comm, call, told);
    status = start_phase(comm, signature, told, length);
    if (status == SPC_OK) {
        call->stage = ENTERED;
    } else {
        take_back(comm, call);
    }
    return status;
}

/* Enters, unless it has entered already. */
static int enter_phase(spc_comm_t *comm, spc_gathering_t *call) {
    spc_signature_t signature = call->signature;
    if (signature.operation == SPC_OPERATION_NONE) {
        signature = (spc_signature_t){.operation = (uint8_t)call->operation, .root = call->root};
    }
    if (call->stage == NEW) {
        return enter_first(comm, call, &signature);
    }
    if (call->stage == OVER || !spc_comm_is_pending(comm)) {
        return SPC_EINVAL;
    }
    return start_phase(comm, &signature, NULL, 0);
}

/* After all nodes have entered. */
static int leave_phase(spc_comm_t *comm, spc_gathering_t *call) {
    int status = outcome_of_phase(comm);
    if (status != SPC_OK) {
        take_back(comm, call);
        return status;
    }
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (gives(call, rank, comm->rank)) {
            hear(comm, call, rank);
        }
    }
    call->stage = MOVING;
    return SPC_OK;
}

/* ---- moving */

static int32_t tag_of(const spc_comm_t *comm) {
    return (int32_t)(comm->pending.phase % TAG_BIT | TAG_BIT);
}

static int send_payload(const spc_comm_t *comm, const spc_gathering_t *call, uint32_t number) {
    int32_t members[SPC_NODES_MAX];
    spc_send_call_t send = {.destinations = members,
                            .destination_count = find_receivers(comm, call, number, members),
                            .context = spc_comm_context(comm, SPC_CONTEXT_INTERNAL),
                            .tag = tag_of(comm),
                            .payload = &call->payloads[number]};
    return spc_comm_attempt_send(comm->node, &send);
}

/* Sends as far as there is room, beginning with the next rank, so that not all send to the same node. */
static void send_rest(const spc_comm_t *comm, spc_gathering_t *call) {
    for (; call->sent < call->payload_count; call->sent++) {
        uint32_t number = (comm->rank + call->sent) % call->payload_count;
        if (call->slots[number].way != SPC_WAY_BY_MESSAGE) {
            continue;
        }
        int status = send_payload(comm, call, number);
        if (status == SPC_EAGAIN) {
            return;
        }
        call->status = status != SPC_OK ? status : call->status;
    }
}

static void take_rest(const spc_comm_t *comm, spc_gathering_t *call) {
    spc_node_t *node = comm->node;
    spc_match_t match = {.tag = tag_of(comm), .context = spc_comm_context(comm, SPC_CONTEXT_INTERNAL)};
    pthread_mutex_lock(&node->lock);
    for (uint32_t rank = 0; rank < comm->size && call->missing != 0; rank++) {
        if (!call->slots[rank].awaited) {
            continue;
        }
        spc_message_t *message = message_from(comm, call, rank);
        match.source = (int32_t)spc_comm_member(comm, rank);
        int status = spc_inbox_take(node->inbox, &match, message);
        if (status != SPC_EAGAIN) {
            message->tag = 0; /* the failure concerns no other node */
            call->slots[rank].awaited = false;
            call->missing--;
            call->status = status != SPC_OK ? status : call->status;
            message->source = (int32_t)rank;
        }
    }
    spc_outbox_flush(node->outbox);
    spc_node_unlock(node);
}

static bool has_moved(const spc_comm_t *comm, spc_gathering_t *call) {
    if (call->sent < call->payload_count) {
        send_rest(comm, call);
    }
    if (call->missing != 0) {
        take_rest(comm, call);
    }
    return call->sent == call->payload_count && call->missing == 0;
}

static bool test_moved(spc_node_wait_t *wait) {
    return has_moved(wait->owner, wait->argument);
}

/* Some node has left before its message came. Checked twice: between the two checks its row was drained. */
static int doomed_move(spc_node_wait_t *wait) {
    spc_comm_t *comm = wait->owner;
    spc_gathering_t *call = wait->argument;
    int status = spc_comm_check_usable(comm); /* another thread may have closed it */
    for (uint32_t rank = 0; rank < comm->size && status == SPC_OK; rank++) {
        spc_gathering_slot_t *slot = &call->slots[rank];
        if (slot->awaited && spc_comm_has_left(comm, rank)) {
            status = slot->suspected ? spc_comm_blame(comm, rank) : SPC_EAGAIN;
            slot->suspected = true;
        }
    }
    return status;
}

/* In a collective that moves data, after all have entered it: `source` has not sent its part; SPC_ANY_SOURCE: this
 * node's own data have no room. */
static void describe_gathering(const spc_comm_t *comm, int32_t source, int32_t tag, spc_board_entry_t *entry,
                               spc_board_pair_t *pairs) {
    bool receives = source != SPC_ANY_SOURCE;
    spc_comm_describe(comm, receives ? SPC_BOARD_GATHERING : SPC_BOARD_SEND, source, tag, entry);
    if (receives) {
        spc_comm_need(comm, (uint32_t)source, pairs);
    }
    memcpy(entry->call, &comm->pending.signature, sizeof(comm->pending.signature));
}

static void describe_move(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const spc_comm_t *comm = wait->owner;
    const spc_gathering_t *call = wait->argument;
    int32_t source = SPC_ANY_SOURCE;
    for (uint32_t rank = 0; rank < comm->size && source == SPC_ANY_SOURCE; rank++) {
        source = call->slots[rank].awaited ? (int32_t)rank : SPC_ANY_SOURCE;
    }
    describe_gathering(comm, source, tag_of(comm), entry, pairs);
}

static int move(spc_comm_t *comm, spc_gathering_t *call, uint64_t deadline_ns) {
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_moved,
                            .doomed = doomed_move,
                            .describe = describe_move,
                            .owner = comm,
                            .argument = call};
    return has_moved(comm, call) ? SPC_OK : spc_node_wait_for(&wait, deadline_ns);
}

/* ---- the whole call */

/* After its phase is complete: the call is over, whatever its status, unless `status` allows it to continue. */
static int conclude(spc_comm_t *comm, spc_gathering_t *call, int status) {
    if (status != SPC_EINTERRUPTED && status != SPC_ETIMEDOUT) {
        atomic_store_explicit(&comm->pending.entered, false, memory_order_relaxed);
        call->stage = OVER;
    }
    return status == SPC_OK ? call->status : status;
}

static int wait_inside(spc_comm_t *comm, spc_gathering_t *call, uint64_t deadline_ns) {
    int status = SPC_OK;
    if (call->stage == ENTERED) {
        status = wait_for_phase(comm, comm->pending.phase, deadline_ns);
        if (status == SPC_ELOST || status == SPC_EFINISHED) {
            take_back(comm, call); /* some node has not arrived, and never will */
        }
        if (status == SPC_OK && (status = leave_phase(comm, call)) != SPC_OK) {
            return conclude(comm, call, status);
        }
    }
    return status == SPC_OK ? conclude(comm, call, move(comm, call, deadline_ns)) : status;
}

typedef struct timed_call {
    spc_gathering_t *call;
    uint64_t deadline_ns;
} timed_call_t;

static int gather_inside(spc_comm_t *comm, void *argument) {
    const timed_call_t *timed = argument;
    int status = enter_phase(comm, timed->call);
    if (status == SPC_OK) {
        comm->waits = true;
        status = wait_inside(comm, timed->call, timed->deadline_ns);
        comm->waits = false;
    }
    return status;
}

int spc_comm_gathering(spc_comm_t *comm, spc_gathering_t *call, uint64_t deadline_ns) {
    timed_call_t timed = {call, deadline_ns};
    return run_collective(comm, gather_inside, &timed);
}

int spc_comm_gathering_poll(spc_comm_t *comm, spc_gathering_t *call) {
    int status = spc_comm_check_callable(comm);
    if (status != SPC_OK) {
        return spc_comm_defer_perturbed(status);
    }
    if (!spc_comm_enter(comm)) {
        return SPC_EBUSY;
    }
    status = enter_phase(comm, call);
    if (status == SPC_OK) {
        if (call->stage == ENTERED) {
            status = poll_phase(comm) ? leave_phase(comm, call) : SPC_EAGAIN;
        }
        if (status == SPC_EAGAIN || (status == SPC_OK && !has_moved(comm, call))) {
            return SPC_EAGAIN; /* still inside: this thread's spc_comm_gathering continues */
        }
        status = conclude(comm, call, status);
    }
    spc_comm_leave(comm);
    return status;
}

void spc_comm_gathering_end(spc_comm_t *comm, spc_gathering_t *call) {
    for (uint32_t i = 0; call->messages != NULL && i < count_messages(comm, call); i++) {
        spc_message_release(comm, &call->messages[i]);
    }
    if (call->slots != call->few) {
        free(call->slots);
    }
    if (call->messages != &call->one) {
        free(call->messages);
    }
    call->slots = NULL;
    call->messages = NULL;
}
