/* SPDX-License-Identifier: MIT */
/* The communicator: messages of all kinds, limits, timeouts, ends, and collectives among them. */
#include "comm_box.h"

/* ---- every way a message can go */

static const uint64_t lengths[] = {0, 8, 40, 41, 1000, 8192, 8193, 100000, 600000};

enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static void every_length_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    const int32_t others[2] = {1, 2};
    (void)size;
    for (int i = 0; i < LENGTHS; i++) {
        if (rank == 0) {
            send_content(comm, 1, i, (uint64_t)i, lengths[i]);
            send_content(comm, 0, i, (uint64_t)i, lengths[i]);
            CHECK_OK(send_until(comm, others, 2, i, (uint64_t)i + 1, lengths[i], SPC_NO_DEADLINE));
            recv_content(comm, 0, i, (uint64_t)i, lengths[i]);
        } else {
            if (rank == 1) {
                recv_content(comm, 0, i, (uint64_t)i, lengths[i]);
            }
            recv_content(comm, 0, i, (uint64_t)i + 1, lengths[i]);
        }
    }
    comm_box_leave(comm);
}

TEST(every_length) {
    run_ranks(3, (spc_config_t){0}, every_length_body);
    run_ranks(3, (spc_config_t){.arena_bytes = 1, .ring_bytes = 16384, .slots = 3}, every_length_body);
    run_ranks(3, (spc_config_t){.arena_bytes = 65536, .ring_bytes = 1024, .slots = 1}, every_length_body);
}

TEST(large_messages_are_read_where_they_were_written) {
    party_t party = party_open(3, (spc_config_t){0});
    const int32_t both[2] = {1, 2};
    spc_message_t one, two;
    send_content(party.comm[0], 1, 5, 1, 100000);
    CHECK_OK(recv_until(party.comm[1], 0, 5, SPC_NO_DEADLINE, &one));
    message_check(&one, 0, 5, 1, 100000);
    CHECK_EQ(one.storage, SPC_STORED_ARENA);
    CHECK(one.sole);
    CHECK_OK(send_until(party.comm[0], both, 2, 6, 2, 100000, SPC_NO_DEADLINE));
    spc_message_release(party.comm[1], &one);
    CHECK_OK(recv_until(party.comm[1], 0, 6, SPC_NO_DEADLINE, &one));
    CHECK_OK(recv_until(party.comm[2], 0, 6, SPC_NO_DEADLINE, &two));
    CHECK(!one.sole && !two.sole);
    message_check(&one, 0, 6, 2, 100000);
    spc_message_release(party.comm[1], &one);
    message_check(&two, 0, 6, 2, 100000);
    spc_comm_release_stored(party.comm[2], SPC_STORED_ARENA, two.handle);
    party_close(&party);
}

/* The receiver keeps every block; then messages come in parts, and what is kept stays what it was. */
TEST(blocks_held_for_ever_block_nobody) {
    enum { KEPT = 12, BYTES = 20000 };
    party_t party = party_open(2, (spc_config_t){.arena_bytes = 65536, .ring_bytes = 4096, .slots = 4});
    spc_message_t message[KEPT];
    int in_arena = 0;
    for (int i = 0; i < KEPT; i++) {
        send_content(party.comm[0], 1, i, (uint64_t)i, BYTES);
        while (spc_comm_try_recv(party.comm[1], SPC_CONTEXT_USER, 0, i, &message[i]) != SPC_OK) {
            uint64_t waiting;
            CHECK_OK(spc_comm_poll(party.comm[0], SPC_CONTEXT_USER, &waiting));
        }
        in_arena += message[i].storage == SPC_STORED_ARENA;
    }
    CHECK(in_arena > 0 && in_arena < KEPT);
    for (int i = 0; i < KEPT; i++) {
        message_check(&message[i], 0, i, (uint64_t)i, BYTES);
        spc_message_release(party.comm[1], &message[i]);
    }
    send_content(party.comm[0], 1, 99, 1, BYTES);
    CHECK_OK(recv_until(party.comm[1], 0, 99, SPC_NO_DEADLINE, &message[0]));
    CHECK_EQ(message[0].storage, SPC_STORED_ARENA); /* they came back */
    spc_message_release(party.comm[1], &message[0]);
    party_close(&party);
}

/* ---- taking, probing, putting back */

