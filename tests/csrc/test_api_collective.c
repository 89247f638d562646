/* SPDX-License-Identifier: MIT */
/* The public C interface, used as a program would: barriers, reductions, parts; and what is refused. */
#include <sched.h>

#include "api_check.h"

static spcomm_t *comm;
static int rank, size;
static bool is_launched; /* else the program itself says how many nodes it has */

static void test_reductions(void) {
    int64_t integer;
    double real;
    spcomm_simtime_t mine = {rank / 2, {0, -rank, 0, 7}}, time;
    CHECK_OK(spcomm_global_min_int64(comm, rank + 5, SPCOMM_FOREVER, &integer));
    CHECK(integer == 5);
    CHECK_OK(spcomm_global_max_int64(comm, INT64_MAX - rank, SPCOMM_FOREVER, &integer));
    CHECK(integer == INT64_MAX);
    CHECK_OK(spcomm_global_sum_int64(comm, rank, SPCOMM_FOREVER, &integer));
    CHECK(integer == size * (size - 1) / 2);
    CHECK_OK(spcomm_global_min_double(comm, -1.5 * rank, SPCOMM_FOREVER, &real));
    CHECK(real == -1.5 * (size - 1));
    CHECK_OK(spcomm_global_max_double(comm, 0.5 * rank, SPCOMM_FOREVER, &real));
    CHECK(real == 0.5 * (size - 1));
    CHECK_OK(spcomm_global_sum_double(comm, 0.25, SPCOMM_FOREVER, &real));
    CHECK(real == 0.25 * size);
    CHECK_OK(spcomm_global_min_simtime(comm, mine, SPCOMM_FOREVER, &time));
    CHECK(time.time == 0 && time.priority[1] == (size > 1 ? -1 : 0) && time.priority[3] == 7);
    CHECK_OK(spcomm_global_max_simtime(comm, mine, SPCOMM_FOREVER, &time));
    CHECK(time.time == (size - 1) / 2 && time.priority[1] == -((size - 1) / 2 * 2));
    CHECK_OK(spcomm_global_sum_simtime(comm, spcomm_simtime_from(2.0), SPCOMM_FOREVER, &time));
    CHECK(time.time == 2.0 * size && time.priority[0] == 0);
}

static void test_three_at_once(void) {
    spcomm_values_t mine = {rank + 1, 0.5, spcomm_simtime_from(3.0 + rank)}, all;
    mine.simtime.priority[0] = 9;
    CHECK_OK(spcomm_global_sum(comm, &mine, SPCOMM_FOREVER, &all));
    CHECK(all.integer == size * (size + 1) / 2 && all.real == 0.5 * size && all.simtime.priority[0] == 0);
    CHECK_OK(spcomm_global_min(comm, &mine, SPCOMM_FOREVER, &all));
    CHECK(all.integer == 1 && all.simtime.time == 3.0 && all.simtime.priority[0] == 9);
    CHECK_OK(spcomm_global_max(comm, &mine, SPCOMM_FOREVER, &mine)); /* in place */
    CHECK(mine.integer == size && mine.simtime.time == 2.0 + size);
}

static void test_wide_sums(void) {
    int64_t sum = -1;
    int status = spcomm_global_sum_int64(comm, INT64_MAX, SPCOMM_FOREVER, &sum);
    CHECK(size == 1 ? status == SPCOMM_OK && sum == INT64_MAX : status == SPCOMM_EWIDE && sum == -1);
}

static void test_fuzzy(void) {
    spcomm_fuzzy_t fuzzy[SPCOMM_FUZZY_MAX], ninth;
    int done = 0;
    for (int i = 0; i < SPCOMM_FUZZY_MAX; i++) {
        CHECK_OK(spcomm_fuzzy_enter(comm, &fuzzy[i]));
    }
    CHECK_FAILS(spcomm_fuzzy_enter(comm, &ninth), SPCOMM_ELIMIT, "eight fuzzy barriers are open");
    CHECK_FAILS(spcomm_enter_fuzzy_barrier(comm), SPCOMM_ELIMIT, "eight fuzzy barriers are open");
    CHECK_OK(spcomm_fuzzy_wait(comm, &fuzzy[SPCOMM_FUZZY_MAX - 1], SPCOMM_FOREVER));
    for (int i = 0; i < SPCOMM_FUZZY_MAX - 1; i++) {
        CHECK_OK(spcomm_fuzzy_done(comm, &fuzzy[i], &done)); /* earlier ones are over, too */
        CHECK(done == 1);
    }
}

