/* SPDX-License-Identifier: MIT */
/* Communicators made of members of another one: divisions, groups of given members, and duplicates. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "comm/spc_comm_perturb.h"
#include "comm/spc_comm_private.h"
#include "comm/spc_duplicate.h"

/* ---- the steps that all ways to make a communicator share, once its members are known: number, memory, own half
 *
 * The first member in each box takes a block of its arena, zeroed, and sends it to all members there like any large
 * message. They hold the block as long as they have the communicator, so it is freed when the last member has destroyed
 * the communicator, or has died. If there are members in other boxes, this box's gateway gets it, too, behind a table
 * of the members: it stands in for them (spc_gateway.h). In a run of several boxes some may have no room, so all report
 * it to each other. */

/* ---- making: the number */

/* With the lock: frees the reserved number, which the members have not agreed on. */
static void give_back_number(spc_comm_t *comm, spc_splitting_t *splitting) {
    if (splitting->reserved != 0 && splitting->reserved < SPC_COMMUNICATORS_MAX) {
        spc_numbers_give_back(comm->node->numbers, splitting->reserved);
    }
    splitting->reserved = 0;
}

/* ---- making: the memory, of which the first member of a box takes care */

/* That member, as a rank of the parent. */
static uint32_t find_first_here(const spc_comm_t *comm, const spc_splitting_t *splitting) {
    uint32_t i = 0;
    while (!spc_comm_is_here(comm, splitting->members[i])) {
        i++;
    }
    return splitting->members[i];
}

/* The members in this box, as ranks of the parent. */
static uint32_t find_members_here(const spc_comm_t *comm, const spc_splitting_t *splitting,
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
    uint32_t count = find_members_here(comm, splitting, receivers);
    for (uint32_t i = 0; i < count; i++) {
        receivers[i] = (int32_t)spc_comm_member(comm, (uint32_t)receivers[i]);
    }
    if (count != splitting->size) {
        receivers[count++] = (int32_t)comm->node->size;
    }
    return count;
}

