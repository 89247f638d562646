/* SPDX-License-Identifier: MIT */
/*
 * Collectives that move data: bcast, gather, allgather, scatter, alltoall.
 *
 *     entering  one phase, in which each node publishes what it gives, and where the others find it. So when operation
 *               and root have been compared, the data are here, too: no node waits twice, and no message wakes a node.
 *     moving    only where the arena had no room: such payloads go as messages of the internal context, in parts. The
 *               parts of the others name the messages to wait for, so every message that is sent is received.
 *
 * The messages of a phase have its number as their tag. After any failure in between, they cannot be mistaken for those
 * of another phase: TAG_BIT keeps them apart from those of a split, and numbers come again after 2^30 phases only. The
 * phase counts as entered (spc_pending_t) until the last message is here, so no other collective can begin before. The
 * thread that is inside the collective makes all of these calls, without the node's lock.
 */
#include <stdlib.h>
#include <string.h>

#include "comm/spc_comm_perturb.h"
#include "comm/spc_comm_private.h"

#define SPC_GATHERING_TOLD_BYTES 16384 /* of all data that a node publishes */

enum { /* the route of a payload */
       SPC_WAY_NOTHING,
       SPC_WAY_WITH_PHASE, /* behind the parts, in order, each in a multiple of 8 bytes */
       SPC_WAY_IN_BLOCK,
       SPC_WAY_BY_MESSAGE,
       SPC_WAY_FAILURE, /* there is none; the reason follows the part */
};

static inline bool spc_gathering_is_for_each(const spc_gathering_t *call) {
    return call->operation == SPC_OPERATION_DATA_SCATTER || call->operation == SPC_OPERATION_DATA_ALLTOALL;
}