/* Until all are here. */
static void exit_fuzzy(void) {
    int done;
    do {
        CHECK_OK(spcomm_exit_fuzzy_barrier(comm, &done));
        sched_yield(); /* others need the core */
    } while (!done);
}

/* Node 0 is late: the others are told 0 until it comes. One at a time, even if the one before is complete. */
static void test_fuzzy_without_handle(void) {
    int done = 7;
    spcomm_message_t message;
    CHECK_FAILS(spcomm_exit_fuzzy_barrier(comm, &done), SPCOMM_EINVAL, "in no fuzzy barrier");
    CHECK(done == 7);
    if (rank != 0) {
        CHECK_OK(spcomm_enter_fuzzy_barrier(comm));
        CHECK_FAILS(spcomm_enter_fuzzy_barrier(comm), SPCOMM_ELIMIT, "in a fuzzy barrier already");
        CHECK_OK(spcomm_exit_fuzzy_barrier(comm, &done));
        CHECK(done == 0);
        CHECK_OK(spcomm_send(comm, 0, 1, spcomm_raw(NULL, 0), SPCOMM_FOREVER));
    } else {
        for (int i = 1; i < size; i++) {
            CHECK_OK(spcomm_recv(comm, SPCOMM_ANY, 1, SPCOMM_FOREVER, &message));
            spcomm_message_free(&message);
        }
        CHECK_OK(spcomm_enter_fuzzy_barrier(comm));
    }
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER)); /* so all have entered */
    CHECK_FAILS(spcomm_enter_fuzzy_barrier(comm), SPCOMM_ELIMIT, "already");
    exit_fuzzy();
    CHECK_FAILS(spcomm_exit_fuzzy_barrier(comm, &done), SPCOMM_EINVAL, "in no fuzzy barrier");
    CHECK_OK(spcomm_enter_fuzzy_barrier(comm));
    exit_fuzzy();
}

/* A barrier that timed out stays entered: another call is refused, the same one goes on. */
static void test_timeouts(void) {
    int64_t sum;
    if (size == 1) {
        return;
    }
    if (rank == 0) {
        spcomm_message_t message;
        CHECK_FAILS(spcomm_barrier(comm, 0), SPCOMM_ETIMEDOUT, "spcomm_barrier(): not all");
        CHECK_FAILS(spcomm_global_sum_int64(comm, 1, 0, &sum), SPCOMM_EMISMATCH, "has left barrier()");
        CHECK_OK(spcomm_send_all(comm, 2, spcomm_raw(NULL, 0), SPCOMM_FOREVER));
        CHECK_OK(spcomm_recv(comm, 0, 2, SPCOMM_FOREVER, &message));
        spcomm_message_free(&message);
    } else {
        spcomm_message_t message;
        CHECK_OK(spcomm_recv(comm, 0, 2, SPCOMM_FOREVER, &message));
        spcomm_message_free(&message);
    }
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
}

static void test_mismatch(void) {
    double real;
    if (size > 1) {
        int status = rank == 0 ? spcomm_barrier(comm, SPCOMM_FOREVER)
                               : spcomm_global_min_double(comm, 1.0, SPCOMM_FOREVER, &real);
        CHECK(status == SPCOMM_EMISMATCH);
        CHECK(strstr(spcomm_last_error(), "barrier") != NULL);
        CHECK(strstr(spcomm_last_error(), "global_min() of a float") != NULL);
        CHECK(strstr(spcomm_last_error(), "\n  node 0: barrier()\n  node") != NULL);
    }
}

