/* SPDX-License-Identifier: MIT */
/* Waiting: the order of the phases on a clock of the test's own, what yields teach, and lost wake-ups under
 * load. */
#include "check.h"

#include <stddef.h>
#include <sys/mman.h>

#include "base/spc_error.h"
#include "base/spc_platform.h"
#include "base/spc_wait.h"
#include "segment/spc_event.h"

/* ---- one thread, on a clock that only this test moves; each thread has its own */

static _Thread_local uint64_t fake_now_ns;
static _Thread_local uint64_t fake_step_ns; /* how far each reading moves it */
static _Thread_local uint64_t fake_readings;

static uint64_t fake_now(void) {
    fake_readings++;
    fake_now_ns += fake_step_ns;
    return fake_now_ns;
}

typedef struct script {
    spc_event_shared_t *event;
    int tests, progresses, checks;
    int true_from_test; /* the test that first says yes; 0: none */
    int true_in_check;  /* the check makes the condition true */
    int check_status;   /* what the check says, from check_fails_from on */
    int check_fails_from;
    int tests_announced; /* tests with `sleeping` set */
    int tests_at_first_progress;
    int slept_announced; /* a check with `sleeping` set: must not happen */
} script_t;

static bool script_test(void *argument) {
    script_t *script = argument;
    script->tests++;
    script->tests_announced += atomic_load(&script->event->sleeping) != 0;
    return script->true_from_test != 0 && script->tests >= script->true_from_test;
}

static void script_progress(void *argument) {
    script_t *script = argument;
    if (script->progresses++ == 0) {
        script->tests_at_first_progress = script->tests;
    }
}

static int script_check(void *argument) {
    script_t *script = argument;
    script->checks++;
    script->slept_announced += atomic_load(&script->event->sleeping) != 0;
    if (script->true_in_check) {
        script->true_from_test = 1;
    }
    /* Somebody wakes this node, so that no sleep of these tests lasts. */
    atomic_fetch_add(&script->event->word, 1);
    return script->checks >= script->check_fails_from ? script->check_status : SPC_OK;
}

static const spc_wait_callbacks_t script_callbacks = {
    .test = script_test, .progress = script_progress, .check = script_check};

static spc_waiter_t fake_waiter(uint32_t polls, uint32_t yields) {
    spc_waiter_t waiter;
    spc_waiter_init(&waiter, SPC_WAIT_SHARED_CORES, spc_platform_features(0));
    waiter.polls = polls;
    waiter.yields = yields;
    waiter.now_ns = fake_now;
    waiter.slice_ns = 1000; /* of real time: nobody wakes these waits */
    fake_now_ns = 1000;
    fake_step_ns = 10;
    fake_readings = 0;
    return waiter;
}

static int run_script(spc_waiter_t *waiter, script_t *script, uint64_t deadline_ns) {
    static _Thread_local spc_event_shared_t event;
    script->event = &event;
    int status = spc_wait(waiter, &event.word, &event.sleeping, &script_callbacks, script, deadline_ns);
    CHECK_EQ(atomic_load(&event.sleeping), 0);
    CHECK_EQ(script->slept_announced, 0);
    return status;
}

TEST(over_at_once_costs_one_test) {
    spc_waiter_t waiter = fake_waiter(10, 10);
    script_t script = {.true_from_test = 1};
    CHECK_OK(run_script(&waiter, &script, 1));
    CHECK_EQ(script.tests, 1);
    CHECK_EQ(script.progresses + script.checks, 0);
    CHECK_EQ_U(fake_readings, 0);
}

/* A loop around timeout=0 must still send what is queued, or two such loops wait for each other. */
TEST(past_deadline_makes_progress_once) {
    spc_waiter_t waiter = fake_waiter(10, 10);
    script_t script = {0};
    CHECK_EQ(run_script(&waiter, &script, 0), SPC_ETIMEDOUT);
    CHECK_EQ(script.tests, 2);
    CHECK_EQ(script.progresses, 1);
    CHECK_EQ(script.checks, 0);
    script = (script_t){.true_from_test = 2};
    CHECK_OK(run_script(&waiter, &script, 0));
}

static int moves_left;

static bool script_moved(void *argument) {
    (void)argument;
    return moves_left-- > 0;
}

