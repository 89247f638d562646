/* SPDX-License-Identifier: MIT */
/*
 * comm_box: a segment and the communicators of its nodes, for tests. Ranks may be threads or processes: each joins by
 * itself. The test is the launcher: it marks those as gone whose process has ended.
 */
#ifndef COMM_BOX_H
#define COMM_BOX_H

#include "check.h"

#include "base/spc_error.h"
#include "base/spc_platform.h"
#include "comm/spc_comm.h"
#include "reduction.h"

/* ThreadSanitizer knows addresses, not what they are mapped to: it sees what two ranks do to the same memory only
 * through one mapping, and nothing of what another process does between two accesses of this one. */
#ifdef __SANITIZE_THREAD__
#define ONE_MAPPING 1
#define WITH_PROCESSES 0
#else
#define ONE_MAPPING 0
#define WITH_PROCESSES 1
#endif

#define SECOND INT64_C(1000000000)

typedef struct comm_box {
    int descriptor;
    spc_segment_t segment; /* the launcher's own attachment */
} comm_box_t;

/* The numbers that are zero become defaults; the queue limit, a generous one. */
static inline comm_box_t comm_box_open(spc_config_t config) {
    comm_box_t box;
    spc_segment_plan_t plan;
    uint64_t size_bytes;
    config.features = spc_platform_features((uint32_t)check_environment("CHECK_DISABLE", 0));
    config.shared_cores = config.nodes > 1;
    CHECK_OK(spc_comm_plan(&config, &plan));
    CHECK_OK(spc_segment_create(&plan, &box.descriptor, &size_bytes));
    CHECK_OK(spc_segment_attach(&box.segment, box.descriptor));
    return box;
}

static inline void comm_box_close(comm_box_t *box) {
    spc_segment_detach(&box->segment);
    close(box->descriptor);
}

static inline spc_comm_t *comm_box_join(const comm_box_t *box, int rank) {
    const spc_comm_options_t options = {.descriptor = box->descriptor, .rank = (uint32_t)rank};
    spc_comm_t *comm;
    CHECK_OK(spc_comm_create_within(ONE_MAPPING ? &box->segment : NULL, &options, &comm));
    return comm;
}

static inline void comm_box_leave(spc_comm_t *comm) {
    CHECK_OK(spc_comm_close(comm, SPC_NO_DEADLINE));
    spc_comm_destroy(comm);
}

/* ---- messages: their content follows from a seed and their length */

static inline unsigned char *content_make(uint64_t seed, uint64_t bytes) {
    unsigned char *content = malloc(bytes + 8);
    CHECK(content != NULL);
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t word = check_random(&seed);
        memcpy(content + i, &word, 8);
    }
    return content;
}

static inline void content_check(const unsigned char *content, uint64_t seed, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t word = check_random(&seed);
        CHECK_MEM(content + i, &word, bytes - i < 8 ? bytes - i : 8);
    }
}

/* 40 bytes and more of it are meta, so that the copy has to cross the border. */
static inline spc_payload_t content_payload(const unsigned char *content, uint64_t bytes) {
    uint16_t meta = bytes > 60 ? 45 : (uint16_t)(bytes / 2);
    return (spc_payload_t){content, content + meta, bytes - meta, meta, SPC_FORMAT_ARRAY, NULL};
}

/* By each way in turn: in one call, or tried and finished. */
static inline int send_until(spc_comm_t *comm, const int32_t *to, uint32_t count, int32_t tag, uint64_t seed,
                             uint64_t bytes, uint64_t deadline_ns) {
    unsigned char *content = content_make(seed, bytes);
    spc_payload_t payload = content_payload(content, bytes);
    spc_send_call_t call;
    int status = seed % 2 == 0 ? spc_comm_send(comm, to, count, SPC_CONTEXT_USER, tag, &payload, deadline_ns)
                               : spc_comm_try_send(comm, to, count, SPC_CONTEXT_USER, tag, &payload, &call);
    if (status == SPC_EAGAIN) {
        status = spc_comm_finish_send(comm, &call, false, deadline_ns);
    }
    memset(content, 0xa5, bytes); /* the sender may change it at once */
    free(content);
    return status;
}

