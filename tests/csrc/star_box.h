/* SPDX-License-Identifier: MIT */
/*
 * star_box: a run of three boxes in one process, for tests: their gateways around a server, or with links of their own,
 * too. Ranks are threads.
 */
#ifndef STAR_BOX_H
#define STAR_BOX_H

#include "wide_box.h"

#include "net/server/spc_server.h"

enum { STAR_BOXES = 3, STAR_NODES_MAX = 8 };

typedef struct star {
    uint64_t seed; /* for the body */
    bool direct;
    uint16_t place[STAR_NODES_MAX]; /* the box of each rank */
    comm_box_t box[STAR_BOXES];
    spc_gateway_t *gateway[STAR_BOXES];
    spc_server_t *server;
    pthread_t threads[STAR_BOXES + 1];
} star_t;

static inline void *star_run_server(void *argument) {
    CHECK_OK(spc_server_run(argument));
    return NULL;
}

/* A thread of some gateway says that it wants a connection. */
static inline void star_connect_all(void *argument) {
    star_t *star = argument;
    char address[SPC_GATEWAY_ADDRESS_BYTES];
    for (uint32_t from = 0; from < STAR_BOXES; from++) {
        uint32_t to, number;
        while (spc_gateway_next_wanted(star->gateway[from], &to, &number, address) == SPC_OK) {
            int ends[2];
            CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
            CHECK_OK(spc_gateway_attach_peer(star->gateway[from], to, number, wide_channel(ends[0])));
            CHECK_OK(spc_gateway_attach_peer(star->gateway[to], from, number, wide_channel(ends[1])));
        }
    }
}

static inline void star_open(star_t *star, spc_config_t config) {
    /* A machine that stands still for a while breaks no connection. */
    const uint64_t never_ns = UINT64_MAX / 4;
    const spc_link_limits_t never = {.suspect_ns = never_ns, .broken_ns = never_ns, .timeout_ns = never_ns};
    const spc_server_options_t options = {.limits = never, .policy = SPC_WAIT_SHARED_CORES};
    CHECK_OK(spc_server_create(&options, &star->server));
    CHECK_OK(spc_server_add_job(star->server, 7, STAR_BOXES, star->place, config.nodes));
    config.boxes = STAR_BOXES;
    for (uint16_t i = 0; i < STAR_BOXES; i++) {
        config.box = i;
        star->gateway[i] = wide_open_box(
            &star->box[i], config, star->place,
            (spc_gateway_options_t){.direct = star->direct, .wanted = star_connect_all, .argument = star});
    }
    for (uint16_t i = 0; i < STAR_BOXES; i++) {
        int ends[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        CHECK_OK(spc_gateway_attach(star->gateway[i], wide_channel(ends[0])));
        CHECK_OK(spc_server_adopt(star->server, 7, i, wide_channel(ends[1])));
        CHECK_EQ(star->direct ? spc_gateway_listens(star->gateway[i], "here") : SPC_OK, SPC_OK);
        CHECK_EQ(pthread_create(&star->threads[i], NULL, wide_run_gateway, star->gateway[i]), 0);
    }
    CHECK_EQ(pthread_create(&star->threads[STAR_BOXES], NULL, star_run_server, star->server), 0);
}

static inline void star_close(star_t *star) {
    const uint32_t nodes = star->box[0].segment.config->nodes;
    for (uint32_t rank = 0; rank < nodes; rank++) {
        spc_comm_mark_ended(&star->box[star->place[rank]].segment, rank, SPC_NODE_FINISHED, 0);
    }
    for (int i = 0; i <= STAR_BOXES; i++) {
        pthread_join(star->threads[i], NULL);
    }
    for (int i = 0; i < STAR_BOXES; i++) {
        spc_gateway_destroy(star->gateway[i]);
        comm_box_close(&star->box[i]);
    }
    spc_server_destroy(star->server);
}

static inline spc_comm_t *star_join(star_t *star, int rank) {
    return comm_box_join(&star->box[star->place[rank]], rank);
}

/* `star` has seed, place and direct. */
static inline void star_run(star_t star, spc_config_t config, check_body_t body) {
    star_open(&star, config);
    check_threads((int)config.nodes, body, &star);
    star_close(&star);
}

#endif
