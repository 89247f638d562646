/* SPDX-License-Identifier: MIT */
/* Collectives that move data: every operation, root and length, what goes wrong, and what stays behind. */
#include "comm_box.h"

enum { ROUNDS = 3 };

/* With the phase, through the ring, through the arena, in parts. */
static const uint64_t lengths[] = {0, 8, 40, 41, 4096, 4097, 8192, 8193, 100000};

enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static const uint32_t operations[] = {SPC_OPERATION_DATA_BCAST, SPC_OPERATION_DATA_GATHER,
                                      SPC_OPERATION_DATA_ALLGATHER, SPC_OPERATION_DATA_SCATTER,
                                      SPC_OPERATION_DATA_ALLTOALL};

static bool is_for_each(uint32_t operation) {
    return operation == SPC_OPERATION_DATA_SCATTER || operation == SPC_OPERATION_DATA_ALLTOALL;
}

static bool has_root(uint32_t operation) {
    return operation != SPC_OPERATION_DATA_ALLGATHER && operation != SPC_OPERATION_DATA_ALLTOALL;
}

static bool from_root(uint32_t operation) {
    return operation == SPC_OPERATION_DATA_BCAST || operation == SPC_OPERATION_DATA_SCATTER;
}

/* The data that `rank` gives `to`: their length differs from that of its neighbours'. */
static uint64_t bytes_of(int number, int rank, int to) {
    return lengths[(number + rank + to) % LENGTHS];
}

static uint64_t seed_of(int number, int rank, int to) {
    return (uint64_t)(number * 10000 + rank * 100 + to);
}

typedef struct gift {
    unsigned char *content[CHECK_MAX_RANKS];
    spc_payload_t payload[CHECK_MAX_RANKS];
    spc_gathering_t call;
} gift_t;

static gift_t *gift_make(spc_comm_t *comm, int number, uint32_t operation, int root) {
    gift_t *gift = calloc(1, sizeof *gift);
    int rank = (int)spc_comm_rank(comm);
    CHECK(gift != NULL);
    gift->call.operation = operation;
    gift->call.root = (uint32_t)root;
    if (from_root(operation) && rank != root) {
        return gift;
    }
    gift->call.payloads = gift->payload;
    gift->call.payload_count = is_for_each(operation) ? spc_comm_size(comm) : 1;
    for (int to = 0; to < (int)gift->call.payload_count; to++) {
        uint64_t bytes = bytes_of(number, rank, to);
        gift->content[to] = content_make(seed_of(number, rank, to), bytes);
        gift->payload[to] = content_payload(gift->content[to], bytes);
    }
    return gift;
}

static void gift_drop(spc_comm_t *comm, gift_t *gift) {
    spc_comm_gathering_end(comm, &gift->call);
    for (int to = 0; to < CHECK_MAX_RANKS; to++) {
        free(gift->content[to]);
    }
    free(gift);
}

static void gift_check(const spc_comm_t *comm, const gift_t *gift, int number) {
    uint32_t operation = gift->call.operation;
    int rank = (int)spc_comm_rank(comm), root = (int)gift->call.root;
    CHECK_EQ(gift->call.failed, -1);
    for (int from = 0; from < (int)spc_comm_size(comm); from++) {
        bool gives = from_root(operation) ? from == root : !has_root(operation) || rank == root;
        if (!gives || from == rank) {
            continue;
        }
        int to = is_for_each(operation) ? rank : 0;
        const spc_message_t *message = &gift->call.messages[from_root(operation) ? 0 : from];
        message_check(message, from, 0, seed_of(number, from, to), bytes_of(number, from, to));
    }
}

static void run_all(spc_comm_t *comm, int number) {
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        for (int root = 0; root < (has_root(operations[i]) ? (int)spc_comm_size(comm) : 1); root++) {
            gift_t *gift = gift_make(comm, number, operations[i], root);
            int status = number % 2 == 0 ? SPC_EAGAIN : spc_comm_gathering_poll(comm, &gift->call);
            CHECK_OK(status == SPC_EAGAIN ? spc_comm_gathering(comm, &gift->call, SPC_NO_DEADLINE) : status);
            gift_check(comm, gift, number);
            gift_drop(comm, gift);
        }
    }
}

static void everything_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    (void)size;
    for (int number = 0; number < check_scale(ROUNDS * LENGTHS); number++) {
        run_all(comm, number);
    }
    comm_box_leave(comm);
}

