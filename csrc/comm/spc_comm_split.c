/* SPDX-License-Identifier: MIT */
/*
 * Communicators of some of the nodes: divisions of a communicator, and groups of given members.
 *
 * Splitting is one or two collectives of the parent and one message. In the collective every node gives color, key and
 * a number that it has free; the largest is chosen, and if not all nodes gave it, all try to reserve it and give a
 * number again. A node reserves a number before it gives it, so that two threads that split two communicators at once
 * never end up with the same one. All numbers have their turn before one is used again, and that only when no late
 * message of its former communicator can come any more (spc_numbers.h): the search goes on from the last number that
 * was agreed upon, and begins again, at 1, a limited number of times.
 *
 * Then the first member in each box sends its memory to those there (spc_comm_making.h).
 *
 * A group is made in the same steps, but only its members take part, so they agree by messages in the parent's context
 * INTERNAL instead of collectives: in each round the members send what they offer to the first member, which answers
 * all of them. The tag of the call keeps the messages of several groups apart.
 */
#include <stdlib.h>
#include <string.h>

#include "comm/spc_comm_making.h"
#include "comm/spc_comm_perturb.h"

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
    spc_making_give_back(comm, splitting);
    splitting->reserved = spc_numbers_reserve(node->numbers, number != 0 ? number : node->numbers->next);
    splitting->generation = node->numbers->generation;
    spc_node_unlock(node);
}

/* No node will send this one a message with the number that it has reserved. */
static void forget_number(spc_comm_t *comm, spc_splitting_t *splitting) {
    pthread_mutex_lock(&comm->node->lock);
    spc_making_give_back(comm, splitting);
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

/* ---- the memory ---- */

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
    spc_making_fill(comm, splitting, payload, block);
    pthread_mutex_lock(&node->lock);
    status = spc_making_send_block(comm, splitting, payload, block);
    pthread_mutex_unlock(&node->lock);
    return status;
}

/* Called by the first member in this box. If there is no room, an empty message reports it to the others. */
static int announce_memory(spc_comm_t *comm, const spc_splitting_t *splitting, uint64_t deadline_ns) {
    int32_t members[SPC_NODES_MAX];
    const spc_payload_t payload = spc_making_payload(comm, splitting);
    const spc_payload_t nothing = {.format = SPC_FORMAT_RAW};
    if (send_block(comm, splitting, &payload) == SPC_OK) {
        return SPC_OK;
    }
    const uint32_t count = spc_making_members_here(comm, splitting, members);
    return spc_comm_send(comm, members, count, SPC_CONTEXT_INTERNAL, (int32_t)splitting->number, &nothing,
                         deadline_ns);
}

/* Receives into splitting->block, once; splitting->memory records whether there was room. */
static int receive_memory(spc_comm_t *comm, spc_splitting_t *splitting, uint64_t deadline_ns) {
    const uint32_t first = spc_making_first_here(comm, splitting);
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
        spc_making_take_block(splitting, &message);
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
        status = spc_making_part(comm, splitting, part);
    }
    if (!may_go_on(status)) {
        spc_making_settle(comm, splitting);
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

static void describe_offer(const spc_node_wait_t *wait, spc_board_entry_t *entry, spc_board_pair_t *pairs) {
    const offer_wait_t *call = wait->argument;
    spc_comm_describe_grouping(wait->owner, call->source, entry, pairs);
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
    return status == SPC_OK ? spc_making_part(comm, splitting, made) : status;
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
        spc_making_settle(comm, &grouping->splitting);
        free(grouping);
    }
    return status;
}