/* The message that brings the memory, without its content. */
static spc_payload_t describe_memory(const spc_comm_t *comm, const spc_splitting_t *splitting) {
    int32_t here[SPC_NODES_MAX];
    const bool spans = find_members_here(comm, splitting, here) != splitting->size;
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

/* Writes it. Needs no lock. */
static void fill_memory(const spc_comm_t *comm, const spc_splitting_t *splitting,
                        const spc_payload_t *payload, spc_block_shared_t *block) {
    memset(spc_block_payload(block), 0, payload->meta_bytes + payload->data_bytes);
    if (payload->meta_bytes != 0) {
        write_table(comm, splitting, spc_block_payload(block));
    }
}

/* With the lock: sends the filled block to the members here, and to the gateway if it is to know them. SPC_ENOMEM.
 * Straight through the outbox, which knows ranks of the segment: a send would copy the zeros. */
static int hand_out_block(spc_comm_t *comm, const spc_splitting_t *splitting, const spc_payload_t *payload,
                          spc_block_shared_t *block) {
    int32_t receivers[SPC_NODES_MAX + 1];
    const uint32_t count = find_receivers(comm, splitting, receivers);
    return spc_outbox_send_block(comm->node->outbox, receivers, count,
                                 spc_comm_context(comm, SPC_CONTEXT_INTERNAL), (int32_t)splitting->number,
                                 payload, block);
}

/* The message has come: it is moved to splitting->block. One without a block reports that there is no room. */
static void keep_block(spc_splitting_t *splitting, spc_message_t *message) {
    spc_message_move(&splitting->block, message);
    message->handle = NULL; /* releasing it does nothing */
    splitting->received = true;
    splitting->memory = splitting->block.storage == SPC_STORED_ARENA ? SPC_OK : SPC_ENOMEM;
}

/* ---- making: the communicator */

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

/* With the lock: no note of a former communicator of this number is taken for one of this one. Notes have the keys of
 * spc_comm_collective.c. */
static void forget_call(const spc_comm_t *comm) {
    spc_note_t note;
    if (spc_note_read(comm->node->notes, SPC_NOTE_CALL, &note)
        && note.key % SPC_COMMUNICATORS_MAX == comm->number) {
        note.key = 0;
        spc_note_write(comm->node->notes, SPC_NOTE_CALL, &note);
    }
}

static void take_number(spc_comm_t *part) {
    spc_node_t *node = part->node;
    pthread_mutex_lock(&node->lock);
    spc_numbers_note_made(node->numbers, part->number, part->size);
    forget_call(part);
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
    give_back_number(comm, splitting);
    pthread_mutex_unlock(&comm->node->lock);
    return splitting->memory;
}

/* Makes this node's half, which then has the block; or nothing, because this node belongs to no part or there is no
 * room: the status says so. Without the lock. */
static int make_part(spc_comm_t *parent, spc_splitting_t *splitting, spc_comm_t **part) {
    *part = NULL;
    return splitting->size == 0 || splitting->memory != SPC_OK ? make_nothing(parent, splitting)
                                                               : make_half(parent, splitting, part);
}

/* Frees what the making still has, and zeroes it. */
static void settle(spc_comm_t *comm, spc_splitting_t *splitting) {
    if (splitting->received) {
        spc_message_release(comm, &splitting->block);
    }
    free(splitting->members);
    memset(splitting, 0, sizeof(*splitting));
}

/* ---- splitting, and groups of given members
 *
 * Splitting is one or two collectives of the parent and one message. In the collective every node gives color, key and
 * a number that it has free; the largest is chosen, and if not all nodes gave it, all try to reserve it and give a
 * number again. A node reserves a number before it gives it, so that two threads that split two communicators at once
 * never end up with the same one. All numbers have their turn before one is used again, and that only when no late
 * message of its former communicator can come any more (spc_numbers.h): the search goes on from the last number that
 * was agreed upon, and begins again, at 1, a limited number of times.
 *
 * Then the first member in each box sends its memory to those there.
 *
 * A group is made in the same steps, but only its members take part, so they agree by messages in the parent's context
 * INTERNAL instead of collectives: in each round the members send what they offer to the first member, which answers
 * all of them. The tag of the call keeps the messages of several groups apart. */

/* The data that each node gives the others in a split. */
typedef struct told {
    int64_t color;
    int64_t key;
    spc_offer_t offer;
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

/* One round: all who take part learn what they offer together. An interruption leaves it open, and the next call
 * continues it with the same offer. */
typedef int round_t(spc_comm_t *comm, void *call, const spc_offer_t *own, spc_offer_t *all,
                    uint64_t deadline_ns);

/* Reserves this number or, if it is taken already, the next free one; 0: one whose turn it is. The one that was
 * reserved before is free: no node has got it agreed upon. */
static void reserve(spc_comm_t *comm, spc_splitting_t *splitting, uint32_t number) {
    spc_node_t *node = comm->node;
    pthread_mutex_lock(&node->lock);
    spc_outbox_flush(node->outbox);
    (void)spc_inbox_drain(node->inbox); /* last messages that make numbers free */
    give_back_number(comm, splitting);
    splitting->reserved = spc_numbers_reserve(node->numbers, number != 0 ? number : node->numbers->next);
    splitting->generation = node->numbers->generation;
    spc_node_unlock(node);
}

/* No node will send this one a message with the number that it has reserved. */
static void forget_number(spc_comm_t *comm, spc_splitting_t *splitting) {
    pthread_mutex_lock(&comm->node->lock);
    give_back_number(comm, splitting);
    pthread_mutex_unlock(&comm->node->lock);
}

static void add_offer(spc_offer_t *all, const spc_offer_t *offer) {
    all->differs |= offer->differs | (offer->number != all->number);
    all->number = offer->number > all->number ? offer->number : all->number;
}

/* Agreements of two threads push each other's search up to the end although numbers are free: each reserves what the
 * other one is about to offer. All nodes find the same, so they reach the limit together. */
#define WRAPS_MAX 100

/* Repeats the round until all have reserved the same number. */
static int agree(spc_comm_t *comm, spc_splitting_t *splitting, round_t *round, void *call,
                 uint64_t deadline_ns) {
    spc_offer_t all = {.differs = 1};
    if (splitting->reserved == 0) {
        reserve(comm, splitting, 0);
    }
    while (all.differs != 0) {
        const spc_offer_t own = {.number = splitting->reserved, .generation = splitting->generation};
        int status = round(comm, call, &own, &all, deadline_ns);
        if (status != SPC_OK) {
            return status;
        }
        if (all.number >= SPC_COMMUNICATORS_MAX && splitting->wraps == WRAPS_MAX) {
            forget_number(comm, splitting);
            splitting->wraps = 0;
            return SPC_ELIMIT;
        }
        if (all.number >= SPC_COMMUNICATORS_MAX) {
            splitting->wraps++;
            all.differs = 1;
            reserve(comm, splitting, 1);
        } else if (all.number != splitting->reserved) {
            reserve(comm, splitting, all.number);
        }
    }
    splitting->number = splitting->reserved;
    splitting->generation = all.generation;
    return SPC_OK;
}

/* ---- rounds of a split ---- */

typedef struct split_call {
    int64_t color;
    int64_t key;
} split_call_t;

static told_t told_by(const spc_comm_t *comm, uint32_t rank) {
    const void *bytes;
    uint64_t length;
    told_t told;
    spc_comm_contribution(comm, rank, &bytes, &length);
    memcpy(&told, bytes, sizeof(told));
    return told;
}

static int exchange(spc_comm_t *comm, const told_t *told, uint64_t deadline_ns) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_SPLIT};
    return spc_comm_collective_inside(comm, &signature, NULL, told, sizeof(*told), NULL, deadline_ns);
}

static int split_round(spc_comm_t *comm, void *argument, const spc_offer_t *own, spc_offer_t *all,
                       uint64_t deadline_ns) {
    const split_call_t *call = argument;
    const told_t told = {call->color, call->key, *own};
    int status = exchange(comm, &told, deadline_ns);
    *all = *own;
    for (uint32_t rank = 0; status == SPC_OK && rank < comm->size; rank++) {
        const told_t other = told_by(comm, rank);
        add_offer(all, &other.offer);
    }
    return status;
}

