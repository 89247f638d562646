/* SPDX-License-Identifier: MIT */
/* Random sequences of operations, the same on all ranks, which are threads and then processes. Every
 * result is compared with an oracle: all values follow from (seed, step, rank), so each rank knows what
 * everybody contributed. */
#include "reduce_box.h"

#include <sched.h>

#include "base/spc_wait.h"
#include "reduce/spc_fuzzy.h"

enum { SCRATCH_BYTES = 512, VALUES_MAX = SCRATCH_BYTES / 8 };

typedef struct job {
    box_t box;
    uint64_t seed;
    long steps;
} job_t;

/* One rank at work. */
typedef struct worker {
    job_t *job;
    uint32_t rank;
    uint32_t nodes;
    spc_reduce_t *reduce;
    spc_fuzzy_t fuzzy;
    spc_waiter_t waiter;
    uint64_t common; /* the generator that decides what is called: equal on all ranks */
    uint64_t own;    /* the one that decides how: delays, questions */
    uint64_t step;
    uint64_t waited_for;
    struct {
        uint64_t phase;
        int expected;
    } open[SPC_FUZZY_MAX]; /* oldest first, as in spc_fuzzy */
    uint32_t open_count;
} worker_t;

static bool is_complete(void *argument) {
    worker_t *worker = argument;
    return spc_reduce_test(worker->reduce, worker->waited_for);
}

static void wait_for(worker_t *worker, uint64_t phase) {
    const spc_wait_callbacks_t callbacks = {.test = is_complete};
    spc_event_shared_t *event = &worker->job->box.events[worker->rank];
    worker->waited_for = phase;
    CHECK_OK(spc_wait(&worker->waiter, &event->word, &event->sleeping, &callbacks, worker, SPC_NO_DEADLINE));
}

/* Now and then this rank is late. */
static void dawdle(worker_t *worker) {
    switch (check_below(&worker->own, 8)) {
    case 0:
        sched_yield();
        break;
    case 1:
        for (uint64_t i = check_below(&worker->own, 300); i > 0; i--) {
            spc_cpu_relax();
        }
        break;
    default:
        break;
    }
}

/* The value of `rank` at this step; integers that a double holds exactly, divided so that order matters. */
static double value_of(const worker_t *worker, uint32_t rank, uint32_t index) {
    uint64_t state = worker->job->seed + worker->step * 1000003 + rank * 1009 + index;
    return (double)(int64_t)(check_random(&state) >> 12) / (double)(1 + check_below(&state, 1000));
}

static uint64_t start(worker_t *worker, const spc_signature_t *signature, const spc_field_t *fields,
                      const void *value, uint64_t length_bytes) {
    uint64_t phase = 0;
    dawdle(worker);
    spc_fuzzy_settle(&worker->fuzzy);
    CHECK_OK(spc_reduce_start(worker->reduce, signature, fields, value, length_bytes, &phase));
    CHECK_EQ_U(phase, worker->step);
    return phase;
}

static void do_barrier(worker_t *worker) {
    const spc_signature_t signature = box_plain(SPC_OPERATION_BARRIER);
    const uint64_t phase = start(worker, &signature, NULL, NULL, 0);
    for (uint32_t rank = 0; rank < worker->nodes; rank++) { /* as for a report of who is missing */
        spc_signature_t seen;
        if (spc_reduce_signature(worker->reduce, phase, rank, &seen)) {
            CHECK_MEM(&seen, &signature, sizeof seen);
        }
    }
    wait_for(worker, phase);
    CHECK_OK(spc_reduce_finish(worker->reduce, phase, NULL, 0));
    for (uint32_t rank = 0; rank < worker->nodes; rank++) {
        CHECK(spc_reduce_arrived(worker->reduce, phase, rank));
    }
}

