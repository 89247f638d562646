/* SPDX-License-Identifier: MIT */
/* Events: what bumps the word and what does not, and many wakers for one sleeper that has no alarm clock. */
#include "check.h"

#include "base/spc_error.h"
#include "base/spc_wait.h"
#include "segment/spc_event.h"

TEST(notify_disturbs_nobody_awake) {
    spc_event_shared_t event = {0};
    spc_event_notify(&event, spc_platform_features(0));
    CHECK_EQ_U(atomic_load(&event.word), 0);
    atomic_store(&event.sleeping, 1);
    spc_event_notify(&event, spc_platform_features(0));
    CHECK_EQ_U(atomic_load(&event.word), 1);
    CHECK_EQ_U(atomic_load(&event.sleeping), 1); /* only its owner clears it */
}

TEST(raise_bumps_always) {
    spc_event_shared_t event = {0};
    for (uint32_t i = 1; i <= 3; i++) {
        spc_event_raise(&event, 0);
        CHECK_EQ_U(atomic_load(&event.word), i);
    }
}

TEST(word_may_wrap) {
    spc_event_shared_t event = {0};
    atomic_store(&event.word, UINT32_MAX);
    spc_event_raise(&event, 0);
    CHECK_EQ_U(atomic_load(&event.word), 0);
}

/* Rank 0 waits for each number; the others count up, one at a time, and tell it. */

typedef struct crowd {
    spc_event_shared_t event;
    _Atomic uint64_t count;
    _Atomic uint64_t seen; /* what the wakers wait for, each on its own event */
    spc_event_shared_t waker_event[8];
    uint64_t rounds;
    uint64_t wanted;
    uint32_t features;
} crowd_t;

static bool count_is_there(void *argument) {
    crowd_t *crowd = argument;
    return atomic_load_explicit(&crowd->count, memory_order_seq_cst) >= crowd->wanted;
}

typedef struct waker {
    crowd_t *crowd;
    uint64_t wanted;
} waker_t;

static bool is_seen(void *argument) {
    waker_t *waker = argument;
    return atomic_load_explicit(&waker->crowd->seen, memory_order_seq_cst) >= waker->wanted;
}

static void sleep_for_ever(spc_event_shared_t *event, uint32_t features, bool (*test)(void *argument),
                           void *argument) {
    spc_waiter_t waiter;
    spc_wait_callbacks_t callbacks = {.test = test};
    spc_waiter_init(&waiter, SPC_WAIT_SLEEP, features);
    waiter.slice_ns = UINT64_MAX;
    CHECK_OK(spc_wait(&waiter, &event->word, &event->sleeping, &callbacks, argument, SPC_NO_DEADLINE));
}

static void wake_and_be_woken(int rank, int size, void *argument) {
    crowd_t *crowd = argument;
    uint64_t wakers = (uint64_t)size - 1;
    for (uint64_t i = 1; i <= crowd->rounds; i++) {
        if (rank == 0) {
            crowd->wanted = i * wakers;
            sleep_for_ever(&crowd->event, crowd->features, count_is_there, crowd);
            atomic_store_explicit(&crowd->seen, i, memory_order_seq_cst);
            for (int other = 1; other < size; other++) {
                spc_event_notify(&crowd->waker_event[other], crowd->features);
            }
        } else {
            waker_t waker = {crowd, i};
            atomic_fetch_add_explicit(&crowd->count, 1, memory_order_seq_cst);
            spc_event_notify(&crowd->event, crowd->features);
            sleep_for_ever(&crowd->waker_event[rank], crowd->features, is_seen, &waker);
        }
    }
}

TEST(each_notification_arrives) {
    for (int size = 2; size <= 8; size += 3) {
        crowd_t crowd = {.rounds = (uint64_t)check_scale(1500), .features = spc_platform_features(0)};
        check_threads(size, wake_and_be_woken, &crowd);
        CHECK_EQ_U(atomic_load(&crowd.seen), crowd.rounds);
    }
}

/* Waker and sleeper meet in the same few nanoseconds, round after round: where stores that are not in one
 * total order lose the wake-up. Both come to the start at the same time, and one of them goes on a little
 * later. */

typedef struct duel {
    spc_event_shared_t event;
    _Atomic uint64_t condition;
    unsigned char padding[120];
    _Atomic uint64_t arrived; /* at the start of a round */
    uint64_t rounds;
    uint32_t features;
} duel_t;

typedef struct duellist {
    duel_t *duel;
    uint64_t round;
} duellist_t;

static bool round_is_won(void *argument) {
    duellist_t *sleeper = argument;
    return atomic_load_explicit(&sleeper->duel->condition, memory_order_seq_cst) >= sleeper->round;
}

static void start_together(duel_t *duel, uint64_t round, uint64_t delay) {
    atomic_fetch_add(&duel->arrived, 1);
    for (uint64_t polls = 1; atomic_load(&duel->arrived) < 2 * round; polls++) {
        if (polls % 1000 == 0) {
            spc_platform_yield();
        }
    }
    for (_Atomic uint64_t i = 0; i < delay; i++) {
    }
}

static void fight(int rank, int size, void *argument) {
    duel_t *duel = argument;
    uint64_t seed = (uint64_t)rank + 1;
    (void)size;
    for (uint64_t round = 1; round <= duel->rounds; round++) {
        start_together(duel, round, check_below(&seed, 12));
        if (rank == 0) {
            atomic_store_explicit(&duel->condition, round, memory_order_seq_cst);
            spc_event_notify(&duel->event, duel->features);
        } else {
            duellist_t sleeper = {duel, round};
            sleep_for_ever(&duel->event, duel->features, round_is_won, &sleeper);
        }
    }
}

TEST(simultaneous_wakeups_arrive) {
    duel_t duel = {.rounds = (uint64_t)check_scale(60000), .features = spc_platform_features(0)};
    check_threads(2, fight, &duel);
    CHECK_EQ_U(atomic_load(&duel.condition), duel.rounds);
}

TEST_MAIN()
