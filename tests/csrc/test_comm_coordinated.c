/* SPDX-License-Identifier: MIT */
/* Cycles of coordinated messages, step by step: one thread plays all nodes. */
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

/* One message from each of these, in any order; their seeds are by source. */
static void expect_from(spc_comm_t *comm, uint32_t sources, const uint64_t *bytes) {
    while (sources != 0) {
        spc_message_t message;
        bool over = true;
        CHECK_OK(spc_comm_coordinated_recv(comm, SPC_NO_DEADLINE, &message, &over));
        CHECK(!over && (sources >> message.source & 1) != 0);
        sources &= ~(1u << message.source);
        message_check(&message, message.source, message.tag, (uint64_t)message.source, bytes[message.source]);
        spc_message_release(comm, &message);
    }
}

TEST(messages_come_while_others_have_not_entered) {
    party_t party = party_open(3, plain);
    const uint64_t bytes[] = {8, 60000, 40};
    coordinated(party.comm[0], 1, 0, bytes[0]);
    coordinated(party.comm[1], 1, 1, bytes[1]); /* to itself */
    expect_from(party.comm[1], 1u << 0 | 1u << 1, bytes);
    expect_none(party.comm[1], AT_ONCE, SPC_ETIMEDOUT); /* who knows what node 2 has sent? */
    coordinated(party.comm[0], 1, 0, bytes[0]);
    coordinated(party.comm[2], 1, 2, bytes[2]);
    expect_from(party.comm[1], 1u << 0 | 1u << 2, bytes);
    expect_none(party.comm[0], AT_ONCE, SPC_ETIMEDOUT);
    all_over(&party);
    party_close(&party);
}

static void send_pair(spc_comm_t *comm, uint64_t cycle) {
    coordinated(comm, 1, cycle, 8);
    coordinated(comm, 1, cycle + 1000, 50000);
    expect_none(comm, AT_ONCE, SPC_ETIMEDOUT);
}

/* Node 0 is through, sends the next cycle's and enters it, before node 1 has taken all of the first. */
TEST(a_fast_node_is_one_cycle_ahead_and_no_more) {
    party_t party = party_open(2, plain);
    send_pair(party.comm[0], 0);
    for (uint64_t cycle = 0; cycle < 20; cycle++) {
        expect_next(party.comm[1], 0, cycle, 8); /* enters */
        expect_over(party.comm[0]);
        send_pair(party.comm[0], cycle + 1);
        expect_none(party.comm[0], AT_ONCE, SPC_ETIMEDOUT);
        expect_next(party.comm[1], 0, cycle + 1000, 50000);
        expect_over(party.comm[1]); /* the next one's messages stay */
    }
    party_close(&party);
}

TEST(ordinary_messages_are_something_else) {
    party_t party = party_open(2, plain);
    spc_message_t message;
    send_content(party.comm[0], 1, 0, 1, 8);
    coordinated(party.comm[0], 1, 2, 8);
    send_content(party.comm[0], 1, 1, 3, 8);
    expect_none(party.comm[0], AT_ONCE, SPC_ETIMEDOUT);
    expect_next(party.comm[1], 0, 2, 8);
    recv_content_from(party.comm[1], SPC_ANY_SOURCE, 0, 0, 1, 8);
    expect_over(party.comm[1]);
    coordinated(party.comm[1], 1, 4, 8);
    recv_content_from(party.comm[1], SPC_ANY_SOURCE, 0, 1, 3, 8);
    CHECK_EQ(recv_until(party.comm[1], SPC_ANY_SOURCE, SPC_ANY_TAG, AT_ONCE, &message), SPC_ETIMEDOUT);
    party_close(&party);
}

/* ---- what is refused, and loses nothing */

TEST(sending_after_the_first_receive_is_refused) {
    party_t party = party_open(2, plain);
    const int32_t to = 1;
    const spc_payload_t empty = {.format = SPC_FORMAT_RAW};
    coordinated(party.comm[0], 1, 1, 8);
    expect_none(party.comm[0], AT_ONCE, SPC_ETIMEDOUT);
    CHECK_EQ(coordinated_until(party.comm[0], &to, 1, 2, 8, AT_ONCE), SPC_ECYCLE);
    CHECK_EQ(coordinated_until(party.comm[0], &to, 1, 2, 100000, AT_ONCE), SPC_ECYCLE);
    CHECK_EQ(coordinated_send_until(party.comm[0], NULL, 0, &empty, AT_ONCE), SPC_ECYCLE);
    send_content(party.comm[0], 1, 5, 6, 100000); /* ordinary ones are free */
    expect_next(party.comm[1], 0, 1, 8);
    expect_over(party.comm[1]);
    recv_content(party.comm[1], 0, 5, 6, 100000);
    expect_over(party.comm[0]);
    coordinated(party.comm[0], 1, 2, 8);
    expect_next(party.comm[1], 0, 2, 8);
    party_close(&party);
}

