/* SPDX-License-Identifier: MIT */
/* Connections that break and come again, and those that do not: what nodes of two boxes notice of it. */
#include "wide_box.h"

#include <fcntl.h>
#include <poll.h>

#include "net/link/spc_channel.h"

enum { NODES = 4 };

/* ---- come again */

typedef struct breaking {
    wide_box_t wide;
    pthread_mutex_t lock;
    int end; /* another descriptor of the connection */
    uint32_t renewed;
} breaking_t;

/* By a thread of gateway 1: both get a new connection. */
static void renew(void *argument) {
    breaking_t *breaking = argument;
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pthread_mutex_lock(&breaking->lock);
    if (breaking->end >= 0) {
        close(breaking->end);
    }
    breaking->end = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    breaking->renewed++;
    pthread_mutex_unlock(&breaking->lock);
    for (int i = 0; i < WIDE_BOXES; i++) {
        CHECK_OK(spc_gateway_attach(breaking->wide.gateway[i], wide_channel(ends[i])));
    }
}

static void break_it(breaking_t *breaking) {
    pthread_mutex_lock(&breaking->lock);
    (void)shutdown(breaking->end, SHUT_RDWR);
    pthread_mutex_unlock(&breaking->lock);
}

static void breaking_body(int rank, int size, void *argument) {
    breaking_t *breaking = argument;
    spc_comm_t *comm = wide_join(&breaking->wide, rank);
    for (int i = 0; i < 100; i++) {
        for (int to = 0; to < size; to++) {
            send_content(comm, to, i, (uint64_t)(i * size + rank), mixed_bytes(i + rank));
        }
        if (rank == i % size) {
            break_it(breaking);
        }
        for (int from = 0; from < size; from++) {
            recv_content(comm, from, i, (uint64_t)(i * size + from), mixed_bytes(i + from));
        }
        barrier(comm);
    }
    comm_box_leave(comm);
}

/* Nothing is lost, doubled or in another order. */
TEST(connections_break) {
    breaking_t breaking = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = -1};
    const spc_gateway_options_t options[WIDE_BOXES] = {{0}, {.broken = renew, .argument = &breaking}};
    wide_open_with(&breaking.wide, (spc_config_t){.nodes = NODES}, NULL, options);
    renew(&breaking);
    wide_start(&breaking.wide);
    check_threads(NODES, breaking_body, &breaking);
    wide_close(&breaking.wide);
    CHECK(breaking.renewed > 10);
    close(breaking.end);
}

/* ---- do not */

static void *run_and_disconnect(void *argument) {
    spc_gateway_t *gateway = argument;
    CHECK_EQ(spc_gateway_run(gateway), SPC_EINTERRUPTED);
    spc_gateway_disconnect(gateway);
    return NULL;
}

static void check_lost(const wide_box_t *wide, const spc_comm_t *comm, int rank, int status) {
    CHECK_EQ(status, SPC_EDISCONNECTED);
    CHECK_EQ(spc_comm_lost_box(comm), wide->place[rank]);
}

/* Each waits in its own way for one that is elsewhere; what needs nobody else goes on. */
static void lost_body(int rank, int size, void *argument) {
    wide_box_t *wide = argument;
    spc_comm_t *comm = wide_join(wide, rank);
    const int32_t after = (rank + 2) % size;
    const spc_payload_t payload = {.data = &after, .data_bytes = 4, .format = SPC_FORMAT_BYTES};
    spc_message_t message;
    int status = SPC_OK;
    barrier(comm);
    if (rank == 0) { /* the others may be asleep by now, or about to be */
        for (int i = 0; i < WIDE_BOXES; i++) {
            spc_gateway_stop(wide->gateway[i]);
        }
        status = recv_until(comm, after, 1, SPC_NO_DEADLINE, &message);
    } else if (rank == 1) {
        status = recv_until(comm, SPC_ANY_SOURCE, 1, SPC_NO_DEADLINE, &message);
    } else if (rank == 2) {
        const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
        status = spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE);
    } else {
        status = spc_comm_ssend(comm, 0, SPC_CONTEXT_USER, 7, &payload, SPC_NO_DEADLINE);
    }
    check_lost(wide, comm, rank, status);
    send_content(comm, rank, 2, 3, 1000);
    recv_content(comm, rank, 2, 3, 1000);
    check_lost(wide, comm, rank, recv_until(comm, after, 1, SPC_NO_DEADLINE, &message));
    comm_box_leave(comm);
}

