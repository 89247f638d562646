/* SPDX-License-Identifier: MIT */
/*
 * Communicators of some of the nodes.
 *
 * Splitting is one or two collectives of the parent and one message. In the collective every node gives color, key and
 * a number that it has free; the largest is chosen, and if not all nodes gave it, all try to reserve it and give a
 * number again. A node reserves a number before it gives it, so that two threads which split two communicators at once
 * never end up with the same one, and it is never used again: a late message of a closed communicator cannot come into
 * another.
 *
 * The first member in each box then takes a block of its arena, zeroed, and sends it to all members there like any
 * large message. They hold the block as long as they have the communicator, so it is freed when the last member has
 * destroyed the communicator, or has died. If there are members in other boxes, this box's gateway gets it, too, behind
 * a table of the members: it stands in for them (spc_gateway.h). In a run of several boxes some may have no room, so
 * all report it to each other.
 */
#include <stdlib.h>
#include <string.h>

#include "comm/spc_comm_perturb.h"
#include "comm/spc_comm_private.h"

/* The data that each node gives the others. */
typedef struct told {
    int64_t color;
    int64_t key;
    uint64_t number;
} told_t;

typedef struct candidate {
    int64_t key;
    uint32_t rank;
} candidate_t;

static int by_key_then_rank(const void *left, const void *right) {
    const candidate_t *a = left;
    const candidate_t *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->rank < b->rank ? -1 : 1;
}

/* ---- agreeing on a number ---- */

/* Reserves this number or, if it is taken already, the next free one. */
static void reserve(spc_comm_t *comm, uint32_t number) {
    pthread_mutex_lock(&comm->node->lock);
    uint32_t *next = &comm->node->next_communicator;
    *next = *next < number ? number : *next;
    comm->splitting.reserved = (*next)++;
    pthread_mutex_unlock(&comm->node->lock);
}

static told_t told_by(const spc_comm_t *comm, uint32_t rank) {
    const void *bytes;
    uint64_t length;
    told_t told;
    spc_comm_contribution(comm, rank, &bytes, &length);
    memcpy(&told, bytes, sizeof(told));
    return told;
}

/* The largest number given, and whether all nodes gave it. */
static uint32_t largest_number(const spc_comm_t *comm, bool *unanimous) {
    uint32_t largest = comm->splitting.reserved;
    *unanimous = true;
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        uint32_t number = (uint32_t)told_by(comm, rank).number;
        *unanimous = *unanimous && number == comm->splitting.reserved;
        largest = number > largest ? number : largest;
    }
    return largest;
}

static int exchange(spc_comm_t *comm, int64_t color, int64_t key, uint64_t deadline_ns) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_SPLIT};
    told_t told = {color, key, comm->splitting.reserved};
    return spc_comm_collective_inside(comm, &signature, NULL, &told, sizeof(told), NULL, deadline_ns);
}

/* ---- agreeing on the members ---- */

static int find_members(spc_comm_t *comm, int64_t color) {
    spc_splitting_t *splitting = &comm->splitting;
    candidate_t *candidates = malloc(comm->size * sizeof(*candidates));
    splitting->members = malloc(comm->size * sizeof(*splitting->members));
    if (candidates == NULL || splitting->members == NULL) {
        free(candidates);
        return SPC_ENOMEM;
    }
    splitting->size = 0;
    for (uint32_t rank = 0; rank < comm->size && color >= 0; rank++) {
        told_t told = told_by(comm, rank);
        if (told.color == color) {
            candidates[splitting->size++] = (candidate_t){told.key, rank};
        }
    }
    qsort(candidates, splitting->size, sizeof(*candidates), by_key_then_rank);
    for (uint32_t i = 0; i < splitting->size; i++) {
        splitting->members[i] = candidates[i].rank;
        splitting->rank = candidates[i].rank == comm->rank ? i : splitting->rank;
    }
    free(candidates);
    return SPC_OK;
}

