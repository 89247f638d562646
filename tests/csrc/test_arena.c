/* SPDX-License-Identifier: MIT */
/* The arena: where blocks lie, who pins them, and random traffic in which no two blocks may ever overlap. */
#include "check.h"

#include <sched.h>

#include "base/spc_error.h"
#include "segment/spc_arena.h"

#define NODES 5
#define OWNER 1

typedef struct store {
    unsigned char *base;
    uint64_t size_bytes;
    spc_status_shared_t *status;
    spc_event_shared_t event[NODES];
    spc_arena_t *arena;
} store_t;

static store_t make_store_of(uint64_t size_bytes, uint32_t nodes) {
    store_t store = {.size_bytes = size_bytes};
    store.base = aligned_alloc(4096, size_bytes + 4096 - size_bytes % 4096);
    store.status = aligned_alloc(64, spc_status_bytes(nodes));
    CHECK(store.base != NULL && store.status != NULL);
    memset(store.base, 0, size_bytes);
    memset(store.status, 0, spc_status_bytes(nodes));
    CHECK_OK(spc_arena_create(store.base, size_bytes, OWNER, nodes, store.status, &store.arena));
    return store;
}

static store_t make_store(uint64_t size_bytes) {
    return make_store_of(size_bytes, NODES);
}

static void free_store(store_t *store) {
    spc_arena_destroy(store->arena);
    free(store->base);
    free(store->status);
}

static spc_block_shared_t *take(store_t *store, uint64_t length_bytes) {
    spc_block_shared_t *block = NULL;
    CHECK_OK(spc_arena_alloc(store->arena, length_bytes, &block));
    CHECK(block->capacity_bytes >= length_bytes);
    CHECK_EQ_U(block->owner, OWNER);
    unsigned char *payload = spc_block_payload(block);
    CHECK_EQ_U((uintptr_t)payload % SPC_ARENA_ALIGNMENT, 0);
    CHECK(payload >= store->base && payload + block->capacity_bytes <= store->base + store->size_bytes);
    for (uint32_t rank = 0; rank < NODES; rank++) {
        CHECK_EQ(atomic_load(&block->pin[rank]), rank == OWNER);
    }
    return block;
}

static void fill(spc_block_shared_t *block) {
    memset(spc_block_payload(block), 0xff, block->capacity_bytes);
}

static void is_full(store_t *store, uint64_t length_bytes) {
    spc_block_shared_t *block = (spc_block_shared_t *)store;
    CHECK_EQ(spc_arena_alloc(store->arena, length_bytes, &block), SPC_EAGAIN);
    CHECK_EQ_PTR(block, store);
}

/* Header and pins take a line here, so this many blocks of 64 bytes fit. */
#define SMALL 128

TEST(lowest_address_first) {
    store_t store = make_store(4 * SMALL);
    spc_block_shared_t *block[4];
    for (int i = 0; i < 4; i++) {
        block[i] = take(&store, 64);
        CHECK_EQ_PTR(block[i], store.base + i * SMALL);
        fill(block[i]);
    }
    is_full(&store, 1);
    spc_block_unpin(block[2], OWNER);
    spc_block_unpin(block[1], OWNER);
    CHECK_EQ_PTR(take(&store, 0), block[1]); /* its pins are cleared of what lay there */
    CHECK_EQ_PTR(take(&store, 64), block[2]);
    is_full(&store, 0);
    free_store(&store);
}

TEST(neighbours_are_joined) {
    store_t store = make_store(4 * SMALL);
    spc_block_shared_t *block[4];
    for (int i = 0; i < 4; i++) {
        block[i] = take(&store, 10);
        fill(block[i]);
    }
    spc_block_unpin(block[0], OWNER);
    spc_block_unpin(block[2], OWNER);
    is_full(&store, 65); /* two free ones, not side by side */
    spc_block_unpin(block[1], OWNER);
    spc_block_shared_t *large = take(&store, 3 * SMALL - 64);
    CHECK_EQ_PTR(large, store.base);
    CHECK_EQ_U(large->capacity_bytes, 3 * SMALL - 64);
    spc_block_unpin(large, OWNER);
    spc_block_unpin(block[3], OWNER);
    CHECK_EQ_U(spc_arena_used(store.arena), 0);
    CHECK_EQ_PTR(take(&store, 4 * SMALL - 64), store.base);
    free_store(&store);
}