TEST(lost) {
    wide_box_t wide;
    wide_open(&wide, (spc_config_t){.nodes = NODES}, NULL);
    for (int i = 0; i < WIDE_BOXES; i++) {
        CHECK_EQ(pthread_create(&wide.thread[i], NULL, run_and_disconnect, wide.gateway[i]), 0);
    }
    check_threads(NODES, lost_body, &wide);
    wide_close(&wide);
}

/* ---- whose fault it is */

typedef struct silent {
    spc_gateway_t *gateway;
    _Atomic int status;
} silent_t;

static void *run_silent(void *argument) {
    silent_t *silent = argument;
    atomic_store(&silent->status, spc_gateway_run(silent->gateway));
    return NULL;
}

static int refuse(void *argument, const spc_frame_t *frame, const unsigned char *body) {
    (void)argument;
    (void)frame;
    (void)body;
    return SPC_OK;
}

/* A server at the other end, which ends the job and names a box, or itself; or one that says nothing. */
static void fault_of(bool is_told, uint32_t source, int expected, int32_t culprit) {
    comm_box_t box = comm_box_open((spc_config_t){.nodes = 2, .boxes = 2, .box = 1});
    const uint16_t place[2] = {1, 0};
    wide_divide(&box, place);
    silent_t silent = {.status = SPC_EAGAIN};
    const spc_gateway_options_t options = {
        .segment = box.descriptor,
        .within = ONE_MAPPING ? &box.segment : NULL,
        .job = 7,
        .limits.timeout_ns = is_told ? 0 : UINT64_C(20000000),
    };
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_OK(spc_gateway_create(&options, &silent.gateway));
    CHECK_OK(spc_gateway_attach(silent.gateway, wide_channel(ends[0])));
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, run_silent, &silent), 0);
    spc_channel_t *channel;
    spc_link_t *link;
    CHECK_OK(spc_channel_tcp_create(ends[1], &channel));
    CHECK_OK(spc_link_create(&(spc_link_options_t){.job = 7, .deliver = refuse}, &link));
    if (is_told) {
        const spc_frame_t frame = {.kind = SPC_FRAME_FAIL, .flags = SPC_FRAME_OTHERS, .source = source};
        const spc_frame_piece_t piece = {"box 0 is lost", 13};
        CHECK_OK(spc_link_attach(link, channel));
        CHECK_OK(spc_link_send(link, &frame, &piece, 1));
    }
    while (atomic_load(&silent.status) == SPC_EAGAIN) {
        struct pollfd polled = {.fd = ends[1], .events = POLLIN};
        (void)poll(&polled, is_told, 1);
        if (is_told) {
            CHECK_OK(spc_link_read(link));
            spc_link_write(link);
        }
    }
    pthread_join(thread, NULL);
    CHECK_EQ(atomic_load(&silent.status), expected);
    CHECK_EQ(spc_gateway_culprit(silent.gateway), culprit);
    CHECK(!is_told || strcmp(spc_gateway_sentence(silent.gateway), "box 0 is lost") == 0);
    spc_gateway_disconnect(silent.gateway);
    spc_comm_t *comm = comm_box_join(&box, 0);
    spc_message_t message;
    CHECK_EQ(recv_until(comm, 1, 1, SPC_NO_DEADLINE, &message), SPC_EDISCONNECTED);
    CHECK_EQ(spc_comm_lost_box(comm), culprit);
    comm_box_leave(comm);
    spc_gateway_destroy(silent.gateway);
    spc_link_destroy(link);
    if (!is_told) {
        spc_channel_destroy(channel);
    }
    comm_box_close(&box);
}

TEST(faults) {
    fault_of(true, 0, SPC_ECLOSED, 0);
    fault_of(true, SPC_FRAME_FROM_SERVER, SPC_ECLOSED, SPC_STATUS_SERVER);
    fault_of(false, 0, SPC_ETIMEDOUT, 1);
}

TEST_MAIN()
