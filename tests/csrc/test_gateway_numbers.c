/* SPDX-License-Identifier: MIT */
/*
 * Numbers of communicators are used again over three boxes, through the server or over links between gateways: whoever
 * the members are, and however they leave, nothing of a former communicator comes into a later one of its number.
 */
#include "comm/spc_duplicate.h"
#include "split_box.h"
#include "star_box.h"

enum { NODES = 6, NUMBERS = 48, KEPT = 4, BETWEEN_BARRIERS = 16 };

/* ---- what is done in each communicator */

static void use(spc_comm_t *made, int64_t round, uint64_t random) {
    const int32_t size = (int32_t)spc_comm_size(made), rank = (int32_t)spc_comm_rank(made);
    const int32_t next = (rank + 1) % size;
    const int64_t value = 100 * round;
    int32_t source;
    send_number(made, next, 1, value + rank);
    send_number(made, next, 2, -1); /* these are never received */
    send_number(made, (next + 1) % size, 3, -2);
    CHECK_EQ(recv_number(made, SPC_ANY_SOURCE, 1, &source), value + (rank + size - 1) % size);
    CHECK_EQ(sum(made, value + rank), size * value + size * (size - 1) / 2);
    if (random % 8 == 0) {
        send_content(made, next, 4, random, random % 16 == 0 ? 500 : 200000);
    }
    if (random % 8 == 1 && size > 1 && rank < 2) { /* its receipt is a message, or a bit */
        const spc_payload_t payload = {.data = &value, .data_bytes = 8, .format = SPC_FORMAT_INT64};
        if (rank == 0) {
            CHECK_OK(spc_comm_ssend(made, 1, SPC_CONTEXT_USER, 5, &payload, SPC_NO_DEADLINE));
        } else {
            CHECK_EQ(recv_number(made, 0, 5, &source), value);
        }
    }
    if (random % 4 == 2 && rank % 2 == 0) { /* a phase that some members never come to */
        uint64_t fuzzy;
        CHECK_OK(spc_comm_fuzzy_enter(made, &fuzzy));
    }
}

static spc_comm_t *duplicate(spc_comm_t *comm) {
    spc_duplicate_t *begun;
    spc_request_t all = {.name = "a duplicate"};
    spc_comm_t *made;
    CHECK_OK(spc_duplicate_begin(comm, &begun));
    spc_request_all(comm, spc_duplicate_request(begun), &all);
    CHECK_OK(spc_request_wait(&all, SPC_NO_DEADLINE));
    CHECK_OK(spc_duplicate_finish(begun, &made));
    spc_duplicate_end(begun);
    return made;
}

static spc_comm_t *make_group(spc_comm_t *comm, uint64_t random) {
    uint32_t members[NODES], count = 0, rank = spc_comm_rank(comm);
    const uint32_t shift = (uint32_t)(random >> 8) % NODES;
    bool is_in = false;
    for (uint32_t i = 0; i < NODES; i++) {
        const uint32_t member = (i + shift) % NODES;
        if ((random >> (16 + member) & 1) != 0) {
            members[count++] = member;
            is_in = is_in || member == rank;
        }
    }
    spc_comm_t *made = NULL;
    if (is_in) {
        CHECK_OK(spc_comm_create_group(comm, members, count, 0, SPC_NO_DEADLINE, &made));
    }
    return made;
}

/* NULL: this node is no member. */
static spc_comm_t *make(spc_comm_t *comm, uint64_t random) {
    const int64_t color = (int64_t)(random >> (16 + 2 * spc_comm_rank(comm)) & 3) - 1;
    const int64_t key = (int64_t)(random >> 40 ^ spc_comm_rank(comm)) % 4;
    switch (random % 3) {
    case 0:
        return split(comm, color, key);
    case 1:
        return make_group(comm, random);
    default:
        return duplicate(comm);
    }
}

/* Each node leaves when it likes: at once, or some communicators later. */
static void body(int rank, int size, void *argument) {
    star_t *star = argument;
    spc_comm_t *comm = star_join(star, rank), *kept[KEPT] = {NULL};
    uint64_t state = star->seed, own = star->seed + (uint64_t)rank + 1, reused = 0;
    uint32_t last = 0;
    CHECK_EQ(size, NODES);
    leave_numbers(comm, NUMBERS);
    for (long round = 0, rounds = check_scale(900); round < rounds; round++) {
        const uint64_t random = check_random(&state);
        spc_comm_t *made = make(comm, random);
        if (made != NULL) {
            CHECK(made->number <= NUMBERS);
            reused += made->number < last;
            last = made->number;
            use(made, round, random >> 4);
            spc_comm_t **place = &kept[check_below(&own, KEPT)];
            if (*place != NULL) {
                part_with(*place);
            }
            *place = made;
        }
        if (round % BETWEEN_BARRIERS == 0) {
            barrier(comm);
        }
    }
    CHECK(reused > 0);
    for (int i = 0; i < KEPT; i++) {
        if (kept[i] != NULL) {
            part_with(kept[i]);
        }
    }
    barrier(comm);
    comm_box_leave(comm);
}

static void run_both(bool direct) {
    const spc_config_t tight = {
        .nodes = NODES, .slots = 2, .ring_bytes = 4096, .perturb = SPC_PERTURB_SCHEDULE, .perturb_seed = 7};
    const star_t star = {.seed = check_seed(), .direct = direct, .place = {0, 1, 0, 2, 1, 2}};
    star_run(star, (spc_config_t){.nodes = NODES}, body);
    star_run(star, tight, body);
}

TEST(numbers_through_the_server) {
    run_both(false);
}

TEST(numbers_over_direct_links) {
    run_both(true);
}

TEST_MAIN()
