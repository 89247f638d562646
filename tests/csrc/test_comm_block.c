/* SPDX-License-Identifier: MIT */
/* Blocks that a caller holds: taken, given back, handed on in order and without a copy, and lost with nobody. */
#include "comm_box.h"

#include <sched.h>

static spc_block_shared_t *take(spc_comm_t *comm, uint64_t bytes) {
    spc_block_shared_t *block = NULL;
    CHECK_OK(spc_comm_take_block(comm, bytes, &block));
    CHECK(block->capacity_bytes >= bytes);
    return block;
}

static int move_until(spc_comm_t *comm, int32_t to, int32_t tag, uint64_t bytes, uint64_t deadline_ns,
                      spc_block_shared_t **block) {
    const spc_payload_t payload = {.meta_bytes = 64, .data_bytes = bytes - 64, .format = SPC_FORMAT_ARRAY};
    return spc_comm_move_block(comm, to, SPC_CONTEXT_USER, tag, &payload, deadline_ns, block);
}

static void move(spc_comm_t *comm, int32_t to, int32_t tag, uint64_t bytes, spc_block_shared_t *block) {
    CHECK_OK(move_until(comm, to, tag, bytes, SPC_NO_DEADLINE, &block));
    CHECK_EQ_PTR(block, NULL);
}

static spc_message_t receive(spc_comm_t *comm, int32_t source, int32_t tag) {
    spc_message_t message;
    CHECK_OK(recv_until(comm, source, tag, SPC_NO_DEADLINE, &message));
    return message;
}

/* csrc.mk: in the place of spc_status_end, which the linker calls __real_... */
static spc_comm_t *survivor; /* counts as soon as it can hear of an end; NULL: nobody does */

void __real_spc_status_end(spc_status_shared_t *status, uint32_t rank, spc_node_state_t state, int32_t reason,
                           spc_event_shared_t *events, uint32_t event_count, uint32_t features);
void __wrap_spc_status_end(spc_status_shared_t *status, uint32_t rank, spc_node_state_t state, int32_t reason,
                           spc_event_shared_t *events, uint32_t event_count, uint32_t features);

void __wrap_spc_status_end(spc_status_shared_t *status, uint32_t rank, spc_node_state_t state, int32_t reason,
                           spc_event_shared_t *events, uint32_t event_count, uint32_t features) {
    __real_spc_status_end(status, rank, state, reason, events, event_count, features);
    if (survivor != NULL) {
        CHECK_EQ_U(spc_comm_block_bytes(survivor), 0);
    }
}

/* ---- taking and giving back */

static void give_back_body(int rank, int size, void *argument) {
    (void)size;
    spc_comm_t *comm = comm_box_join(argument, rank);
    spc_block_shared_t *block[4];
    CHECK_EQ_U(spc_comm_block_bytes(comm), 0);
    for (int i = 0; i < 4; i++) {
        block[i] = take(comm, 10000);
    }
    CHECK(spc_comm_block_bytes(comm) >= 40000);
    spc_block_shared_t *none = NULL;
    CHECK_EQ(spc_comm_take_block(comm, 1 << 20, &none), SPC_EAGAIN);
    CHECK_EQ_PTR(none, NULL);
    for (int i = 0; i < 4; i++) {
        spc_comm_release_block(comm, block[i]);
    }
    CHECK_EQ_U(spc_comm_block_bytes(comm), 0);
    block[0] = take(comm, 10);
    CHECK_OK(spc_comm_close(comm, SPC_NO_DEADLINE));
    CHECK_EQ(spc_comm_take_block(comm, 10, &none), SPC_ECLOSED);
    CHECK_EQ(move_until(comm, 0, 0, 64, SPC_NO_DEADLINE, &block[0]), SPC_ECLOSED);
    CHECK(block[0] != NULL);
    spc_comm_release_block(comm, block[0]);
    spc_comm_destroy(comm);
}

TEST(what_is_taken_comes_back) {
    run_ranks(3, (spc_config_t){.arena_bytes = 1 << 20}, give_back_body);
}

/* ---- moving: the very same memory goes around, whoever's arena it is of */

