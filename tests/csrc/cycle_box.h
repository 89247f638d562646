/* SPDX-License-Identifier: MIT */
/* cycle_box: coordinated messages for tests, beside comm_box.h. */
#ifndef CYCLE_BOX_H
#define CYCLE_BOX_H

#include "comm_box.h"

static inline int coordinated_until(spc_comm_t *comm, const int32_t *to, uint32_t count, uint64_t seed,
                                    uint64_t bytes, uint64_t deadline_ns) {
    unsigned char *content = content_make(seed, bytes);
    spc_payload_t payload = content_payload(content, bytes);
    int status = coordinated_send_until(comm, to, count, &payload, deadline_ns);
    memset(content, 0xa5, bytes);
    free(content);
    return status;
}

static inline void coordinated(spc_comm_t *comm, int32_t to, uint64_t seed, uint64_t bytes) {
    CHECK_OK(coordinated_until(comm, &to, 1, seed, bytes, SPC_NO_DEADLINE));
}

/* SPC_OK: a message, which is compared and released, or `over`. */
static inline int next_until(spc_comm_t *comm, int32_t source, uint64_t seed, uint64_t bytes,
                             uint64_t deadline_ns) {
    spc_message_t message;
    bool over = true;
    int status = spc_comm_coordinated_recv(comm, deadline_ns, &message, &over);
    CHECK(!over);
    if (status == SPC_OK) {
        message_check(&message, source, message.tag, seed, bytes);
        spc_message_release(comm, &message);
    }
    return status;
}

static inline void expect_next(spc_comm_t *comm, int32_t source, uint64_t seed, uint64_t bytes) {
    CHECK_OK(next_until(comm, source, seed, bytes, SPC_NO_DEADLINE));
}

/* The status of a receive that gets no message and does not end the cycle. */
static inline void expect_none(spc_comm_t *comm, uint64_t deadline_ns, int expected) {
    spc_message_t message;
    bool over = true;
    CHECK_EQ(spc_comm_coordinated_recv(comm, deadline_ns, &message, &over), expected);
    CHECK(!over);
}

static inline void expect_over(spc_comm_t *comm) {
    spc_message_t message;
    bool over = false;
    CHECK_OK(spc_comm_coordinated_recv(comm, SPC_NO_DEADLINE, &message, &over));
    CHECK(over);
}

#endif
