/* SPDX-License-Identifier: MIT */
#include "comm/spc_duplicate.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "comm/spc_comm_making.h"
#include "comm/spc_comm_perturb.h"

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

/* ---- messages ---- */

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

/* ---- the memory ---- */

/* Called by the first member in this box. If there is no room, an empty message reports it to the others. */
static void send_memory(spc_duplicate_t *duplicate) {
    spc_comm_t *comm = duplicate->comm;
    const spc_splitting_t *splitting = &duplicate->splitting;
    const spc_payload_t payload = spc_making_payload(comm, splitting);
    const spc_payload_t nothing = {.format = SPC_FORMAT_RAW};
    spc_outbox_t *outbox = comm->node->outbox;
    spc_block_shared_t *block;
    int status = spc_outbox_take_block(outbox, payload.meta_bytes + payload.data_bytes, &block);
    if (status == SPC_OK) {
        spc_making_fill(comm, splitting, &payload, block);
        status = spc_making_send_block(comm, splitting, &payload, block);
    }
    if (status != SPC_OK) {
        int32_t members[SPC_NODES_MAX];
        const uint32_t count = spc_making_members_here(comm, splitting, members);
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
    const uint32_t first = spc_making_first_here(duplicate->comm, splitting);
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

/* ---- the number, at each member ---- */

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
        spc_making_give_back(duplicate->comm, splitting);
        splitting->reserved =
            spc_numbers_take(duplicate->comm->node->numbers, number) ? number : splitting->reserved;
    }
    duplicate->round++;
}

static void give_up(spc_duplicate_t *duplicate) {
    spc_making_give_back(duplicate->comm, &duplicate->splitting);
    duplicate->status = SPC_ELIMIT;
}

/* The first number that is free, from the one whose turn it is on; 0: none. */
static uint32_t reserve_next(spc_numbers_t *numbers) {
    uint32_t number = spc_numbers_reserve(numbers, numbers->next);
    number = number < SPC_COMMUNICATORS_MAX ? number : spc_numbers_reserve(numbers, 1);
    return number < SPC_COMMUNICATORS_MAX ? number : 0;
}

/* ---- the number, at the first member ---- */

static void add_offer(spc_duplicate_t *duplicate, const offer_t *offer) {
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

/* ---- what comes ---- */

static void take_number_message(spc_duplicate_t *duplicate, const spc_message_t *message) {
    if (duplicate->splitting.rank == 0) {
        offer_t offer;
        read_message(message, &offer, sizeof(offer));
        add_offer(duplicate, &offer);
        duplicate->heard++;
        lead(duplicate);
    } else {
        answer_t answer;
        read_message(message, &answer, sizeof(answer));
        follow(duplicate, &answer);
    }
}

static void take_memory(spc_duplicate_t *duplicate, spc_message_t *message) {
    spc_making_take_block(&duplicate->splitting, message);
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

/* ---- life ---- */

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
                                       : spc_making_part(duplicate->comm, &duplicate->splitting, made);
}

/* The number of one that is not done stays reserved: the others may still agree on it. */
void spc_duplicate_end(spc_duplicate_t *duplicate) {
    if (duplicate == NULL) {
        return;
    }
    spc_request_end(&duplicate->request);
    spc_making_settle(duplicate->comm, &duplicate->splitting);
    free(duplicate);
}