/* A refused large message gives its block back: there is room for just two. */
TEST(refused_large_messages_take_no_memory) {
    party_t party = party_open(1, (spc_config_t){.arena_bytes = 65536});
    const int32_t to = 0;
    expect_over(party.comm[0]);
    for (int i = 0; i < 20; i++) {
        coordinated(party.comm[0], 0, 1, 20000);
        expect_next(party.comm[0], 0, 1, 20000);
        for (int again = 0; again < 5; again++) {
            CHECK_EQ(coordinated_until(party.comm[0], &to, 1, 2, 20000, AT_ONCE), SPC_ECYCLE);
        }
        expect_over(party.comm[0]);
        spc_message_t message;
        send_content(party.comm[0], 0, 0, 3, 20000);
        CHECK_OK(recv_until(party.comm[0], 0, 0, AT_ONCE, &message));
        CHECK_EQ(message.storage, SPC_STORED_ARENA); /* not in parts */
        spc_message_release(party.comm[0], &message);
    }
    party_close(&party);
}

static void expect_no_synchronising(spc_comm_t *comm, uint64_t older) {
    spc_comm_t *part;
    uint64_t phase;
    CHECK_EQ(barrier_at_once(comm), SPC_ECYCLE);
    CHECK_EQ(spc_comm_collective_poll(comm, &barrier_call, NULL, NULL, 0, NULL), SPC_ECYCLE);
    CHECK_EQ(spc_comm_fuzzy_enter(comm, &phase), SPC_ECYCLE);
    CHECK_EQ(spc_comm_fuzzy_wait(comm, older, AT_ONCE), SPC_ECYCLE);
    CHECK_EQ(spc_comm_split(comm, 0, 0, AT_ONCE, &part), SPC_ECYCLE);
    CHECK_EQ(spc_comm_fuzzy_done(comm, older), SPC_EAGAIN);
}

TEST(synchronising_inside_a_cycle_is_refused) {
    party_t party = party_open(2, plain);
    const spc_payload_t empty = {.format = SPC_FORMAT_RAW};
    uint64_t older[2];
    for (int how = 0; how < 3; how++) {
        spc_comm_t *comm = party.comm[0];
        CHECK_OK(spc_comm_fuzzy_enter(comm, &older[0]));
        if (how == 0) {
            coordinated(comm, 1, 1, 8);
        } else if (how == 1) {
            CHECK_OK(coordinated_send_until(comm, NULL, 0, &empty, AT_ONCE));
        }
        if (how != 2) {
            expect_no_synchronising(comm, older[0]);
        }
        expect_none(comm, AT_ONCE, SPC_ETIMEDOUT);
        expect_no_synchronising(comm, older[0]);
        CHECK_OK(spc_comm_fuzzy_enter(party.comm[1], &older[1]));
        if (how == 0) {
            expect_next(party.comm[1], 0, 1, 8);
        }
        expect_over(party.comm[1]);
        CHECK_OK(spc_comm_fuzzy_done(comm, older[0])); /* allowed inside */
        expect_over(comm);
        CHECK_OK(spc_comm_fuzzy_wait(party.comm[1], older[1], AT_ONCE));
        CHECK_EQ(barrier_at_once(comm), SPC_ETIMEDOUT);
        CHECK_OK(barrier_at_once(party.comm[1]));
        CHECK_OK(barrier_at_once(comm));
    }
    party_close(&party);
}

/* Eight fuzzy barriers open, the most there may be, and the cycle's phase. */
TEST(eight_fuzzy_barriers_may_be_open) {
    party_t party = party_open(2, plain);
    for (int round = 0; round < 3; round++) {
        uint64_t phase[2][SPC_FUZZY_MAX];
        for (int i = 0; i < SPC_FUZZY_MAX; i++) {
            CHECK_OK(spc_comm_fuzzy_enter(party.comm[0], &phase[0][i]));
        }
        coordinated(party.comm[0], 1, 7, 8);
        expect_none(party.comm[0], AT_ONCE, SPC_ETIMEDOUT);
        for (int i = 0; i < SPC_FUZZY_MAX; i++) {
            CHECK_OK(spc_comm_fuzzy_enter(party.comm[1], &phase[1][i]));
        }
        expect_next(party.comm[1], 0, 7, 8);
        expect_over(party.comm[1]);
        expect_over(party.comm[0]);
        for (int i = 0; i < SPC_FUZZY_MAX; i++) {
            CHECK_OK(spc_comm_fuzzy_wait(party.comm[0], phase[0][i], AT_ONCE));
            CHECK_OK(spc_comm_fuzzy_wait(party.comm[1], phase[1][i], AT_ONCE));
        }
    }
    party_close(&party);
}

