/* SPDX-License-Identifier: MIT */
/*
 * Numbers of communicators are used again over three boxes, through the server or over links between gateways: whoever
 * the members are, and however they leave, nothing of a former communicator comes into a later one of its number.
 */
#include "comm/spc_duplicate.h"
#include "split_box.h"
#include "wide_box.h"

#include "net/gateway/spc_gateway_private.h"
#include "net/server/spc_server.h"

enum { BOXES = 3, NODES = 6, NUMBERS = 48, KEPT = 4, BETWEEN_BARRIERS = 16 };

typedef struct star {
    uint64_t seed;
    bool direct;
    uint16_t place[NODES];
    comm_box_t box[BOXES];
    spc_gateway_t *gateway[BOXES];
    spc_server_t *server;
    pthread_t threads[BOXES + 1];
} star_t;

/* ---- the boxes */

static void *run_gateway(void *argument) {
    CHECK_OK(spc_gateway_run(argument));
    return NULL;
}

static void *run_server(void *argument) {
    CHECK_OK(spc_server_run(argument));
    return NULL;
}

/* A thread of some gateway says that it wants a connection. */
static void connect_all(void *argument) {
    star_t *star = argument;
    char address[SPC_GATEWAY_ADDRESS_BYTES];
    for (uint32_t from = 0; from < BOXES; from++) {
        uint32_t to, number;
        while (spc_gateway_next_wanted(star->gateway[from], &to, &number, address) == SPC_OK) {
            int ends[2];
            CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
            CHECK_OK(spc_gateway_attach_peer(star->gateway[from], to, number, wide_channel(ends[0])));
            CHECK_OK(spc_gateway_attach_peer(star->gateway[to], from, number, wide_channel(ends[1])));
        }
    }
}

static void star_open(star_t *star, spc_config_t config) {
    const uint64_t never_ns =
        UINT64_MAX / 4; /* a machine that stands still for a while breaks no connection */
    const spc_link_limits_t never = {.suspect_ns = never_ns, .broken_ns = never_ns, .timeout_ns = never_ns};
    const spc_server_options_t options = {.limits = never, .policy = SPC_WAIT_SHARED_CORES};
    CHECK_OK(spc_server_create(&options, &star->server));
    CHECK_OK(spc_server_add_job(star->server, 7, BOXES, star->place, NODES));
    config.nodes = NODES;
    config.boxes = BOXES;
    for (uint16_t i = 0; i < BOXES; i++) {
        config.box = i;
        star->box[i] = comm_box_open(config);
        wide_divide(&star->box[i], star->place);
        const spc_gateway_options_t given = {.segment = star->box[i].descriptor,
                                             .within = ONE_MAPPING ? &star->box[i].segment : NULL,
                                             .job = 7,
                                             .limits = never,
                                             .direct = star->direct,
                                             .wanted = connect_all,
                                             .argument = star};
        CHECK_OK(spc_gateway_create(&given, &star->gateway[i]));
    }
    for (uint16_t i = 0; i < BOXES; i++) {
        int ends[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        CHECK_OK(spc_gateway_attach(star->gateway[i], wide_channel(ends[0])));
        CHECK_OK(spc_server_adopt(star->server, 7, i, wide_channel(ends[1])));
        CHECK_EQ(star->direct ? spc_gateway_listens(star->gateway[i], "here") : SPC_OK, SPC_OK);
        CHECK_EQ(pthread_create(&star->threads[i], NULL, run_gateway, star->gateway[i]), 0);
    }
    CHECK_EQ(pthread_create(&star->threads[BOXES], NULL, run_server, star->server), 0);
}

static void star_close(star_t *star) {
    for (uint32_t rank = 0; rank < NODES; rank++) {
        spc_comm_mark_ended(&star->box[star->place[rank]].segment, rank, SPC_NODE_FINISHED, 0);
    }
    for (int i = 0; i <= BOXES; i++) {
        pthread_join(star->threads[i], NULL);
    }
    for (int i = 0; i < BOXES; i++) {
        spc_gateway_destroy(star->gateway[i]);
        comm_box_close(&star->box[i]);
    }
    spc_server_destroy(star->server);
}

static const spc_config_t tight = {
    .slots = 2, .ring_bytes = 4096, .perturb = SPC_PERTURB_SCHEDULE, .perturb_seed = 7};

static void star_run(spc_config_t config, bool direct, check_body_t body) {
    star_t star = {.seed = check_seed(), .direct = direct, .place = {0, 1, 0, 2, 1, 2}};
    star_open(&star, config);
    check_threads(NODES, body, &star);
    star_close(&star);
}

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
    spc_comm_t *comm = comm_box_join(&star->box[star->place[rank]], rank), *kept[KEPT] = {NULL};
    uint64_t state = star->seed, own = star->seed + (uint64_t)rank + 1, reused = 0;
    uint32_t last = 0;
    CHECK_EQ(size, NODES);
    leave_numbers(comm, NUMBERS);
    for (long round = 0, rounds = check_scale(1500); round < rounds; round++) {
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

TEST(numbers_through_the_server) {
    star_run((spc_config_t){0}, false, body);
    star_run(tight, false, body);
}

TEST(numbers_over_direct_links) {
    star_run((spc_config_t){0}, true, body);
    star_run(tight, true, body);
}

TEST_MAIN()