TEST(take_finds_what_was_moved_into_the_queues) {
    party_t party = party_open(2, (spc_config_t){0});
    spc_message_t message;
    uint64_t waiting, bytes;
    int32_t source, tag;
    send_content(party.comm[0], 1, 3, 1, 100);
    send_content(party.comm[0], 1, 4, 2, 8);
    CHECK_EQ(spc_comm_take(party.comm[1], 0, SPC_ANY_SOURCE, SPC_ANY_TAG, &message), SPC_EAGAIN);
    CHECK_OK(spc_comm_poll(party.comm[1], SPC_CONTEXT_USER, &waiting));
    CHECK_EQ_U(waiting, 2);
    CHECK_OK(spc_comm_poll(party.comm[1], SPC_CONTEXT_INTERNAL, &waiting));
    CHECK_EQ_U(waiting, 0);
    CHECK_OK(spc_comm_probe(party.comm[1], 0, SPC_ANY_SOURCE, 4, AT_ONCE, &source, &tag, &bytes));
    CHECK_EQ(source, 0);
    CHECK_EQ(tag, 4);
    CHECK_EQ_U(bytes, 4);
    CHECK_OK(spc_comm_take(party.comm[1], 0, 0, 4, &message));
    message_check(&message, 0, 4, 2, 8);
    CHECK_OK(spc_comm_put_back(party.comm[1], &message));
    CHECK_OK(spc_comm_take(party.comm[1], 0, SPC_ANY_SOURCE, SPC_ANY_TAG, &message));
    message_check(&message, 0, 3, 1, 100);
    spc_message_release(party.comm[1], &message);
    recv_content(party.comm[1], 0, 4, 2, 8);
    CHECK_EQ(spc_comm_probe(party.comm[1], 0, 0, SPC_ANY_TAG, AT_ONCE, &source, &tag, &bytes), SPC_ETIMEDOUT);
    party_close(&party);
}

TEST(contexts_are_apart) {
    party_t party = party_open(2, (spc_config_t){0});
    spc_message_t message;
    const int32_t to = 1;
    const spc_payload_t payload = {.data = "internal", .data_bytes = 8};
    CHECK_OK(
        spc_comm_try_send(party.comm[0], &to, 1, SPC_CONTEXT_INTERNAL, 7, &payload, &(spc_send_call_t){0}));
    CHECK_EQ(recv_until(party.comm[1], SPC_ANY_SOURCE, SPC_ANY_TAG, AT_ONCE, &message), SPC_ETIMEDOUT);
    CHECK_OK(spc_comm_recv(party.comm[1], SPC_CONTEXT_INTERNAL, 0, 7, AT_ONCE, &message));
    CHECK_MEM(message.bytes, "internal", 8);
    party_close(&party);
}

/* ---- limits and timeouts */

/* A message whose send timed out comes to nobody; one that was accepted comes, in order, once. */
static void limit_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    const int32_t to[2] = {1, 2};
    spc_message_t message;
    (void)size;
    if (rank == 0) {
        int32_t sent = 0;
        while (send_until(comm, to, 1 + (uint32_t)sent % 2, sent, (uint64_t)sent, 30 + (uint64_t)sent % 600,
                          spc_clock_deadline_ns(1000000))
               == SPC_OK) {
            sent++;
        }
        CHECK(sent > 4);
        barrier(comm);
        for (int i = 0; i < 50; i++) { /* waits, and goes on as the others take */
            CHECK_OK(send_until(comm, to, 1 + (uint32_t)sent % 2, sent, (uint64_t)sent,
                                30 + (uint64_t)sent % 600, SPC_NO_DEADLINE));
            sent++;
        }
        CHECK_OK(send_until(comm, to, 2, sent, (uint64_t)sent, 0, SPC_NO_DEADLINE));
    } else {
        barrier(comm); /* draining up to its limit meanwhile */
        for (int i = rank == 2;; i += rank) {
            CHECK_OK(recv_until(comm, 0, SPC_ANY_TAG, SPC_NO_DEADLINE, &message));
            if (message.length_bytes == 0) {
                CHECK(message.tag == i || (rank == 2 && message.tag == i - 1));
                break;
            }
            message_check(&message, 0, i, (uint64_t)i, 30 + (uint64_t)i % 600);
            spc_message_release(comm, &message);
        }
    }
    comm_box_leave(comm);
}

TEST(a_full_queue_makes_send_wait) {
    run_ranks(3, (spc_config_t){.slots = 2, .ring_bytes = 1024, .queue_limit_bytes = 4096, .arena_bytes = 1},
              limit_body);
}

/* Parts that have come before a timeout are kept. */
TEST(a_timeout_keeps_what_has_come) {
    party_t party = party_open(2, (spc_config_t){.slots = 2, .ring_bytes = 1024, .arena_bytes = 1});
    spc_message_t message;
    uint64_t waiting;
    int timeouts = 0;
    send_content(party.comm[0], 1, 1, 1, 20000);
    while (recv_until(party.comm[1], 0, 1, AT_ONCE, &message) == SPC_ETIMEDOUT) {
        timeouts++;
        CHECK_OK(spc_comm_poll(party.comm[0], SPC_CONTEXT_USER, &waiting));
    }
    CHECK(timeouts > 10);
    message_check(&message, 0, 1, 1, 20000);
    spc_message_release(party.comm[1], &message);
    party_close(&party);
}