/* Repeats until all nodes know number and members. */
static int agree(spc_comm_t *comm, int64_t color, int64_t key, uint64_t deadline_ns) {
    spc_splitting_t *splitting = &comm->splitting;
    bool unanimous = false;
    if (splitting->reserved == 0) {
        reserve(comm, 0);
    }
    while (!unanimous) {
        int status = exchange(comm, color, key, deadline_ns);
        if (status != SPC_OK) {
            return status;
        }
        uint32_t largest = largest_number(comm, &unanimous);
        if (largest >= SPC_COMMUNICATORS_MAX) {
            return SPC_ELIMIT;
        }
        if (!unanimous && largest != splitting->reserved) {
            reserve(comm, largest);
        }
    }
    splitting->number = splitting->reserved;
    return find_members(comm, color);
}

/* ---- the memory ---- */

/* Receivers of the block from this node, the first member of its box: the members here, as ranks of the segment, and
 * the gateway. */
static uint32_t find_receivers(const spc_comm_t *comm, int32_t receivers[]) {
    const spc_splitting_t *splitting = &comm->splitting;
    uint32_t count = 0;
    for (uint32_t i = 0; i < splitting->size; i++) {
        if (spc_comm_is_here(comm, splitting->members[i])) {
            receivers[count++] = (int32_t)spc_comm_member(comm, splitting->members[i]);
        }
    }
    if (count != splitting->size) {
        receivers[count++] = (int32_t)comm->node->size;
    }
    return count;
}

static void write_table(const spc_comm_t *comm, spc_comm_table_t *table) {
    const spc_splitting_t *splitting = &comm->splitting;
    table->size = splitting->size;
    for (uint32_t i = 0; i < splitting->size; i++) {
        table->member[i] = (uint16_t)spc_comm_member(comm, splitting->members[i]);
    }
}

/* Straight through the outbox, which knows ranks of the segment: a send would copy the zeros. */
static int send_block(spc_comm_t *comm, const int32_t *receivers, uint32_t count, spc_payload_t *payload) {
    spc_node_t *node = comm->node;
    const uint64_t bytes = payload->meta_bytes + payload->data_bytes;
    spc_block_shared_t *block;
    pthread_mutex_lock(&node->lock);
    int status = spc_outbox_take_block(node->outbox, bytes, &block);
    pthread_mutex_unlock(&node->lock);
    if (status != SPC_OK) {
        return status;
    }
    memset(spc_block_payload(block), 0, bytes);
    if (payload->meta_bytes != 0) {
        write_table(comm, spc_block_payload(block));
    }
    pthread_mutex_lock(&node->lock);
    status =
        spc_outbox_send_block(node->outbox, receivers, count, spc_comm_context(comm, SPC_CONTEXT_INTERNAL),
                              (int32_t)comm->splitting.number, payload, block);
    pthread_mutex_unlock(&node->lock);
    return status;
}

/* Called by the first member in this box. If there is no room, an empty message reports it to the others. */
static int announce_memory(spc_comm_t *comm, uint64_t deadline_ns) {
    const spc_splitting_t *splitting = &comm->splitting;
    int32_t members[SPC_NODES_MAX + 1];
    uint32_t count = find_receivers(comm, members);
    const bool spans = members[count - 1] == (int32_t)comm->node->size;
    spc_payload_t payload = {.format = SPC_FORMAT_RAW,
                             .meta_bytes = spans ? (uint16_t)spc_comm_table_bytes(splitting->size) : 0,
                             .data_bytes = spc_comm_area_bytes(comm->config, splitting->size)};
    if (send_block(comm, members, count, &payload) == SPC_OK) {
        return SPC_OK;
    }
    count = 0;
    for (uint32_t i = 0; i < splitting->size; i++) {
        if (spc_comm_is_here(comm, splitting->members[i])) {
            members[count++] = (int32_t)splitting->members[i];
        }
    }
    payload.data_bytes = payload.meta_bytes = 0;
    return spc_comm_send(comm, members, count, SPC_CONTEXT_INTERNAL, (int32_t)splitting->number, &payload,
                         deadline_ns);
}

/* The first of the members in this box. */
static uint32_t first_here(const spc_comm_t *comm) {
    uint32_t i = 0;
    while (!spc_comm_is_here(comm, comm->splitting.members[i])) {
        i++;
    }
    return comm->splitting.members[i];
}