static void test_parts(void) {
    spcomm_t *half = comm, *none = comm;
    int64_t sum;
    CHECK_OK(spcomm_split(comm, rank % 2, -rank, SPCOMM_FOREVER, &half));
    CHECK(half != NULL && half != comm && spcomm_current() == comm);
    CHECK(spcomm_size(half) == (size + 1 - rank % 2) / 2);
    CHECK(spcomm_rank(half) == (size - 1 - rank) / 2); /* ordered by key: the last first */
    CHECK_OK(spcomm_global_sum_int64(half, rank, SPCOMM_FOREVER, &sum));
    int64_t expected = 0;
    for (int node = rank % 2; node < size; node += 2) {
        expected += node;
    }
    CHECK(sum == expected);
    CHECK_FAILS(spcomm_send(half, spcomm_size(half), 0, spcomm_int64(0), 0), SPCOMM_ERANK,
                "there is no node");
    spcomm_message_t message;
    CHECK_OK(spcomm_send(half, spcomm_rank(half), 3, spcomm_int64(rank), SPCOMM_FOREVER));
    CHECK(spcomm_try_recv(comm, SPCOMM_ANY, 3, &message) == SPCOMM_EAGAIN); /* not the run's message */
    CHECK_OK(spcomm_recv(half, SPCOMM_ANY, 3, SPCOMM_FOREVER, &message));
    CHECK(message.source == spcomm_rank(half));
    CHECK_OK(spcomm_shutdown(half, SPCOMM_FOREVER));
    spcomm_message_free(&message);
    CHECK_FAILS(spcomm_barrier(half, 0), SPCOMM_ECLOSED, "has closed this communicator");
    CHECK_FAILS(spcomm_shutdown(half, 0), SPCOMM_ECLOSED, "has closed this communicator");
    CHECK_OK(spcomm_split(comm, -1, 0, SPCOMM_FOREVER, &none));
    CHECK(none == NULL);
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER));
}

/* tests/refusals.py has what is refused of any argument of a name. */
static void test_refused(void) {
    spcomm_message_t message;
    spcomm_destination_t to;
    int64_t shape[1] = {-3};
    spcomm_data_t nothing = spcomm_raw(NULL, 3), strange = spcomm_int64(1);
    strange.format = SPCOMM_FORMAT_PICKLE;
    CHECK_FAILS(spcomm_send(comm, size, 0, spcomm_int64(1), 0), SPCOMM_ERANK,
                size == 1 && is_launched ? "this is a run of one node: start it with `spcomm run -n 4 "
                                         : "this run has nodes 0 to ");
    CHECK_FAILS(spcomm_send(comm, 0, 0, nothing, 0), SPCOMM_EINVAL, "NULL");
    CHECK_FAILS(spcomm_send(comm, 0, 0, spcomm_raw("x", (size_t)-1), 0), SPCOMM_EINVAL, "negative");
    CHECK_FAILS(spcomm_send(comm, 0, 0, spcomm_string(NULL), 0), SPCOMM_EINVAL, "NULL");
    CHECK_FAILS(spcomm_send(comm, 0, 0, strange, 0), SPCOMM_EINVAL, "format 10");
    CHECK_FAILS(spcomm_send(comm, 0, 0, spcomm_array("", 'f', 8, 1, shape), 0), SPCOMM_EINVAL, "negative");
    CHECK_FAILS(spcomm_send(comm, 0, 0, spcomm_array("", 'f', 3, 0, shape), 0), SPCOMM_EINVAL, "kind 'f'");
    CHECK_FAILS(spcomm_send(comm, 0, 0, spcomm_array("", 'O', 8, 0, shape), 0), SPCOMM_EINVAL, "kind 'O'");
    CHECK_FAILS(spcomm_send(comm, 0, 0, spcomm_array("", 'b', 1, 65, shape), 0), SPCOMM_EINVAL, "dimensions");
    CHECK_FAILS(spcomm_send(comm, 0, 0, spcomm_array("", 'b', 1, 2, NULL), 0), SPCOMM_EINVAL, "shape");
    spcomm_destination_clear(&to);
    spcomm_destination_set(&to, 1000);
    CHECK_FAILS(spcomm_send_set(comm, &to, 0, spcomm_int64(1), 0), SPCOMM_ERANK, "node 1000");
    CHECK_FAILS(spcomm_coordinated_send_set(comm, &to, spcomm_int64(1), 0), SPCOMM_ERANK, "node 1000");
    CHECK_FAILS(spcomm_recv(comm, -1, 0, 0, &message), SPCOMM_ERANK, "SPCOMM_ANY");
    CHECK_FAILS(spcomm_startup(0, 0, 0, NULL, NULL), SPCOMM_EINVAL, "comm=NULL");
    CHECK(spcomm_rank(NULL) == SPCOMM_EINVAL && spcomm_size(NULL) == SPCOMM_EINVAL);
    CHECK_OK(spcomm_barrier(comm, SPCOMM_FOREVER)); /* none of these has sent or entered anything */
    CHECK(spcomm_try_recv(comm, SPCOMM_ANY, SPCOMM_ANY, &message) == SPCOMM_EAGAIN);
}