static void around_body(int rank, int size, void *argument) {
    enum { LAPS = 20 };
    const uint64_t bytes = 64 + 3000;
    const int32_t next = (rank + 1) % size, last = (rank + size - 1) % size;
    const comm_box_t *box = argument;
    spc_comm_t *comm = comm_box_join(box, rank);
    spc_block_shared_t *own = take(comm, bytes);
    const void *place = own;
    memset(spc_block_payload(own), rank, bytes);
    move(comm, next, 0, bytes, own);
    for (int hop = 1; hop <= LAPS * size; hop++) {
        spc_message_t message = receive(comm, last, hop - 1);
        spc_block_shared_t *block = message.handle;
        int origin = (rank + size * LAPS - hop) % size;
        CHECK_EQ(message.storage, SPC_STORED_ARENA);
        CHECK(message.sole);
        CHECK_EQ_U(message.length_bytes, bytes);
        CHECK_EQ_U(block->owner, origin);
        for (uint64_t i = 64; i < bytes; i++) {
            CHECK_EQ(message.bytes[i], (unsigned char)(origin + hop - 1));
        }
        memset(message.bytes + 64, origin + hop, bytes - 64);
        if (hop == LAPS * size) {
            CHECK_EQ_PTR(block, place);
            CHECK(spc_comm_block_bytes(comm) != 0);
            spc_message_release(comm, &message);
            CHECK_EQ_U(spc_comm_block_bytes(comm), 0);
        } else {
            move(comm, next, hop, bytes, block);
        }
    }
    comm_box_leave(comm);
}

TEST(one_block_goes_around) {
    run_ranks(1, (spc_config_t){.arena_bytes = 1 << 20}, around_body);
    run_ranks(2, (spc_config_t){.arena_bytes = 4096, .slots = 1}, around_body);
    run_ranks(5, (spc_config_t){.arena_bytes = 1 << 20}, around_body);
}

/* ---- who has ended gets nothing, and its block is free */

static void ended_body(int rank, int size, void *argument) {
    (void)size;
    const comm_box_t *box = argument;
    spc_comm_t *comm = comm_box_join(box, rank);
    if (rank == 0) {
        spc_block_shared_t *kept = take(comm, 1000);
        move(comm, 1, 1, 1000, kept); /* it never asks for this one */
        barrier(comm);
        spc_message_t message = receive(comm, 1, 2);
        spc_block_shared_t *foreign = message.handle;
        CHECK_EQ_U(foreign->owner, 1);
        CHECK_EQ(recv_until(comm, 1, 3, SPC_NO_DEADLINE, &message), SPC_EFINISHED);
        while (spc_comm_block_bytes(comm) != 0) {
            sched_yield(); /* it gives back what it had not received */
        }
        move(comm, 1, 4, 1000, foreign);
        move(comm, 1, 4, 1000, take(comm, 1000));
        CHECK_EQ_U(spc_comm_block_bytes(comm), 0);
    } else {
        move(comm, 0, 2, 1000, take(comm, 1000));
        barrier(comm);
    }
    comm_box_leave(comm);
}

TEST(who_has_ended_holds_nothing) {
    run_ranks(2, (spc_config_t){.arena_bytes = 1 << 20}, ended_body);
}

/* Killed with blocks announced, queued and taken: its pins count no more, and its own arena serves on. */
TEST(who_is_killed_holds_nothing) {
    party_t party = party_open(3, (spc_config_t){.arena_bytes = 1 << 20, .slots = 1});
    spc_comm_t *sender = party.comm[0], *other = party.comm[2];
    move(party.comm[1], 0, 1, 1000, take(party.comm[1], 1000));
    spc_message_t foreign = receive(sender, 1, 1);
    for (int i = 0; i < 4; i++) {
        move(sender, 1, i, 1000, take(sender, 1000));
    }
    spc_message_t message = receive(party.comm[1], 0, 0);
    CHECK_EQ_U(spc_comm_block_bytes(sender), 4 * 1088);
    spc_comm_mark_ended(&party.box.segment, 1, SPC_NODE_DIED, -9);
    uint64_t waiting;
    CHECK_OK(spc_comm_poll(sender, SPC_CONTEXT_USER, &waiting)); /* drops what was queued for it */
    CHECK_EQ_U(spc_comm_block_bytes(sender), 0);
    move(sender, 1, 9, 1000, take(sender, 1000));
    CHECK_EQ_U(spc_comm_block_bytes(sender), 0);
    move(sender, 2, 2, 1000, foreign.handle);
    foreign = receive(other, 0, 2);
    CHECK_EQ_U(((spc_block_shared_t *)foreign.handle)->owner, 1);
    spc_message_release(other, &foreign);
    spc_message_release(party.comm[1], &message);
    party_close(&party);
}

/* ---- where sends wait for their receivers, moves do, and a timeout of the waiting does not undo the move */

static void rendezvous_body(int rank, int size, void *argument) {
    (void)size;
    spc_comm_t *comm = comm_box_join(argument, rank);
    if (rank == 0) {
        spc_block_shared_t *block = take(comm, 1000);
        CHECK_OK(move_until(comm, 1, 1, 1000, AT_ONCE, &block)); /* nobody receives before the barrier */
        CHECK_EQ_PTR(block, NULL);
        barrier(comm);
        move(comm, 1, 2, 1000, take(comm, 1000));
    } else {
        barrier(comm);
        for (int32_t tag = 2; tag >= 1; tag--) {
            spc_message_t message = receive(comm, 0, tag);
            spc_message_release(comm, &message);
        }
    }
    barrier(comm);
    CHECK_EQ_U(spc_comm_block_bytes(comm), 0);
    comm_box_leave(comm);
}