TEST(every_operation_root_and_length) {
    for (int n = 1; n <= 5; n += n == 3 ? 2 : 1) {
        run_ranks(n, (spc_config_t){0}, everything_body);
    }
    run_ranks(3, (spc_config_t){.slots = 1, .ring_bytes = 1024, .arena_bytes = 1}, everything_body);
    run_ranks(4, (spc_config_t){.slots = 2, .ring_bytes = 4096, .arena_bytes = 65536, .scratch_bytes = 256},
              everything_body);
    run_ranks(3, (spc_config_t){.ring_bytes = 4096, .arena_bytes = 1, .queue_limit_bytes = 20000},
              everything_body);
}

/* More nodes than parts fit into the scratch: everything goes as messages. */
static void many_nodes_body(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    (void)size;
    gift_t *gift = gift_make(comm, 1, SPC_OPERATION_DATA_ALLTOALL, 0);
    CHECK_OK(spc_comm_gathering(comm, &gift->call, SPC_NO_DEADLINE));
    gift_check(comm, gift, 1);
    gift_drop(comm, gift);
    comm_box_leave(comm);
}

TEST(forty_nodes_with_little_scratch) {
    comm_box_t box = comm_box_open((spc_config_t){.nodes = 40, .arena_bytes = 1, .scratch_bytes = 256});
    check_threads(40, many_nodes_body, &box);
    comm_box_close(&box);
}

/* ---- one thread plays all nodes: a poll that has found nothing stays inside ---- */

static const spc_signature_t barrier_call = {.operation = SPC_OPERATION_BARRIER};

static int go(party_t *party, int rank, gift_t *gift) {
    return spc_comm_gathering_poll(party->comm[rank], &gift->call);
}

TEST(it_stays_entered_until_its_data_are_here) {
    party_t party = party_open(2, (spc_config_t){.arena_bytes = 1});
    uint64_t phase;
    for (int number = 5; number < 8; number++) {
        gift_t *zero = gift_make(party.comm[0], number, SPC_OPERATION_DATA_GATHER, 0);
        gift_t *one = gift_make(party.comm[1], number, SPC_OPERATION_DATA_GATHER, 0);
        CHECK_EQ(go(&party, 1, one), SPC_EAGAIN);
        CHECK_EQ(go(&party, 0, zero), SPC_EAGAIN); /* all have entered; node 1 has not sent */
        CHECK_EQ(spc_comm_collective(party.comm[0], &barrier_call, NULL, NULL, 0, NULL, AT_ONCE),
                 SPC_EMISMATCH);
        CHECK_EQ(spc_comm_fuzzy_enter(party.comm[0], &phase), SPC_EMISMATCH);
        CHECK_EQ(go(&party, 0, zero), SPC_EAGAIN);
        CHECK_OK(go(&party, 1, one));
        CHECK_OK(go(&party, 0, zero));
        gift_check(party.comm[0], zero, number);
        gift_drop(party.comm[0], zero);
        gift_drop(party.comm[1], one);
    }
    party_close(&party);
}

/* A large message still lies in the arena: nothing was left pinned there. */
static void check_room(party_t *party) {
    spc_message_t message;
    send_content(party->comm[0], 1, 0, 1, 300000);
    CHECK_OK(recv_until(party->comm[1], 0, 0, SPC_NO_DEADLINE, &message));
    CHECK_EQ(message.storage, SPC_STORED_ARENA);
    spc_message_release(party->comm[1], &message);
}

TEST(refused_calls_send_nothing_and_keep_nothing) {
    party_t party = party_open(2, (spc_config_t){.arena_bytes = 1 << 19});
    for (int i = 0; i < 5; i++) {
        gift_t *zero = gift_make(party.comm[0], 8, SPC_OPERATION_DATA_ALLGATHER, 0);
        gift_t *one = gift_make(party.comm[1], 8, SPC_OPERATION_DATA_BCAST, 1);
        spc_payload_t large = content_payload(zero->content[0], bytes_of(8, 0, 0));
        unsigned char *content = content_make(1, 300000);
        large = content_payload(content, 300000);
        zero->call.payloads = &large;
        CHECK_EQ(go(&party, 0, zero), SPC_EAGAIN);
        CHECK_EQ(go(&party, 1, one), SPC_EMISMATCH);
        CHECK_EQ(go(&party, 0, zero), SPC_EMISMATCH);
        gift_drop(party.comm[0], zero);
        gift_drop(party.comm[1], one);
        free(content);
        check_room(&party);
    }
    party_close(&party);
}