/* Those that have given the same color. */
static int find_members(spc_comm_t *comm, spc_splitting_t *splitting, int64_t color) {
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
    if (splitting->size != 0) {
        splitting->generation = told_by(comm, splitting->members[0]).offer.generation;
    }
    free(candidates);
    return SPC_OK;
}

/* ---- splitting: the memory */

/* The zeros are written without the lock. */
static int send_block(spc_comm_t *comm, const spc_splitting_t *splitting, const spc_payload_t *payload) {
    spc_node_t *node = comm->node;
    spc_block_shared_t *block;
    pthread_mutex_lock(&node->lock);
    int status = spc_outbox_take_block(node->outbox, payload->meta_bytes + payload->data_bytes, &block);
    pthread_mutex_unlock(&node->lock);
    if (status != SPC_OK) {
        return status;
    }
    fill_memory(comm, splitting, payload, block);
    pthread_mutex_lock(&node->lock);
    status = hand_out_block(comm, splitting, payload, block);
    pthread_mutex_unlock(&node->lock);
    return status;
}

/* Called by the first member in this box. If there is no room, an empty message reports it to the others. */
static int announce_memory(spc_comm_t *comm, const spc_splitting_t *splitting, uint64_t deadline_ns) {
    int32_t members[SPC_NODES_MAX];
    const spc_payload_t payload = describe_memory(comm, splitting);
    const spc_payload_t nothing = {.format = SPC_FORMAT_RAW};
    if (send_block(comm, splitting, &payload) == SPC_OK) {
        return SPC_OK;
    }
    const uint32_t count = find_members_here(comm, splitting, members);
    return spc_comm_send(comm, members, count, SPC_CONTEXT_INTERNAL, (int32_t)splitting->number, &nothing,
                         deadline_ns);
}

/* Receives into splitting->block, once; splitting->memory records whether there was room. */
static int receive_memory(spc_comm_t *comm, spc_splitting_t *splitting, uint64_t deadline_ns) {
    const uint32_t first = find_first_here(comm, splitting);
    if (first == comm->rank && !splitting->announced) {
        int status = announce_memory(comm, splitting, deadline_ns);
        if (status != SPC_OK) {
            return status;
        }
        splitting->announced = true;
    }
    spc_message_t message;
    int status = spc_comm_recv(comm, SPC_CONTEXT_INTERNAL, (int32_t)first, (int32_t)splitting->number,
                               deadline_ns, &message);
    if (status == SPC_OK) {
        keep_block(splitting, &message);
    }
    return status;
}

/* Whether the same call may continue it. */
static bool may_go_on(int status) {
    return status == SPC_EINTERRUPTED || status == SPC_ETIMEDOUT;
}

/* ---- split ---- */

/* Whether there was room in all boxes. All nodes of the parent take part, even nodes that belong to no part. */
static int confirm_split(spc_comm_t *comm, spc_splitting_t *splitting, int64_t color, uint64_t deadline_ns) {
    const told_t own = {.color = color, .offer = {.number = splitting->memory == SPC_OK ? 0 : 1}};
    int status = exchange(comm, &own, deadline_ns);
    for (uint32_t rank = 0; status == SPC_OK && rank < comm->size; rank++) {
        const told_t told = told_by(comm, rank);
        if (told.color == color && told.offer.number != 0) {
            splitting->memory = SPC_ENOMEM;
        }
    }
    return status;
}

static int split_inside(spc_comm_t *comm, split_call_t *call, uint64_t deadline_ns, spc_comm_t **part) {
    spc_splitting_t *splitting = &comm->splitting;
    int status = SPC_OK;
    if (splitting->number == 0) {
        status = agree(comm, splitting, split_round, call, deadline_ns);
        status = status == SPC_OK ? find_members(comm, splitting, call->color) : status;
    }
    if (status == SPC_OK && splitting->size != 0 && !splitting->received) {
        status = receive_memory(comm, splitting, deadline_ns);
    }
    if (status == SPC_OK && comm->config->boxes > 1) {
        status = confirm_split(comm, splitting, call->color, deadline_ns);
    }
    if (status == SPC_OK) {
        status = make_part(comm, splitting, part);
    }
    if (!may_go_on(status)) {
        settle(comm, splitting);
    }
    return status;
}

int spc_comm_split(spc_comm_t *comm, int64_t color, int64_t key, uint64_t deadline_ns, spc_comm_t **part) {
    split_call_t call = {color, key};
    *part = NULL;
    int status = spc_comm_perturb(comm, spc_comm_check_callable(comm));
    if (status != SPC_OK) {
        return status;
    }
    if (!spc_comm_enter(comm)) {
        return SPC_EBUSY;
    }
    status = split_inside(comm, &call, deadline_ns, part);
    spc_comm_leave(comm);
    return status;
}

/* ---- groups: rounds by messages ---- */

/* The context has other tags beside these: of memory (numbers of communicators), of data collectives (from 2^30). */
#define GROUP_TAG_BIT (SPC_GROUP_TAG_MAX + 1)