/* Where parts of a message come one after another, the wait polls on; signals are looked at in between. */
TEST(what_moves_is_polled_for) {
    static const spc_wait_callbacks_t callbacks = {
        .test = script_test, .check = script_check, .moved = script_moved};
    spc_waiter_t waiter = fake_waiter(10, 10);
    spc_event_shared_t event = {0};
    script_t script = {.event = &event, .true_from_test = 46, .check_fails_from = 1000};
    moves_left = 4;
    CHECK_OK(spc_wait(&waiter, &event.word, &event.sleeping, &callbacks, &script, SPC_NO_DEADLINE));
    CHECK_EQ(script.tests, 46); /* one, and five times ten polls, all but the last few */
    CHECK_EQ(script.checks, 4);
    CHECK_EQ_U(waiter.yield_count + waiter.sleep_count, 0);
    script = (script_t){.event = &event, .check_status = SPC_EINTERRUPTED, .check_fails_from = 2};
    moves_left = 4;
    CHECK_EQ(spc_wait(&waiter, &event.word, &event.sleeping, &callbacks, &script, SPC_NO_DEADLINE),
             SPC_EINTERRUPTED);
    CHECK_EQ(script.tests, 21);
    waiter = fake_waiter(0, 2);
    script = (script_t){.event = &event, .check_status = SPC_EINTERRUPTED, .check_fails_from = 2};
    moves_left = 1000; /* always while it yields */
    CHECK_EQ(spc_wait(&waiter, &event.word, &event.sleeping, &callbacks, &script, SPC_NO_DEADLINE),
             SPC_EINTERRUPTED);
    CHECK_EQ(script.checks, 2);
    CHECK_EQ(moves_left, 999);
}

TEST(polls_then_yields_then_sleeps) {
    spc_waiter_t waiter = fake_waiter(3, 2);
    /* 1 at once, 3 polls, 2 yields; then check, announced test: the 7th. */
    script_t script = {.true_from_test = 7};
    CHECK_OK(run_script(&waiter, &script, SPC_NO_DEADLINE));
    CHECK_EQ(script.tests, 7);
    CHECK_EQ_U(waiter.yield_count, 2);
    CHECK_EQ_U(waiter.sleep_count, 0);
    CHECK_EQ(script.tests_at_first_progress, 4);
    CHECK_EQ(script.progresses, 3); /* before each yield, and before the sleep */
    CHECK_EQ(script.checks, 1);
    CHECK_EQ(script.tests_announced, 1);
}

TEST(long_polling_moves_things_along) {
    spc_waiter_t waiter = fake_waiter(1000, 0);
    script_t script = {.true_from_test = 900};
    CHECK_OK(run_script(&waiter, &script, SPC_NO_DEADLINE));
    CHECK(script.progresses > 5);
    CHECK_EQ_U(fake_readings, 0); /* no deadline: no reading */
}

TEST(tests_again_after_each_slice) {
    spc_waiter_t waiter = fake_waiter(0, 0);
    script_t script = {.true_from_test = 9};
    CHECK_OK(run_script(&waiter, &script, SPC_NO_DEADLINE));
    CHECK_EQ(script.tests, 9);
    CHECK(script.checks >= 4);
    CHECK_EQ(script.tests_announced, 4);
}

TEST(sleeps_at_once_when_told) {
    spc_waiter_t waiter;
    spc_waiter_init(&waiter, SPC_WAIT_SLEEP, spc_platform_features(0));
    CHECK_EQ_U(waiter.polls, 0);
    CHECK_EQ_U(waiter.yields, 0);
}

TEST(check_ends_the_wait) {
    spc_waiter_t waiter = fake_waiter(0, 0);
    script_t script = {.check_status = SPC_ELOST, .check_fails_from = 3};
    CHECK_EQ(run_script(&waiter, &script, SPC_NO_DEADLINE), SPC_ELOST);
    CHECK_EQ(script.checks, 3);
    CHECK_EQ(script.tests, 1 + 2 * 2); /* at once; twice a slice */
}

/* Any status does: also the one with which the phases of a wait tell each other to go on. */
TEST(check_may_say_again) {
    spc_waiter_t waiter = fake_waiter(2, 2);
    script_t script = {.check_status = SPC_EAGAIN, .check_fails_from = 1, .true_from_test = 1000};
    CHECK_EQ(run_script(&waiter, &script, SPC_NO_DEADLINE), SPC_EAGAIN);
    CHECK_EQ(script.checks, 1);
    CHECK_EQ_U(waiter.sleep_count, 0);
}

