/* SPDX-License-Identifier: MIT */
/* The system's knowledge of processes; where it has none, the functions say so and do no harm. */
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/spc_error.h"
#include "base/spc_process.h"

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#define KNOWS 1
#else
#define KNOWS 0
#endif

/* A child that lives until the pipe's writing end is closed. */
static pid_t child_until(int gate[2]) {
    CHECK_EQ(pipe(gate), 0);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char byte;
        close(gate[1]);
        _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(gate[0]);
    return child;
}

TEST(a_watch_tells_the_end) {
    int gate[2], watch = -1;
    pid_t child = child_until(gate);
    if (spc_process_watch((int32_t)child, &watch) == SPC_OK) {
        struct pollfd ready = {.fd = watch, .events = POLLIN};
        CHECK(fcntl(watch, F_GETFD) & FD_CLOEXEC);
        CHECK_EQ(poll(&ready, 1, 0), 0);
        close(gate[1]);
        CHECK_EQ(poll(&ready, 1, -1), 1);
        close(watch);
    } else {
        CHECK_EQ(watch, -1);
        close(gate[1]);
    }
    CHECK_EQ(check_wait(child), 0);
    CHECK_EQ(spc_process_watch((int32_t)child, &watch), SPC_ESYSTEM);
}

TEST(children_are_listed) {
    int gate[2];
    int32_t found[4];
    CHECK_EQ(spc_process_children(found, 4, NULL), 0);
    pid_t child = child_until(gate);
    uint32_t count = spc_process_children(found, 4, NULL);
    CHECK(count == 0 || (count == 1 && found[0] == child));
    CHECK_EQ(spc_process_children(found, 0, NULL), 0);
    close(gate[1]);
    CHECK_EQ(check_wait(child), 0);
}

/* A child whose own child must not outlive it: the pipe ends with the last of both. */
TEST(a_parent_takes_its_child_along) {
    int held[2];
    char byte = 0;
    CHECK_EQ(pipe(held), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        pid_t parent = getpid();
        if (fork() == 0) {
            byte = spc_process_die_with_parent(SIGKILL) == SPC_OK && getppid() == parent ? 'y' : 'n';
            if (write(held[1], &byte, 1) != 1 || byte == 'n') {
                _exit(0);
            }
            for (;;) {
                pause();
            }
        }
        _exit(read(held[0], &byte, 1) == 1 ? 0 : 1);
    }
    close(held[1]);
    CHECK_EQ(check_wait(child), 0);
    CHECK_EQ(read(held[0], &byte, 1), 0);
    close(held[0]);
}

TEST(ranges_are_closed) {
    int low = fcntl(1, F_DUPFD, 40), middle = fcntl(1, F_DUPFD, 41), high = fcntl(1, F_DUPFD, 42);
    CHECK(low == 40 && middle == 41 && high == 42);
    spc_process_close_range(41, 40);
    spc_process_close_range(41, 41);
    CHECK(fcntl(low, F_GETFD) >= 0 && fcntl(middle, F_GETFD) < 0 && fcntl(high, F_GETFD) >= 0);
    spc_process_close_range(40, INT32_MAX);
    CHECK(fcntl(low, F_GETFD) < 0 && fcntl(high, F_GETFD) < 0 && fcntl(2, F_GETFD) >= 0);
}

TEST(threads_are_counted) {
    CHECK(KNOWS ? spc_process_threads() >= 1 : spc_process_threads() == 0);
    spc_process_rename("check");
}

static void *read_one_byte(void *pipe_end) {
    char byte;
    CHECK_EQ(read(*(int *)pipe_end, &byte, 1), 0);
    return NULL;
}

