/* SPDX-License-Identifier: MIT */
#include "base/spc_wait.h"

#include <stddef.h>

#include "base/spc_error.h"
#include "base/spc_platform.h"

enum {
    SPC_WAIT_STEP = 64, /* polls between two looks at the clock and at progress */
    SPC_WAIT_SPIN_NS = 30000, /* free cores: about what a wake-up costs, so at most twice the best is lost */
    SPC_WAIT_SHARED_POLLS = 4, /* shared cores: every further poll delays the awaited node */
    SPC_WAIT_YIELDS = 200, /* a message goes round 32 nodes on 2 cores in about 20 turns of each */
    SPC_WAIT_YIELD_LONG_NS = 100000,
    SPC_WAIT_YIELD_TURN_NS = 20000, /* of one node that looks, drains and yields, on a slow machine */
    SPC_WAIT_YIELD_LONG_MAX_NS = 500000, /* the time slice of a computing process is longer */
    SPC_WAIT_PENALTY_MIN = 1, /* one long yield may be chance, and a sleep costs as much as many yields */
    SPC_WAIT_PENALTY_MAX = 1024,
    SPC_WAIT_TOGETHER_MIN = 64,
    SPC_WAIT_TOGETHER_MAX = 65536,
};

/* One wait, so that its phases need one argument. */
typedef struct spc_wait_call {
    spc_waiter_t *waiter;
    _Atomic uint32_t *word;
    _Atomic uint32_t *sleeping;
    const spc_wait_callbacks_t *callbacks;
    void *argument;
    uint64_t deadline_ns;
} spc_wait_call_t;

/* The polls that take SPC_WAIT_SPIN_NS here: a pause is 10 to 150 cycles, by processor. */
static uint32_t spin_polls(spc_clock_fn now_ns) {
    uint64_t best_ns = SPC_WAIT_SPIN_NS;
    for (int attempt = 0; attempt < 5; attempt++) { /* some are interrupted */
        uint64_t start_ns = now_ns();
        for (int i = 0; i < SPC_WAIT_STEP; i++) {
            spc_cpu_relax();
        }
        uint64_t step_ns = now_ns() - start_ns;
        best_ns = step_ns < best_ns ? step_ns : best_ns;
    }
    best_ns = best_ns > SPC_WAIT_STEP ? best_ns : SPC_WAIT_STEP; /* a coarse clock */
    return SPC_WAIT_SPIN_NS * SPC_WAIT_STEP / (uint32_t)best_ns;
}

void spc_waiter_init(spc_waiter_t *waiter, spc_wait_policy_t policy, uint32_t features) {
    *waiter = (spc_waiter_t){
        .features = features,
        .yields = SPC_WAIT_YIELDS,
        .yield_long_ns = SPC_WAIT_YIELD_LONG_NS,
        .slice_ns = UINT64_C(100000000),
        .now_ns = spc_clock_now_ns,
        .penalty = SPC_WAIT_PENALTY_MIN,
        .together_limit = SPC_WAIT_TOGETHER_MIN,
    };
#ifdef SPC_WAIT_ENDLESS_SLICES
    waiter->slice_ns = UINT64_MAX; /* a lost wake-up hangs the test, instead of costing a slice */
#endif
    switch (policy) {
    case SPC_WAIT_FREE_CORES:
        waiter->polls_limit = spin_polls(waiter->now_ns);
        waiter->polls = waiter->polls_limit;
        break;
    case SPC_WAIT_SHARED_CORES:
        waiter->polls = SPC_WAIT_SHARED_POLLS;
        break;
    case SPC_WAIT_SLEEP:
        waiter->yields = 0;
        break;
    }
}

void spc_waiter_expect_turns(spc_waiter_t *waiter, uint32_t nodes) {
    uint64_t long_ns = SPC_WAIT_YIELD_LONG_NS + (uint64_t)nodes * SPC_WAIT_YIELD_TURN_NS;
    waiter->yield_long_ns = long_ns < SPC_WAIT_YIELD_LONG_MAX_NS ? long_ns : SPC_WAIT_YIELD_LONG_MAX_NS;
}

static bool test(const spc_wait_call_t *call) {
    return call->callbacks->test(call->argument);
}

static void progress(const spc_wait_call_t *call) {
    if (call->callbacks->progress != NULL) {
        call->callbacks->progress(call->argument);
    }
}

/* SPC_OK also if there is no callback. */
static int check(const spc_wait_call_t *call) {
    return call->callbacks->check != NULL ? call->callbacks->check(call->argument) : SPC_OK;
}