/* A barrier that a timeout has left must be ended first, and can be. */
TEST(a_left_collective_comes_first) {
    party_t party = party_open(2, plain);
    const int32_t to = 1;
    CHECK_EQ(barrier_at_once(party.comm[0]), SPC_ETIMEDOUT);
    CHECK_EQ(coordinated_until(party.comm[0], &to, 1, 1, 8, AT_ONCE), SPC_EMISMATCH);
    expect_none(party.comm[0], AT_ONCE, SPC_EMISMATCH);
    CHECK_OK(barrier_at_once(party.comm[1]));
    CHECK_OK(barrier_at_once(party.comm[0]));
    coordinated(party.comm[0], 1, 1, 8);
    expect_next(party.comm[1], 0, 1, 8);
    expect_over(party.comm[0]);
    expect_over(party.comm[1]);
    party_close(&party);
}

static void expect_mismatch(spc_comm_t *comm) {
    const int32_t to = 1;
    spc_signature_t called;
    uint64_t phase;
    expect_none(comm, AT_ONCE, SPC_EMISMATCH);
    CHECK(spc_comm_mismatch(comm, 0, &called, &phase));
    CHECK_EQ(called.operation, SPC_OPERATION_COORDINATED);
    CHECK(spc_comm_mismatch(comm, 1, &called, &phase));
    CHECK_EQ(called.operation, SPC_OPERATION_BARRIER);
    CHECK_EQ(barrier_at_once(comm), SPC_ECYCLE);
    CHECK_EQ(coordinated_until(comm, &to, 1, 2, 8, AT_ONCE), SPC_ECYCLE);
}

/* Node 1 calls a barrier instead, first or last: all are told, and the cycle stays open with what was sent. */
TEST(a_mismatch_leaves_the_cycle_open) {
    party_t party = party_open(3, plain);
    for (uint64_t cycle = 0; cycle < 20; cycle++) {
        coordinated(party.comm[0], 1, cycle, 8);
        coordinated(party.comm[2], 0, 50 + cycle, 3000);
        expect_next(party.comm[0], 2, 50 + cycle, 3000);
        for (uint64_t again = 0; again < cycle % 4; again++) {
            const bool first = (cycle + again) % 2 != 0;
            if (first) {
                CHECK_EQ(barrier_at_once(party.comm[1]), SPC_ETIMEDOUT);
            } else {
                expect_none(party.comm[2], AT_ONCE, SPC_ETIMEDOUT);
                CHECK_EQ(barrier_at_once(party.comm[1]), SPC_EMISMATCH);
            }
            expect_mismatch(party.comm[2]);
            expect_mismatch(party.comm[0]);
            if (first) {
                CHECK_EQ(barrier_at_once(party.comm[1]), SPC_EMISMATCH);
            }
            expect_none(party.comm[0], AT_ONCE, SPC_ETIMEDOUT);
        }
        coordinated(party.comm[1], 0, 90 + cycle, 100);
        expect_next(party.comm[1], 0, cycle, 8);
        expect_next(party.comm[0], 1, 90 + cycle, 100);
        expect_over(party.comm[2]);
        expect_over(party.comm[0]);
        expect_over(party.comm[1]);
    }
    party_close(&party);
}

/* ---- giving back */

TEST(a_message_given_back_comes_again) {
    party_t party = party_open(2, plain);
    const uint64_t bytes[] = {8, 500, 60000};
    spc_message_t message;
    bool over;
    for (int i = 0; i < 3; i++) {
        coordinated(party.comm[0], 1, 1, bytes[i]);
        expect_none(party.comm[0], AT_ONCE, SPC_ETIMEDOUT);
        for (int again = 0; again < 3; again++) {
            CHECK_OK(spc_comm_coordinated_recv(party.comm[1], AT_ONCE, &message, &over));
            CHECK(!over);
            CHECK_OK(spc_comm_put_back(party.comm[1], &message));
        }
        CHECK_OK(spc_comm_coordinated_recv(party.comm[1], AT_ONCE, &message, &over));
        expect_over(party.comm[1]);
        CHECK_EQ(spc_comm_put_back(party.comm[1], &message), SPC_ECYCLE); /* too late: it stays ours */
        message_check(&message, 0, message.tag, 1, bytes[i]);
        spc_message_release(party.comm[1], &message);
        expect_over(party.comm[0]);
    }
    party_close(&party);
}

TEST_MAIN()