static inline int coordinated_send_until(spc_comm_t *comm, const int32_t *to, uint32_t count,
                                         const spc_payload_t *payload, uint64_t deadline_ns) {
    spc_send_call_t call;
    int status = spc_comm_coordinated_try_send(comm, to, count, payload, &call);
    return status == SPC_EAGAIN ? spc_comm_finish_send(comm, &call, true, deadline_ns) : status;
}

static inline void send_content(spc_comm_t *comm, int32_t to, int32_t tag, uint64_t seed, uint64_t bytes) {
    CHECK_OK(send_until(comm, &to, 1, tag, seed, bytes, SPC_NO_DEADLINE));
}

static inline void message_check(const spc_message_t *message, int32_t source, int32_t tag, uint64_t seed,
                                 uint64_t bytes) {
    CHECK_EQ(message->source, source);
    CHECK_EQ(message->tag, tag);
    CHECK_EQ(message->format, SPC_FORMAT_ARRAY);
    CHECK_EQ_U(message->length_bytes, bytes);
    CHECK_EQ_U(spc_message_data_bytes(message), bytes - (bytes > 60 ? 45 : bytes / 2));
    content_check(message->bytes, seed, bytes);
}

static inline int recv_until(spc_comm_t *comm, int32_t source, int32_t tag, uint64_t deadline_ns,
                             spc_message_t *message) {
    return spc_comm_recv(comm, SPC_CONTEXT_USER, source, tag, deadline_ns, message);
}

/* Receives, compares and releases. */
static inline void recv_content_from(spc_comm_t *comm, int32_t asked, int32_t source, int32_t tag,
                                     uint64_t seed, uint64_t bytes) {
    spc_message_t message;
    CHECK_OK(recv_until(comm, asked, tag, SPC_NO_DEADLINE, &message));
    message_check(&message, source, tag, seed, bytes);
    spc_message_release(comm, &message);
}

static inline void recv_content(spc_comm_t *comm, int32_t source, int32_t tag, uint64_t seed,
                                uint64_t bytes) {
    recv_content_from(comm, source, source, tag, seed, bytes);
}

static inline uint64_t in_seconds(int64_t seconds) {
    return spc_clock_deadline_ns(seconds * SECOND);
}

/* A deadline that has passed. */
#define AT_ONCE 1

static inline void barrier(spc_comm_t *comm) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    CHECK_OK(spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE));
}

/* ---- running */

/* Ranks as threads, which the sanitizers see, and as processes, which is what users run. */
static inline void run_ranks(int n, spc_config_t config, check_body_t body) {
    config.nodes = (uint32_t)n;
    for (int processes = 0; processes <= WITH_PROCESSES; processes++) {
        comm_box_t box = comm_box_open(config);
        (processes ? check_processes : check_threads)(n, body, &box);
        comm_box_close(&box);
    }
}

/* For what one thread can play alone: all nodes. */
typedef struct party {
    comm_box_t box;
    int size;
    spc_comm_t *comm[8];
} party_t;

static inline party_t party_open(int size, spc_config_t config) {
    config.nodes = (uint32_t)size;
    party_t party = {.box = comm_box_open(config), .size = size};
    for (int rank = 0; rank < size; rank++) {
        party.comm[rank] = comm_box_join(&party.box, rank);
    }
    return party;
}

static inline void party_close(party_t *party) {
    for (int rank = 0; rank < party->size; rank++) {
        (void)spc_comm_close(party->comm[rank], AT_ONCE);
    }
    for (int rank = 0; rank < party->size; rank++) {
        spc_comm_destroy(party->comm[rank]);
    }
    comm_box_close(&party->box);
}

/* Lengths of all kinds, for message number i. */
static inline uint64_t mixed_bytes(int i) {
    uint64_t state = (uint64_t)i;
    return check_below(&state, 4) != 0 ? check_below(&state, 300) : check_below(&state, 20000);
}

#endif