TEST(small_rests_are_not_cut_off) {
    store_t store = make_store(3 * 64);
    spc_block_shared_t *block = take(&store, 64);
    CHECK_EQ_U(block->capacity_bytes, 128); /* one more line could hold no block */
    is_full(&store, 1);
    free_store(&store);
}

TEST(impossible_lengths_do_not_fit) {
    store_t store = make_store(4096);
    is_full(&store, 4096);
    is_full(&store, UINT64_MAX);
    is_full(&store, UINT64_MAX - 63);
    take(&store, 4096 - 64);
    free_store(&store);
}

TEST(no_memory_no_blocks) {
    spc_arena_t *arena;
    spc_block_shared_t *block;
    CHECK_OK(spc_arena_create(NULL, 0, OWNER, NODES, NULL, &arena));
    CHECK_EQ(spc_arena_alloc(arena, 1, &block), SPC_EAGAIN);
    CHECK_EQ_U(spc_arena_used(arena), 0);
    spc_arena_destroy(arena);
    spc_arena_destroy(NULL);
}

/* ---- pins */

TEST(last_pin_frees) {
    store_t store = make_store(SMALL);
    spc_block_shared_t *block = take(&store, 64);
    spc_block_pin(block, 0);
    spc_block_pin(block, 4);
    spc_block_unpin(block, OWNER);
    is_full(&store, 64);
    spc_block_unpin(block, 4);
    is_full(&store, 64);
    CHECK_EQ_U(spc_arena_used(store.arena), SMALL);
    spc_block_unpin(block, 0);
    CHECK_EQ_PTR(take(&store, 64), block);
    free_store(&store);
}

TEST(nodes_that_are_gone_pin_nothing) {
    store_t store = make_store(2 * SMALL);
    spc_block_shared_t *one = take(&store, 64);
    spc_block_shared_t *two = take(&store, 64);
    spc_block_pin(one, 0);
    spc_block_pin(two, 0);
    spc_block_pin(two, 2);
    spc_block_unpin(one, OWNER);
    spc_block_unpin(two, OWNER);
    is_full(&store, 64); /* who is starting pins */
    spc_status_set_live(store.status, 0, 1);
    is_full(&store, 64);
    spc_status_end(store.status, 0, SPC_NODE_DIED, -9, store.event, NODES, 0);
    spc_status_set_gone(store.status, 0, store.event, NODES, 0);
    CHECK_EQ_PTR(take(&store, 64), one);
    is_full(&store, 64);
    spc_status_end(store.status, 2, SPC_NODE_FINISHED, 0, store.event, NODES, 0);
    is_full(&store, 64); /* who has finished may still look at what it received */
    spc_status_set_gone(store.status, 2, store.event, NODES, 0);
    CHECK_EQ_PTR(take(&store, 64), two);
    free_store(&store);
}

/* Somebody keeps thousands; all others find room, and all of it comes back. */
TEST(many_may_be_kept) {
    enum { KEPT = 10000 };
    store_t store = make_store((KEPT + 100) * SMALL);
    spc_block_shared_t **kept = calloc(KEPT, sizeof *kept);
    CHECK(kept != NULL);
    for (int i = 0; i < KEPT; i++) {
        kept[i] = take(&store, 64);
    }
    spc_block_shared_t *passing = take(&store, 64);
    for (int i = 0; i < 20000; i++) {
        spc_block_unpin(passing, OWNER);
        CHECK_EQ_PTR(take(&store, 64), passing);
    }
    for (int i = 0; i < KEPT; i += 2) {
        spc_block_unpin(kept[i], OWNER);
    }
    CHECK_EQ_U(spc_arena_used(store.arena), (KEPT / 2 + 1) * SMALL);
    for (int i = 0; i < KEPT; i += 2) {
        CHECK_EQ_PTR(take(&store, 64), kept[i]);
    }
    free(kept);
    free_store(&store);
}