static void *lock_and_unlock(void *mutex) {
    CHECK_EQ(pthread_mutex_lock(mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(mutex), 0);
    return NULL;
}

/* Where it cannot be seen what a thread waits for, it is busy. */
static bool shows_waits(void) {
    return KNOWS && access("/proc/self/syscall", R_OK) == 0;
}

static void *return_at_once(void *unused) {
    return unused;
}

TEST(joined_threads_are_not_counted) {
    uint32_t before = 0;
    for (int i = 0; i < 2000; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, return_at_once, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        before = i > 0 ? before : spc_process_threads(); /* a sanitizer begins its own with the first */
        CHECK_EQ_U(spc_process_threads(), before);
    }
}

TEST(only_threads_that_may_go_on_are_busy) {
    int gate[2];
    pthread_t reader, idler;
    CHECK_EQ(pthread_create(&reader, NULL, return_at_once, NULL),
             0); /* a sanitizer begins its own with the first */
    CHECK_EQ(pthread_join(reader, NULL), 0);
    uint32_t before = spc_process_busy_threads();
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    CHECK_EQ(pipe(gate), 0);
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    CHECK_EQ(pthread_create(&reader, NULL, read_one_byte, &gate[0]), 0);
    CHECK_EQ(spc_process_busy_threads(), KNOWS ? before + 1 : 0);
    CHECK_EQ(pthread_create(&idler, NULL, lock_and_unlock, &mutex), 0);
    while (shows_waits() && spc_process_busy_threads() != before + 1) { /* until it waits */
    }
    close(gate[1]);
    CHECK_EQ(pthread_join(reader, NULL), 0);
    while (shows_waits() && spc_process_busy_threads() != before) { /* it may still be ending */
    }
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    CHECK_EQ(pthread_join(idler, NULL), 0);
    close(gate[0]);
}

typedef struct player {
    sem_t *own, *others;
    _Atomic bool *over;
} player_t;

static void *pass_the_baton_on(void *argument) {
    const player_t *player = argument;
    while (!atomic_load(player->over)) {
        CHECK_EQ(sem_wait(player->own), 0);
        CHECK_EQ(sem_post(player->others), 0);
    }
    return NULL;
}

/* At each moment one of the two runs, or has been woken. */
TEST(threads_that_wake_each_other_are_busy) {
    sem_t first, second;
    _Atomic bool over = false;
    player_t players[] = {{&first, &second, &over}, {&second, &first, &over}};
    pthread_t threads[2];
    CHECK_EQ(sem_init(&first, 0, 1), 0);
    CHECK_EQ(sem_init(&second, 0, 0), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, pass_the_baton_on, &players[i]), 0);
    }
    for (int i = 0; i < 3000 && KNOWS; i++) {
        CHECK(spc_process_busy_threads() != 0);
    }
    atomic_store(&over, true);
    CHECK_EQ(sem_post(&first), 0); /* one of them may have ended with the baton */
    CHECK_EQ(sem_post(&second), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    }
    sem_destroy(&first);
    sem_destroy(&second);
}

#if KNOWS
typedef struct locker {
    pthread_mutex_t mutex;
    _Atomic int thread; /* its id, once it runs */
} locker_t;

static void *show_id_and_lock(void *argument) {
    locker_t *locker = argument;
    atomic_store(&locker->thread, (int)syscall(SYS_gettid));
    return lock_and_unlock(&locker->mutex);
}

/* A process that stops a thread of this one until the pipe ends, or fails. */
static pid_t start_debugger(int thread, int ready, const int gate[2]) {
    char byte = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) {
        return child;
    }
    close(gate[1]);
    bool stops = read(gate[0], &byte, 1) == 1 /* now it may trace */
                 && ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0
                 && ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) == 0
                 && waitpid(thread, NULL, __WALL) == thread;
    byte = stops;
    _exit(write(ready, &byte, 1) == 1 && read(gate[0], &byte, 1) == 0 ? 0 : 1);
}

/* Its futex still shows as what it waits for, but it goes on when the debugger lets it. */
TEST(threads_that_a_debugger_has_stopped_are_busy) {
    locker_t locker = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    int gate[2], ready[2];
    char stops = 0;
    pthread_t thread;
    uint32_t before = spc_process_busy_threads();
    CHECK(pipe(gate) == 0 && pipe(ready) == 0);
    CHECK_EQ(pthread_mutex_lock(&locker.mutex), 0);
    CHECK_EQ(pthread_create(&thread, NULL, show_id_and_lock, &locker), 0);
    while (atomic_load(&locker.thread) == 0 || (shows_waits() && spc_process_busy_threads() != before)) {
    }
    pid_t debugger = start_debugger(locker.thread, ready[1], gate);
    /* Fails where every process may trace those of its user. */
    (void)prctl(PR_SET_PTRACER, debugger, 0, 0, 0);
    CHECK_EQ(write(gate[1], "", 1), 1);
    CHECK_EQ(read(ready[0], &stops, 1), 1);
    CHECK_EQ(pthread_mutex_unlock(&locker.mutex), 0);
    if (stops != 0 && shows_waits()) {
        CHECK_EQ_U(spc_process_busy_threads(), before + 1);
    }
    close(gate[1]);
    CHECK_EQ(check_wait(debugger), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    close(gate[0]);
    close(ready[0]);
    close(ready[1]);
}
#endif

TEST_MAIN()