static inline bool spc_gathering_gives(const spc_gathering_t *call, uint32_t from, uint32_t to) {
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

static inline bool spc_gathering_gives_to_others(const spc_comm_t *comm, const spc_gathering_t *call) {
    return comm->size > 1
           && (spc_gathering_gives(call, comm->rank, call->root)
               || spc_gathering_gives(call, comm->rank, comm->rank == 0 ? 1 : 0));
}

static inline uint32_t spc_gathering_messages(const spc_comm_t *comm, const spc_gathering_t *call) {
    bool from_one =
        call->operation == SPC_OPERATION_DATA_BCAST || call->operation == SPC_OPERATION_DATA_SCATTER;
    return from_one ? 1 : comm->size;
}

static inline spc_message_t *spc_gathering_message(const spc_comm_t *comm, const spc_gathering_t *call,
                                                   uint32_t rank) {
    return &call->messages[spc_gathering_messages(comm, call) == 1 ? 0 : rank];
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
static uint32_t spc_gathering_members(const spc_comm_t *comm, const spc_gathering_t *call, uint32_t number,
                                      int32_t members[]) {
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (spc_gathering_gives(call, comm->rank, rank)
            && (!spc_gathering_is_for_each(call) || rank == number)) {
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
    part->receivers = spc_gathering_members(comm, call, number, members);
    spc_payload_fill(&call->payloads[number], part->receivers, spc_block_payload(block));
    give_away(node, block, members, part->receivers);
    part->offset = spc_segment_offset(&node->segment, block);
    call->slots[number].block = block;
    return true;
}

/* Frees the blocks of a phase that did not match, or never will be complete: no receiver takes them. */
static void spc_gathering_take_back(const spc_comm_t *comm, spc_gathering_t *call) {
    int32_t members[SPC_NODES_MAX];
    for (uint32_t number = 0; number < call->payload_count; number++) {
        spc_block_shared_t *block = call->slots[number].block;
        uint32_t count = block != NULL ? spc_gathering_members(comm, call, number, members) : 0;
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
    bool is_given = spc_gathering_is_for_each(call) ? spc_gathering_gives(call, comm->rank, number)
                                                    : spc_gathering_gives_to_others(comm, call);
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
static uint64_t spc_gathering_tell(const spc_comm_t *comm, spc_gathering_t *call, unsigned char *told) {
    uint64_t room = comm->area.scratch_bytes < SPC_GATHERING_TOLD_BYTES ? comm->area.scratch_bytes
                                                                        : SPC_GATHERING_TOLD_BYTES;
    uint64_t at = call->payload_count * sizeof(part_t);
    if (call->failure != NULL && spc_gathering_gives_to_others(comm, call)) {
        return tell_failure(call, room, told);
    }
    for (uint32_t i = 0; i < call->payload_count; i++) {
        if (call->payload_count * sizeof(part_t) > room) {
            bool is_own = spc_gathering_is_for_each(call) && i == comm->rank;
            call->slots[i].way =
                is_own || !spc_gathering_gives_to_others(comm, call) ? SPC_WAY_NOTHING : SPC_WAY_BY_MESSAGE;
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
    if (!spc_gathering_is_for_each(call) || part.way == SPC_WAY_FAILURE) {
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
static void spc_gathering_hear(const spc_comm_t *comm, spc_gathering_t *call, uint32_t rank) {
    const unsigned char *bytes = NULL;
    const part_t part = find_part(comm, call, rank, &bytes);
    spc_message_t *message = spc_gathering_message(comm, call, rank);
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
    uint32_t count = spc_gathering_is_for_each(call) ? comm->size : 1;
    return call->operation >= SPC_OPERATION_DATA_BCAST && call->operation <= SPC_OPERATION_DATA_ALLTOALL
           && call->root < comm->size && (call->payload_count == 0 || call->payload_count == count)
           && (call->payload_count != 0 || call->failure != NULL
               || !spc_gathering_gives_to_others(comm, call));
}

static int prepare(const spc_comm_t *comm, spc_gathering_t *call) {
    if (!is_valid(comm, call)) {
        return SPC_EINVAL;
    }
    call->failed = -1;
    const uint32_t messages = spc_gathering_messages(comm, call);
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
    uint64_t length = spc_gathering_tell(comm, call, told);
    status = spc_comm_start_phase(comm, signature, told, length);
    if (status == SPC_OK) {
        call->stage = ENTERED;
    } else {
        spc_gathering_take_back(comm, call);
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
    return spc_comm_start_phase(comm, &signature, NULL, 0);
}

/* After all nodes have entered. */
static int leave_phase(spc_comm_t *comm, spc_gathering_t *call) {
    int status = spc_comm_outcome(comm);
    if (status != SPC_OK) {
        spc_gathering_take_back(comm, call);
        return status;
    }
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        if (spc_gathering_gives(call, rank, comm->rank)) {
            spc_gathering_hear(comm, call, rank);
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
                            .destination_count = spc_gathering_members(comm, call, number, members),
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
        spc_message_t *message = spc_gathering_message(comm, call, rank);
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

static void describe_move(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const spc_comm_t *comm = wait->owner;
    const spc_gathering_t *call = wait->argument;
    int32_t source = SPC_ANY_SOURCE;
    for (uint32_t rank = 0; rank < comm->size && source == SPC_ANY_SOURCE; rank++) {
        source = call->slots[rank].awaited ? (int32_t)rank : SPC_ANY_SOURCE;
    }
    spc_comm_describe_gathering(comm, source, tag_of(comm), entry, pairs);
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
        status = spc_comm_wait_for_phase(comm, comm->pending.phase, deadline_ns);
        if (status == SPC_ELOST || status == SPC_EFINISHED) {
            spc_gathering_take_back(comm, call); /* some node has not arrived, and never will */
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
    return spc_comm_run_collective(comm, gather_inside, &timed);
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
            status = spc_comm_poll_phase(comm) ? leave_phase(comm, call) : SPC_EAGAIN;
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
    for (uint32_t i = 0; call->messages != NULL && i < spc_gathering_messages(comm, call); i++) {
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