TEST(the_check_counts_more_than_the_condition) {
    spc_waiter_t waiter = fake_waiter(0, 0);
    script_t script = {.true_in_check = 1, .check_status = SPC_EINTERRUPTED, .check_fails_from = 1};
    CHECK_EQ(run_script(&waiter, &script, SPC_NO_DEADLINE), SPC_EINTERRUPTED);
    CHECK_EQ(script.tests, 1); /* a test that takes something would have lost it */
}

TEST(deadline_ends_each_phase) {
    spc_waiter_t waiter = fake_waiter(1000000, 0);
    script_t script = {0};
    CHECK_EQ(run_script(&waiter, &script, 1100), SPC_ETIMEDOUT);
    CHECK(script.tests < 1000);
    waiter = fake_waiter(0, 1000000);
    script = (script_t){0};
    CHECK_EQ(run_script(&waiter, &script, 1100), SPC_ETIMEDOUT);
    CHECK(waiter.yield_count < 100);
    CHECK_EQ_U(waiter.sleep_count, 0);
    waiter = fake_waiter(0, 0);
    script = (script_t){0};
    CHECK_EQ(run_script(&waiter, &script, 1100), SPC_ETIMEDOUT);
    CHECK(waiter.sleep_count > 0);
}

/* A sleep without end, but for the deadline: were it not handed to the kernel, this would hang. */
TEST(sleeps_no_longer_than_the_deadline) {
    for (int disabled = 0; disabled < 2; disabled++) {
        spc_waiter_t waiter;
        spc_waiter_init(&waiter, SPC_WAIT_SLEEP, disabled ? 0 : spc_platform_features(0));
        waiter.slice_ns = UINT64_MAX;
        spc_event_shared_t event = {0};
        script_t script = {.event = &event};
        spc_wait_callbacks_t callbacks = {.test = script_test};
        uint64_t deadline_ns = spc_clock_deadline_ns(3000000);
        CHECK_EQ(spc_wait(&waiter, &event.word, &event.sleeping, &callbacks, &script, deadline_ns),
                 SPC_ETIMEDOUT);
        CHECK(spc_clock_now_ns() >= deadline_ns);
        CHECK(waiter.sleep_count > 0);
    }
}

/* ---- what yields teach */

static void wait_with_long_yield(spc_waiter_t *waiter, uint64_t yield_ns) {
    script_t script = {.true_from_test = 5};
    fake_step_ns = yield_ns;
    CHECK_OK(run_script(waiter, &script, SPC_NO_DEADLINE));
}

TEST(long_yield_makes_sleepers) {
    spc_waiter_t waiter = fake_waiter(0, 50);
    wait_with_long_yield(&waiter, 100001);
    CHECK_EQ_U(waiter.yield_count, 1);
    CHECK_EQ_U(waiter.sleep_at_once, 1);
    CHECK_EQ_U(waiter.penalty, 2);
    wait_with_long_yield(&waiter, 10);
    CHECK_EQ_U(waiter.yield_count, 1); /* slept */
    CHECK_EQ_U(waiter.sleep_at_once, 0);
    wait_with_long_yield(&waiter, 10);
    CHECK_EQ_U(waiter.yield_count, 5); /* yields again */
    CHECK_EQ_U(waiter.penalty, 1);     /* and is forgiven */
}

TEST(short_yields_teach_nothing) {
    spc_waiter_t waiter = fake_waiter(0, 50);
    wait_with_long_yield(&waiter, 100000);
    CHECK_EQ_U(waiter.yield_count, 4);
    CHECK_EQ_U(waiter.sleep_at_once, 0);
    CHECK_EQ_U(waiter.penalty, 1);
}

TEST(many_nodes_have_a_turn_each_before_a_yield_returns) {
    spc_waiter_t waiter = fake_waiter(0, 50);
    spc_waiter_expect_turns(&waiter, 8);
    wait_with_long_yield(&waiter, 260000);
    CHECK_EQ_U(waiter.sleep_at_once, 0);
    wait_with_long_yield(&waiter, 260001);
    CHECK_EQ_U(waiter.sleep_at_once, 1);
    waiter = fake_waiter(0, 50);
    spc_waiter_expect_turns(&waiter, 4096); /* a time slice is no turn, however many there are */
    wait_with_long_yield(&waiter, 700000);
    CHECK_EQ_U(waiter.sleep_at_once, 1);
}