/* Receives into splitting->block, once; splitting->memory records whether there was room. */
static int receive_memory(spc_comm_t *comm, uint64_t deadline_ns) {
    spc_splitting_t *splitting = &comm->splitting;
    const uint32_t first = first_here(comm);
    if (first == comm->rank && !splitting->announced) {
        int status = announce_memory(comm, deadline_ns);
        if (status != SPC_OK) {
            return status;
        }
        splitting->announced = true;
    }
    int status = spc_comm_recv(comm, SPC_CONTEXT_INTERNAL, (int32_t)first, (int32_t)splitting->number,
                               deadline_ns, &splitting->block);
    if (status == SPC_OK) {
        splitting->received = true;
        splitting->memory = splitting->block.storage == SPC_STORED_ARENA ? SPC_OK : SPC_ENOMEM;
    }
    return status;
}

/* Whether there was room in all boxes. All nodes of the parent take part, even nodes that belong to no part. */
static int confirm(spc_comm_t *comm, int64_t color, uint64_t deadline_ns) {
    spc_splitting_t *splitting = &comm->splitting;
    int status = exchange(comm, color, splitting->memory == SPC_OK ? 0 : 1, deadline_ns);
    for (uint32_t rank = 0; status == SPC_OK && rank < comm->size; rank++) {
        told_t told = told_by(comm, rank);
        if (told.color == color && told.key != 0) {
            splitting->memory = SPC_ENOMEM;
        }
    }
    return status;
}

/* ---- the communicator ---- */

static int make_tables(spc_comm_t *part, const spc_comm_t *parent) {
    const spc_splitting_t *splitting = &parent->splitting;
    part->members = malloc(part->size * sizeof(*part->members));
    /* One more: the gateway announces for nodes. */
    part->rank_of = malloc((part->node->size + 1) * sizeof(*part->rank_of));
    if (part->members == NULL || part->rank_of == NULL) {
        return SPC_ENOMEM;
    }
    memset(part->rank_of, -1, (part->node->size + 1) * sizeof(*part->rank_of));
    for (uint32_t i = 0; i < part->size; i++) {
        part->members[i] = spc_comm_member(parent, splitting->members[i]);
        part->rank_of[part->members[i]] = (int32_t)i;
    }
    return SPC_OK;
}

/* The block is the part's from then on. */
static int make_part(spc_comm_t *parent, spc_comm_t **part) {
    spc_comm_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    pthread_mutex_init(&made->fuzzy_lock, NULL);
    spc_node_retain(parent->node);
    made->node = parent->node;
    made->config = parent->config;
    made->number = parent->splitting.number;
    made->rank = parent->splitting.rank;
    made->size = parent->splitting.size;
    spc_message_move(&made->block, &parent->splitting.block);
    parent->splitting.received = false;
    made->area = spc_comm_area_in(made->config, made->size, spc_message_data(&made->block));
    int status = make_tables(made, parent);
    status = status != SPC_OK ? status : spc_comm_attach(made);
    if (status != SPC_OK) {
        spc_comm_destroy(made);
        return status;
    }
    *part = made;
    return SPC_OK;
}

static int split_inside(spc_comm_t *comm, int64_t color, int64_t key, uint64_t deadline_ns,
                        spc_comm_t **part) {
    spc_splitting_t *splitting = &comm->splitting;
    int status = splitting->number == 0 ? agree(comm, color, key, deadline_ns) : SPC_OK;
    if (status == SPC_OK && splitting->size != 0 && !splitting->received) {
        status = receive_memory(comm, deadline_ns);
    }
    if (status == SPC_OK && comm->config->boxes > 1) {
        status = confirm(comm, color, deadline_ns);
    }
    status = status != SPC_OK ? status : splitting->memory;
    if (status == SPC_OK && splitting->size != 0) {
        status = make_part(comm, part);
    }
    if (status != SPC_EINTERRUPTED && status != SPC_ETIMEDOUT) {
        if (splitting->received) {
            spc_message_release(comm, &splitting->block);
        }
        free(splitting->members);
        memset(splitting, 0, sizeof(*splitting));
    }
    return status;
}

int spc_comm_split(spc_comm_t *comm, int64_t color, int64_t key, uint64_t deadline_ns, spc_comm_t **part) {
    *part = NULL;
    int status = spc_comm_perturb(comm, spc_comm_check_callable(comm));
    if (status != SPC_OK) {
        return status;
    }
    if (!spc_comm_enter(comm)) {
        return SPC_EBUSY;
    }
    status = split_inside(comm, color, key, deadline_ns, part);
    spc_comm_leave(comm);
    return status;
}