static void do_reduction(worker_t *worker, spc_operator_t operator, uint32_t count) {
    const spc_field_t field = {SPC_TYPE_FLOAT64, count};
    const spc_signature_t signature = reduction_signature(operator, &field, 1);
    double values[VALUES_MAX], result[VALUES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        values[i] = value_of(worker, worker->rank, i);
    }
    const uint64_t phase = start(worker, &signature, &field, values, signature.length_bytes);
    memset(values, 0, sizeof values); /* not used after the call */
    wait_for(worker, phase);
    CHECK_OK(spc_reduce_finish(worker->reduce, phase, result, signature.length_bytes));
    for (uint32_t i = 0; i < count; i++) {
        double column[BOX_NODES_MAX], expected = value_of(worker, 0, i);
        for (uint32_t rank = 0; rank < worker->nodes; rank++) {
            column[rank] = value_of(worker, rank, i);
            expected = operator == SPC_MIN && column[rank] < expected ? column[rank] : expected;
        }
        expected = operator == SPC_SUM ? box_model_sum(column, worker->nodes) : expected;
        CHECK_MEM(&result[i], &expected, sizeof expected);
    }
}

static void do_gather(worker_t *worker, uint32_t shift) {
    const spc_signature_t signature = box_plain(SPC_OPERATION_GATHER);
    double values[VALUES_MAX];
    for (uint32_t i = 0; i < VALUES_MAX; i++) {
        values[i] = value_of(worker, worker->rank, i);
    }
    const uint64_t phase = start(worker, &signature, NULL, values, (worker->rank + shift) % VALUES_MAX * 8);
    wait_for(worker, phase);
    CHECK_OK(spc_reduce_finish(worker->reduce, phase, NULL, 0));
    for (uint32_t rank = 0; rank < worker->nodes; rank++) {
        const void *bytes = NULL;
        uint64_t length_bytes = 0;
        dawdle(worker);
        spc_reduce_contribution(worker->reduce, phase, rank, &bytes, &length_bytes);
        CHECK_EQ_U(length_bytes, (rank + shift) % VALUES_MAX * 8);
        for (uint32_t i = 0; i < length_bytes / 8; i++) {
            const double expected = value_of(worker, rank, i);
            CHECK_MEM((const double *)bytes + i, &expected, sizeof expected);
        }
    }
}

/* The integers 1 on all nodes, but on one something else: an integer too wide, or the largest that fits. */
static void do_wide(worker_t *worker, uint32_t who, bool overflow) {
    const spc_field_t field = {!overflow && worker->rank == who ? SPC_TYPE_WIDE : SPC_TYPE_INT, 1};
    const spc_signature_t signature = reduction_signature(SPC_SUM, &field, 1);
    const int64_t value = worker->rank == who ? INT64_MAX : 1;
    int64_t result = 0;
    const uint64_t phase = start(worker, &signature, &field, &value, sizeof value);
    wait_for(worker, phase);
    const int status = spc_reduce_finish(worker->reduce, phase, &result, sizeof result);
    CHECK_EQ(status, overflow && worker->nodes == 1 ? SPC_OK : SPC_EWIDE);
}

/* One node calls a sum of 20 doubles, the others a barrier or a sum of one. */
static void do_mismatch(worker_t *worker, uint32_t who, bool barriers) {
    static const double values[20];
    const bool is_odd = worker->rank == who;
    const spc_field_t field = {SPC_TYPE_FLOAT64, is_odd ? 20 : 1};
    const spc_signature_t signature =
        barriers && !is_odd ? box_plain(SPC_OPERATION_BARRIER) : reduction_signature(SPC_SUM, &field, 1);
    double result[20];
    const uint64_t phase = start(worker, &signature, &field, values, signature.length_bytes);
    wait_for(worker, phase);
    CHECK_EQ(spc_reduce_finish(worker->reduce, phase, result, signature.length_bytes),
             worker->nodes == 1 ? SPC_OK : SPC_EMISMATCH);
    for (uint32_t rank = 0; rank < worker->nodes; rank++) {
        spc_signature_t seen;
        CHECK(spc_reduce_signature(worker->reduce, phase, rank, &seen));
        CHECK_EQ(seen.operation, barriers && rank != who ? SPC_OPERATION_BARRIER : SPC_OPERATION_REDUCE);
    }
}

static void leave(worker_t *worker, uint32_t index) {
    wait_for(worker, worker->open[index].phase);
    CHECK_EQ(spc_fuzzy_leave(&worker->fuzzy, worker->open[index].phase), worker->open[index].expected);
    const uint32_t later = --worker->open_count - index;
    memmove(&worker->open[index], &worker->open[index + 1], later * sizeof worker->open[0]);
}

/* Enters a fuzzy barrier. If `odd` is a rank, that node calls a barrier instead, and all learn of it
 * sooner or later. */