static void work_for_long(void *argument) {
    (void)argument;
    fake_now_ns += 100000000;
}

/* Draining a large message takes longer than any yield; that says nothing of who else uses the core. */
TEST(long_work_is_no_long_yield) {
    spc_waiter_t waiter = fake_waiter(0, 50);
    spc_event_shared_t event = {0};
    script_t script = {.event = &event, .true_from_test = 20};
    spc_wait_callbacks_t callbacks = {.test = script_test, .progress = work_for_long};
    CHECK_OK(spc_wait(&waiter, &event.word, &event.sleeping, &callbacks, &script, SPC_NO_DEADLINE));
    CHECK_EQ_U(waiter.yield_count, 19);
    CHECK_EQ_U(waiter.sleep_at_once, 0);
}

TEST(penalty_doubles_and_decays) {
    spc_waiter_t waiter = fake_waiter(0, 50);
    for (uint32_t expected = 1; expected <= 1024; expected *= 2) {
        waiter.sleep_at_once = 0;
        wait_with_long_yield(&waiter, 200000);
        CHECK_EQ_U(waiter.sleep_at_once, expected);
    }
    waiter.sleep_at_once = 0;
    wait_with_long_yield(&waiter, 200000);
    CHECK_EQ_U(waiter.sleep_at_once, 1024);
    waiter.sleep_at_once = 0;
    for (int i = 0; i < 12; i++) {
        wait_with_long_yield(&waiter, 10);
    }
    CHECK_EQ_U(waiter.penalty, 1);
}

TEST(polling_shrinks_where_yielding_helps) {
    spc_waiter_t waiter = fake_waiter(1024, 50);
    waiter.polls_limit = 1024;
    for (uint32_t expected = 512; expected >= 4; expected /= 2) {
        script_t script = {.true_from_test = 1 + 2 * (int)expected + 1}; /* at once, polls, the first yield */
        CHECK_OK(run_script(&waiter, &script, SPC_NO_DEADLINE));
        CHECK_EQ_U(waiter.polls, expected);
    }
    script_t script = {.true_from_test = 6};
    CHECK_OK(run_script(&waiter, &script, SPC_NO_DEADLINE));
    CHECK_EQ_U(waiter.polls, 4);
    for (int i = 0; i < 20; i++) {
        script = (script_t){.true_from_test = 2}; /* the first poll */
        CHECK_OK(run_script(&waiter, &script, SPC_NO_DEADLINE));
    }
    CHECK_EQ_U(waiter.polls, 1024);
}

/* On one core: each wait ends with the first yield, but for a rare one that sleeps. */
TEST(nodes_on_one_core_try_to_part) {
    spc_waiter_t waiter = fake_waiter(4, 50);
    waiter.polls_limit = 16;
    for (uint32_t row = 64; row <= 65536 / 8; row *= 2) {
        CHECK_EQ_U(waiter.together_limit, row);
        for (uint32_t i = 0; i < row; i++) {
            script_t script = {.true_from_test = 2 + (int)waiter.polls};
            CHECK_OK(run_script(&waiter, &script, SPC_NO_DEADLINE));
            CHECK_EQ(script.checks, 0); /* no sleep */
        }
        CHECK_EQ_U(waiter.polls, 4);
        uint64_t yields = waiter.yield_count;
        script_t script = {.true_from_test = 2 + (int)waiter.polls};
        CHECK_OK(run_script(&waiter, &script, SPC_NO_DEADLINE));
        CHECK_EQ(script.checks, 1); /* no yield */
        CHECK_EQ_U(waiter.yield_count, yields);
        CHECK_EQ_U(waiter.polls, 16);
    }
    for (int i = 0; i < 2; i++) { /* parted: polling helps again */
        script_t script = {.true_from_test = 2};
        CHECK_OK(run_script(&waiter, &script, SPC_NO_DEADLINE));
    }
    CHECK_EQ_U(waiter.together_limit, 64);
}

