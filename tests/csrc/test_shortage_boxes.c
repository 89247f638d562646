/* SPDX-License-Identifier: MIT */
/*
 * Each allocation of a run in three boxes fails once, in a node, a gateway or the server: what finds no memory says so,
 * its owner ends it, and every node, gateway and server ends.
 */
#include "shortage.h"

#include "star_box.h"

enum { NODES = 4 };

static star_t *all;

/* A part that ends for lack of memory ends the run: the launcher sees to that. */
static void give_up(spc_gateway_t *gateway) {
    CHECK(*shortage_met);
    (void)spc_server_fail_job(all->server, 7, "a gateway has ended");
    spc_gateway_disconnect(gateway);
}

static void *run_gateway(void *argument) {
    if (spc_gateway_run(argument) != SPC_OK) {
        give_up(argument);
    }
    return NULL;
}

static void *run_server(void *argument) {
    const int status = spc_server_run(argument);
    CHECK(shortage_explains(status));
    for (int i = 0; i < STAR_BOXES && status != SPC_OK; i++) {
        spc_gateway_stop(all->gateway[i]);
    }
    return NULL;
}

/* A connection that finds no memory is replaced by another. */
static int connect_once(star_t *star, uint16_t box) {
    int ends[2];
    spc_channel_t *here = NULL, *there = NULL;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    TRY_AGAIN(spc_channel_tcp_create(ends[0], &here));
    TRY_AGAIN(spc_channel_tcp_create(ends[1], &there));
    const int status = spc_gateway_attach(star->gateway[box], here);
    const int other = spc_server_adopt(star->server, 7, box, there);
    return status != SPC_OK ? status : other == SPC_ECLOSED && *shortage_met ? SPC_OK : other; /* given up */
}

/* A connection that the server could not take is broken for the gateway, which calls this. */
static void connect_again(uint16_t box) {
    static _Atomic int often;
    if (often++ < 20) {
        (void)connect_once(all, box);
    } else {
        spc_gateway_stop(all->gateway[box]);
    }
}

static void of_box_0(void *star) {
    (void)star;
    connect_again(0);
}

static void of_box_1(void *star) {
    (void)star;
    connect_again(1);
}

static void of_box_2(void *star) {
    (void)star;
    connect_again(2);
}

static void (*const broken[STAR_BOXES])(void *) = {of_box_0, of_box_1, of_box_2};

/* A thread of some gateway says that it wants a connection: one that cannot be made is relayed. */
static void connect_or_relay(void *argument) {
    star_t *star = argument;
    char address[SPC_GATEWAY_ADDRESS_BYTES];
    for (uint32_t from = 0; from < STAR_BOXES; from++) {
        uint32_t to, number;
        while (spc_gateway_next_wanted(star->gateway[from], &to, &number, address) == SPC_OK) {
            int ends[2];
            spc_channel_t *here = NULL, *there = NULL;
            CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
            TRY_AGAIN(spc_channel_tcp_create(ends[0], &here));
            TRY_AGAIN(spc_channel_tcp_create(ends[1], &there));
            (void)spc_gateway_attach_peer(star->gateway[from], to, number, here);
            (void)spc_gateway_attach_peer(star->gateway[to], from, number, there);
        }
    }
}

static void open_boxes(star_t *star, spc_config_t config) {
    const uint64_t never_ns = UINT64_MAX / 4;
    const spc_link_limits_t never = {.suspect_ns = never_ns, .broken_ns = never_ns, .timeout_ns = never_ns};
    const spc_server_options_t options = {.limits = never, .policy = SPC_WAIT_SHARED_CORES};
    config.boxes = STAR_BOXES;
    for (config.box = 0; config.box < STAR_BOXES; config.box++) {
        star->box[config.box] = comm_box_open(config);
        wide_divide(&star->box[config.box], star->place);
    }
    all = star;
    shortage_begin();
    TRY_AGAIN(spc_server_create(&options, &star->server));
    TRY_AGAIN(spc_server_add_job(star->server, 7, STAR_BOXES, star->place, config.nodes));
    for (uint16_t i = 0; i < STAR_BOXES; i++) {
        const spc_gateway_options_t given = {.segment = star->box[i].descriptor,
                                             .within = ONE_MAPPING ? &star->box[i].segment : NULL,
                                             .job = 7,
                                             .limits = never,
                                             .direct = star->direct,
                                             .broken = broken[i],
                                             .wanted = connect_or_relay,
                                             .argument = star};
        TRY_AGAIN(spc_gateway_create(&given, &star->gateway[i]));
    }
    for (uint16_t i = 0; i < STAR_BOXES; i++) {
        TRY_AGAIN(connect_once(star, i));
        const int status = star->direct ? spc_gateway_listens(star->gateway[i], "here") : SPC_OK;
        CHECK(shortage_explains(status));
        if (status != SPC_OK) {
            give_up(star->gateway[i]);
        }
        CHECK_EQ(pthread_create(&star->threads[i], NULL, run_gateway, star->gateway[i]), 0);
    }
    CHECK_EQ(pthread_create(&star->threads[STAR_BOXES], NULL, run_server, star->server), 0);
}