typedef struct offer_wait {
    spc_match_t match;
    uint32_t source; /* its rank in the parent */
    spc_message_t message;
} offer_wait_t;

static int32_t tag_of(const spc_grouping_t *grouping) {
    return (int32_t)(GROUP_TAG_BIT | grouping->tag);
}

static bool test_offer(spc_node_wait_t *wait) {
    spc_node_t *node = wait->node;
    offer_wait_t *call = wait->argument;
    pthread_mutex_lock(&node->lock);
    wait->status = spc_inbox_take(node->inbox, &call->match, &call->message);
    spc_outbox_flush(node->outbox);
    spc_node_unlock(node);
    return wait->status != SPC_EAGAIN;
}

static int doomed_offer(spc_node_wait_t *wait) {
    const offer_wait_t *call = wait->argument;
    int status = spc_comm_check_usable(wait->owner); /* another thread may have closed it */
    return status == SPC_OK && spc_comm_has_left(wait->owner, call->source)
               ? spc_comm_blame(wait->owner, call->source)
               : status;
}

/* In spc_comm_create_group: `source` has not taken its part in it yet. */
static void describe_grouping(const spc_comm_t *comm, uint32_t source, spc_board_entry_t *entry,
                              spc_board_pair_t *pairs) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_CREATE_GROUP};
    spc_comm_describe(comm, SPC_BOARD_GATHERING, (int32_t)source, 0, entry);
    spc_comm_need(comm, source, pairs);
    memcpy(entry->call, &signature, sizeof(signature));
}

static void describe_offer(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const offer_wait_t *call = wait->argument;
    describe_grouping(wait->owner, call->source, entry, pairs);
}

static int recv_offer(spc_comm_t *comm, const spc_grouping_t *grouping, uint32_t source, spc_offer_t *offer,
                      uint64_t deadline_ns) {
    offer_wait_t call = {.match = {.source = (int32_t)spc_comm_member(comm, source),
                                   .tag = tag_of(grouping),
                                   .context = spc_comm_context(comm, SPC_CONTEXT_INTERNAL)},
                         .source = source};
    spc_node_wait_t wait = {.node = comm->node,
                            .test = test_offer,
                            .doomed = doomed_offer,
                            .describe = describe_offer,
                            .owner = comm,
                            .argument = &call};
    int status = spc_node_test_or_wait(&wait, deadline_ns);
    if (status == SPC_OK) {
        memcpy(offer, spc_message_data(&call.message), sizeof(*offer));
        spc_message_release(comm, &call.message);
    }
    return status;
}

static int send_offer(spc_comm_t *comm, const spc_grouping_t *grouping, const uint32_t *to, uint32_t count,
                      const spc_offer_t *offer, uint64_t deadline_ns) {
    const spc_payload_t payload = {.data = offer, .data_bytes = sizeof(*offer), .format = SPC_FORMAT_RAW};
    int32_t receivers[SPC_NODES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        receivers[i] = (int32_t)to[i];
    }
    return count == 0 ? SPC_OK
                      : spc_comm_send(comm, receivers, count, SPC_CONTEXT_INTERNAL, tag_of(grouping),
                                      &payload, deadline_ns);
}

/* The first member hears the others, and answers all of them. */
static int lead_round(spc_comm_t *comm, spc_grouping_t *grouping, const spc_offer_t *own, spc_offer_t *all,
                      uint64_t deadline_ns) {
    const spc_splitting_t *splitting = &grouping->splitting;
    int status = SPC_OK;
    grouping->offers = grouping->heard == 0 ? *own : grouping->offers;
    grouping->heard = grouping->heard == 0 ? 1 : grouping->heard;
    while (status == SPC_OK && grouping->heard < splitting->size) {
        spc_offer_t offer;
        status = recv_offer(comm, grouping, splitting->members[grouping->heard], &offer, deadline_ns);
        if (status == SPC_OK) {
            add_offer(&grouping->offers, &offer);
            grouping->heard++;
        }
    }
    if (status == SPC_OK) {
        status = send_offer(comm, grouping, splitting->members + 1, splitting->size - 1, &grouping->offers,
                            deadline_ns);
    }
    if (status == SPC_OK) {
        *all = grouping->offers;
        grouping->heard = 0;
    }
    return status;
}

static int group_round(spc_comm_t *comm, void *argument, const spc_offer_t *own, spc_offer_t *all,
                       uint64_t deadline_ns) {
    spc_grouping_t *grouping = argument;
    const spc_splitting_t *splitting = &grouping->splitting;
    if (splitting->rank == 0) {
        return lead_round(comm, grouping, own, all, deadline_ns);
    }
    int status =
        grouping->told ? SPC_OK : send_offer(comm, grouping, splitting->members, 1, own, deadline_ns);
    grouping->told = status == SPC_OK;
    if (status == SPC_OK) {
        status = recv_offer(comm, grouping, splitting->members[0], all, deadline_ns);
        grouping->told = status != SPC_OK;
    }
    return status;
}

