/* SPDX-License-Identifier: MIT */
/* Long messages to receivers that wait with a place for them: nodes with a core each, and slow or absent ones. */
#include "comm/spc_comm_private.h"
#include "comm_box.h"

enum { DATA = 5 << 17, META = 45 }; /* long enough for a stream */

static const spc_config_t small_ring = {.slots = 16, .ring_bytes = 1 << 18, .arena_bytes = 16 << 20};
static const unsigned char meta[META] = "what both sides know";

/* As comm_box_open, but nodes have a core each. */
static comm_box_t open_box(spc_config_t config, bool shared_cores) {
    config.nodes = 2;
    comm_box_t box = comm_box_open(config);
    ((spc_config_t *)(uintptr_t)box.segment.config)->shared_cores = shared_cores;
    return box;
}

static void run_pair(spc_config_t config, bool shared_cores, check_body_t body) {
    for (int processes = 0; processes <= WITH_PROCESSES; processes++) {
        comm_box_t box = open_box(config, shared_cores);
        (processes ? check_processes : check_threads)(2, body, &box);
        comm_box_close(&box);
    }
}

static void send_uniform(spc_comm_t *comm, int32_t to, int value) {
    unsigned char *data = malloc(DATA);
    const spc_payload_t payload = {meta, data, DATA, META, SPC_FORMAT_ARRAY, NULL};
    memset(data, value, DATA);
    CHECK_OK(spc_comm_send(comm, &to, 1, SPC_CONTEXT_USER, 1, &payload, SPC_NO_DEADLINE));
    memset(data, 0xa5, DATA); /* the sender may change it at once */
    free(data);
}

static int recv_uniform(spc_comm_t *comm, int32_t source, uint64_t deadline_ns, int value, bool *filled) {
    spc_message_t message;
    unsigned char *memory = malloc(DATA);
    spc_sink_t sink = {memory, DATA, meta, META, SPC_FORMAT_ARRAY, false};
    int status = spc_comm_recv_into(comm, SPC_CONTEXT_USER, source, 1, deadline_ns, &sink, &message);
    if (status == SPC_OK) {
        const unsigned char *data = sink.filled ? memory : spc_message_data(&message);
        CHECK_EQ_U(message.length_bytes, META + DATA);
        for (int i = 0; i < DATA; i += 7) {
            CHECK_EQ(data[i], value);
        }
        *filled = sink.filled;
        spc_message_release(comm, &message);
    }
    free(memory);
    return status;
}

/* Late, impatient and patient receives; the message is whole in any case. */
static void there_and_back_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    int partner = size - 1 - rank;
    bool filled;
    for (int i = 0; i < check_scale(16); i++) {
        if (rank == i % 2) {
            send_uniform(comm, partner, i % 200);
            continue;
        }
        uint64_t deadline_ns = i % 3 == 0   ? AT_ONCE
                               : i % 3 == 1 ? spc_clock_deadline_ns(50000)
                                            : SPC_NO_DEADLINE;
        int status;
        do {
            status = recv_uniform(comm, partner, deadline_ns, i % 200, &filled);
        } while (status == SPC_ETIMEDOUT);
        CHECK_OK(status);
    }
    comm_box_leave(comm);
}

TEST(there_and_back) {
    run_pair(small_ring, false, there_and_back_body);
    run_pair((spc_config_t){.slots = 3, .ring_bytes = 1 << 16, .arena_bytes = 16 << 20}, false,
             there_and_back_body);
    run_pair((spc_config_t){.slots = 8, .ring_bytes = 1 << 18, .arena_bytes = 1}, false, there_and_back_body);
}

/* The receiver is seen to wait before the sender begins: node 0 looks at the word in its row. */
static void send_when_wanted(spc_comm_t *comm, comm_box_t *box) {
    spc_mailbox_shared_t *mailbox = spc_segment_part(&box->segment, SPC_REGION_MAILBOX, 1);
    spc_row_shared_t *row = spc_mailbox_row(mailbox, 0, box->segment.config->slots);
    while (atomic_load(&row->wanted) == 0) {
        spc_platform_yield();
    }
    send_uniform(comm, 1, 7);
}

static bool expected;

static void waits_before_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    bool filled;
    (void)size;
    if (rank == 0) {
        send_when_wanted(comm, box);
    } else {
        CHECK_OK(recv_uniform(comm, 0, SPC_NO_DEADLINE, 7, &filled));
        CHECK_EQ(filled, expected);
    }
    comm_box_leave(comm);
}

TEST(who_waits_gets_it_in_place) {
    expected = true;
    run_pair(small_ring, false, waits_before_body);
}

/* Two copies at once would keep the other side's core from it. */
TEST(not_on_shared_cores) {
    expected = false;
    run_pair(small_ring, true, waits_before_body);
}

/* The receiver posts, and never looks at what comes. The send ends all the same, and the message is in a block. */
TEST(a_receiver_that_never_comes) {
    comm_box_t box = open_box(small_ring, false);
    spc_comm_t *sender = comm_box_join(&box, 0), *receiver = comm_box_join(&box, 1);
    spc_mailbox_shared_t *mailbox = spc_segment_part(&box.segment, SPC_REGION_MAILBOX, 1);
    spc_row_shared_t *row = spc_mailbox_row(mailbox, 0, box.segment.config->slots);
    bool filled;
    atomic_store(&row->wanted, spc_mailbox_want(0, 0, 1, META + DATA));
    send_uniform(sender, 1, 9);
    CHECK(spc_mailbox_count(mailbox, 0, box.segment.config->slots).messages > 1); /* it had begun in parts */
    CHECK_OK(recv_uniform(receiver, 0, SPC_NO_DEADLINE, 9, &filled));
    CHECK(filled);
    spc_comm_destroy(sender);
    spc_comm_destroy(receiver);
    comm_box_close(&box);
}

/* It dies in its send: the parts that have come are dropped, and the receive is told. */
TEST(a_sender_that_dies_between_parts) {
    comm_box_t box = open_box(small_ring, false);
    spc_comm_t *sender = comm_box_join(&box, 0), *receiver = comm_box_join(&box, 1);
    spc_mailbox_shared_t *mailbox = spc_segment_part(&box.segment, SPC_REGION_MAILBOX, 1);
    spc_row_shared_t *row = spc_mailbox_row(mailbox, 0, box.segment.config->slots);
    unsigned char *data = calloc(1, DATA);
    const spc_payload_t payload = {meta, data, DATA, META, SPC_FORMAT_ARRAY, NULL};
    spc_stream_t stream;
    bool filled;
    atomic_store(&row->wanted, spc_mailbox_want(0, 0, 1, META + DATA));
    CHECK_OK(spc_outbox_begin_stream(sender->node->outbox, 1, 0, 1, &payload, &stream));
    CHECK(spc_outbox_flush(sender->node->outbox));
    CHECK_EQ(recv_uniform(receiver, 0, AT_ONCE, 0, &filled), SPC_ETIMEDOUT);
    spc_comm_mark_ended(&box.segment, 0, SPC_NODE_DIED, 9);
    CHECK_EQ(recv_uniform(receiver, 0, SPC_NO_DEADLINE, 0, &filled), SPC_ELOST);
    stream.held = true;
    spc_outbox_end_stream(sender->node->outbox, &stream);
    spc_comm_destroy(sender);
    spc_comm_destroy(receiver);
    comm_box_close(&box);
    free(data);
}

TEST_MAIN()