static bool has_moved(const spc_wait_call_t *call) {
    return call->callbacks->moved != NULL && call->callbacks->moved(call->argument);
}

/* A wait without deadline does not read the clock for it. */
static bool is_late(const spc_wait_call_t *call) {
    return call->deadline_ns != SPC_NO_DEADLINE && call->waiter->now_ns() >= call->deadline_ns;
}

/* The last test of a wait that ends badly: a condition that has come true counts more than the reason to end. */
static int end_unless_true(const spc_wait_call_t *call, int status) {
    return test(call) ? SPC_OK : status;
}

/* Polling has ended the wait. Two such in a row: the nodes have a core each. */
static void learn_to_poll(spc_waiter_t *waiter) {
    waiter->polls = waiter->polls < waiter->polls_limit / 2 ? 2 * waiter->polls : waiter->polls_limit;
    if (waiter->together == 0) {
        waiter->together_limit = SPC_WAIT_TOGETHER_MIN;
    }
    waiter->together = 0;
}

/* The first yield has ended it: the awaited node has this core too, and polling kept it away. */
static void learn_to_share(spc_waiter_t *waiter) {
    if (waiter->polls >= 2 * SPC_WAIT_SHARED_POLLS) {
        waiter->polls /= 2;
    }
    waiter->together++;
}

/* Nodes that yield to each other never leave their core, even if the next one is free: the kernel looks for a free core
 * when it wakes a thread up, and even then it may prefer the waker's. So one of them sleeps, now and then, and asks for
 * another core first. Both may come here at once, and would meet again on the next core: a coin (a bit of the clock)
 * lets one stay. If the other cores are busy, the kernel brings it back, and it tries more rarely. */
static bool try_to_part(spc_waiter_t *waiter) {
    if (waiter->polls_limit == 0 || waiter->together < waiter->together_limit) {
        return false;
    }
    waiter->polls = waiter->polls_limit;
    waiter->together = 0;
    if (waiter->together_limit < SPC_WAIT_TOGETHER_MAX) {
        waiter->together_limit *= 2;
    }
    if ((waiter->now_ns() >> 4 & 1) != 0) {
        spc_platform_change_core();
    }
    return true;
}

/* SPC_OK, SPC_ETIMEDOUT; SPC_EAGAIN: go on with the next phase. */
static int poll_phase(const spc_wait_call_t *call) {
    for (uint32_t i = 1; i <= call->waiter->polls; i++) {
        spc_cpu_relax();
        if (test(call)) {
            if (call->waiter->polls_limit > 0) {
                learn_to_poll(call->waiter);
            }
            return SPC_OK;
        }
        if (i % SPC_WAIT_STEP == 0) {
            progress(call);
            if (is_late(call)) {
                return end_unless_true(call, SPC_ETIMEDOUT);
            }
        }
        if (i == call->waiter->polls && has_moved(call)) {
            int status = check(call);
            if (status != SPC_OK) {
                return status;
            }
            i = 0;
        }
    }
    return SPC_EAGAIN;
}

/* A yield was long: another process computes on this core, and a yield hands it a whole time slice. */
static void learn_to_sleep(spc_waiter_t *waiter) {
    waiter->sleep_at_once = waiter->penalty;
    waiter->penalty = waiter->penalty < SPC_WAIT_PENALTY_MAX / 2 ? 2 * waiter->penalty : SPC_WAIT_PENALTY_MAX;
}

static void learn_to_yield(spc_waiter_t *waiter, bool at_once) {
    if (at_once && waiter->polls_limit > 0) {
        learn_to_share(waiter);
    }
    waiter->penalty = waiter->penalty > 2 * SPC_WAIT_PENALTY_MIN ? waiter->penalty / 2 : SPC_WAIT_PENALTY_MIN;
}

static int yield_phase(const spc_wait_call_t *call) {
    spc_waiter_t *waiter = call->waiter;
    for (uint32_t i = 0; i < waiter->yields; i++) {
        progress(call);
        /* Only the yield is timed: the callbacks may copy for long, which is no other process's computing. */
        uint64_t before_ns = waiter->now_ns();
        spc_platform_yield();
        uint64_t after_ns = waiter->now_ns();
        waiter->yield_count++;
        bool was_long = after_ns - before_ns > waiter->yield_long_ns;
        bool done = test(call);
        if (was_long) {
            learn_to_sleep(waiter);
        } else if (done) {
            learn_to_yield(waiter, i == 0);
        }
        if (done) {
            return SPC_OK;
        }
        if (after_ns >= call->deadline_ns) {
            return end_unless_true(call, SPC_ETIMEDOUT);
        }
        if (was_long) {
            break;
        }
    }
    return SPC_EAGAIN;
}