/* ---- groups: the call ---- */

static int check_group(const spc_comm_t *comm, const uint32_t *members, uint32_t count, uint32_t tag) {
    bool is_member[SPC_NODES_MAX] = {false};
    for (uint32_t i = 0; i < count; i++) {
        if (members[i] >= comm->size) {
            return SPC_ERANK;
        }
        if (is_member[members[i]]) {
            return SPC_EINVAL;
        }
        is_member[members[i]] = true;
    }
    if (!is_member[comm->rank]) {
        return SPC_EINVAL;
    }
    return tag <= SPC_GROUP_TAG_MAX ? spc_comm_check_callable(comm) : SPC_ETAG;
}

/* Takes out the call that an interruption has left; NULL: there is none. */
static spc_grouping_t *find_left(spc_comm_t *comm, const uint32_t *members, uint32_t count, uint32_t tag) {
    spc_grouping_t **at = &comm->groupings;
    pthread_mutex_lock(&comm->node->lock);
    while (*at != NULL
           && ((*at)->tag != tag || (*at)->splitting.size != count
               || memcmp((*at)->splitting.members, members, count * sizeof(*members)) != 0)) {
        at = &(*at)->next;
    }
    spc_grouping_t *found = *at;
    *at = found != NULL ? found->next : NULL;
    pthread_mutex_unlock(&comm->node->lock);
    return found;
}

static spc_grouping_t *begin_group(const spc_comm_t *comm, const uint32_t *members, uint32_t count,
                                   uint32_t tag) {
    spc_grouping_t *made = calloc(1, sizeof(*made));
    uint32_t *list = malloc(count * sizeof(*list));
    if (made == NULL || list == NULL) {
        free(made);
        free(list);
        return NULL;
    }
    memcpy(list, members, count * sizeof(*list));
    made->tag = tag;
    made->splitting.members = list;
    made->splitting.size = count;
    while (members[made->splitting.rank] != comm->rank) {
        made->splitting.rank++;
    }
    return made;
}

/* Whether there was room in all boxes. */
static int confirm_group(spc_comm_t *comm, spc_grouping_t *grouping, uint64_t deadline_ns) {
    const spc_offer_t own = {.number = grouping->splitting.memory == SPC_OK ? 0 : 1};
    spc_offer_t all;
    int status = group_round(comm, grouping, &own, &all, deadline_ns);
    if (status == SPC_OK && all.number != 0) {
        grouping->splitting.memory = SPC_ENOMEM;
    }
    return status;
}

static int group_inside(spc_comm_t *comm, spc_grouping_t *grouping, uint64_t deadline_ns, spc_comm_t **made) {
    spc_splitting_t *splitting = &grouping->splitting;
    int status = splitting->number == 0 ? agree(comm, splitting, group_round, grouping, deadline_ns) : SPC_OK;
    if (status == SPC_OK && !splitting->received) {
        status = receive_memory(comm, splitting, deadline_ns);
    }
    if (status == SPC_OK && comm->config->boxes > 1) {
        status = confirm_group(comm, grouping, deadline_ns);
    }
    return status == SPC_OK ? make_part(comm, splitting, made) : status;
}

int spc_comm_create_group(spc_comm_t *comm, const uint32_t *members, uint32_t count, uint32_t tag,
                          uint64_t deadline_ns, spc_comm_t **made) {
    *made = NULL;
    int status = spc_comm_perturb(comm, check_group(comm, members, count, tag));
    if (status != SPC_OK) {
        return status;
    }
    spc_grouping_t *grouping = find_left(comm, members, count, tag);
    grouping = grouping != NULL ? grouping : begin_group(comm, members, count, tag);
    if (grouping == NULL) {
        return SPC_ENOMEM;
    }
    status = group_inside(comm, grouping, deadline_ns, made);
    if (may_go_on(status)) {
        pthread_mutex_lock(&comm->node->lock);
        grouping->next = comm->groupings;
        comm->groupings = grouping;
        pthread_mutex_unlock(&comm->node->lock);
    } else {
        settle(comm, &grouping->splitting);
        free(grouping);
    }
    return status;
}

/* ---- duplicates: spc_duplicate.h */

/* The context has other tags before these, numbers of communicators, and behind them, from that of receipts
 * (2^28 - 1) on. */
#define TAG_FIRST (INT32_C(1) << 27)
#define TAGS (UINT32_C(1) << 26)

/* So many attempts find a common number if there is one for each of the duplicates that are under way. */
#define ROUNDS_MAX 64

/* A message of a member to the first one. */
typedef struct offer {
    uint32_t number;                  /* which it has reserved; 0: none */
    uint32_t lacks_memory;            /* of the last round only */
    uint64_t free[SPC_NUMBERS_WORDS]; /* and its own number; not in the first and the last round */
} offer_t;

#define SHORT_BYTES offsetof(offer_t, free)

typedef enum verdict {
    TRY, /* this number; 0: what is reserved stays so, and the offer is to list the free numbers */
    AGREED,
    NO_NUMBER, /* none is free on all */
} verdict_t;