TEST(moves_wait_where_sends_do) {
    run_ranks(2, (spc_config_t){.arena_bytes = 1 << 20, .perturb = SPC_PERTURB_RENDEZVOUS}, rendezvous_body);
}

/* ---- random: blocks of all arenas are taken, written, moved, kept and given back in any order */

enum { KEPT = 12, HOME_TAG = 7 };

typedef struct kept {
    spc_block_shared_t *block;
    uint64_t seed;
} kept_t;

static void write_block(kept_t *kept, uint64_t bytes) {
    unsigned char *content = content_make(kept->seed, bytes);
    memcpy((unsigned char *)spc_block_payload(kept->block) + 64, content, bytes);
    memcpy(spc_block_payload(kept->block), &kept->seed, 8);
    free(content);
}

static void check_block(const kept_t *kept, uint64_t bytes) {
    content_check((unsigned char *)spc_block_payload(kept->block) + 64, kept->seed, bytes);
}

static void random_body(int rank, int size, void *argument) {
    const uint64_t bytes = 1000;
    spc_comm_t *comm = comm_box_join(argument, rank);
    uint64_t random = check_seed() + (uint64_t)rank;
    kept_t kept[KEPT] = {{0}};
    for (long i = 0; i < check_scale(3000); i++) {
        kept_t *one = &kept[check_below(&random, KEPT)];
        spc_message_t message;
        if (one->block == NULL) {
            if (spc_comm_try_recv(comm, SPC_CONTEXT_USER, SPC_ANY_SOURCE, SPC_ANY_TAG, &message) == SPC_OK) {
                one->block = message.handle;
                memcpy(&one->seed, message.bytes, 8);
                check_block(one, bytes);
            } else if (spc_comm_take_block(comm, 64 + bytes, &one->block) != SPC_OK) {
                one->block = NULL;
                sched_yield();
                continue;
            }
            one->seed = check_random(&random);
            write_block(one, bytes);
            continue;
        }
        check_block(one, bytes);
        if (check_below(&random, 3) == 0) {
            spc_comm_release_block(comm, one->block);
        } else {
            move(comm, (int32_t)check_below(&random, (uint64_t)size), HOME_TAG, 64 + bytes, one->block);
        }
        one->block = NULL;
    }
    for (int i = 0; i < KEPT; i++) {
        if (kept[i].block != NULL) {
            check_block(&kept[i], bytes);
            spc_comm_release_block(comm, kept[i].block);
        }
    }
    barrier(comm); /* nobody moves anything any more; what was queued is sent while waiting */
    CHECK_OK(spc_comm_close(comm, SPC_NO_DEADLINE));
    spc_comm_destroy(comm);
}

TEST(random_moves_lose_nothing) {
    run_ranks(3, (spc_config_t){.arena_bytes = 8 * 1152, .slots = 2}, random_body);
    run_ranks(6, (spc_config_t){.arena_bytes = 1 << 20, .slots = 4}, random_body);
}

/* The end of a process that ended without a word, and the memory that it leaves, are one piece of news. */
TEST(an_end_finds_the_memory_free) {
    party_t party = party_open(2, (spc_config_t){.arena_bytes = 1 << 20});
    move(party.comm[0], 1, 1, 1000, take(party.comm[0], 1000));
    spc_message_t message = receive(party.comm[1], 0, 1);
    CHECK(spc_comm_block_bytes(party.comm[0]) != 0);
    survivor = party.comm[0];
    spc_comm_mark_ended(&party.box.segment, 1, SPC_NODE_DIED, -9);
    survivor = NULL;
    spc_message_release(party.comm[1], &message);
    party_close(&party);
}

/* A node that has reported its failure may still read what it received. */
TEST(a_reported_failure_frees_nothing) {
    party_t party = party_open(2, (spc_config_t){.arena_bytes = 1 << 20});
    move(party.comm[0], 1, 1, 1000, take(party.comm[0], 1000));
    spc_message_t message = receive(party.comm[1], 0, 1);
    CHECK_OK(spc_comm_await_gone(party.comm[0], SPC_NO_DEADLINE));
    spc_comm_mark_ending(&party.box.segment, 1, SPC_NODE_DIED, 1);
    CHECK(spc_comm_block_bytes(party.comm[0]) != 0);
    CHECK_EQ(spc_comm_await_gone(party.comm[0], 1), SPC_ETIMEDOUT); /* which counts it, if asked now */
    spc_comm_mark_ended(&party.box.segment, 1, SPC_NODE_DIED, 1);
    CHECK_OK(spc_comm_await_gone(party.comm[0], SPC_NO_DEADLINE));
    CHECK_EQ_U(spc_comm_block_bytes(party.comm[0]), 0);
    spc_message_release(party.comm[1], &message);
    party_close(&party);
}

TEST_MAIN()
