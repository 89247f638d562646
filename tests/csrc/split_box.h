/* SPDX-License-Identifier: MIT */
/* split_box: communicators of some of the nodes, and numbers that travel in them, for tests. */
#ifndef SPLIT_BOX_H
#define SPLIT_BOX_H

#include "comm_box.h"

#include <pthread.h>
#include <string.h>

#include "comm/spc_comm_private.h"

/* A body runs on every rank, as threads and as processes. The test defines NODES. */
#define ON_ALL(name, configuration)                                 \
    static void name##_body(int rank, int size, void *box) {        \
        spc_comm_t *comm = comm_box_join(box, rank);                \
        CHECK_EQ(size, NODES);                                      \
        name##_of(comm);                                            \
        barrier(comm);                                              \
        comm_box_leave(comm);                                       \
    }                                                               \
    static void name(void) {                                        \
        run_ranks(NODES, (spc_config_t)configuration, name##_body); \
    }
#define WITH(...) {__VA_ARGS__}

static inline spc_comm_t *split(spc_comm_t *comm, int64_t color, int64_t key) {
    spc_comm_t *part;
    CHECK_OK(spc_comm_split(comm, color, key, SPC_NO_DEADLINE, &part));
    return part;
}

static inline void part_with(spc_comm_t *part) {
    CHECK_OK(spc_comm_close(part, SPC_NO_DEADLINE));
    spc_comm_destroy(part);
}

static inline int64_t sum(spc_comm_t *comm, int64_t value) {
    const spc_field_t field = {SPC_TYPE_INT64, 1};
    const spc_signature_t signature = {
        .length_bytes = 8, .operation = SPC_OPERATION_REDUCE, .type = SPC_TYPE_INT64, .field_count = 1};
    CHECK_OK(spc_comm_collective(comm, &signature, &field, &value, 8, &value, SPC_NO_DEADLINE));
    return value;
}

static inline void send_number(spc_comm_t *comm, int32_t to, int32_t tag, int64_t number) {
    spc_payload_t payload = {.data = &number, .data_bytes = 8, .format = SPC_FORMAT_INT64};
    CHECK_OK(spc_comm_send(comm, &to, 1, SPC_CONTEXT_USER, tag, &payload, SPC_NO_DEADLINE));
}

static inline int64_t recv_number(spc_comm_t *comm, int32_t from, int32_t tag, int32_t *source) {
    spc_message_t message;
    int64_t number;
    CHECK_OK(spc_comm_recv(comm, SPC_CONTEXT_USER, from, tag, SPC_NO_DEADLINE, &message));
    memcpy(&number, spc_message_data(&message), 8);
    *source = message.source;
    spc_message_release(comm, &message);
    return number;
}

/* Only `count` numbers are left, so that each is soon used again. */
static inline void leave_numbers(spc_comm_t *comm, uint32_t count) {
    pthread_mutex_lock(&comm->node->lock);
    for (uint32_t number = 1 + count; number < SPC_COMMUNICATORS_MAX; number++) {
        spc_numbers_note_made(comm->node->numbers, number, SPC_NUMBER_TAKEN);
    }
    comm->node->numbers->next = 1;
    pthread_mutex_unlock(&comm->node->lock);
    barrier(comm);
}

#endif