/* ---- random traffic, against a list of what is held */

enum { HELD_MAX = 300 };

typedef struct held {
    spc_block_shared_t *block;
    unsigned char mark;
} held_t;

static void check_mark(const held_t *held) {
    const unsigned char *payload = spc_block_payload(held->block);
    CHECK_EQ(payload[0], held->mark);
    CHECK_EQ(payload[held->block->capacity_bytes / 2], held->mark);
    CHECK_EQ(payload[held->block->capacity_bytes - 1], held->mark);
}

TEST(random_blocks_never_overlap) {
    store_t store = make_store(200000);
    held_t held[HELD_MAX];
    int count = 0;
    uint64_t seed = check_seed();
    for (long i = 0; i < check_scale(100000); i++) {
        if (count > 0 && (count == HELD_MAX || check_below(&seed, 2))) {
            int which = (int)check_below(&seed, (uint64_t)count);
            check_mark(&held[which]);
            spc_block_unpin(held[which].block, OWNER);
            held[which] = held[--count];
            continue;
        }
        uint64_t length_bytes = check_below(&seed, check_below(&seed, 20) == 0 ? 30000 : 700);
        spc_block_shared_t *block;
        int status = spc_arena_alloc(store.arena, length_bytes, &block);
        if (status == SPC_EAGAIN) {
            continue;
        }
        CHECK_OK(status);
        held[count] = (held_t){block, (unsigned char)check_below(&seed, 256)};
        memset(spc_block_payload(block), held[count].mark, block->capacity_bytes);
        count++;
    }
    uint64_t used_bytes = 0;
    for (int i = 0; i < count; i++) {
        check_mark(&held[i]);
        used_bytes += held[i].block->capacity_bytes + 64;
        spc_block_unpin(held[i].block, OWNER);
    }
    CHECK(used_bytes <= store.size_bytes);
    CHECK_EQ_U(spc_arena_used(store.arena), 0);
    take(&store, 200000 - 64 - 64); /* in one piece again */
    free_store(&store);
}

/* ---- the owner and four receivers: blocks travel by pointer, payloads are not atomic */

enum { PLACES = 8 };

typedef struct traffic {
    store_t store;
    _Atomic(spc_block_shared_t *) place[NODES][PLACES];
    long rounds;
} traffic_t;

static void send_all(traffic_t *traffic) {
    for (long i = 0; i < traffic->rounds; i++) {
        uint64_t length_bytes = 8 * (1 + (uint64_t)i % 50);
        spc_block_shared_t *block;
        while (spc_arena_alloc(traffic->store.arena, length_bytes, &block) == SPC_EAGAIN) {
            sched_yield();
        }
        uint64_t *payload = spc_block_payload(block);
        for (uint64_t k = 0; k < length_bytes / 8; k++) {
            payload[k] = (uint64_t)i;
        }
        for (uint32_t rank = 0; rank < NODES; rank++) {
            if (rank != OWNER) {
                spc_block_pin(block, rank);
            }
        }
        for (uint32_t rank = 0; rank < NODES; rank++) {
            while (rank != OWNER
                   && atomic_load_explicit(&traffic->place[rank][i % PLACES], memory_order_acquire)) {
                sched_yield();
            }
            if (rank != OWNER) {
                atomic_store_explicit(&traffic->place[rank][i % PLACES], block, memory_order_release);
            }
        }
        spc_block_unpin(block, OWNER);
    }
}

static void receive_all(traffic_t *traffic, uint32_t rank) {
    for (long i = 0; i < traffic->rounds; i++) {
        spc_block_shared_t *block;
        while (!(block = atomic_load_explicit(&traffic->place[rank][i % PLACES], memory_order_acquire))) {
            sched_yield();
        }
        atomic_store_explicit(&traffic->place[rank][i % PLACES], NULL, memory_order_release);
        const uint64_t *payload = spc_block_payload(block);
        uint64_t length = 1 + (uint64_t)i % 50;
        for (uint64_t k = 0; k < length; k++) {
            CHECK_EQ_U(payload[k], i);
        }
        spc_block_unpin(block, rank);
    }
}

