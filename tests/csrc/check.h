/* SPDX-License-Identifier: MIT */
/*
 * check: tools of a C test, in one header and without a framework.
 *
 * A test is a program. TEST(case) { ... } defines a case, and TEST_MAIN() at the end of the file runs all of them, in
 * their order there. A program whose main does more calls check_all(), or RUN(case), and returns check_done(). The
 * first CHECK that fails prints where and what, and ends the program with status 1. Status 77 means skipped:
 * SKIP("why").
 *
 * Every program that includes this header has a watchdog: after 120 seconds (CHECK_TIMEOUT=seconds) it is ended with
 * status 124, naming the running case. A test never measures time and never sleeps to wait for something.
 *
 * CHECK may be used in any thread, and in processes made by check_processes(). The two helpers that run n ranks call
 * body(rank, size, argument) once for each rank, at the same time, and return when all have returned:
 *
 *     check_threads(n, body, argument)     ranks as threads: what AddressSanitizer and ThreadSanitizer can see
 *     check_processes(n, body, argument)   ranks as processes: what users run; each inherits the parent's memory maps
 *
 * check_scale(rounds) is rounds, an eighth of them under a sanitizer, else a twelfth with CHECK_PART=12; more with
 * CHECK_SCALE=20. check_random() is a small generator for random tests; check_seed() prints the seed it starts from,
 * and CHECK_SEED=number repeats a run.
 */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK_MAX_RANKS 256

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECK_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CHECK_SANITIZED 1
#endif
#endif
#ifndef CHECK_SANITIZED
#define CHECK_SANITIZED 0
#endif

typedef void (*check_body_t)(int rank, int size, void *argument);

/* The running case, for messages. One program has one main thread that sets it. */
static const char *check_case __attribute__((unused)) = "(before the first case)";

/* ---- failing and skipping */

#define CHECK_FAIL(...)                                                                       \
    do {                                                                                      \
        fprintf(stderr, "%s:%d: in %s, case %s: ", __FILE__, __LINE__, __func__, check_case); \
        fprintf(stderr, __VA_ARGS__);                                                         \
        fputc('\n', stderr);                                                                  \
        fflush(NULL);                                                                         \
        _exit(1);                                                                             \
    } while (0)

