/* SPDX-License-Identifier: MIT */
/* Memory for long frames: what is taken is nobody else's, and what was given back is taken again. */
#include "check.h"

#include "net/wire/spc_frame.h"
#include "net/wire/spc_pool.h"

enum { TAKEN_MAX = 32, ROUNDS = 20000, KEPT_MOST = 8 };

static const size_t LENGTHS[] = {1, 64, 60000, 70000, SPC_FRAME_BODY_MAX, SPC_FRAME_BODY_MAX + 64, 1 << 19};

typedef struct taken {
    unsigned char *bytes;
    size_t length_bytes;
    unsigned char mark;
} taken_t;

static void give(spc_pool_t *pool, taken_t *taken) {
    if (taken->bytes != NULL) {
        CHECK_EQ(taken->bytes[0], taken->mark);
        CHECK_EQ(taken->bytes[taken->length_bytes - 1], taken->mark);
    }
    spc_pool_give(pool, taken->bytes, taken->length_bytes);
    *taken = (taken_t){0};
}

static void take(spc_pool_t *pool, taken_t *taken, uint64_t *random) {
    taken->length_bytes = LENGTHS[check_below(random, sizeof LENGTHS / sizeof *LENGTHS)];
    taken->mark = (unsigned char)check_random(random);
    taken->bytes = spc_pool_take(pool, taken->length_bytes);
    CHECK(taken->bytes != NULL);
    CHECK_EQ_U((uintptr_t)taken->bytes % 16, 0);
    taken->bytes[0] = taken->bytes[taken->length_bytes - 1] = taken->mark;
}

static void nobody_elses(spc_pool_t *pool) {
    taken_t taken[TAKEN_MAX] = {{0}};
    uint64_t random = 3;
    for (int round = 0; round < ROUNDS; round++) {
        taken_t *one = &taken[check_below(&random, TAKEN_MAX)];
        give(pool, one);
        if (check_below(&random, 3) != 0) {
            take(pool, one, &random);
        }
        CHECK(pool == NULL || pool->kept <= KEPT_MOST);
    }
    for (int i = 0; i < TAKEN_MAX; i++) {
        give(pool, &taken[i]);
    }
}

TEST(taken_again) {
    spc_pool_t pool = {0};
    void *first = spc_pool_take(&pool, SPC_FRAME_BODY_MAX);
    spc_pool_give(&pool, first, SPC_FRAME_BODY_MAX);
    CHECK_EQ_U(pool.kept, 1);
    CHECK(spc_pool_take(&pool, SPC_FRAME_BODY_MAX / 2) == first);
    CHECK_EQ_U(pool.kept, 0);
    spc_pool_give(&pool, first, SPC_FRAME_BODY_MAX / 2);
    void *small = spc_pool_take(&pool, 100);
    CHECK(small != first);
    spc_pool_give(&pool, small, 100);
    CHECK_EQ_U(pool.kept, 1);
    spc_pool_fini(&pool);
}

TEST(with_a_pool) {
    spc_pool_t pool = {0};
    nobody_elses(&pool);
    CHECK_EQ_U(pool.kept, KEPT_MOST);
    spc_pool_fini(&pool);
}

TEST(without_one) {
    nobody_elses(NULL);
}

TEST_MAIN()
