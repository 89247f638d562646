/* SPDX-License-Identifier: MIT */
/* Duplicates of communicators are made without waiting, and never get the same number. */
#include "comm/spc_duplicate.h"
#include "split_box.h"
#include "wide_box.h"

#define NODES 3
#define SEVERAL 4

static spc_duplicate_t *begin(spc_comm_t *comm) {
    spc_duplicate_t *begun;
    CHECK_OK(spc_duplicate_begin(comm, &begun));
    return begun;
}

/* Waits for all; the result of one of them. */
static int end(spc_comm_t *comm, spc_duplicate_t *begun, spc_comm_t **made) {
    spc_request_t all = {.name = "a duplicate"};
    spc_request_all(comm, spc_duplicate_request(begun), &all);
    CHECK_OK(spc_request_wait(&all, SPC_NO_DEADLINE));
    const int status = spc_duplicate_finish(begun, made);
    spc_duplicate_end(begun);
    return status;
}

static void use(spc_comm_t *made, int64_t value) {
    const int32_t size = (int32_t)spc_comm_size(made), rank = (int32_t)spc_comm_rank(made);
    int32_t source;
    send_number(made, (rank + 1) % size, 1, value);
    CHECK_EQ(recv_number(made, SPC_ANY_SOURCE, SPC_ANY_TAG, &source), value);
    CHECK_EQ(source, (rank + size - 1) % size);
    CHECK_EQ(sum(made, value), value * size);
}

/* Each node has its own numbers in use: a duplicate of a communicator of its own takes one. */
static void begin_and_end_in_other_orders_of(spc_comm_t *comm) {
    const int rank = (int)spc_comm_rank(comm);
    spc_comm_t *own = split(comm, rank, 0), *kept[2 * NODES], *parents[SEVERAL], *made[SEVERAL];
    spc_duplicate_t *begun[SEVERAL];
    for (int i = 0; i < 2 * rank; i++) {
        CHECK_OK(end(own, begin(own), &kept[i]));
    }
    for (int i = 0; i < SEVERAL; i++) {
        parents[i] = split(comm, 0, i % 2 == 0 ? rank : -rank);
    }
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < SEVERAL; i++) {
            const int which = (i + rank + round) % SEVERAL;
            begun[which] = begin(parents[which]);
        }
        spc_comm_t *between = split(comm, 0, 0);
        for (int i = 0; i < SEVERAL; i++) {
            const int which = (i * 3 + rank) % SEVERAL;
            CHECK_OK(end(parents[which], begun[which], &made[which]));
        }
        for (int i = 0; i < SEVERAL; i++) {
            const spc_comm_t *next = i + 1 < SEVERAL ? made[i + 1] : between;
            CHECK(made[i]->number != next->number && made[i]->number != between->number);
            use(made[i], 10 * round + i);
            part_with(made[i]);
        }
        part_with(between);
    }
    for (int i = 0; i < SEVERAL; i++) {
        part_with(parents[i]);
    }
    for (int i = 0; i < 2 * rank; i++) {
        part_with(kept[i]);
    }
    part_with(own);
}

ON_ALL(begin_and_end_in_other_orders, WITH(.slots = 2))
OVER_BOXES(begin_and_end_in_other_orders, WITH(.slots = 2))

/* Members that have other numbers free agree on one of those that are left. */
static void few_numbers_are_enough_of(spc_comm_t *comm) {
    const int rank = (int)spc_comm_rank(comm);
    leave_numbers(comm, 7);
    spc_comm_t *own = split(comm, rank, 0), *taken = NULL;
    if (rank != 0) {
        CHECK_OK(end(own, begin(own), &taken));
    }
    for (int round = 0; round < 200; round++) {
        spc_comm_t *first, *second;
        spc_duplicate_t *one = begin(comm), *other = begin(comm);
        CHECK_OK(end(comm, other, &second));
        CHECK_OK(end(comm, one, &first));
        CHECK(first->number <= 7 && second->number <= 7 && first->number != second->number);
        use(first, round);
        use(second, -round);
        part_with(first);
        part_with(second);
    }
    if (taken != NULL) {
        part_with(taken);
    }
    part_with(own);
}

ON_ALL(few_numbers_are_enough, WITH(.slots = 2, .ring_bytes = 4096))
OVER_BOXES(few_numbers_are_enough, WITH(.slots = 2, .ring_bytes = 4096))

static void all_numbers_in_use_of(spc_comm_t *comm) {
    spc_comm_t *parts[3], *none;
    leave_numbers(comm, 3);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            CHECK_OK(end(comm, begin(comm), &parts[i]));
        }
        CHECK_EQ(end(comm, begin(comm), &none), SPC_ELIMIT);
        CHECK(none == NULL);
        for (int i = 0; i < 3; i++) {
            use(parts[i], i);
            part_with(parts[i]);
        }
        barrier(comm);
    }
}

ON_ALL(all_numbers_in_use, WITH(.slots = 0))
OVER_BOXES(all_numbers_in_use, WITH(.slots = 0))

int main(void) {
    RUN(begin_and_end_in_other_orders);
    RUN(begin_and_end_in_other_orders_over_boxes);
    RUN(few_numbers_are_enough);
    RUN(few_numbers_are_enough_over_boxes);
    RUN(all_numbers_in_use);
    RUN(all_numbers_in_use_over_boxes);
    return check_done();
}
