/* SPDX-License-Identifier: MIT */
/*
 * wide_box: a run of two boxes in one process, for tests: a segment and a gateway for each, whose links are the two
 * ends of one socket pair. Ranks are threads.
 */
#ifndef WIDE_BOX_H
#define WIDE_BOX_H

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm_box.h"
#include "net/gateway/spc_gateway.h"

#define WIDE_BOXES 2

typedef struct wide_box {
    comm_box_t box[WIDE_BOXES];
    uint16_t place[SPC_NODES_MAX]; /* by rank */
    spc_gateway_t *gateway[WIDE_BOXES];
    pthread_t thread[WIDE_BOXES];
} wide_box_t;

static inline void wide_divide(comm_box_t *box, const uint16_t *place) {
    const uint32_t nodes = box->segment.config->nodes;
    spc_event_shared_t *events = spc_segment_part(&box->segment, SPC_REGION_EVENT, 0);
    spc_segment_set_boxes(&box->segment, place);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        if (place[rank] != box->segment.config->box) {
            spc_event_stand_in(&events[rank], &events[nodes]);
        }
    }
}

static inline spc_channel_t *wide_channel(int descriptor) {
    spc_channel_t *channel;
    CHECK_OK(spc_channel_tcp_create(descriptor, &channel));
    return channel;
}

/* Box config.box and its gateway. A machine that stands still for a while breaks no connection, unless `options` say
 * so. */
static inline spc_gateway_t *wide_open_box(comm_box_t *box, spc_config_t config, const uint16_t *place,
                                           spc_gateway_options_t options) {
    spc_gateway_t *gateway;
    *box = comm_box_open(config);
    wide_divide(box, place);
    options.segment = box->descriptor;
    options.within = ONE_MAPPING ? &box->segment : NULL;
    options.job = 7;
    if (options.limits.timeout_ns == 0) {
        options.limits.suspect_ns = options.limits.broken_ns = options.limits.timeout_ns = UINT64_MAX / 4;
    }
    CHECK_OK(spc_gateway_create(&options, &gateway));
    return gateway;
}

/* `place`: the box of each rank; NULL: the first half of them in box 0, the others in box 1. `given`: of
 * each gateway, beside what is set here. */
static inline void wide_open_with(wide_box_t *wide, spc_config_t config, const uint16_t *place,
                                  const spc_gateway_options_t given[WIDE_BOXES]) {
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    config.boxes = WIDE_BOXES;
    for (uint32_t rank = 0; rank < config.nodes; rank++) {
        wide->place[rank] = place != NULL ? place[rank] : (uint16_t)(rank >= (config.nodes + 1) / 2);
    }
    for (uint32_t i = 0; i < WIDE_BOXES; i++) {
        config.box = i;
        wide->gateway[i] = wide_open_box(&wide->box[i], config, wide->place, given[i]);
        CHECK_OK(spc_gateway_attach(wide->gateway[i], wide_channel(ends[i])));
    }
}

static inline void wide_open(wide_box_t *wide, spc_config_t config, const uint16_t *place) {
    const spc_gateway_options_t given[WIDE_BOXES] = {{0}};
    wide_open_with(wide, config, place, given);
}

static inline void *wide_run_gateway(void *argument) {
    CHECK_OK(spc_gateway_run(argument));
    return NULL;
}

static inline void wide_start(wide_box_t *wide) {
    for (int i = 0; i < WIDE_BOXES; i++) {
        CHECK_EQ(pthread_create(&wide->thread[i], NULL, wide_run_gateway, wide->gateway[i]), 0);
    }
}

/* The launcher marks those whose process has ended; the gateways end when all are marked. */
static inline void wide_mark_gone(wide_box_t *wide, uint32_t rank) {
    spc_comm_mark_ended(&wide->box[wide->place[rank]].segment, rank, SPC_NODE_FINISHED, 0);
}

static inline void wide_finish(wide_box_t *wide) {
    const uint32_t nodes = wide->box[0].segment.config->nodes;
    for (uint32_t rank = 0; rank < nodes; rank++) {
        wide_mark_gone(wide, rank);
    }
    for (int i = 0; i < WIDE_BOXES; i++) {
        pthread_join(wide->thread[i], NULL);
    }
}

static inline void wide_free(wide_box_t *wide) {
    for (int i = 0; i < WIDE_BOXES; i++) {
        spc_gateway_destroy(wide->gateway[i]);
        comm_box_close(&wide->box[i]);
    }
}

static inline void wide_close(wide_box_t *wide) {
    wide_finish(wide);
    wide_free(wide);
}

static inline spc_comm_t *wide_join(wide_box_t *wide, int rank) {
    return comm_box_join(&wide->box[wide->place[rank]], rank);
}

/* Ranks as threads. */
static inline void wide_run(int n, spc_config_t config, const uint16_t *place, check_body_t body) {
    wide_box_t wide;
    config.nodes = (uint32_t)n;
    wide_open(&wide, config, place);
    wide_start(&wide);
    check_threads(n, body, &wide);
    wide_close(&wide);
}

/* The main function of tests whose nodes need a process without timers: this one has the watchdog, and `tests` run in a
 * child, which is not left behind. */
static inline int wide_main(void (*tests)(void)) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) {
        const int status = check_wait(child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    tests();
    fflush(NULL);
    _exit(check_done());
}

/* A body of split_box.h over two boxes: nodes 0 and 1, and node 2. Ranks are threads. */
#define OVER_BOXES(name, configuration)                                       \
    static void name##_wide_body(int rank, int size, void *wide) {            \
        spc_comm_t *comm = wide_join(wide, rank);                             \
        CHECK_EQ(size, NODES);                                                \
        name##_of(comm);                                                      \
        barrier(comm);                                                        \
        comm_box_leave(comm);                                                 \
    }                                                                         \
    static void name##_over_boxes(void) {                                     \
        wide_run(NODES, (spc_config_t)configuration, NULL, name##_wide_body); \
    }

#endif
