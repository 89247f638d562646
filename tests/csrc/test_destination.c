/* SPDX-License-Identifier: MIT */
/* The bit set of ranks against an array of flags. */
#include "check.h"

#include <string.h>

#include "spcomm/destination.h"

enum { RANKS = SPCOMM_DESTINATION_RANKS };

TEST(zeros_are_the_empty_set) {
    spcomm_destination_t empty = {{0}, 0, 0}, cleared;
    memset(&cleared, 0xff, sizeof cleared);
    spcomm_destination_clear(&cleared);
    CHECK_MEM(&empty, &cleared, sizeof empty);
    CHECK_EQ(spcomm_destination_count(&empty), 0);
    CHECK_EQ(spcomm_destination_next(&empty), -1);
    CHECK_EQ(spcomm_destination_first(&empty), -1);
    CHECK_EQ(spcomm_destination_next(&empty), -1);
}

TEST(each_rank_alone) {
    for (int rank = 0; rank < RANKS; rank++) {
        spcomm_destination_t one = {{0}, 0, 0};
        int32_t found[2] = {-7, -7};
        CHECK_OK(spcomm_destination_set(&one, rank));
        CHECK_OK(spcomm_destination_set(&one, rank));
        CHECK_EQ(spcomm_destination_count(&one), 1);
        CHECK(spcomm_destination_contains(&one, rank));
        CHECK(!spcomm_destination_contains(&one, rank ^ 1));
        CHECK_EQ(spcomm_destination_first(&one), rank);
        CHECK_EQ(spcomm_destination_next(&one), -1);
        CHECK_EQ(spcomm_destination_next(&one), -1); /* and stays at the end */
        CHECK_EQ(spcomm_destination_first(&one), rank);
        CHECK_EQ(spcomm_destination_to_ranks(&one, found, 2), 1);
        CHECK_EQ(found[0], rank);
        CHECK_EQ(found[1], -7);
        CHECK_OK(spcomm_destination_reset(&one, rank));
        CHECK_OK(spcomm_destination_reset(&one, rank));
        CHECK_EQ(spcomm_destination_first(&one), -1);
    }
}

TEST(other_ranks_are_refused) {
    static const int wrong[] = {-1, RANKS, RANKS + 1, INT32_MAX, INT32_MIN};
    spcomm_destination_t set = {{0}, 0, 0}, before;
    CHECK_OK(spcomm_destination_set(&set, 5));
    before = set;
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(spcomm_destination_set(&set, wrong[i]), -1);
        CHECK_EQ(spcomm_destination_reset(&set, wrong[i]), -1);
        CHECK(!spcomm_destination_contains(&set, wrong[i]));
        CHECK_EQ(spcomm_destination_from(&set, wrong[i]), wrong[i] < 0 ? 5 : -1);
    }
    CHECK_MEM(&set, &before, sizeof set);
}

/* Membership, count, conversion and both iterations, after every change. */
static void check_against(spcomm_destination_t *set, const unsigned char member[RANKS]) {
    int32_t ranks[RANKS];
    int count = 0;
    const int found = spcomm_destination_to_ranks(set, ranks, RANKS);
    int visited = spcomm_destination_first(set);
    for (int rank = 0; rank < RANKS; rank++) {
        CHECK_EQ(spcomm_destination_contains(set, rank), member[rank]);
        if (member[rank]) {
            CHECK_EQ(ranks[count], rank);
            CHECK_EQ(visited, rank);
            visited = spcomm_destination_next(set);
            count++;
        }
    }
    CHECK_EQ(visited, -1);
    CHECK_EQ(found, count);
    CHECK_EQ(spcomm_destination_count(set), count);
}

TEST(random_changes) {
    uint64_t state = 5;
    spcomm_destination_t set = {{0}, 0, 0};
    unsigned char member[RANKS] = {0};
    for (int step = 0; step < 3000; step++) {
        const int rank = (int)(check_random(&state) % RANKS);
        const int in = step % 1000 < 600; /* fills, empties, fills */
        CHECK_OK(in ? spcomm_destination_set(&set, rank) : spcomm_destination_reset(&set, rank));
        member[rank] = (unsigned char)in;
        check_against(&set, member);
    }
}

TEST(a_small_array_gets_the_first_ranks) {
    spcomm_destination_t set = {{0}, 0, 0};
    int32_t ranks[3] = {-7, -7, -7};
    for (int rank = 100; rank < 1000; rank += 100) {
        CHECK_OK(spcomm_destination_set(&set, rank));
    }
    CHECK_EQ(spcomm_destination_to_ranks(&set, ranks, 2), 9);
    CHECK_EQ(ranks[0], 100);
    CHECK_EQ(ranks[1], 200);
    CHECK_EQ(ranks[2], -7);
    CHECK_EQ(spcomm_destination_to_ranks(&set, NULL, 0), 9);
}

TEST(changes_during_an_iteration) {
    spcomm_destination_t set = {{0}, 0, 0};
    CHECK_OK(spcomm_destination_set(&set, 10));
    CHECK_OK(spcomm_destination_set(&set, 20));
    CHECK_EQ(spcomm_destination_next(&set), 10); /* without a first */
    CHECK_OK(spcomm_destination_set(&set, 5));   /* behind it: not visited */
    CHECK_OK(spcomm_destination_set(&set, 15));
    CHECK_OK(spcomm_destination_reset(&set, 20));
    CHECK_EQ(spcomm_destination_next(&set), 15);
    CHECK_EQ(spcomm_destination_next(&set), -1);
    CHECK_EQ(spcomm_destination_first(&set), 5);
}

TEST(equality_is_of_the_ranks_alone) {
    spcomm_destination_t one = {{0}, 0, 0}, other = {{0}, 0, 0};
    CHECK_OK(spcomm_destination_set(&one, 1023));
    CHECK(!spcomm_destination_equal(&one, &other));
    CHECK_OK(spcomm_destination_set(&other, 1023));
    CHECK_EQ(spcomm_destination_first(&one), 1023);
    CHECK(spcomm_destination_equal(&one, &other));
}

TEST_MAIN()