TEST(fixed_polling_stays) {
    spc_waiter_t waiter = fake_waiter(100, 50);
    script_t script = {.true_from_test = 102};
    CHECK_OK(run_script(&waiter, &script, SPC_NO_DEADLINE));
    CHECK_EQ_U(waiter.polls, 100);
    script = (script_t){.true_from_test = 2};
    CHECK_OK(run_script(&waiter, &script, SPC_NO_DEADLINE));
    CHECK_EQ_U(waiter.polls, 100);
}

/* ---- several threads or processes, each sleep without end: a lost wake-up hangs the test */

#define RANKS 8

typedef struct meeting {
    _Atomic uint64_t arrived;
    unsigned char padding[120];
    _Atomic uint64_t phase;
    unsigned char more_padding[120];
    spc_event_shared_t event[RANKS];
    spc_wait_policy_t policy;
    uint32_t disabled;
    long rounds;
} meeting_t;

typedef struct member {
    meeting_t *meeting;
    spc_waiter_t waiter;
    int rank, size;
    uint64_t phase;
    bool waits_inside; /* a callback waits too, on the same word */
} member_t;

static bool phase_is_over(void *argument) {
    member_t *member = argument;
    return atomic_load_explicit(&member->meeting->phase, memory_order_seq_cst) >= member->phase;
}

static bool always(void *argument) {
    (void)argument;
    return true;
}

static bool never(void *argument) {
    (void)argument;
    return false;
}

/* Like a handler that calls the communicator: its wait ends, and withdraws the outer announcement. */
static void wait_inside(void *argument) {
    member_t *member = argument;
    if (member->waits_inside) {
        spc_event_shared_t *event = &member->meeting->event[member->rank];
        spc_wait_callbacks_t inner = {.test = never};
        CHECK_EQ(spc_wait(&member->waiter, &event->word, &event->sleeping, &inner, NULL, 0), SPC_ETIMEDOUT);
        inner.test = always;
        CHECK_OK(spc_wait(&member->waiter, &event->word, &event->sleeping, &inner, NULL, SPC_NO_DEADLINE));
        atomic_store(&event->sleeping, 0);
        member->waits_inside = false; /* every time it would never sleep */
    }
}

static void meet(member_t *member) {
    meeting_t *meeting = member->meeting;
    spc_event_shared_t *own = &meeting->event[member->rank];
    static const spc_wait_callbacks_t callbacks = {.test = phase_is_over, .progress = wait_inside};
    member->phase++;
    if (atomic_fetch_add(&meeting->arrived, 1) + 1 == (uint64_t)member->size * member->phase) {
        atomic_store(&meeting->phase, member->phase);
        for (int i = 0; i < member->size; i++) {
            spc_event_notify(&meeting->event[i], member->waiter.features);
        }
        return;
    }
    member->waits_inside = member->phase % 3 == 0;
    CHECK_OK(spc_wait(&member->waiter, &own->word, &own->sleeping, &callbacks, member, SPC_NO_DEADLINE));
}

static void meet_often(int rank, int size, void *argument) {
    meeting_t *meeting = argument;
    member_t member = {.meeting = meeting, .rank = rank, .size = size};
    spc_waiter_init(&member.waiter, meeting->policy, spc_platform_features(meeting->disabled));
    member.waiter.slice_ns = UINT64_MAX;
    for (long i = 0; i < meeting->rounds; i++) {
        meet(&member);
    }
}

static void meet_all_ways(bool processes, uint32_t disabled, long rounds) {
    static const spc_wait_policy_t policies[] = {SPC_WAIT_FREE_CORES, SPC_WAIT_SHARED_CORES, SPC_WAIT_SLEEP};
    for (int size = 2; size <= RANKS; size *= 2) {
        for (int i = 0; i < 3; i++) {
            meeting_t *meeting =
                mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            CHECK(meeting != MAP_FAILED);
            meeting->policy = policies[i];
            meeting->disabled = disabled;
            meeting->rounds = check_scale(rounds);
            (processes ? check_processes : check_threads)(size, meet_often, meeting);
            CHECK_EQ_U(atomic_load(&meeting->phase), meeting->rounds);
            munmap(meeting, sizeof *meeting);
        }
    }
}

TEST(no_wakeup_is_lost) {
    meet_all_ways(false, 0, 4000);
    meet_all_ways(true, 0, 4000);
    meet_all_ways(false, SPC_FEATURE_futex, 80); /* nobody needs a futex */
}

TEST_MAIN()
