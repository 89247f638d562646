/* SPDX-License-Identifier: MIT */
/* Cycles of coordinated messages where queues and memory are full, and in split communicators. */
#include <sys/resource.h>

#include "cycle_box.h"

static const spc_signature_t barrier_call = {.operation = SPC_OPERATION_BARRIER};
static const spc_config_t plain = {0};

static int barrier_at_once(spc_comm_t *comm) {
    return spc_comm_collective(comm, &barrier_call, NULL, NULL, 0, NULL, AT_ONCE);
}

static void all_over(party_t *party) {
    for (int rank = party->size - 1; rank >= 0; rank--) {
        expect_over(party->comm[rank]);
    }
}

/* ---- queues at their limits */

/* To node 1, or to 1 and 2. */
static uint64_t send_until_refused(spc_comm_t *comm, uint32_t count) {
    const int32_t to[] = {1, 2};
    uint64_t sent = 0;
    for (int refused = 0; refused < 3;) {
        int status = coordinated_until(comm, to, count, sent, 600, AT_ONCE);
        CHECK(status == SPC_OK || status == SPC_ETIMEDOUT);
        sent += status == SPC_OK;
        refused += status != SPC_OK;
    }
    CHECK(sent > 3);
    return sent;
}

/* A send that finds no room within its time was not sent, and is not waited for. */
TEST(what_was_not_sent_is_not_waited_for) {
    party_t party = party_open(3, (spc_config_t){.slots = 1, .ring_bytes = 1024, .queue_limit_bytes = 8192});
    for (int cycle = 0; cycle < 10; cycle++) {
        spc_message_t message;
        uint32_t receivers = 1 + cycle % 2;
        uint64_t sent = send_until_refused(party.comm[0], receivers), received[3] = {0};
        bool over[3] = {false, false, false};
        while (!over[0] || !over[1] || !over[2]) {
            uint64_t waiting;
            CHECK_OK(spc_comm_poll(party.comm[0], SPC_CONTEXT_USER, &waiting)); /* sends on */
            for (int rank = 0; rank < 3; rank++) {
                int status = over[rank] ? SPC_EAGAIN
                                        : spc_comm_coordinated_poll(party.comm[rank], &message, &over[rank]);
                CHECK(status == SPC_OK || status == SPC_EAGAIN);
                if (status == SPC_OK && !over[rank]) {
                    message_check(&message, 0, message.tag, received[rank]++, 600);
                    spc_message_release(party.comm[rank], &message);
                }
            }
        }
        CHECK_EQ_U(received[0], 0);
        CHECK_EQ_U(received[1], sent);
        CHECK_EQ_U(received[2], receivers == 2 ? sent : 0);
    }
    party_close(&party);
}

/* If the first message of a cycle finds no room, no cycle has begun. */
TEST(a_refused_first_message_begins_no_cycle) {
    party_t party = party_open(2, (spc_config_t){.slots = 1, .ring_bytes = 1024, .queue_limit_bytes = 8192});
    const int32_t to = 1;
    int32_t tag = 0;
    while (send_until(party.comm[0], &to, 1, tag, 1, 600, AT_ONCE) == SPC_OK) {
        tag++;
    }
    CHECK_EQ(coordinated_until(party.comm[0], &to, 1, 1, 600, AT_ONCE), SPC_ETIMEDOUT);
    CHECK_EQ(barrier_at_once(party.comm[0]), SPC_ETIMEDOUT);
    CHECK_OK(barrier_at_once(party.comm[1]));
    CHECK_OK(barrier_at_once(party.comm[0]));
    party_close(&party);
}

/* ---- no memory */

typedef struct hoard {
    struct hoard *next;
} hoard_t;

/* Takes all memory that malloc can still give. */
static hoard_t *hoard_all(void) {
    hoard_t *hoard = NULL, *piece;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    const rlim_t now = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
    CHECK_EQ(setrlimit(RLIMIT_AS, &(struct rlimit){now, RLIM_INFINITY}), 0);
    for (size_t bytes = 1 << 16; bytes >= sizeof(hoard_t); bytes /= 2) {
        while ((piece = malloc(bytes)) != NULL) {
            piece->next = hoard;
            hoard = piece;
        }
    }
    return hoard;
}