/* It has entered, so it has given: the others may come later, and then its block is free. */
TEST(a_call_given_up_has_given_all_the_same) {
    party_t party = party_open(2, (spc_config_t){.arena_bytes = 1 << 19});
    unsigned char *content = content_make(1, 300000);
    spc_payload_t large = content_payload(content, 300000);
    spc_gathering_t call = {.operation = SPC_OPERATION_DATA_BCAST, .payloads = &large, .payload_count = 1};
    spc_gathering_t other = {.operation = SPC_OPERATION_DATA_BCAST};
    CHECK_EQ(spc_comm_gathering_poll(party.comm[0], &call), SPC_EAGAIN);
    spc_comm_gathering_end(party.comm[0], &call);
    spc_comm_gathering_end(party.comm[0], &call);
    memset(content, 0, 300000);
    CHECK_OK(spc_comm_gathering_poll(party.comm[1], &other));
    message_check(&other.messages[0], 0, 0, 1, 300000);
    CHECK_EQ(other.messages[0].storage, SPC_STORED_ARENA);
    CHECK(other.messages[0].sole != 0);
    spc_comm_gathering_end(party.comm[1], &other);
    check_room(&party);
    free(content);
    party_close(&party);
}

/* Within a cycle it is refused before it has entered: nothing stays in the arena. */
TEST(a_call_that_may_not_enter_keeps_nothing) {
    party_t party = party_open(2, (spc_config_t){.arena_bytes = 1 << 19});
    unsigned char *content = content_make(1, 300000);
    spc_payload_t large = content_payload(content, 300000);
    const int32_t nobody = 0;
    CHECK_OK(coordinated_send_until(party.comm[0], &nobody, 0, &large, SPC_NO_DEADLINE));
    for (int i = 0; i < 3; i++) {
        spc_gathering_t call = {
            .operation = SPC_OPERATION_DATA_ALLGATHER, .payloads = &large, .payload_count = 1};
        CHECK_EQ(spc_comm_gathering_poll(party.comm[0], &call), SPC_ECYCLE);
        check_room(&party);
        spc_comm_gathering_end(party.comm[0], &call);
    }
    free(content);
    party_close(&party);
}

/* Node 1 never comes: its pin is taken back. Several receivers share a block, and nobody is its sole owner. */
TEST(blocks_of_a_call_that_cannot_complete) {
    party_t party = party_open(3, (spc_config_t){.arena_bytes = 1 << 19});
    unsigned char *content = content_make(1, 300000);
    spc_payload_t large = content_payload(content, 300000);
    spc_gathering_t call = {.operation = SPC_OPERATION_DATA_BCAST, .payloads = &large, .payload_count = 1};
    spc_gathering_t others[2] = {{.operation = SPC_OPERATION_DATA_BCAST},
                                 {.operation = SPC_OPERATION_DATA_BCAST}};
    CHECK_EQ(spc_comm_gathering_poll(party.comm[0], &call), SPC_EAGAIN);
    CHECK_EQ(spc_comm_gathering_poll(party.comm[1], &others[0]), SPC_EAGAIN);
    CHECK_OK(spc_comm_gathering_poll(party.comm[2], &others[1]));
    CHECK_OK(spc_comm_gathering_poll(party.comm[1], &others[0]));
    CHECK_OK(spc_comm_gathering_poll(party.comm[0], &call));
    for (int i = 0; i < 2; i++) {
        message_check(&others[i].messages[0], 0, 0, 1, 300000);
        CHECK(others[i].messages[0].sole == 0);
        spc_comm_gathering_end(party.comm[1 + i], &others[i]);
    }
    spc_comm_gathering_end(party.comm[0], &call);
    check_room(&party);
    CHECK_OK(spc_comm_close(party.comm[2], AT_ONCE));
    memset(&call, 0, sizeof call);
    call.operation = SPC_OPERATION_DATA_BCAST;
    call.payloads = &large;
    call.payload_count = 1;
    CHECK_EQ(spc_comm_gathering(party.comm[0], &call, SPC_NO_DEADLINE), SPC_EFINISHED);
    check_room(&party);
    spc_comm_gathering_end(party.comm[0], &call);
    free(content);
    party_close(&party);
}