static void sleep_at_most(const spc_wait_call_t *call, uint32_t seen, uint64_t left_ns) {
    const spc_wait_callbacks_t *callbacks = call->callbacks;
    spc_waiter_t *waiter = call->waiter;
    uint64_t slice_ns = callbacks->settle != NULL ? callbacks->settle(call->argument, seen) : 0;
    if (slice_ns == SPC_WAIT_NO_SLEEP) {
        return;
    }
#ifdef SPC_WAIT_ENDLESS_SLICES
    slice_ns = 0;
#endif
    slice_ns = slice_ns != 0 ? slice_ns : waiter->slice_ns;
    spc_platform_sleep(waiter->features, call->word, seen, left_ns < slice_ns ? left_ns : slice_ns);
    waiter->sleep_count++;
    if (callbacks->wake != NULL) {
        callbacks->wake(call->argument);
    }
}

/* Announces the sleep, tests once more and sleeps; true if the test ends the wait. */
static bool sleep_slice(const spc_wait_call_t *call) {
    spc_waiter_t *waiter = call->waiter;
    /* seq_cst, and before the test: a waker that comes after the test bumps the word, and the sleep does not
     * begin. Pairs with spc_event_raise. */
    uint32_t seen = atomic_load_explicit(call->word, memory_order_seq_cst);
    /* Pairs with the load in spc_event_notify: that load sees this store, or the test below sees the earlier change. */
    atomic_store_explicit(call->sleeping, 1, memory_order_seq_cst);
    progress(call);
    bool done = test(call);
    /* A callback that waited itself, on the same word, has cleared the announcement: do not sleep on it. */
    if (!done && atomic_load_explicit(call->sleeping, memory_order_relaxed) != 0) {
        uint64_t now_ns = call->deadline_ns != SPC_NO_DEADLINE ? waiter->now_ns() : 0;
        uint64_t left_ns = call->deadline_ns > now_ns ? call->deadline_ns - now_ns : 0;
        if (left_ns > 0) {
            sleep_at_most(call, seen, left_ns);
        }
    }
    /* relaxed: a waker that still sees the 1 wakes no thread, which only costs time. */
    atomic_store_explicit(call->sleeping, 0, memory_order_relaxed);
    return done;
}

/* With `moved` the wait is not over: something has moved. Not a status, for a check may return any. */
static int sleep_phase(const spc_wait_call_t *call, bool *moved) {
    for (;;) {
        /* With the announcement withdrawn: the check may run any code, even another wait. */
        int status = check(call);
        if (status != SPC_OK) {
            return status;
        }
        *moved = has_moved(call);
        if (*moved) {
            return SPC_OK;
        }
        if (sleep_slice(call) || test(call)) {
            return SPC_OK;
        }
        if (is_late(call)) {
            return end_unless_true(call, SPC_ETIMEDOUT);
        }
    }
}

/* Apart from spc_wait, so that a wait that is over at once saves no registers for this. */
static __attribute__((noinline)) int wait_slowly(const spc_wait_call_t *call) {
    if (is_late(call)) {
        progress(call); /* a caller that only ever polls still moves things along */
        return end_unless_true(call, SPC_ETIMEDOUT);
    }
    for (;;) {
        int status = poll_phase(call);
        if (status != SPC_EAGAIN) {
            return status;
        }
        if (call->waiter->sleep_at_once > 0) {
            call->waiter->sleep_at_once--;
        } else if (!try_to_part(call->waiter)) {
            status = yield_phase(call);
            if (status != SPC_EAGAIN) {
                return status;
            }
        }
        bool moved = false;
        status = sleep_phase(call, &moved);
        if (!moved) {
            return status;
        }
    }
}

int spc_wait(spc_waiter_t *waiter, _Atomic uint32_t *word, _Atomic uint32_t *sleeping,
             const spc_wait_callbacks_t *callbacks, void *argument, uint64_t deadline_ns) {
    if (callbacks->test(argument)) {
        return SPC_OK;
    }
    spc_wait_call_t call = {waiter, word, sleeping, callbacks, argument, deadline_ns};
    return wait_slowly(&call);
}