TEST(close_names_what_it_could_not_send) {
    party_t party = party_open(2, (spc_config_t){.slots = 1, .ring_bytes = 1024});
    for (int i = 0; i < 20; i++) {
        send_content(party.comm[0], 1, i, 1, 100);
    }
    CHECK_EQ(spc_comm_close(party.comm[0], AT_ONCE), SPC_ETIMEDOUT);
    CHECK_EQ(spc_comm_close(party.comm[0], AT_ONCE), SPC_ECLOSED);
    CHECK_EQ(spc_status_state(spc_segment_part(&party.box.segment, SPC_REGION_STATUS, 0), 0),
             SPC_NODE_FINISHED);
    recv_content(party.comm[1], 0, 0, 1, 100); /* it was announced */
    party_close(&party);
}

/* ---- ends */

static void finished_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    (void)size;
    if (rank == 1) {
        spc_message_t message;
        spc_node_state_t state;
        int32_t reason, source, tag;
        uint64_t bytes;
        for (int i = 0; i < 30; i++) {
            recv_content(comm, 0, i, (uint64_t)i, mixed_bytes(i));
        }
        CHECK_EQ(recv_until(comm, 0, SPC_ANY_TAG, SPC_NO_DEADLINE, &message), SPC_EFINISHED);
        CHECK_EQ(spc_comm_culprit(comm, &state, &reason), 0);
        CHECK_EQ(state, SPC_NODE_FINISHED);
        CHECK_EQ(recv_until(comm, SPC_ANY_SOURCE, 3, SPC_NO_DEADLINE, &message), SPC_EFINISHED);
        CHECK_EQ(spc_comm_probe(comm, 0, 0, 3, SPC_NO_DEADLINE, &source, &tag, &bytes), SPC_EFINISHED);
        const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
        CHECK_EQ(spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE), SPC_EFINISHED);
        send_content(comm, 0, 1, 1, 100000); /* nobody promises a receipt */
        send_content(comm, 1, 1, 1, 8);
        recv_content(comm, 1, 1, 1, 8); /* from itself */
        for (int i = 0; i < 40; i++) {
            send_content(comm, 1, 1, 1, 500); /* queued: it may still come from here */
        }
        send_content(comm, 1, 2, 2, 8);
        recv_content_from(comm, SPC_ANY_SOURCE, 1, 2, 2, 8);
        CHECK_EQ(recv_until(comm, SPC_ANY_SOURCE, 3, SPC_NO_DEADLINE, &message), SPC_EFINISHED);
    } else {
        for (int i = 0; i < 30; i++) {
            send_content(comm, 1, i, (uint64_t)i, mixed_bytes(i));
        }
    }
    comm_box_leave(comm);
}

TEST(finished_after_all_was_delivered) {
    run_ranks(2, (spc_config_t){.slots = 1, .ring_bytes = 1024, .arena_bytes = 65536}, finished_body);
    run_ranks(2, (spc_config_t){.slots = 32}, finished_body);
}

/* Messages that a node took stay its own after close, while others go on. */
TEST(closed_nodes_keep_what_they_took) {
    party_t party = party_open(3, (spc_config_t){.arena_bytes = 65536, .ring_bytes = 1024, .slots = 8});
    spc_message_t block, ring;
    send_content(party.comm[0], 1, 1, 1, 30000);
    send_content(party.comm[0], 1, 2, 2, 200);
    send_content(party.comm[0], 1, 3, 3, 200); /* never asked for */
    CHECK_OK(recv_until(party.comm[1], 0, 1, AT_ONCE, &block));
    CHECK_OK(recv_until(party.comm[1], 0, 2, AT_ONCE, &ring));
    CHECK_EQ(block.storage, SPC_STORED_ARENA);
    CHECK_EQ(ring.storage, SPC_STORED_RING);
    CHECK_OK(spc_comm_close(party.comm[1], AT_ONCE));
    for (int i = 0; i < 50; i++) {
        send_content(party.comm[0], 2, i, (uint64_t)i, i % 2 ? 25000 : 200);
        recv_content(party.comm[2], 0, i, (uint64_t)i, i % 2 ? 25000 : 200);
    }
    message_check(&block, 0, 1, 1, 30000);
    message_check(&ring, 0, 2, 2, 200);
    spc_message_release(party.comm[1], &block);
    spc_message_release(party.comm[1], &ring);
    CHECK_EQ(recv_until(party.comm[1], 0, 3, AT_ONCE, &block), SPC_ECLOSED);
    for (int i = 0; i < 4; i++) { /* all of the arena is free again */
        send_content(party.comm[0], 2, i, 1, 60000);
        CHECK_OK(recv_until(party.comm[2], 0, i, AT_ONCE, &block));
        CHECK_EQ(block.storage, SPC_STORED_ARENA);
        spc_message_release(party.comm[2], &block);
    }
    party_close(&party);
}