TEST(who_cannot_give_says_so) {
    static const char reason[] = "it has nothing";
    party_t party = party_open(2, (spc_config_t){0});
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        int culprit = from_root(operations[i]) ? 0 : 1, other = 1 - culprit;
        spc_gathering_t call = {
            .operation = operations[i], .failure = reason, .failure_bytes = sizeof reason};
        gift_t *gift = gift_make(party.comm[other], 8, operations[i], 0);
        CHECK_EQ(spc_comm_gathering_poll(party.comm[culprit], &call), SPC_EAGAIN);
        CHECK_OK(go(&party, other, gift));
        CHECK_EQ(gift->call.failed, culprit);
        const spc_message_t *message = &gift->call.messages[from_root(operations[i]) ? 0 : culprit];
        CHECK_EQ_U(message->length_bytes, sizeof reason);
        CHECK_STR((const char *)message->bytes, reason);
        CHECK_OK(spc_comm_gathering_poll(party.comm[culprit], &call)); /* what the other gave has come, too */
        CHECK_EQ(call.failed, -1);
        spc_comm_gathering_end(party.comm[culprit], &call);
        gift_drop(party.comm[other], gift);
    }
    party_close(&party);
}

TEST(wrong_calls) {
    party_t party = party_open(2, (spc_config_t){0});
    const spc_payload_t payload = {.format = SPC_FORMAT_NONE};
    spc_gathering_t wrong[] = {
        {.operation = SPC_OPERATION_GATHER, .payloads = &payload, .payload_count = 1},
        {.operation = SPC_OPERATION_COUNT, .payloads = &payload, .payload_count = 1},
        {.operation = SPC_OPERATION_DATA_BCAST, .root = 2, .payloads = &payload, .payload_count = 1},
        {.operation = SPC_OPERATION_DATA_BCAST},
        {.operation = SPC_OPERATION_DATA_SCATTER, .payloads = &payload, .payload_count = 1},
        {.operation = SPC_OPERATION_DATA_ALLGATHER, .payloads = &payload, .payload_count = 2},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(spc_comm_gathering_poll(party.comm[0], &wrong[i]), SPC_EINVAL);
        CHECK_EQ(spc_comm_gathering(party.comm[0], &wrong[i], SPC_NO_DEADLINE), SPC_EINVAL);
        spc_comm_gathering_end(party.comm[0], &wrong[i]);
    }
    spc_gathering_t call = {.operation = SPC_OPERATION_DATA_BCAST, .payloads = &payload, .payload_count = 1};
    CHECK_OK(spc_comm_close(party.comm[0], AT_ONCE));
    CHECK_EQ(spc_comm_gathering_poll(party.comm[0], &call), SPC_ECLOSED);
    CHECK_EQ(spc_comm_gathering(party.comm[0], &call, SPC_NO_DEADLINE), SPC_ECLOSED);
    party_close(&party);
}

/* Node 1 has entered, and leaves without having sent; what node 2 gave before it finished counts. */
TEST(who_leaves_before_it_has_sent) {
    party_t party = party_open(3, (spc_config_t){.arena_bytes = 1});
    spc_node_state_t state;
    int32_t reason;
    gift_t *gift[3];
    for (int rank = 0; rank < 3; rank++) {
        gift[rank] = gift_make(party.comm[rank], 5, SPC_OPERATION_DATA_GATHER, 0);
    }
    CHECK_EQ(go(&party, 1, gift[1]), SPC_EAGAIN);
    CHECK_EQ(go(&party, 0, gift[0]), SPC_EAGAIN);
    CHECK_OK(go(&party, 2, gift[2]));
    CHECK_OK(spc_comm_close(party.comm[2], AT_ONCE));
    CHECK_OK(spc_comm_close(party.comm[1], AT_ONCE));
    CHECK_EQ(spc_comm_gathering(party.comm[0], &gift[0]->call, SPC_NO_DEADLINE), SPC_EFINISHED);
    CHECK_EQ(spc_comm_culprit(party.comm[0], &state, &reason), 1);
    for (int rank = 0; rank < 3; rank++) {
        gift_drop(party.comm[rank], gift[rank]);
    }
    party_close(&party);
}

TEST_MAIN()
