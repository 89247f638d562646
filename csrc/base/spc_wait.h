/* SPDX-License-Identifier: MIT */
/*
 * spc_wait: poll, then yield, then sleep. The only place in the core that waits.
 *
 * It knows a word, a deadline and a few callbacks, but no messages or barriers. The protocol between a sleeper and its
 * wakers (which must follow spc_event.h):
 *
 *     sleeper                                   waker
 *     read the word                             make the condition true        (seq_cst)
 *     sleeping = 1              (seq_cst)       read `sleeping`                (seq_cst)
 *     test the condition again  (seq_cst)       if it is set: word + 1, wake
 *     sleep while the word is unchanged
 *
 * Either the waker sees `sleeping`, or the sleeper's second test sees the condition: the four operations are in one
 * total order. tests/models/sleep_wake.pml has the proof.
 *
 * A spc_waiter_t belongs to one thread at a time; word and `sleeping` may be in shared memory.
 */
#ifndef SPC_WAIT_H
#define SPC_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_atomic.h"
#include "base/spc_clock.h"

#define SPC_WAIT_NO_SLEEP 1

/* The callbacks run in the waiting thread, with no lock of the core held. */
typedef struct spc_wait_callbacks {
    /* Whether the wait is over. May do work (draining, matching). Called often. */
    bool (*test)(void *argument);
    /* Moves other things along (queued messages, arrivals); called now and then while polling, before each yield,
     * and before each sleep. May be NULL. */
    void (*progress)(void *argument);
    /* Called before the first sleep and after each slice of sleep: signals, handlers. A status other than SPC_OK ends
     * the wait with that status at once: messages that have come meanwhile are not taken, and so not lost. May be
     * NULL. */
    int (*check)(void *argument);
    /* Called last before each sleep, after the test has failed, and first after it. `settle` gets the word as it was
     * before that test, on which the sleep will be; it returns the longest time to sleep, or 0: slice_ns, or
     * SPC_WAIT_NO_SLEEP: `check` has work to do. Both may be NULL. */
    uint64_t (*settle)(void *argument, uint32_t seen);
    void (*wake)(void *argument);
    /* Whether something has moved since the last call, so that more may come at once. Called after polling and before
     * each sleep: if true, after a check, the wait polls again. May be NULL. */
    bool (*moved)(void *argument);
} spc_wait_callbacks_t;

/* The way to wait, and the experience so far. Chosen by spc_waiter_init; the fields are open for tests. */
typedef struct spc_waiter {
    uint32_t features;        /* spc_platform_features */
    uint32_t polls;           /* tests before the first yield */
    uint32_t polls_limit; /* 0: polls is fixed; else it shrinks where yielding helps, and grows up to this */
    uint32_t yields; /* yields before the first sleep, at most */
    uint64_t yield_long_ns; /* one yield this long: another process computes on this core, stop yielding */
    uint64_t slice_ns; /* longest sleep before looking around */
    spc_clock_fn now_ns;
    uint32_t sleep_at_once; /* waits left that sleep without yielding first */
    uint32_t penalty; /* cost of the next long yield, in waits: 1, doubling to 1024, decaying */
    uint32_t together; /* waits in a row that the first yield ended: the other node is on this core */
    uint32_t together_limit; /* so many make one wait sleep, to wake on a free core; 64, doubling to 65536 */
    uint64_t yield_count; /* statistics */
    uint64_t sleep_count;
} spc_waiter_t;

typedef enum spc_wait_policy {
    SPC_WAIT_FREE_CORES, /* each node has a core: spin tens of microseconds first */
    SPC_WAIT_SHARED_CORES, /* more users of cores than cores: yield almost at once */
    SPC_WAIT_SLEEP, /* sleep at once, for comparison (SPCOMM_WAIT=sleep) */
} spc_wait_policy_t;

void spc_waiter_init(spc_waiter_t *waiter, spc_wait_policy_t policy, uint32_t features);

/* This many nodes share cores: each may have a turn before a yield returns, so such a yield is not a long one. */
void spc_waiter_expect_turns(spc_waiter_t *waiter, uint32_t nodes);

/* SPC_OK once test() succeeds; SPC_ETIMEDOUT; or the status of check(). With a deadline in the past it tests, makes
 * progress once and tests again: a caller that only ever polls still moves things along. */
int spc_wait(spc_waiter_t *waiter, _Atomic uint32_t *word, _Atomic uint32_t *sleeping,
             const spc_wait_callbacks_t *callbacks, void *argument, uint64_t deadline_ns);

#endif
