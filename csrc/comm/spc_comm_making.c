/* SPDX-License-Identifier: MIT */
#include "comm/spc_comm_making.h"

#include <stdlib.h>
#include <string.h>

/* ---- the number ---- */

void spc_making_give_back(spc_comm_t *comm, spc_splitting_t *splitting) {
    if (splitting->reserved != 0 && splitting->reserved < SPC_COMMUNICATORS_MAX) {
        spc_numbers_give_back(comm->node->numbers, splitting->reserved);
    }
    splitting->reserved = 0;
}

/* ---- the memory ---- */

uint32_t spc_making_first_here(const spc_comm_t *comm, const spc_splitting_t *splitting) {
    uint32_t i = 0;
    while (!spc_comm_is_here(comm, splitting->members[i])) {
        i++;
    }
    return splitting->members[i];
}

uint32_t spc_making_members_here(const spc_comm_t *comm, const spc_splitting_t *splitting,
                                 int32_t ranks[SPC_NODES_MAX]) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < splitting->size; i++) {
        if (spc_comm_is_here(comm, splitting->members[i])) {
            ranks[count++] = (int32_t)splitting->members[i];
        }
    }
    return count;
}

/* Receivers of the block: the members in this box, as ranks of the segment, and the gateway. */
static uint32_t find_receivers(const spc_comm_t *comm, const spc_splitting_t *splitting,
                               int32_t receivers[SPC_NODES_MAX + 1]) {
    uint32_t count = spc_making_members_here(comm, splitting, receivers);
    for (uint32_t i = 0; i < count; i++) {
        receivers[i] = (int32_t)spc_comm_member(comm, (uint32_t)receivers[i]);
    }
    if (count != splitting->size) {
        receivers[count++] = (int32_t)comm->node->size;
    }
    return count;
}

spc_payload_t spc_making_payload(const spc_comm_t *comm, const spc_splitting_t *splitting) {
    int32_t here[SPC_NODES_MAX];
    const bool spans = spc_making_members_here(comm, splitting, here) != splitting->size;
    return (spc_payload_t){.format = SPC_FORMAT_RAW,
                           .meta_bytes = spans ? (uint16_t)spc_comm_table_bytes(splitting->size) : 0,
                           .data_bytes = spc_comm_area_bytes(comm->config, splitting->size)};
}

static void write_table(const spc_comm_t *comm, const spc_splitting_t *splitting, spc_comm_table_t *table) {
    table->size = splitting->size;
    table->generation = splitting->generation;
    for (uint32_t i = 0; i < splitting->size; i++) {
        table->member[i] = (uint16_t)spc_comm_member(comm, splitting->members[i]);
    }
}

void spc_making_fill(const spc_comm_t *comm, const spc_splitting_t *splitting, const spc_payload_t *payload,
                     spc_block_shared_t *block) {
    memset(spc_block_payload(block), 0, payload->meta_bytes + payload->data_bytes);
    if (payload->meta_bytes != 0) {
        write_table(comm, splitting, spc_block_payload(block));
    }
}

/* Straight through the outbox, which knows ranks of the segment: a send would copy the zeros. */
int spc_making_send_block(spc_comm_t *comm, const spc_splitting_t *splitting, const spc_payload_t *payload,
                          spc_block_shared_t *block) {
    int32_t receivers[SPC_NODES_MAX + 1];
    const uint32_t count = find_receivers(comm, splitting, receivers);
    return spc_outbox_send_block(comm->node->outbox, receivers, count,
                                 spc_comm_context(comm, SPC_CONTEXT_INTERNAL), (int32_t)splitting->number,
                                 payload, block);
}

void spc_making_take_block(spc_splitting_t *splitting, spc_message_t *message) {
    spc_message_move(&splitting->block, message);
    message->handle = NULL; /* releasing it does nothing */
    splitting->received = true;
    splitting->memory = splitting->block.storage == SPC_STORED_ARENA ? SPC_OK : SPC_ENOMEM;
}

/* ---- the communicator ---- */

static int make_tables(spc_comm_t *part, const spc_comm_t *parent, const spc_splitting_t *splitting) {
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

static void take_number(spc_comm_t *part) {
    spc_node_t *node = part->node;
    pthread_mutex_lock(&node->lock);
    spc_numbers_note_made(node->numbers, part->number, part->size);
    spc_comm_forget_call(part);
    pthread_mutex_unlock(&node->lock);
}

/* The block is the part's from then on. */
static int make_half(spc_comm_t *parent, spc_splitting_t *splitting, spc_comm_t **part) {
    spc_comm_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    pthread_mutex_init(&made->fuzzy_lock, NULL);
    spc_node_retain(parent->node);
    made->node = parent->node;
    made->config = parent->config;
    made->number = splitting->number;
    made->rank = splitting->rank;
    made->size = splitting->size;
    spc_message_move(&made->block, &splitting->block);
    splitting->received = false;
    made->area = spc_comm_area_in(made->config, made->size, spc_message_data(&made->block));
    int status = make_tables(made, parent, splitting);
    status = status != SPC_OK ? status : spc_comm_attach(made);
    if (status != SPC_OK) {
        spc_comm_destroy(made);
        return status;
    }
    take_number(made);
    *part = made;
    return SPC_OK;
}

static int make_nothing(spc_comm_t *comm, spc_splitting_t *splitting) {
    pthread_mutex_lock(&comm->node->lock);
    spc_making_give_back(comm, splitting);
    pthread_mutex_unlock(&comm->node->lock);
    return splitting->memory;
}

int spc_making_part(spc_comm_t *parent, spc_splitting_t *splitting, spc_comm_t **part) {
    *part = NULL;
    return splitting->size == 0 || splitting->memory != SPC_OK ? make_nothing(parent, splitting)
                                                               : make_half(parent, splitting, part);
}

void spc_making_settle(spc_comm_t *comm, spc_splitting_t *splitting) {
    if (splitting->received) {
        spc_message_release(comm, &splitting->block);
    }
    free(splitting->members);
    memset(splitting, 0, sizeof(*splitting));
}