/* A message of the first member to the others. */
typedef struct answer {
    uint32_t verdict;
    uint32_t number;
    uint32_t generation; /* of AGREED */
    uint32_t lacks_memory;
} answer_t;

typedef enum stage {
    NUMBER,
    MEMORY,
    CONFIRMATION,
} stage_t;

/* All fields with the node's lock, until the request is done. */
struct spc_duplicate {
    spc_request_t request; /* first: the core gives it back to `deliver` */
    spc_comm_t *comm;
    spc_splitting_t splitting;
    stage_t stage;
    int status; /* why it fails; the members need not agree on it */
    int32_t tag;
    uint32_t round;

    /* The first member knows these of the others, which it hears in the order of ranks. */
    uint32_t heard; /* the rank after the last one that it has heard in this round */
    bool differs;
    offer_t all; /* the largest number, and the numbers that are free everywhere */
};

/* ---- duplicates: messages */

/* Neither waits nor counts: collectives have no limit. */
static void send_to(spc_duplicate_t *duplicate, const uint32_t *ranks, uint32_t count, const void *data,
                    uint64_t bytes) {
    const spc_comm_t *comm = duplicate->comm;
    const spc_payload_t payload = {.data = data, .data_bytes = bytes, .format = SPC_FORMAT_RAW};
    int32_t members[SPC_NODES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        members[i] = (int32_t)spc_comm_member(comm, ranks[i]);
    }
    const int status =
        count == 0 ? SPC_OK
                   : spc_outbox_send(comm->node->outbox, members, count,
                                     spc_comm_context(comm, SPC_CONTEXT_INTERNAL), duplicate->tag, &payload);
    duplicate->status = duplicate->status == SPC_OK ? status : duplicate->status;
}

static void answer_all(spc_duplicate_t *duplicate, const answer_t *answer) {
    const spc_splitting_t *splitting = &duplicate->splitting;
    send_to(duplicate, splitting->members + 1, splitting->size - 1, answer, sizeof(*answer));
}

static void hear(spc_duplicate_t *duplicate, uint32_t rank) {
    spc_request_post(duplicate->comm, rank, duplicate->tag, &duplicate->request);
}

/* As much as it has; the rest is 0. */
static void read_message(const spc_message_t *message, void *to, size_t bytes) {
    const uint64_t length = spc_message_data_bytes(message);
    memset(to, 0, bytes);
    memcpy(to, spc_message_data(message), length < bytes ? length : bytes);
}

/* ---- duplicates: the memory */

/* Called by the first member in this box. If there is no room, an empty message reports it to the others. */
static void send_memory(spc_duplicate_t *duplicate) {
    spc_comm_t *comm = duplicate->comm;
    const spc_splitting_t *splitting = &duplicate->splitting;
    const spc_payload_t payload = describe_memory(comm, splitting);
    const spc_payload_t nothing = {.format = SPC_FORMAT_RAW};
    spc_outbox_t *outbox = comm->node->outbox;
    spc_block_shared_t *block;
    int status = spc_outbox_take_block(outbox, payload.meta_bytes + payload.data_bytes, &block);
    if (status == SPC_OK) {
        fill_memory(comm, splitting, &payload, block);
        status = hand_out_block(comm, splitting, &payload, block);
    }
    if (status != SPC_OK) {
        int32_t members[SPC_NODES_MAX];
        const uint32_t count = find_members_here(comm, splitting, members);
        for (uint32_t i = 0; i < count; i++) {
            members[i] = (int32_t)spc_comm_member(comm, (uint32_t)members[i]);
        }
        status = spc_outbox_send(outbox, members, count, spc_comm_context(comm, SPC_CONTEXT_INTERNAL),
                                 (int32_t)splitting->number, &nothing);
        duplicate->status = duplicate->status == SPC_OK ? status : duplicate->status;
    }
}

static void begin_memory(spc_duplicate_t *duplicate) {
    spc_splitting_t *splitting = &duplicate->splitting;
    const uint32_t first = find_first_here(duplicate->comm, splitting);
    splitting->number = splitting->reserved;
    duplicate->stage = MEMORY;
    if (first == duplicate->comm->rank) {
        send_memory(duplicate);
    }
    spc_request_post(duplicate->comm, first, (int32_t)splitting->number, &duplicate->request);
}

static void conclude_confirmation(spc_duplicate_t *duplicate, bool lacks_memory) {
    if (lacks_memory) {
        duplicate->splitting.memory = SPC_ENOMEM;
    }
}

static void begin_confirmation(spc_duplicate_t *duplicate) {
    const spc_splitting_t *splitting = &duplicate->splitting;
    duplicate->stage = CONFIRMATION;
    duplicate->all = (offer_t){.lacks_memory = splitting->memory != SPC_OK};
    duplicate->heard = 1;
    if (splitting->rank != 0) {
        send_to(duplicate, splitting->members, 1, &duplicate->all, SHORT_BYTES);
        hear(duplicate, 0);
    } else if (splitting->size > 1) {
        hear(duplicate, 1);
    } /* else there is nobody to ask */
}

/* ---- duplicates: the number, at each member */