#define CHECK(condition)                            \
    do {                                            \
        if (!(condition))                           \
            CHECK_FAIL("not true: %s", #condition); \
    } while (0)

/* Signed integers, statuses and enums; the second is what is expected. */
#define CHECK_EQ(found, expected)                                                                   \
    do {                                                                                            \
        long long check_f = (long long)(found), check_e = (long long)(expected);                    \
        if (check_f != check_e)                                                                     \
            CHECK_FAIL("%s is %lld, and should be %s = %lld", #found, check_f, #expected, check_e); \
    } while (0)

#define CHECK_NE(found, other)                                                         \
    do {                                                                               \
        long long check_f = (long long)(found), check_o = (long long)(other);          \
        if (check_f == check_o)                                                        \
            CHECK_FAIL("%s is %s = %lld, and should not be", #found, #other, check_f); \
    } while (0)

/* Unsigned integers, sizes, offsets. */
#define CHECK_EQ_U(found, expected)                                                                         \
    do {                                                                                                    \
        unsigned long long check_f = (unsigned long long)(found), check_e = (unsigned long long)(expected); \
        if (check_f != check_e)                                                                             \
            CHECK_FAIL("%s is %llu, and should be %s = %llu", #found, check_f, #expected, check_e);         \
    } while (0)

/* Doubles, compared exactly: a NaN equals nothing. */
#define CHECK_EQ_D(found, expected)                                                                   \
    do {                                                                                              \
        double check_f = (found), check_e = (expected);                                               \
        if (!(check_f == check_e))                                                                    \
            CHECK_FAIL("%s is %.17g, and should be %s = %.17g", #found, check_f, #expected, check_e); \
    } while (0)

#define CHECK_EQ_PTR(found, expected)                                                           \
    do {                                                                                        \
        const void *check_f = (found), *check_e = (expected);                                   \
        if (check_f != check_e)                                                                 \
            CHECK_FAIL("%s is %p, and should be %s = %p", #found, check_f, #expected, check_e); \
    } while (0)

#define CHECK_STR(found, expected)                                                      \
    do {                                                                                \
        const char *check_f = (found), *check_e = (expected);                           \
        if (strcmp(check_f, check_e) != 0)                                              \
            CHECK_FAIL("%s is \"%s\", and should be \"%s\"", #found, check_f, check_e); \
    } while (0)

#define CHECK_MEM(found, expected, bytes)                                                              \
    do {                                                                                               \
        if (memcmp((found), (expected), (bytes)) != 0)                                                 \
            CHECK_FAIL("the %zu bytes of %s are not those of %s", (size_t)(bytes), #found, #expected); \
    } while (0)

/* A call that returns a status: 0, or a negative error. */
#define CHECK_OK(call) CHECK_EQ(call, 0)

#define SKIP(...)            \
    do {                     \
        printf("skipped: "); \
        printf(__VA_ARGS__); \
        putchar('\n');       \
        fflush(NULL);        \
        _exit(77);           \
    } while (0)

/* ---- cases */

static inline void check_run(const char *name, void (*function)(void)) {
    check_case = name;
    function();
    printf("ok  %s\n", name);
    fflush(stdout);
}

static inline int check_done(void) {
    check_case = "(after the last case)";
    return 0;
}

#define RUN(function) check_run(#function, function)

/* By line. A constructor adds each before main runs. */
#define CHECK_MAX_LINES 2000
static struct check_test {
    const char *name;
    void (*function)(void);
} check_tests[CHECK_MAX_LINES] __attribute__((unused));

#define TEST(name)                                                    \
    static void name(void);                                           \
    __attribute__((constructor)) static void check_add_##name(void) { \
        check_tests[__LINE__] = (struct check_test){#name, name};     \
    }                                                                 \
    static void name(void)

static inline void check_all(void) {
    for (int line = 0; line < CHECK_MAX_LINES; line++)
        if (check_tests[line].name != NULL)
            check_run(check_tests[line].name, check_tests[line].function);
}

#define TEST_MAIN()          \
    int main(void) {         \
        check_all();         \
        return check_done(); \
    }

/* ---- the watchdog */

static inline long check_environment(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 0) : otherwise;
}

static inline void check_expired(int signal_number) {
    static const char text[] = "the watchdog ended this test, in case ";
    (void)signal_number;
    /* Only what may be called from a signal handler. */
    if (write(2, text, sizeof text - 1) < 0 || write(2, check_case, strlen(check_case)) < 0
        || write(2, "\n", 1) < 0)
        _exit(125);
    _exit(124);
}

/* Ends the program after so many seconds from now; 0 switches the watchdog off. */
static inline void check_watchdog(unsigned seconds) {
    signal(SIGALRM, check_expired);
    alarm(seconds);
}

__attribute__((constructor)) static void check_start_watchdog(void) {
    check_watchdog((unsigned)check_environment("CHECK_TIMEOUT", 120));
}

/* ---- amounts and random numbers */

static inline long check_scale(long rounds) {
    long scaled = rounds * check_environment("CHECK_SCALE", 1);
    scaled /= CHECK_SANITIZED ? 8 : check_environment("CHECK_PART", 1);
    return scaled > 0 ? scaled : 1;
}

static inline uint64_t check_seed(void) {
    uint64_t seed = (uint64_t)check_environment("CHECK_SEED", 0);
    if (seed == 0)
        seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    printf("CHECK_SEED=%" PRIu64 "\n", seed);
    return seed;
}

/* splitmix64: any state will do, each state gives its own sequence. */
static inline uint64_t check_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* A number from 0 to bound - 1. */
static inline uint64_t check_below(uint64_t *state, uint64_t bound) {
    return check_random(state) % bound;
}

/* ---- ranks */

struct check_rank {
    int rank, size;
    check_body_t body;
    void *argument;
};

static inline void *check_thread_main(void *pointer) {
    struct check_rank *self = pointer;
    self->body(self->rank, self->size, self->argument);
    return NULL;
}

/* Runs body on n ranks, each a thread of this process. */
static inline void check_threads(int n, check_body_t body, void *argument) {
    pthread_t threads[CHECK_MAX_RANKS];
    struct check_rank ranks[CHECK_MAX_RANKS];

    CHECK(n >= 1 && n <= CHECK_MAX_RANKS);
    for (int rank = 0; rank < n; rank++) {
        ranks[rank] = (struct check_rank){rank, n, body, argument};
        CHECK_EQ(pthread_create(&threads[rank], NULL, check_thread_main, &ranks[rank]), 0);
    }
    for (int rank = 0; rank < n; rank++)
        CHECK_EQ(pthread_join(threads[rank], NULL), 0);
}

/* Starts body(rank, size, argument) in a new process; returns its id. It ends with status 0 when body returns. */
static inline pid_t check_fork(int rank, int size, check_body_t body, void *argument) {
    unsigned left = alarm(0);

    fflush(NULL);
    alarm(left);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        alarm(left); /* a child does not inherit the alarm */
        body(rank, size, argument);
        fflush(NULL);
        _exit(0);
    }
    return pid;
}

/* Waits for a process made by check_fork; returns its wait status. */
static inline int check_wait(pid_t pid) {
    int status = 0;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return status;
}

/* Runs body on n ranks, each a process of its own; all must end with status 0. */
static inline void check_processes(int n, check_body_t body, void *argument) {
    pid_t pids[CHECK_MAX_RANKS];

    CHECK(n >= 1 && n <= CHECK_MAX_RANKS);
    for (int rank = 0; rank < n; rank++)
        pids[rank] = check_fork(rank, n, body, argument);
    int failed = 0;
    for (int rank = 0; rank < n; rank++)
        failed |= check_wait(pids[rank]);
    CHECK_EQ(failed, 0);
}

#endif
