/* SPDX-License-Identifier: MIT */
/* Sends that wait for their receiver. */
#include "comm_box.h"

static int ssend_until(spc_comm_t *comm, int32_t to, int32_t tag, uint64_t seed, uint64_t bytes,
                       uint64_t deadline_ns) {
    unsigned char *content = content_make(seed, bytes);
    spc_payload_t payload = content_payload(content, bytes);
    int status = spc_comm_ssend(comm, to, SPC_CONTEXT_USER, tag, &payload, deadline_ns);
    free(content);
    return status;
}

static const uint64_t lengths[] = {0, 8, 40, 41, 1000, 8192, 8193, 100000, 600000};

enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* A counter in shared memory says how far the receiver is: it is raised just before each receive. */
typedef struct stage {
    comm_box_t *box;
    _Atomic int *begun;
} stage_t;

static void every_length_body(int rank, int size, void *argument) {
    stage_t *stage = argument;
    spc_comm_t *comm = comm_box_join(stage->box, rank);
    (void)size;
    for (int i = 0; i < LENGTHS; i++) {
        if (rank == 0) {
            CHECK_OK(ssend_until(comm, 1, i, (uint64_t)i, lengths[i], SPC_NO_DEADLINE));
            CHECK(atomic_load(stage->begun) > i);
        } else {
            send_content(comm, 1, LENGTHS, 1, 8); /* something else to do before */
            recv_content(comm, 1, LENGTHS, 1, 8);
            atomic_fetch_add(stage->begun, 1);
            recv_content(comm, 0, i, (uint64_t)i, lengths[i]);
        }
    }
    comm_box_leave(comm);
}

static void run_stage(int n, spc_config_t config, check_body_t body) {
    config.nodes = (uint32_t)n;
    for (int processes = 0; processes <= WITH_PROCESSES; processes++) {
        comm_box_t box = comm_box_open(config);
        /* A word of the segment that nothing else uses: the scratch of a node that has no reductions. */
        stage_t stage = {&box, spc_segment_part(&box.segment, SPC_REGION_SCRATCH, 0)};
        (processes ? check_processes : check_threads)(n, body, &stage);
        comm_box_close(&box);
    }
}

TEST(every_length) {
    run_stage(2, (spc_config_t){0}, every_length_body);
    run_stage(2, (spc_config_t){.arena_bytes = 1, .ring_bytes = 16384, .slots = 3}, every_length_body);
    run_stage(2, (spc_config_t){.arena_bytes = 65536, .ring_bytes = 1024, .slots = 1}, every_length_body);
}

static void many_to_one_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    long rounds = check_scale(400);
    for (long i = 0; i < rounds; i++) {
        uint64_t bytes = lengths[(i + rank) % 7];
        if (rank != 0) {
            CHECK_OK(ssend_until(comm, 0, (int32_t)(i % 5), (uint64_t)i, bytes, SPC_NO_DEADLINE));
        } else {
            for (int source = size - 1; source > 0; source--) {
                recv_content(comm, source, (int32_t)(i % 5), (uint64_t)i, lengths[(i + source) % 7]);
            }
        }
    }
    comm_box_leave(comm);
}

TEST(many_to_one) {
    run_ranks(4, (spc_config_t){.slots = 2, .ring_bytes = 16384}, many_to_one_body);
}

/* ---- one thread plays both: what was sent and given up tells what counts as received */

TEST(only_the_matching_receive_counts) {
    party_t party = party_open(2, (spc_config_t){0});
    spc_message_t message;
    uint64_t waiting;
    CHECK_EQ(ssend_until(party.comm[0], 1, 1, 1, 8, AT_ONCE), SPC_ETIMEDOUT);
    CHECK_EQ(ssend_until(party.comm[0], 1, 2, 2, 8, AT_ONCE), SPC_ETIMEDOUT);
    CHECK_OK(spc_comm_poll(party.comm[1], SPC_CONTEXT_USER, &waiting));
    CHECK_EQ_U(waiting, 2);
    recv_content(party.comm[1], 0, 2, 2, 8);
    CHECK_OK(recv_until(party.comm[1], 0, 1, SPC_NO_DEADLINE, &message));
    message_check(&message, 0, 1, 1, 8);
    CHECK_OK(spc_comm_put_back(party.comm[1], &message));
    recv_content(party.comm[1], 0, 1, 1, 8);
    party_close(&party);
}

typedef struct helper {
    spc_comm_t *comm;
    int32_t tag;
    int status;
    pthread_t thread;
} helper_t;

static void *ssend_in_thread(void *argument) {
    helper_t *helper = argument;
    helper->status = ssend_until(helper->comm, 1, helper->tag, (uint64_t)helper->tag, 100, SPC_NO_DEADLINE);
    return NULL;
}

/* Threads of one node wait for messages of different tags; each goes on when its own is taken, last first. */
TEST(threads_are_told_of_their_own) {
    enum { THREADS = 6 };
    party_t party = party_open(2, (spc_config_t){.slots = 2});
    helper_t helpers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        helpers[i] = (helper_t){.comm = party.comm[0], .tag = i};
        CHECK_EQ(pthread_create(&helpers[i].thread, NULL, ssend_in_thread, &helpers[i]), 0);
    }
    for (int i = THREADS - 1; i >= 0; i--) {
        recv_content(party.comm[1], 0, i, (uint64_t)i, 100);
        CHECK_EQ(pthread_join(helpers[i].thread, NULL), 0);
        CHECK_OK(helpers[i].status);
    }
    party_close(&party);
}

