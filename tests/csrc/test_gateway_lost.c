/* SPDX-License-Identifier: MIT */
/* Connections that break and come again, and those that do not: what nodes of two boxes notice of it. */
#include "wide_box.h"

#include <fcntl.h>

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

TEST_MAIN()