static void do_fuzzy(worker_t *worker, uint32_t odd) {
    const int expected = odd < worker->nodes && worker->nodes > 1 ? SPC_EMISMATCH : SPC_OK;
    uint64_t phase = 0;
    if (odd == worker->rank) {
        const spc_signature_t signature = box_plain(SPC_OPERATION_BARRIER);
        phase = start(worker, &signature, NULL, NULL, 0);
        wait_for(worker, phase);
        CHECK_EQ(spc_reduce_finish(worker->reduce, phase, NULL, 0), expected);
        return;
    }
    dawdle(worker);
    if (worker->open_count == SPC_FUZZY_MAX) {
        CHECK_EQ(spc_fuzzy_enter(&worker->fuzzy, &phase), SPC_ELIMIT);
        leave(worker, (uint32_t)check_below(&worker->own, SPC_FUZZY_MAX));
    }
    CHECK_OK(spc_fuzzy_enter(&worker->fuzzy, &phase));
    CHECK_EQ_U(phase, worker->step);
    worker->open[worker->open_count].phase = phase;
    worker->open[worker->open_count].expected = expected;
    worker->open_count++;
}

/* Leaves one that happens to be complete: each rank its own. */
static void leave_what_is_done(worker_t *worker) {
    if (worker->open_count > 0) {
        const uint32_t index = (uint32_t)check_below(&worker->own, worker->open_count);
        if (spc_reduce_test(worker->fuzzy.reduce, worker->open[index].phase)) {
            leave(worker, index);
        }
    }
}

static void do_step(worker_t *worker) {
    const uint32_t kind = (uint32_t)check_below(&worker->common, 32);
    const uint32_t number = (uint32_t)check_random(&worker->common);
    if (kind < 8) {
        do_barrier(worker);
    } else if (kind < 18) {
        do_fuzzy(worker, UINT32_MAX);
    } else if (kind < 22) {
        do_reduction(worker, number % 2 == 0 ? SPC_SUM : SPC_MIN, 1 + number / 2 % 4);
    } else if (kind < 26) {
        do_reduction(worker, number % 2 == 0 ? SPC_SUM : SPC_MIN, 5 + number / 2 % (VALUES_MAX - 5));
    } else if (kind < 29) {
        do_gather(worker, number % VALUES_MAX);
    } else if (kind == 29) {
        do_wide(worker, number % worker->nodes, number / 1024 % 2 == 0);
    } else if (kind == 30) {
        do_mismatch(worker, number % worker->nodes, number / 1024 % 2 == 0);
    } else {
        do_fuzzy(worker, number % worker->nodes);
    }
}

static void work(int rank, int size, void *argument) {
    job_t *job = argument;
    worker_t worker = {
        .job = job,
        .rank = (uint32_t)rank,
        .nodes = (uint32_t)size,
        .reduce = job->box.reduce[rank],
        .common = job->seed,
        .own = job->seed + 1 + (uint64_t)rank,
    };
    const spc_wait_policy_t policy = rank % 3 == 2 ? SPC_WAIT_SLEEP : SPC_WAIT_SHARED_CORES;
    spc_waiter_init(&worker.waiter, policy, spc_platform_features(0));
    spc_fuzzy_init(&worker.fuzzy, worker.reduce);
    for (worker.step = 1; worker.step <= (uint64_t)job->steps; worker.step++) {
        do_step(&worker);
        leave_what_is_done(&worker);
    }
    while (worker.open_count > 0) {
        leave(&worker, 0);
    }
}

static uint64_t seed;

static void run(int nodes, uint32_t fanin, void (*runner)(int, check_body_t, void *)) {
    job_t job = {.seed = check_random(&seed), .steps = check_scale(4000)};
    box_open(&job.box, (uint32_t)nodes, fanin, SCRATCH_BYTES);
    runner(nodes, work, &job);
    box_close(&job.box);
}

static void ranks_as_threads(void) {
    static const int sizes[] = {1, 2, 3, 4, 5, 8, 9};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        run(sizes[i], 64, check_threads);
        run(sizes[i], 2, check_threads);
    }
    run(9, 4, check_threads);
}

static void ranks_as_processes(void) {
    run(2, 2, check_processes);
    run(4, 64, check_processes);
    run(9, 2, check_processes);
}

int main(void) {
    seed = check_seed();
    RUN(ranks_as_threads);
    RUN(ranks_as_processes);
    return check_done();
}
