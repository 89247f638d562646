/* SPDX-License-Identifier: MIT */
/*
 * What a node tells in the phase of a collective that moves data: a part for each of its payloads, then the bytes of
 * those that are short. Long ones lie in blocks of its arena, which the parts name.
 *
 * A block's pins are published by the arrival at the phase, as a message's are by its announcement. Receivers touch it
 * only after a phase that matched. So the owner takes the pins back itself if it did not match, or never will.
 */
#include <stdlib.h>
#include <string.h>

#include "spc_comm_gathering.h"

#define SHORT_BYTES 4096 /* longer payloads cost less in blocks */

/* What a node tells of one payload. Those for each rank are told in order, that for all is the only one. */
typedef struct part {
    uint64_t length_bytes;
    uint64_t offset; /* SPC_WAY_IN_BLOCK: of the block, in the segment */
    uint16_t meta_bytes;
    uint8_t format;
    uint8_t way;
    uint32_t receivers;
} part_t;

_Static_assert(sizeof(part_t) == 24, "part_t lies in shared memory");

uint32_t spc_gathering_members(const spc_comm_t *comm, const spc_gathering_t *call, uint32_t number,
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

/* ---- filling ---- */

/* The arrival publishes the pins. Who alone gets the block may hand it back before this call has ended: then this
 * node's pin stands for that, so the one it has had ends here. Under the lock, as the arena looks at the pins. */
static void give_away(spc_node_t *node, spc_block_shared_t *block, const int32_t *members, uint32_t count) {
    pthread_mutex_lock(&node->lock);
    for (uint32_t i = 0; i < count; i++) {
        spc_block_pin(block, (uint32_t)members[i]);
    }
    spc_block_unpin(block, node->rank);
    pthread_mutex_unlock(&node->lock);
}

/* Copies a payload into a block, without the lock, for those who get it. False: there is no room. */
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

void spc_gathering_take_back(const spc_comm_t *comm, spc_gathering_t *call) {
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

/* ---- telling ---- */

static uint64_t tell_failure(const spc_gathering_t *call, uint64_t room, unsigned char *told) {
    part_t part = {.format = SPC_FORMAT_STR, .way = SPC_WAY_FAILURE, .length_bytes = call->failure_bytes};
    if (part.length_bytes > room - sizeof(part)) {
        part.length_bytes = room - sizeof(part);
    }
    memcpy(told, &part, sizeof(part));
    memcpy(told + sizeof(part), call->failure, part.length_bytes);
    return sizeof(part) + part.length_bytes;
}

/* Chooses the way of a payload. `room`: for what lies behind the parts. */
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
        /* Who is in another box cannot read a block of this one. */
        bool in_block = !spc_comm_spans(comm) && fill_block(comm, call, number, &part);
        part.way = in_block ? SPC_WAY_IN_BLOCK : SPC_WAY_BY_MESSAGE;
    }
    return part;
}

uint64_t spc_gathering_tell(const spc_comm_t *comm, spc_gathering_t *call, unsigned char *told) {
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

/* ---- hearing ---- */

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

/* The part that is for this node, and its bytes. */
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

void spc_gathering_hear(const spc_comm_t *comm, spc_gathering_t *call, uint32_t rank) {
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