static void give_back(hoard_t *hoard) {
    while (hoard != NULL) {
        hoard_t *next = hoard->next;
        free(hoard);
        hoard = next;
    }
}

/* A multicast reaches node 2 and finds no memory to be queued for node 1: one of the two counts. */
static void half_a_multicast_body(int rank, int size, void *argument) {
    (void)rank, (void)size, (void)argument;
    party_t party = party_open(3, (spc_config_t){.slots = 1});
    const int32_t two[] = {2, 1};
    const uint64_t number = 8;
    const spc_payload_t payload = {.data = &number, .data_bytes = 8, .format = SPC_FORMAT_RAW};
    spc_message_t message;
    bool over;
    CHECK_OK(coordinated_send_until(party.comm[0], two + 1, 1, &payload, AT_ONCE)); /* its row is full */
    hoard_t *hoard = hoard_all();
    int status = coordinated_send_until(party.comm[0], two, 2, &payload, AT_ONCE);
    give_back(hoard);
    CHECK_EQ(status, SPC_ENOMEM);
    expect_none(party.comm[0], AT_ONCE, SPC_ETIMEDOUT);
    for (int to = 1; to < 3; to++) {
        CHECK_OK(spc_comm_coordinated_recv(party.comm[to], AT_ONCE, &message, &over));
        CHECK(!over);
    }
    all_over(&party);
    party_close(&party);
}

TEST(half_a_multicast_counts_where_it_came) {
    /* Sanitizers have a malloc of their own. */
    if (!CHECK_SANITIZED && access("/proc/self/statm", R_OK) == 0) {
        CHECK_EQ(check_wait(check_fork(0, 1, half_a_multicast_body, NULL)), 0);
    }
}

/* ---- split communicators */

static void split_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank), *part;
    CHECK_OK(spc_comm_split(comm, rank % 2, -rank, SPC_NO_DEADLINE, &part));
    int32_t self = (int32_t)spc_comm_rank(part);
    int members = (int)spc_comm_size(part);
    for (uint64_t cycle = 0; cycle < 30; cycle++) {
        coordinated(part, (self + 1) % members, cycle, mixed_bytes((int)cycle));
        coordinated(comm, (rank + 1) % size, 100 + cycle, 8);
        expect_next(part, (self + members - 1) % members, cycle, mixed_bytes((int)cycle));
        expect_over(part);
        if (cycle % 3 == 0) {
            barrier(part); /* the other one's cycle is no concern of this */
        }
        expect_next(comm, (rank + size - 1) % size, 100 + cycle, 8);
        expect_over(comm);
    }
    CHECK_OK(spc_comm_close(part, SPC_NO_DEADLINE));
    spc_comm_destroy(part);
    comm_box_leave(comm);
}

TEST(split_communicators_have_cycles_of_their_own) {
    run_ranks(5, plain, split_body);
}

/* A node that has closed the split communicator will not come. */
static void leave_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank), *part;
    spc_node_state_t state;
    int32_t reason;
    CHECK_OK(spc_comm_split(comm, 0, -rank, SPC_NO_DEADLINE, &part));
    if (rank != 0) {
        if (rank == 1) {
            coordinated(part, 0, 5, 70);
            send_content(comm, 2, 0, 6, 8);
        } else {
            recv_content(comm, 1, 0, 6, 8); /* so the other one is here, too */
            expect_next(part, size - 2, 5, 70);
        }
        expect_none(part, SPC_NO_DEADLINE, SPC_EFINISHED);
        CHECK_EQ(spc_comm_culprit(part, &state, &reason), size - 1);
    }
    CHECK_OK(spc_comm_close(part, SPC_NO_DEADLINE));
    spc_comm_destroy(part);
    barrier(comm);
    comm_box_leave(comm);
}

TEST(who_leaves_a_split_communicator_is_named) {
    run_ranks(3, plain, leave_body);
}

TEST_MAIN()
