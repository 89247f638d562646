/* SPDX-License-Identifier: MIT */
/* Communicators of some of the nodes: members, order, separate traffic, nesting, leaving, and what goes wrong. */
#include "split_box.h"

#include <pthread.h>

#define NODES 6

/* ---- who is in, in which order; what is sent in one is not seen in another ---- */

static void members_and_separate_traffic_of(spc_comm_t *comm) {
    int rank = (int)spc_comm_rank(comm);
    spc_comm_t *part = split(comm, rank % 2, -rank); /* the last comes first */
    CHECK_EQ(spc_comm_size(part), NODES / 2);
    for (uint32_t i = 0; i < NODES / 2; i++) {
        CHECK_EQ((int)spc_comm_rank_in_run(part, i), NODES - 2 + rank % 2 - 2 * (int)i);
    }
    CHECK_EQ((int)spc_comm_rank_in_run(part, spc_comm_rank(part)), rank);
    CHECK_EQ(sum(part, 1 << rank), rank % 2 ? 0x2a : 0x15);
    int32_t source;
    int32_t next = (int32_t)((spc_comm_rank(part) + 1) % spc_comm_size(part));
    send_number(comm, (rank + 1) % NODES, 5, 1000 + rank); /* the same tag, in both */
    send_number(part, next, 5, rank);
    int64_t found = recv_number(part, SPC_ANY_SOURCE, SPC_ANY_TAG, &source);
    CHECK_EQ(found, (int64_t)spc_comm_rank_in_run(part, (uint32_t)source));
    CHECK_EQ((uint32_t)source, (spc_comm_rank(part) + spc_comm_size(part) - 1) % spc_comm_size(part));
    CHECK_EQ(recv_number(comm, SPC_ANY_SOURCE, SPC_ANY_TAG, &source), 1000 + (rank + NODES - 1) % NODES);
    part_with(part);
}

ON_ALL(members_and_separate_traffic, WITH(.slots = 0))

static void some_belong_to_none_of(spc_comm_t *comm) {
    int rank = (int)spc_comm_rank(comm);
    spc_comm_t *part;
    CHECK_OK(spc_comm_split(comm, rank == 0 ? -1 : 7, 0, SPC_NO_DEADLINE, &part));
    CHECK_EQ(part == NULL, rank == 0);
    if (part != NULL) {
        CHECK_EQ(spc_comm_size(part), NODES - 1);
        barrier(part);
        part_with(part);
    }
    barrier(comm);
}

ON_ALL(some_belong_to_none, WITH(.slots = 0))

/* ---- nesting, and numbers after different histories ---- */

static void splitting_parts_of(spc_comm_t *comm) {
    int rank = (int)spc_comm_rank(comm);
    spc_comm_t *half = split(comm, rank / 3, rank);
    spc_comm_t *extra = rank / 3 == 0 ? split(half, 0, 0) : NULL; /* only these have had one more */
    spc_comm_t *pair = split(comm, rank / 2, 0);
    spc_comm_t *inner = split(half, spc_comm_rank(half) == 1, 0);
    CHECK_EQ(sum(half, rank), rank / 3 == 0 ? 3 : 12);
    CHECK_EQ(sum(pair, rank), rank / 2 * 4 + 1);
    CHECK_EQ(spc_comm_size(inner), spc_comm_rank(half) == 1 ? 1u : 2u);
    CHECK_EQ(sum(comm, 1), NODES);
    CHECK_EQ(sum(inner, 1), (int64_t)spc_comm_size(inner));
    if (extra != NULL) {
        barrier(extra);
        part_with(extra);
    }
    part_with(inner);
    part_with(pair);
    part_with(half);
}

ON_ALL(splitting_parts, WITH(.fanin = 2))

static void one_after_another_of(spc_comm_t *comm) {
    for (int i = 0; i < 200; i++) {
        spc_comm_t *part = split(comm, ((int)spc_comm_rank(comm) + i) % 2, 0);
        CHECK_EQ(sum(part, 1), NODES / 2);
        if (i % 3 == 0) { /* never asked for: it must come into no later communicator, and fill nothing up */
            send_number(part, 0, 1, i);
        }
        part_with(part);
    }
}

ON_ALL(one_after_another, WITH(.queue_limit_bytes = 1024, .slots = 2))

/* ---- two threads of a node split two communicators at once ---- */