static void test_startup_again(void) {
    spcomm_t *again = NULL;
    CHECK_OK(spcomm_startup(0, 0, 0, NULL, &again));
    CHECK(again == comm);
    CHECK_OK(spcomm_startup(size, size, 0, NULL, &again));
    CHECK_FAILS(spcomm_startup(size + 1, 0, 0, NULL, &again), SPCOMM_EINVAL, "local_nodes=");
    CHECK_FAILS(spcomm_startup(0, size + 1, 0, NULL, &again), SPCOMM_EINVAL, "total_nodes=");
    CHECK_FAILS(spcomm_startup(-1, 0, 0, NULL, &again), SPCOMM_EINVAL, "0 or more");
    CHECK_FAILS(spcomm_startup(0, 0, -1, NULL, &again), SPCOMM_EINVAL, "0 or more");
    CHECK_FAILS(spcomm_startup(3, 2, 0, NULL, &again), SPCOMM_EINVAL, "total_nodes=2");
    CHECK_FAILS(spcomm_startup(0, 0, 0, "/nowhere/at.all", &again), SPCOMM_ESYSTEM, "/nowhere/at.all");
    CHECK(strcmp(spcomm_version(), SPCOMM_VERSION) == 0);
    CHECK(strcmp(spcomm_error_name(SPCOMM_ELOST), "SPCOMM_ELOST") == 0);
    CHECK(spcomm_error_name(5) != NULL && spcomm_error_message(-1000) != NULL);
}

int main(int argc, char **argv) {
    int64_t before, after;
    CHECK(spcomm_current() == NULL && spcomm_last_error()[0] == '\0');
    is_launched = getenv("SPCOMM_NODE") != NULL;
    comm = api_start(argc, argv);
    rank = spcomm_rank(comm);
    size = spcomm_size(comm);
    before = spcomm_time_ns(comm);
    test_reductions();
    test_three_at_once();
    test_wide_sums();
    test_fuzzy();
    test_fuzzy_without_handle();
    test_timeouts();
    test_mismatch();
    test_parts();
    test_refused();
    test_startup_again();
    after = spcomm_time_ns(comm);
    CHECK(before > 0 && after > before && spcomm_group(comm) == 0);
    CHECK_OK(spcomm_shutdown(comm, SPCOMM_FOREVER));
    CHECK_FAILS(spcomm_shutdown(comm, SPCOMM_FOREVER), SPCOMM_ECLOSED, "has closed this communicator");
    CHECK_FAILS(spcomm_barrier(comm, SPCOMM_FOREVER), SPCOMM_ECLOSED, "spcomm_barrier");
    CHECK_FAILS(spcomm_startup(0, 0, 0, NULL, &comm), SPCOMM_ECLOSED, "has closed this communicator");
    CHECK(spcomm_rank(comm) == rank);
    return 0;
}
