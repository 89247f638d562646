/* SPDX-License-Identifier: MIT */
/* The schedule perturber: what it may do, what it must not, and that seeds decide. */
#include "comm_box.h"

enum { SENDERS = 4, EACH = 6, COUNT = SENDERS * EACH };

static spc_config_t perturbed(uint64_t seed) {
    return (spc_config_t){.perturb = SPC_PERTURB_SCHEDULE, .perturb_seed = seed};
}

/* All has been sent before anything is received: then only choices count. */
static void receive_all(uint64_t seed, int32_t sources[COUNT]) {
    party_t party = party_open(SENDERS + 1, perturbed(seed));
    int next[SENDERS + 1] = {0};
    for (int source = 1; source <= SENDERS; source++) {
        for (int i = 0; i < EACH; i++) {
            send_content(party.comm[source], 0, i, (uint64_t)i, (uint64_t)i * 100);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        spc_message_t message;
        CHECK_OK(recv_until(party.comm[0], SPC_ANY_SOURCE, SPC_ANY_TAG, in_seconds(60), &message));
        sources[i] = message.source;
        CHECK_EQ(message.tag, next[message.source]); /* in order from each */
        message_check(&message, message.source, message.tag, (uint64_t)message.tag,
                      (uint64_t)message.tag * 100);
        next[message.source]++;
        spc_message_release(party.comm[0], &message);
    }
    party_close(&party);
}

TEST(seeds_decide) {
    int32_t first[COUNT], again[COUNT], other[COUNT];
    receive_all(7, first);
    receive_all(7, again);
    receive_all(8, other);
    CHECK_MEM(first, again, sizeof first);
    CHECK(memcmp(first, other, sizeof first) != 0);
    int changes = 0;
    for (int i = 1; i < COUNT; i++) {
        changes += first[i] != first[i - 1];
    }
    CHECK(changes >= SENDERS); /* more than one sender after the other */
}

/* A call that never waits may find nothing, but not for ever, and not where a node sends to itself. */
TEST(looking_often_enough) {
    party_t party = party_open(2, perturbed(1));
    spc_message_t message;
    int blind = 0;
    for (int i = 0; i < 100; i++) {
        send_content(party.comm[0], 1, i, 1, 8);
        while (spc_comm_try_recv(party.comm[1], SPC_CONTEXT_USER, 0, i, &message) == SPC_EAGAIN) {
            blind++;
        }
        message_check(&message, 0, i, 1, 8);
        send_content(party.comm[1], 1, i, 1, 8);
        CHECK_OK(spc_comm_try_recv(party.comm[1], SPC_CONTEXT_USER, 1, i, &message));
    }
    CHECK(blind > 5 && blind < 100);
    CHECK_EQ(spc_comm_poll_recv(party.comm[1], SPC_CONTEXT_USER, 0, 1, &message, &(spc_recv_call_t){0}),
             SPC_EAGAIN);
    party_close(&party);
}

static void everything_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    int32_t right = (rank + 1) % size, left = (rank + size - 1) % size;
    long rounds = check_scale(40);
    for (long i = 0; i < rounds; i++) {
        uint64_t bytes = (uint64_t)(i % 4) * 5000;
        send_content(comm, right, 1, (uint64_t)i, bytes);
        recv_content(comm, left, 1, (uint64_t)i, bytes);
        barrier(comm);
    }
    comm_box_leave(comm);
}

TEST(everything_else_stays) {
    run_ranks(3, perturbed(3), everything_body);
}

/* ---- rendezvous */

static spc_config_t by_rendezvous(uint64_t bytes) {
    return (spc_config_t){.perturb = SPC_PERTURB_RENDEZVOUS, .rendezvous_bytes = bytes};
}

/* To all: it waits for two, not for itself, and is content when one of them ends. */
static void waits_for_all_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    const int32_t everybody[3] = {0, 1, 2};
    uint64_t waiting = 0;
    (void)size;
    if (rank == 0) {
        CHECK_OK(send_until(comm, everybody, 3, 1, 1, 20000, SPC_NO_DEADLINE));
        for (int32_t source = 1; source < 3; source++) {
            recv_content(comm, source, 2, 2, 8); /* they were sent before the receives */
        }
        CHECK_OK(spc_comm_poll(comm, SPC_CONTEXT_USER, &waiting));
        CHECK_EQ_U(waiting, 1);
        recv_content(comm, 0, 1, 1, 20000);
        CHECK_OK(send_until(comm, everybody, 3, 3, 3, 20000, SPC_NO_DEADLINE));
        recv_content(comm, 0, 3, 3, 20000);
    } else {
        send_content(comm, 0, 2, 2, 8); /* too short to wait */
        recv_content(comm, 0, 1, 1, 20000);
    }
    if (rank == 1) {
        recv_content(comm, 0, 3, 3, 20000);
    }
    comm_box_leave(comm);
}

TEST(waits_for_all) {
    run_ranks(3, by_rendezvous(100), waits_for_all_body);
}

TEST(a_timeout_is_no_failure) {
    party_t party = party_open(2, by_rendezvous(0));
    const int32_t to = 1;
    CHECK_OK(send_until(party.comm[0], &to, 1, 1, 1, 8, AT_ONCE));
    recv_content(party.comm[1], 0, 1, 1, 8);
    spc_payload_t payload = {.data = "ahead", .data_bytes = 5};
    CHECK_OK(spc_comm_send_ahead(party.comm[0], &to, 1, SPC_CONTEXT_USER, 2, &payload, SPC_NO_DEADLINE));
    spc_message_t message;
    CHECK_OK(recv_until(party.comm[1], 0, 2, AT_ONCE, &message));
    party_close(&party);
}

/* More than can be asked for at a time, all given up: they are sent all the same. */
TEST(more_than_can_be_asked_for) {
    spc_config_t config = by_rendezvous(0);
    config.slots = 2 * SPC_RECEIPTS_MAX;
    party_t party = party_open(2, config);
    const int32_t to = 1;
    for (uint32_t i = 0; i < SPC_RECEIPTS_MAX + 10; i++) {
        CHECK_OK(send_until(party.comm[0], &to, 1, 1, i, 8, AT_ONCE));
    }
    for (uint32_t i = 0; i < SPC_RECEIPTS_MAX + 10; i++) {
        recv_content(party.comm[1], 0, 1, i, 8);
    }
    party_close(&party);
}

TEST_MAIN()