static void send_or_receive(int rank, int size, void *argument) {
    (void)size;
    if (rank == OWNER) {
        send_all(argument);
    } else {
        receive_all(argument, (uint32_t)rank);
    }
}

TEST(receivers_free_from_other_threads) {
    traffic_t *traffic = calloc(1, sizeof *traffic);
    CHECK(traffic != NULL);
    traffic->store = make_store(4096);
    traffic->rounds = check_scale(20000);
    check_threads(NODES, send_or_receive, traffic);
    CHECK_EQ_U(spc_arena_used(traffic->store.arena), 0);
    free_store(&traffic->store);
    free(traffic);
}

/* ---- blocks that change hands: every holder writes its own pattern, and finds it as long as it holds the block */

typedef struct hands {
    store_t store;
    _Atomic(spc_block_shared_t *) place[NODES][NODES]; /* announced: by whom, to whom */
    _Atomic int flying; /* blocks that somebody has; relaxed: at zero all are over */
    _Atomic bool sent;
    long rounds;
} hands_t;

static void use(spc_block_shared_t *block, uint64_t pattern) {
    uint64_t *payload = spc_block_payload(block);
    for (uint64_t k = 0; k < 8; k++) {
        payload[k] = pattern + k;
    }
    for (uint64_t k = 0; k < 8; k++) {
        CHECK_EQ_U(payload[k], pattern + k);
    }
}

/* On to a node whose place is free, the owner too; back to the arena if there is none, or by chance. */
static void hand_on(hands_t *hands, spc_block_shared_t *block, uint32_t from, uint64_t *seed) {
    uint32_t to = (uint32_t)check_below(seed, NODES);
    if (to == from || check_below(seed, 4) == 0
        || atomic_load_explicit(&hands->place[from][to], memory_order_acquire) != NULL) {
        atomic_fetch_sub_explicit(&hands->flying, 1, memory_order_relaxed);
        spc_block_unpin(block, from);
        return;
    }
    spc_block_pass(block, from, to);
    atomic_store_explicit(&hands->place[from][to], block, memory_order_release);
}

static void take_hands(hands_t *hands, uint32_t rank, uint64_t *seed) {
    for (uint32_t from = 0; from < NODES; from++) {
        spc_block_shared_t *block = atomic_load_explicit(&hands->place[from][rank], memory_order_acquire);
        if (block != NULL) {
            atomic_store_explicit(&hands->place[from][rank], NULL, memory_order_release);
            use(block, check_random(seed));
            hand_on(hands, block, rank, seed);
        }
    }
}

static void pass_around(int rank, int size, void *argument) {
    (void)size;
    hands_t *hands = argument;
    uint64_t seed = check_seed() + (uint64_t)rank;
    for (long i = 0; rank == OWNER && i < hands->rounds; i++) {
        spc_block_shared_t *block;
        take_hands(hands, OWNER, &seed);
        if (spc_arena_alloc(hands->store.arena, 64, &block) != SPC_OK) {
            sched_yield();
            continue;
        }
        atomic_fetch_add_explicit(&hands->flying, 1, memory_order_relaxed);
        use(block, check_random(&seed));
        hand_on(hands, block, OWNER, &seed);
    }
    if (rank == OWNER) {
        atomic_store_explicit(&hands->sent, true, memory_order_release);
    }
    while (!atomic_load_explicit(&hands->sent, memory_order_acquire)
           || atomic_load_explicit(&hands->flying, memory_order_relaxed) != 0) {
        take_hands(hands, (uint32_t)rank, &seed);
        sched_yield();
    }
}

TEST(nobody_loses_what_was_passed_on) {
    hands_t *hands = calloc(1, sizeof *hands);
    CHECK(hands != NULL);
    hands->store = make_store(6 * SMALL);
    hands->rounds = check_scale(50000);
    check_threads(NODES, pass_around, hands);
    CHECK_EQ_U(spc_arena_used(hands->store.arena), 0);
    free_store(&hands->store);
    free(hands);
}

/* To and fro between the first node and the last, while the owner looks: its look begins at one and ends at the other,
 * and their pins are in different cache lines. */