static void *split_often(void *argument) {
    spc_comm_t *comm = argument;
    for (int i = 0; i < 50; i++) {
        spc_comm_t *part = split(comm, 0, 0);
        int32_t source;
        int32_t next = (int32_t)((spc_comm_rank(part) + 1) % spc_comm_size(part));
        send_number(part, next, i, i);
        CHECK_EQ(recv_number(part, SPC_ANY_SOURCE, SPC_ANY_TAG, &source), i);
        CHECK_EQ(sum(part, 2), 2 * (int64_t)spc_comm_size(part));
        part_with(part);
    }
    return NULL;
}

static void two_threads_split_at_once_of(spc_comm_t *comm) {
    int rank = (int)spc_comm_rank(comm);
    spc_comm_t *half = split(comm, rank / 3, 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, split_often, half), 0);
    split_often(comm);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    part_with(half);
}

ON_ALL(two_threads_split_at_once, WITH(.slots = 0))

/* ---- leaving ---- */

static void who_leaves_is_known_of(spc_comm_t *comm) {
    int rank = (int)spc_comm_rank(comm);
    spc_comm_t *part = split(comm, 0, 0);
    int32_t source;
    if (rank == 2) {
        send_number(part, 0, 9, 99); /* sent before it leaves: it counts */
        part_with(part);
    } else if (rank == 0) {
        spc_message_t message;
        spc_node_state_t state;
        int32_t reason;
        CHECK_EQ(spc_comm_recv(part, SPC_CONTEXT_USER, 2, 8, SPC_NO_DEADLINE, &message), SPC_EFINISHED);
        CHECK_EQ(spc_comm_culprit(part, &state, &reason), 2);
        CHECK_EQ((int)state, (int)SPC_NODE_LIVE);
        CHECK_EQ(recv_number(part, 2, 9, &source), 99);
        const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
        CHECK_EQ(spc_comm_collective(part, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE), SPC_EFINISHED);
    }
    barrier(comm); /* the run itself goes on */
    if (rank != 2) {
        CHECK_OK(spc_comm_close(part, SPC_NO_DEADLINE));
        CHECK_EQ(spc_comm_close(part, SPC_NO_DEADLINE), SPC_ECLOSED);
        spc_comm_destroy(part);
    }
}

ON_ALL(who_leaves_is_known, WITH(.slots = 0))

/* ---- no room ---- */

static void no_room_is_told_to_all_of(spc_comm_t *comm) {
    spc_comm_t *part;
    CHECK_EQ(spc_comm_split(comm, 0, 0, SPC_NO_DEADLINE, &part), SPC_ENOMEM);
    CHECK(part == NULL);
    barrier(comm);
}

ON_ALL(no_room_is_told_to_all, WITH(.arena_bytes = 1))

/* ---- groups: only their members take part ---- */

static spc_comm_t *group(spc_comm_t *comm, const uint32_t *members, uint32_t count, uint32_t tag) {
    spc_comm_t *made;
    CHECK_OK(spc_comm_create_group(comm, members, count, tag, SPC_NO_DEADLINE, &made));
    CHECK_EQ(spc_comm_size(made), count);
    CHECK_EQ(members[spc_comm_rank(made)], spc_comm_rank(comm));
    return made;
}

static void groups_are_made_by_their_members_of(spc_comm_t *comm) {
    static const uint32_t three[] = {5, 1, 2}, pair[] = {3, 0};
    const uint32_t rank = spc_comm_rank(comm);
    if (rank == 0 || rank == 3) { /* different histories: the numbers have to be agreed upon */
        part_with(group(comm, &rank, 1, 0));
    }
    if (rank == 1 || rank == 2 || rank == 5) {
        spc_comm_t *made = group(comm, three, 3, 7);
        CHECK_EQ(sum(made, rank), 8);
        part_with(made);
    } else if (rank == 0 || rank == 3) {
        spc_comm_t *made = group(comm, pair, 2, 7); /* the same tag, without a common member */
        CHECK_EQ(sum(made, rank), 3);
        part_with(made);
    }
    barrier(comm);
    spc_comm_t *all = split(comm, 0, 0);
    CHECK_EQ(sum(all, 1), NODES);
    part_with(all);
}

ON_ALL(groups_are_made_by_their_members, WITH(.slots = 2))

typedef struct group_call {
    spc_comm_t *comm;
    uint32_t tag;
} group_call_t;

static void *group_often(void *argument) {
    static const uint32_t all[] = {0, 1, 2, 3, 4, 5};
    const group_call_t *call = argument;
    for (int i = 0; i < 30; i++) {
        spc_comm_t *made = group(call->comm, all, NODES, call->tag);
        CHECK_EQ(sum(made, call->tag), (int64_t)call->tag * NODES);
        part_with(made);
    }
    return NULL;
}