/* More than there are bits for: those behind them get answers, and others bits again. */
static void many_given_up_body(int rank, int size, void *box) {
    enum { MANY = SPC_RECEIPTS_MAX + 10 };
    spc_comm_t *comm = comm_box_join(box, rank);
    (void)size;
    for (uint64_t round = 0; round < 3; round++) {
        if (rank == 0) {
            for (uint64_t i = 0; i < MANY; i++) {
                CHECK_EQ(ssend_until(comm, 1, 1, i, i % 8 == 7 ? 100000 : 8 * i, AT_ONCE), SPC_ETIMEDOUT);
            }
            CHECK_OK(ssend_until(comm, 1, 2, round, 8, SPC_NO_DEADLINE));
            CHECK_OK(ssend_until(comm, 1, 2, round, 100000, SPC_NO_DEADLINE));
            recv_content(comm, 1, 3, round, 8);
        } else { /* the last ones first */
            recv_content(comm, 0, 2, round, 8);
            recv_content(comm, 0, 2, round, 100000);
            for (uint64_t i = 0; i < MANY; i++) {
                recv_content(comm, 0, 1, i, i % 8 == 7 ? 100000 : 8 * i);
            }
            send_content(comm, 0, 3, round, 8);
        }
    }
    comm_box_leave(comm);
}

TEST(many_given_up) {
    run_ranks(2, (spc_config_t){.slots = 4, .ring_bytes = 8192, .arena_bytes = 262144}, many_given_up_body);
    run_ranks(2, (spc_config_t){0}, many_given_up_body);
}

/* ---- ends */

static void receiver_ends_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    spc_node_state_t state;
    int32_t reason;
    (void)size;
    if (rank == 0) {
        CHECK_OK(ssend_until(comm, 1, 7, 1, 8, SPC_NO_DEADLINE)); /* taken before the end */
        CHECK_EQ(ssend_until(comm, 1, 8, 1, 8, SPC_NO_DEADLINE), SPC_EFINISHED);
        CHECK_EQ(spc_comm_culprit(comm, &state, &reason), 1);
        CHECK_EQ(ssend_until(comm, 1, 8, 1, 100000, SPC_NO_DEADLINE), SPC_EFINISHED);
    } else {
        recv_content(comm, 0, 7, 1, 8);
    }
    comm_box_leave(comm);
}

TEST(receiver_ends) {
    run_ranks(2, (spc_config_t){0}, receiver_ends_body);
}

static void receiver_dies_body(int rank, int size, void *argument) {
    comm_box_t *box = argument;
    spc_comm_t *comm = comm_box_join(box, rank);
    (void)size;
    if (rank == 0) {
        CHECK_EQ(ssend_until(comm, 1, 8, 1, 8, SPC_NO_DEADLINE), SPC_ELOST);
        comm_box_leave(comm);
    } else {
        int32_t source, tag;
        uint64_t bytes;
        /* Seen, but not taken. */
        CHECK_OK(spc_comm_probe(comm, SPC_CONTEXT_USER, 0, 8, SPC_NO_DEADLINE, &source, &tag, &bytes));
        spc_comm_mark_ended(&box->segment, 1, SPC_NODE_DIED, -9);
        spc_comm_destroy(comm);
    }
}

TEST(receiver_dies) {
    run_ranks(2, (spc_config_t){0}, receiver_dies_body);
}

/* A message that is dropped with a closed part has not been received. */
static void receiver_closes_the_part_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    spc_comm_t *part;
    CHECK_OK(spc_comm_split(comm, 0, size - rank, SPC_NO_DEADLINE, &part)); /* ranks the other way round */
    if (rank == 0) {
        CHECK_OK(ssend_until(part, 0, 3, 1, 8, SPC_NO_DEADLINE));
        CHECK_EQ(ssend_until(part, 0, 4, 1, 8, SPC_NO_DEADLINE), SPC_EFINISHED);
        CHECK_OK(ssend_until(comm, 1, 5, 1, 8, SPC_NO_DEADLINE)); /* numbers still agree */
    } else {
        recv_content(part, 1, 3, 1, 8);
        CHECK_OK(spc_comm_close(part, SPC_NO_DEADLINE));
        recv_content(comm, 0, 5, 1, 8);
    }
    if (rank == 0) {
        CHECK_OK(spc_comm_close(part, SPC_NO_DEADLINE));
    }
    spc_comm_destroy(part);
    comm_box_leave(comm);
}

TEST(receiver_closes_the_part) {
    run_ranks(2, (spc_config_t){0}, receiver_closes_the_part_body);
}

TEST(who_ended_before_is_told_at_once) {
    party_t party = party_open(2, (spc_config_t){0});
    CHECK_OK(spc_comm_close(party.comm[1], SPC_NO_DEADLINE));
    CHECK_EQ(ssend_until(party.comm[0], 1, 1, 1, 8, SPC_NO_DEADLINE), SPC_EFINISHED);
    CHECK_EQ(ssend_until(party.comm[0], 2, 1, 1, 8, SPC_NO_DEADLINE), SPC_ERANK);
    CHECK_EQ(ssend_until(party.comm[0], 1, -1, 1, 8, SPC_NO_DEADLINE), SPC_ETAG);
    spc_comm_destroy(party.comm[1]);
    comm_box_leave(party.comm[0]);
    comm_box_close(&party.box);
}

TEST_MAIN()