enum { MANY = 500 };

static void pass_or_look(int rank, int size, void *argument) {
    (void)size;
    hands_t *hands = argument;
    spc_block_shared_t *block = hands->place[0][0];
    for (long i = 0; rank == 0 && i < hands->rounds; i++) {
        spc_block_pass(block, 0, MANY - 1);
        spc_block_pass(block, MANY - 1, 0);
    }
    if (rank == 0) {
        atomic_store_explicit(&hands->sent, true, memory_order_release);
    }
    while (!atomic_load_explicit(&hands->sent, memory_order_acquire)) {
        CHECK(spc_arena_used(hands->store.arena) != 0);
    }
}

TEST(what_is_passed_on_is_never_free) {
    hands_t *hands = calloc(1, sizeof *hands);
    CHECK(hands != NULL);
    hands->store = make_store_of(1024, MANY);
    hands->rounds = check_scale(4000000);
    spc_block_shared_t *block;
    CHECK_OK(spc_arena_alloc(hands->store.arena, 64, &block));
    hands->place[0][0] = block;
    spc_block_pass(hands->place[0][0], OWNER, 0);
    check_threads(2, pass_or_look, hands);
    spc_block_unpin(hands->place[0][0], 0);
    CHECK_EQ_U(spc_arena_used(hands->store.arena), 0);
    free_store(&hands->store);
    free(hands);
}

/* Eight of sixteen blocks may be kept; they count until they are found free, and sends have the other half. */
TEST(half_may_be_kept) {
    store_t store = make_store(16 * SMALL);
    spc_block_shared_t *kept[8], *block;
    for (uint32_t lap = 0; lap < 3; lap++) {
        for (uint32_t i = 0; i < 8; i++) {
            CHECK_OK(spc_arena_alloc_kept(store.arena, 64, &kept[i]));
        }
        CHECK_EQ(spc_arena_alloc_kept(store.arena, 64, &block), SPC_EAGAIN);
        spc_block_unpin(take(&store, 64), OWNER); /* is not counted */
        CHECK_EQ(spc_arena_alloc_kept(store.arena, 64, &block), SPC_EAGAIN);
        spc_block_unpin(kept[lap], OWNER);
        CHECK_OK(spc_arena_alloc_kept(store.arena, 64, &kept[lap]));
        CHECK_EQ(spc_arena_alloc_kept(store.arena, 64, &block), SPC_EAGAIN);
        CHECK_EQ_U(spc_arena_used(store.arena), 8 * SMALL);
        for (uint32_t i = 0; i < 8; i++) {
            spc_block_unpin(kept[i], OWNER);
        }
        if (lap == 1) {
            CHECK_EQ_U(spc_arena_used(store.arena), 0);
        }
    }
    free_store(&store);
}

TEST(the_last_pin_is_sole) {
    store_t store = make_store(2 * SMALL);
    spc_block_shared_t *block = take(&store, 64);
    spc_block_pin(block, 0);
    spc_block_pin(block, NODES - 1);
    CHECK(!spc_block_is_sole(block, 0, NODES));
    spc_block_unpin(block, OWNER);
    CHECK(!spc_block_is_sole(block, 0, NODES));
    spc_block_unpin(block, NODES - 1);
    CHECK(spc_block_is_sole(block, 0, NODES));
    free_store(&store);
}

TEST(passing_on_leaves_one_pin) {
    store_t store = make_store(2 * SMALL);
    spc_block_shared_t *block = take(&store, 64);
    spc_block_pass(block, OWNER, 3);
    spc_block_pass(block, 3, 4);
    for (uint32_t rank = 0; rank < NODES; rank++) {
        CHECK_EQ(atomic_load(&block->pin[rank]), rank == 4);
    }
    CHECK_EQ_U(atomic_load(&block->moves), 2);
    CHECK_EQ_U(spc_arena_used(store.arena), SMALL);
    spc_block_unpin(block, 4);
    CHECK_EQ_U(spc_arena_used(store.arena), 0);
    CHECK_EQ_U(atomic_load(&take(&store, 64)->moves), 0);
    free_store(&store);
}

TEST_MAIN()
