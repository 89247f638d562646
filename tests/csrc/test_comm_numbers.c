/* SPDX-License-Identifier: MIT */
/* Numbers of communicators are used again, and no message of a former communicator comes into a later one. */
#include "split_box.h"
#include "wide_box.h"

#include <pthread.h>

#define NODES 3
#define FEW 7
#define ROUNDS 400

static int32_t next_in(const spc_comm_t *comm) {
    return (int32_t)((spc_comm_rank(comm) + 1) % spc_comm_size(comm));
}

/* One message of this round that is received, and some that never are: small, in the ring, in parts. */
static void use(spc_comm_t *part, int64_t round) {
    int32_t source;
    send_number(part, next_in(part), 1, round);
    CHECK_EQ(recv_number(part, SPC_ANY_SOURCE, SPC_ANY_TAG, &source), round);
    send_number(part, next_in(part), 2, -1);
    send_number(part, (int32_t)spc_comm_rank(part), 3, -2);
    if (round % 8 == 0) {
        send_content(part, next_in(part), 4, 5, round % 16 == 0 ? 500 : 20000);
    }
}

/* ---- one after another */

static void few_numbers_are_enough_of(spc_comm_t *comm) {
    leave_numbers(comm, FEW);
    for (int i = 0; i < ROUNDS; i++) {
        const int64_t color = ((int)spc_comm_rank(comm) + i) % NODES == 0 ? 1 : i % 5 == 0 ? -1 : 0;
        spc_comm_t *part = split(comm, color, 0);
        CHECK_EQ(part == NULL, color < 0);
        if (part != NULL) {
            CHECK(part->number <= FEW);
            use(part, i);
            CHECK_EQ(sum(part, 1), (int64_t)spc_comm_size(part));
            part_with(part);
        }
    }
}

ON_ALL(few_numbers_are_enough, WITH(.queue_limit_bytes = 1024, .slots = 2, .ring_bytes = 4096))
OVER_BOXES(few_numbers_are_enough, WITH(.queue_limit_bytes = 1024, .slots = 2, .ring_bytes = 4096))

/* Members have different histories, and a node that is not in a group goes on meanwhile. */
static void groups_with_few_numbers_of(spc_comm_t *comm) {
    static const uint32_t pairs[][2] = {{0, 1}, {2, 1}, {0, 2}};
    leave_numbers(comm, FEW);
    for (int i = 0; i < ROUNDS; i++) {
        const uint32_t *pair = pairs[i % 3];
        if (pair[0] == spc_comm_rank(comm) || pair[1] == spc_comm_rank(comm)) {
            spc_comm_t *made;
            CHECK_OK(spc_comm_create_group(comm, pair, 2, 0, SPC_NO_DEADLINE, &made));
            use(made, i);
            part_with(made);
        }
    }
}

ON_ALL(groups_with_few_numbers, WITH(.slots = 2))
OVER_BOXES(groups_with_few_numbers, WITH(.slots = 2))

/* ---- several at once */

static void *split_often(void *argument) {
    for (int i = 0; i < ROUNDS / 4; i++) {
        spc_comm_t *part = split(argument, 0, 0);
        use(part, i);
        CHECK_EQ(sum(part, 2), 2 * (int64_t)spc_comm_size(part));
        part_with(part);
    }
    return NULL;
}

static void two_threads_with_few_numbers_of(spc_comm_t *comm) {
    leave_numbers(comm, 150); /* agreements that go on at once push each other's numbers up */
    spc_comm_t *other = split(comm, spc_comm_rank(comm) == 0, 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, split_often, other), 0);
    split_often(comm);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    part_with(other);
}

ON_ALL(two_threads_with_few_numbers, WITH(.slots = 2))
OVER_BOXES(two_threads_with_few_numbers, WITH(.slots = 2))

/* ---- all are reserved for a moment */

static _Thread_local int searches_in_vain; /* of this node, whose other threads reserve what is free */

uint32_t __real_spc_numbers_reserve(spc_numbers_t *numbers, uint32_t least);
uint32_t __wrap_spc_numbers_reserve(spc_numbers_t *numbers, uint32_t least);
uint32_t __wrap_spc_numbers_reserve(spc_numbers_t *numbers, uint32_t least) {
    if (searches_in_vain > 0) {
        searches_in_vain--;
        return SPC_COMMUNICATORS_MAX;
    }
    return __real_spc_numbers_reserve(numbers, least);
}

static void a_search_goes_on_in_vain_of(spc_comm_t *comm) {
    searches_in_vain = spc_comm_rank(comm) == 0 ? 50 : 0;
    part_with(split(comm, 0, 0));
}

ON_ALL(a_search_goes_on_in_vain, WITH(.slots = 0))
OVER_BOXES(a_search_goes_on_in_vain, WITH(.slots = 0))

/* ---- all are taken */