/* The number that is reserved counts as free. */
static void fill_offer(const spc_duplicate_t *duplicate, offer_t *offer) {
    const uint32_t number = duplicate->splitting.reserved;
    *offer = (offer_t){.number = number};
    if (duplicate->round > 0) {
        spc_numbers_list_free(duplicate->comm->node->numbers, offer->free);
        offer->free[number / 64] |= (uint64_t)(number != 0) << number % 64;
    }
}

static void try_number(spc_duplicate_t *duplicate, uint32_t number) {
    spc_splitting_t *splitting = &duplicate->splitting;
    if (number != 0 && number != splitting->reserved) {
        give_back_number(duplicate->comm, splitting);
        splitting->reserved =
            spc_numbers_take(duplicate->comm->node->numbers, number) ? number : splitting->reserved;
    }
    duplicate->round++;
}

static void give_up(spc_duplicate_t *duplicate) {
    give_back_number(duplicate->comm, &duplicate->splitting);
    duplicate->status = SPC_ELIMIT;
}

/* The first number that is free, from the one whose turn it is on; 0: none. */
static uint32_t reserve_next(spc_numbers_t *numbers) {
    uint32_t number = spc_numbers_reserve(numbers, numbers->next);
    number = number < SPC_COMMUNICATORS_MAX ? number : spc_numbers_reserve(numbers, 1);
    return number < SPC_COMMUNICATORS_MAX ? number : 0;
}

/* ---- duplicates: the number, at the first member */

static void add_duplicate_offer(spc_duplicate_t *duplicate, const offer_t *offer) {
    offer_t *all = &duplicate->all;
    duplicate->differs = duplicate->differs || offer->number != all->number;
    all->number = offer->number > all->number ? offer->number : all->number;
    for (uint32_t i = 0; i < SPC_NUMBERS_WORDS; i++) {
        all->free[i] &= offer->free[i];
    }
}

/* Different for duplicates that collide: communicators with common members differ in number, duplicates of one in
 * tag. */
static uint32_t random_of(const spc_duplicate_t *duplicate) {
    uint32_t mixed = duplicate->comm->number * 0x9e3779b1u ^ (uint32_t)duplicate->tag * 0x85ebca6bu
                     ^ duplicate->round * 0xc2b2ae35u;
    mixed = (mixed ^ mixed >> 15) * 0x2c1b3c6du;
    return mixed ^ mixed >> 12;
}

/* A number that is free on all, one of the next after the largest that was offered; 0: there is none. */
static uint32_t choose(const spc_duplicate_t *duplicate) {
    const offer_t *all = &duplicate->all;
    uint32_t count = 0;
    for (uint32_t i = 0; i < SPC_NUMBERS_WORDS; i++) {
        count += (uint32_t)__builtin_popcountll(all->free[i]);
    }
    if (count == 0) {
        return 0;
    }
    const uint32_t most = UINT32_C(1) << (duplicate->round < 14 ? duplicate->round - 1 : 13);
    uint32_t left = random_of(duplicate) % (count < most ? count : most);
    for (uint32_t number = all->number;; number = (number + 1) % SPC_COMMUNICATORS_MAX) {
        const bool is_free = (all->free[number / 64] >> number % 64 & 1) != 0;
        if (is_free && left-- == 0) {
            return number;
        }
    }
}

static answer_t judge(const spc_duplicate_t *duplicate) {
    const offer_t *all = &duplicate->all;
    if (!duplicate->differs && all->number != 0) {
        return (answer_t){
            .verdict = AGREED, .number = all->number, .generation = duplicate->splitting.generation};
    }
    if (duplicate->round == 0) {
        return (answer_t){.verdict = TRY};
    }
    const uint32_t number = choose(duplicate);
    const bool is_last = duplicate->round >= ROUNDS_MAX || (number == 0 && duplicate->splitting.size == 1);
    return (answer_t){.verdict = is_last ? NO_NUMBER : TRY, .number = number};
}

static void begin_round(spc_duplicate_t *duplicate) {
    fill_offer(duplicate, &duplicate->all);
    duplicate->differs = false;
    duplicate->heard = 1;
}

static void follow(spc_duplicate_t *duplicate, const answer_t *answer) {
    offer_t offer;
    switch ((verdict_t)answer->verdict) {
    case AGREED:
        duplicate->splitting.generation = answer->generation;
        begin_memory(duplicate);
        break;
    case NO_NUMBER:
        give_up(duplicate);
        break;
    default:
        try_number(duplicate, answer->number);
        if (duplicate->splitting.rank == 0) {
            begin_round(duplicate);
        } else {
            fill_offer(duplicate, &offer);
            send_to(duplicate, duplicate->splitting.members, 1, &offer, sizeof(offer));
            hear(duplicate, 0);
        }
    }
}

/* Hears the next one, or decides. A communicator of one member has nobody to hear, and decides again. */
static void lead(spc_duplicate_t *duplicate) {
    while (duplicate->stage == NUMBER && duplicate->heard == duplicate->splitting.size) {
        const answer_t answer = judge(duplicate);
        answer_all(duplicate, &answer);
        follow(duplicate, &answer);
        if (answer.verdict == NO_NUMBER) {
            return;
        }
    }
    if (duplicate->stage == NUMBER) {
        hear(duplicate, duplicate->heard);
    }
}