/* Two groups of the same members, and splits of their parent, all at once. */
static void groups_and_splits_at_once_of(spc_comm_t *comm) {
    group_call_t calls[] = {{comm, 1}, {comm, SPC_GROUP_TAG_MAX}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, group_often, &calls[i]), 0);
    }
    for (int i = 0; i < 30; i++) {
        part_with(split(comm, 0, 0));
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
}

ON_ALL(groups_and_splits_at_once, WITH(.slots = 0))

static void a_group_goes_on_after_a_timeout_of(spc_comm_t *comm) {
    static const uint32_t pair[] = {1, 4}, other[] = {4, 1};
    const uint32_t rank = spc_comm_rank(comm);
    spc_comm_t *made;
    for (int i = 0; i < 2; i++) { /* of the first member, and of the other one */
        const uint32_t *members = i == 0 ? pair : other;
        if (rank == 1) {
            CHECK_EQ(spc_comm_create_group(comm, members, 2, 0, spc_clock_deadline_ns(1000), &made),
                     SPC_ETIMEDOUT);
        }
        barrier(comm);
        if (rank == 1 || rank == 4) {
            made = group(comm, members, 2, 0);
            CHECK_EQ(sum(made, 1), 2);
            part_with(made);
        }
        barrier(comm);
    }
    if (rank == 1) { /* left for ever */
        CHECK_EQ(spc_comm_create_group(comm, pair, 2, 9, spc_clock_deadline_ns(1000), &made), SPC_ETIMEDOUT);
    }
}

ON_ALL(a_group_goes_on_after_a_timeout, WITH(.slots = 0))

static void no_group_of(spc_comm_t *comm) {
    const uint32_t rank = spc_comm_rank(comm);
    const uint32_t twice[] = {rank, rank}, beyond[] = {rank, NODES}, other = (rank + 1) % NODES;
    static const uint32_t all[] = {0, 1, 2, 3, 4, 5};
    spc_comm_t *made;
    CHECK_EQ(spc_comm_create_group(comm, twice, 2, 0, SPC_NO_DEADLINE, &made), SPC_EINVAL);
    CHECK_EQ(spc_comm_create_group(comm, &other, 1, 0, SPC_NO_DEADLINE, &made), SPC_EINVAL);
    CHECK_EQ(spc_comm_create_group(comm, beyond, 2, 0, SPC_NO_DEADLINE, &made), SPC_ERANK);
    CHECK_EQ(spc_comm_create_group(comm, all, NODES, SPC_GROUP_TAG_MAX + 1, SPC_NO_DEADLINE, &made),
             SPC_ETAG);
    CHECK_EQ(spc_comm_create_group(comm, all, NODES, 0, SPC_NO_DEADLINE, &made),
             SPC_ENOMEM); /* all hear it */
    CHECK(made == NULL);
}

ON_ALL(no_group, WITH(.arena_bytes = 1))

/* A member that has closed the parent will not come. */
static void a_member_that_has_left_of(spc_comm_t *comm) {
    static const uint32_t pair[] = {0, 1}, other[] = {1, 0};
    spc_comm_t *part = split(comm, 0, 0);
    spc_comm_t *made;
    if (spc_comm_rank(comm) == 1) {
        part_with(part);
    }
    barrier(comm);
    if (spc_comm_rank(comm) == 0) {
        CHECK_EQ(spc_comm_create_group(part, pair, 2, 0, SPC_NO_DEADLINE, &made), SPC_EFINISHED);
        CHECK_EQ(spc_comm_create_group(part, other, 2, 0, SPC_NO_DEADLINE, &made), SPC_EFINISHED);
    }
    if (spc_comm_rank(comm) != 1) {
        part_with(part);
    }
}

ON_ALL(a_member_that_has_left, WITH(.slots = 0))

int main(void) {
    RUN(members_and_separate_traffic);
    RUN(some_belong_to_none);
    RUN(splitting_parts);
    RUN(one_after_another);
    RUN(two_threads_split_at_once);
    RUN(who_leaves_is_known);
    RUN(no_room_is_told_to_all);
    RUN(groups_are_made_by_their_members);
    RUN(groups_and_splits_at_once);
    RUN(a_group_goes_on_after_a_timeout);
    RUN(no_group);
    RUN(a_member_that_has_left);
    return check_done();
}