static void all_numbers_in_use_of(spc_comm_t *comm) {
    spc_comm_t *parts[3], *none;
    leave_numbers(comm, 3);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            parts[i] = split(comm, 0, 0);
        }
        CHECK_EQ(spc_comm_split(comm, 0, 0, SPC_NO_DEADLINE, &none), SPC_ELIMIT);
        CHECK(none == NULL);
        part_with(parts[1]);
        barrier(comm);
        parts[1] = split(comm, 0, 0);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(sum(parts[i], i), i * NODES);
            part_with(parts[i]);
        }
        barrier(comm);
    }
}

ON_ALL(all_numbers_in_use, WITH(.slots = 0))
OVER_BOXES(all_numbers_in_use, WITH(.slots = 0))

/* As long as one member has the communicator, none of the others uses its number. */
static void one_member_keeps_it_of(spc_comm_t *comm) {
    leave_numbers(comm, 2);
    spc_comm_t *kept = split(comm, 0, 0), *none;
    const uint32_t number = kept->number;
    if (spc_comm_rank(comm) != 0) {
        part_with(kept);
    }
    barrier(comm);
    spc_comm_t *other = split(comm, 0, 0);
    CHECK(other->number != number);
    CHECK_EQ(spc_comm_split(comm, 0, 0, SPC_NO_DEADLINE, &none), SPC_ELIMIT);
    if (spc_comm_rank(comm) == 0) {
        part_with(kept);
    }
    part_with(other);
    barrier(comm);
    for (int i = 0; i < 4; i++) {
        part_with(split(comm, 0, 0));
    }
}

ON_ALL(one_member_keeps_it, WITH(.slots = 0))
OVER_BOXES(one_member_keeps_it, WITH(.slots = 0))

static void no_memory_takes_no_number_of(spc_comm_t *comm) {
    spc_comm_t *none;
    leave_numbers(comm, 2);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(spc_comm_split(comm, 0, 0, SPC_NO_DEADLINE, &none), SPC_ENOMEM);
    }
}

ON_ALL(no_memory_takes_no_number, WITH(.arena_bytes = 1))
OVER_BOXES(no_memory_takes_no_number, WITH(.arena_bytes = 1))

/* ---- what a closed communicator leaves behind */

/* A message that is given back after the close, and a handler's tag, do not come into the next one. */
static void nothing_is_handed_on_of(spc_comm_t *comm) {
    int32_t source;
    leave_numbers(comm, 1);
    spc_comm_t *part = split(comm, 0, 0);
    spc_message_t message;
    CHECK_OK(spc_comm_handle(part, 6));
    send_number(part, next_in(part), 5, 1);
    CHECK_OK(spc_comm_recv(part, SPC_CONTEXT_USER, SPC_ANY_SOURCE, 5, SPC_NO_DEADLINE, &message));
    CHECK_OK(spc_comm_close(part, SPC_NO_DEADLINE));
    CHECK_OK(spc_comm_put_back(part, &message));
    spc_comm_destroy(part);
    barrier(comm);
    part = split(comm, 0, 0);
    send_number(part, next_in(part), 6, 2);
    CHECK_EQ(recv_number(part, SPC_ANY_SOURCE, SPC_ANY_TAG, &source), 2);
    part_with(part);
}

ON_ALL(nothing_is_handed_on, WITH(.slots = 0))
OVER_BOXES(nothing_is_handed_on, WITH(.slots = 0))

/* The notices of the end are no messages, neither those that were read nor those that were not. */
static void notices_are_not_counted_of(spc_comm_t *comm) {
    spc_comm_t *part = split(comm, 0, 0);
    const spc_segment_t *segment = &comm->node->segment;
    spc_mailbox_shared_t *mailbox = spc_segment_part(segment, SPC_REGION_MAILBOX, spc_comm_rank(comm));
    uint64_t waiting;
    uint32_t before[NODES];
    for (uint32_t rank = 0; rank < NODES; rank++) {
        before[rank] = spc_mailbox_count(mailbox, rank, comm->config->slots).messages;
    }
    barrier(comm);
    part_with(part);
    barrier(comm);
    CHECK_OK(spc_comm_poll(comm, SPC_CONTEXT_USER, &waiting));
    for (uint32_t rank = 0; rank < NODES; rank++) {
        CHECK_EQ_U(spc_mailbox_count(mailbox, rank, comm->config->slots).messages, before[rank]);
    }
}

ON_ALL(notices_are_not_counted, WITH(.slots = 0))

int main(void) {
    RUN(few_numbers_are_enough);
    RUN(few_numbers_are_enough_over_boxes);
    RUN(groups_with_few_numbers);
    RUN(groups_with_few_numbers_over_boxes);
    RUN(two_threads_with_few_numbers);
    RUN(two_threads_with_few_numbers_over_boxes);
    RUN(a_search_goes_on_in_vain);
    RUN(a_search_goes_on_in_vain_over_boxes);
    RUN(all_numbers_in_use);
    RUN(all_numbers_in_use_over_boxes);
    RUN(one_member_keeps_it);
    RUN(one_member_keeps_it_over_boxes);
    RUN(no_memory_takes_no_number);
    RUN(no_memory_takes_no_number_over_boxes);
    RUN(nothing_is_handed_on);
    RUN(nothing_is_handed_on_over_boxes);
    RUN(notices_are_not_counted);
    return check_done();
}