/* ---- duplicates: what comes */

static void take_number_message(spc_duplicate_t *duplicate, const spc_message_t *message) {
    if (duplicate->splitting.rank == 0) {
        offer_t offer;
        read_message(message, &offer, sizeof(offer));
        add_duplicate_offer(duplicate, &offer);
        duplicate->heard++;
        lead(duplicate);
    } else {
        answer_t answer;
        read_message(message, &answer, sizeof(answer));
        follow(duplicate, &answer);
    }
}

static void take_memory(spc_duplicate_t *duplicate, spc_message_t *message) {
    keep_block(&duplicate->splitting, message);
    if (duplicate->comm->config->boxes > 1) {
        begin_confirmation(duplicate);
    }
}

static void take_confirmation(spc_duplicate_t *duplicate, const spc_message_t *message) {
    offer_t *all = &duplicate->all;
    if (duplicate->splitting.rank != 0) {
        answer_t answer;
        read_message(message, &answer, sizeof(answer));
        conclude_confirmation(duplicate, answer.lacks_memory != 0);
        return;
    }
    offer_t offer;
    read_message(message, &offer, sizeof(offer));
    all->lacks_memory |= offer.lacks_memory;
    if (++duplicate->heard < duplicate->splitting.size) {
        hear(duplicate, duplicate->heard);
        return;
    }
    const answer_t answer = {.lacks_memory = all->lacks_memory};
    answer_all(duplicate, &answer);
    conclude_confirmation(duplicate, all->lacks_memory != 0);
}

/* spc_request_deliver_t: a request that is not posted again is done. */
static void deliver(spc_request_t *request, spc_message_t *message) {
    spc_duplicate_t *duplicate = (spc_duplicate_t *)request;
    switch (duplicate->stage) {
    case NUMBER:
        take_number_message(duplicate, message);
        break;
    case MEMORY:
        take_memory(duplicate, message);
        break;
    default:
        take_confirmation(duplicate, message);
    }
}

/* ---- duplicates: life */

static spc_duplicate_t *create(spc_comm_t *comm) {
    spc_duplicate_t *made = calloc(1, sizeof(*made));
    uint32_t *members = malloc(comm->size * sizeof(*members));
    if (made == NULL || members == NULL) {
        free(made);
        free(members);
        return NULL;
    }
    for (uint32_t rank = 0; rank < comm->size; rank++) {
        members[rank] = rank;
    }
    made->comm = comm;
    made->splitting = (spc_splitting_t){.size = comm->size, .rank = comm->rank, .members = members};
    made->request = (spc_request_t){.deliver = deliver, .comm = comm, .tag = SPC_ANY_TAG};
    return made;
}

/* With the lock. */
static void start(spc_duplicate_t *duplicate) {
    spc_comm_t *comm = duplicate->comm;
    duplicate->tag = TAG_FIRST + (int32_t)(comm->duplicates++ % TAGS);
    duplicate->splitting.reserved = reserve_next(comm->node->numbers);
    duplicate->splitting.generation = comm->node->numbers->generation;
    if (comm->rank == 0) {
        begin_round(duplicate);
        lead(duplicate);
    } else {
        offer_t offer;
        fill_offer(duplicate, &offer);
        send_to(duplicate, duplicate->splitting.members, 1, &offer, SHORT_BYTES);
        hear(duplicate, 0);
    }
}

int spc_duplicate_begin(spc_comm_t *comm, spc_duplicate_t **duplicate) {
    *duplicate = NULL;
    const int status = spc_comm_perturb(comm, spc_comm_check_callable(comm));
    if (status != SPC_OK) {
        return status;
    }
    spc_node_t *node = comm->node;
    spc_duplicate_t *made = create(comm);
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    pthread_mutex_lock(&node->lock);
    spc_outbox_flush(node->outbox);
    (void)spc_inbox_drain(node->inbox); /* last messages that make numbers free */
    start(made);
    if (!made->request.posted) { /* there is no number for its only member */
        atomic_store_explicit(&made->request.done, true,
                              memory_order_relaxed); /* no other thread knows it yet */
    }
    spc_node_unlock(node);
    *duplicate = made;
    return SPC_OK;
}

spc_request_t *spc_duplicate_request(spc_duplicate_t *duplicate) {
    return &duplicate->request;
}

int spc_duplicate_finish(spc_duplicate_t *duplicate, spc_comm_t **made) {
    *made = NULL;
    return duplicate->status != SPC_OK ? duplicate->status
                                       : make_part(duplicate->comm, &duplicate->splitting, made);
}

/* The number of one that is not done stays reserved: the others may still agree on it. */
void spc_duplicate_end(spc_duplicate_t *duplicate) {
    if (duplicate == NULL) {
        return;
    }
    spc_request_end(&duplicate->request);
    settle(duplicate->comm, &duplicate->splitting);
    free(duplicate);
}