static int talk(spc_comm_t *comm) {
    const int32_t rank = (int32_t)spc_comm_rank(comm), next = (rank + 1) % NODES;
    const int32_t before = (rank + NODES - 1) % NODES;
    const spc_signature_t barrier_call = {.operation = SPC_OPERATION_BARRIER};
    static const uint64_t lengths[] = {20, 3000, 60000};
    spc_comm_t *part = NULL;
    int status = SPC_OK;
    for (int i = 0; i < 3 && status == SPC_OK; i++) {
        spc_message_t message;
        status = send_until(comm, &next, 1, i, 2, lengths[i], SPC_NO_DEADLINE);
        status = status == SPC_OK ? recv_until(comm, before, i, SPC_NO_DEADLINE, &message) : status;
        if (status == SPC_OK) {
            message_check(&message, before, i, 2, lengths[i]);
            spc_message_release(comm, &message);
        }
    }
    status = status == SPC_OK ? spc_comm_split(comm, rank % 2, 0, SPC_NO_DEADLINE, &part) : status;
    if (part != NULL) {
        status = spc_comm_collective(part, &barrier_call, NULL, NULL, 0, NULL, SPC_NO_DEADLINE);
        (void)spc_comm_close(part, SPC_NO_DEADLINE);
        spc_comm_destroy(part);
    }
    if (status == SPC_OK) {
        status = spc_comm_collective(comm, &barrier_call, NULL, NULL, 0, NULL, SPC_NO_DEADLINE);
    }
    return status;
}

static void node(int rank, int size, void *argument) {
    star_t *star = argument;
    const comm_box_t *box = &star->box[star->place[rank]];
    const spc_comm_options_t options = {.descriptor = box->descriptor, .rank = (uint32_t)rank};
    spc_comm_t *comm = NULL;
    (void)size;
    TRY_AGAIN(spc_comm_create_within(ONE_MAPPING ? &box->segment : NULL, &options, &comm));
    const int status = talk(comm);
    CHECK(shortage_explains(status)
          || (*shortage_met && (status == SPC_EFINISHED || status == SPC_EDISCONNECTED)));
    (void)spc_comm_close(comm, status == SPC_OK ? SPC_NO_DEADLINE : in_seconds(1));
    spc_comm_destroy(comm);
}

/* A server waits long for a box that has gone, and is ended by the launcher. */
static void close_boxes(star_t *star) {
    for (uint32_t rank = 0; rank < NODES; rank++) {
        spc_comm_mark_ended(&star->box[star->place[rank]].segment, rank, SPC_NODE_FINISHED, 0);
    }
    for (int i = 0; i < STAR_BOXES; i++) {
        CHECK_EQ(pthread_join(star->threads[i], NULL), 0);
    }
    if (*shortage_met) {
        spc_server_stop(star->server);
    }
    CHECK_EQ(pthread_join(star->threads[STAR_BOXES], NULL), 0);
    for (int i = 0; i < STAR_BOXES; i++) {
        spc_gateway_destroy(star->gateway[i]);
        comm_box_close(&star->box[i]);
    }
    spc_server_destroy(star->server);
}

static void run_in_boxes(bool direct) {
    star_t star = {.place = {0, 1, 2, 1}, .direct = direct};
    const spc_config_t config = {.nodes = NODES, .slots = 4, .ring_bytes = 4096, .arena_bytes = 1 << 16};
    open_boxes(&star, config);
    check_threads(NODES, node, &star);
    close_boxes(&star);
}

static void through_the_server(void) {
    run_in_boxes(false);
}

static void directly(void) {
    run_in_boxes(true);
}

TEST(all_end) {
    SWEEP(through_the_server);
    SWEEP(directly);
}

TEST_MAIN()