TEST(a_forked_child_is_no_node) {
    party_t party = party_open(2, (spc_config_t){0});
    spc_message_t message;
    send_content(party.comm[0], 1, 1, 1, 100000);
    CHECK_OK(recv_until(party.comm[1], 0, 1, AT_ONCE, &message));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        spc_message_t other;
        bool right = spc_comm_usable(party.comm[0]) == SPC_EFORKED
                     && recv_until(party.comm[1], 0, 1, AT_ONCE, &other) == SPC_EFORKED
                     && spc_comm_close(party.comm[1], AT_ONCE) == SPC_EFORKED;
        spc_message_release(party.comm[1], &message); /* does nothing */
        _exit(right ? 0 : 1);
    }
    CHECK_EQ(check_wait(child), 0);
    for (int i = 0; i < 10; i++) {
        send_content(party.comm[0], 0, 1, 2, 100000);
        recv_content(party.comm[0], 0, 1, 2, 100000);
    }
    message_check(&message, 0, 1, 1, 100000); /* the pin is still there */
    spc_message_release(party.comm[1], &message);
    party_close(&party);
}

/* ---- collectives among messages */

TEST(collectives_resume_after_a_timeout) {
    party_t party = party_open(2, (spc_config_t){0});
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    const spc_signature_t other = {.operation = SPC_OPERATION_GATHER};
    uint64_t phase;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(spc_comm_collective(party.comm[0], &signature, NULL, NULL, 0, NULL, AT_ONCE), SPC_ETIMEDOUT);
        CHECK_EQ(spc_comm_collective(party.comm[0], &other, NULL, NULL, 0, NULL, AT_ONCE), SPC_EMISMATCH);
        CHECK_EQ(spc_comm_fuzzy_enter(party.comm[0], &phase), SPC_EMISMATCH);
        CHECK_EQ(spc_comm_collective(party.comm[0], &signature, NULL, NULL, 0, NULL, AT_ONCE), SPC_ETIMEDOUT);
        CHECK_OK(spc_comm_collective(party.comm[1], &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE));
        CHECK_OK(spc_comm_collective(party.comm[0], &signature, NULL, NULL, 0, NULL, AT_ONCE));
    }
    party_close(&party);
}

static void mix_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    for (int i = 0; i < check_scale(400); i++) {
        uint64_t phase[2];
        CHECK_OK(spc_comm_fuzzy_enter(comm, &phase[0]));
        send_content(comm, next, i, (uint64_t)i, mixed_bytes(i));
        CHECK_OK(spc_comm_fuzzy_enter(comm, &phase[1]));
        barrier(comm);
        recv_content(comm, previous, i, (uint64_t)i, mixed_bytes(i));
        CHECK_OK(spc_comm_fuzzy_wait(comm, phase[i % 2], SPC_NO_DEADLINE));
        while (spc_comm_fuzzy_done(comm, phase[1 - i % 2]) == SPC_EAGAIN) {
        }
    }
    comm_box_leave(comm);
}

TEST(fuzzy_barriers_collectives_and_messages) {
    run_ranks(3, (spc_config_t){.slots = 1, .ring_bytes = 1024, .arena_bytes = 65536}, mix_body);
}

/* ---- many nodes */

static void many_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    int32_t all[CHECK_MAX_RANKS];
    for (int i = 0; i < size; i++) {
        all[i] = i;
    }
    for (int round = 0; round < 2; round++) {
        CHECK_OK(send_until(comm, all, (uint32_t)size, rank, (uint64_t)rank, 20 + 300 * (uint64_t)round,
                            SPC_NO_DEADLINE));
        for (int i = 0; i < size; i++) {
            spc_message_t message;
            int32_t source = round == 0 ? SPC_ANY_SOURCE : (rank + i) % size;
            CHECK_OK(recv_until(comm, source, SPC_ANY_TAG, SPC_NO_DEADLINE, &message));
            message_check(&message, message.tag, message.tag, (uint64_t)message.tag,
                          20 + 300 * (uint64_t)round);
            spc_message_release(comm, &message);
        }
        barrier(comm);
    }
    comm_box_leave(comm);
}

TEST(seventy_nodes) {
    comm_box_t box =
        comm_box_open((spc_config_t){.nodes = 70, .slots = 2, .ring_bytes = 8192, .arena_bytes = 1});
    check_threads(70, many_body, &box);
    comm_box_close(&box);
}

TEST_MAIN()
