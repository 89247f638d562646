/* SPDX-License-Identifier: MIT */
/*
 * shortage: one allocation of the core fails, the first, the second, and so on, until a scenario no longer has so many.
 *
 * A program that includes this is linked with $(SHORTAGE) of csrc.mk: memory, mappings, descriptors, streams and
 * threads of the core then come through the functions here. What the test itself allocates is not counted. Include it
 * before any header of the core.
 *
 * shortage_sweep(name, scenario) runs the scenario once for each allocation, in a process of its own that begins to
 * count at shortage_begin. The scenario checks what a failed call has to keep; the sweep, that the process ends in
 * order: no crash, no hang, no descriptor and no mapping left behind, and under AddressSanitizer no leak. CHECK_PART=12
 * leaves out eleven of twelve, AddressSanitizer four of five, ThreadSanitizer most. CHECK_SHORTAGE=k lets only the k-th
 * of each scenario fail, in this process, and prints where that is.
 */
#ifndef SHORTAGE_H
#define SHORTAGE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* The test's own. */
extern void *__real_malloc(size_t bytes);
extern void *__real_calloc(size_t count, size_t bytes);
extern int __real_fork(void);
extern int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                                 void *argument);
#define malloc(bytes) __real_malloc(bytes)
#define calloc(count, bytes) __real_calloc(count, bytes)
#define pthread_create(thread, attributes, body, argument) \
    __real_pthread_create(thread, attributes, body, argument)
#define fork() __real_fork()

#include "check.h"

#include "base/spc_error.h"

static _Atomic long shortage_left; /* the allocation that fails is the last of so many; 0: none fails */
static _Atomic bool *shortage_met; /* in memory that the processes of a scenario share */
static _Atomic long shortage_mapped;
static long shortage_chosen;

static inline bool shortage_is_now(int error) {
    if (shortage_left <= 0 || atomic_fetch_sub(&shortage_left, 1) != 1) {
        return false;
    }
    if (check_environment("CHECK_SHORTAGE", 0) != 0) {
        void *place[16];
        backtrace_symbols_fd(place, backtrace(place, 16), 1);
    }
    *shortage_met = true;
    errno = error;
    return true;
}

/* The function in place of `name`. */
#define SHORTAGE_OF(type, name, failed, error, parameters, arguments)     \
    extern type __real_##name parameters;                                 \
    type __wrap_##name parameters;                                        \
    type __wrap_##name parameters {                                       \
        return shortage_is_now(error) ? failed : __real_##name arguments; \
    }

SHORTAGE_OF(void *, malloc, NULL, ENOMEM, (size_t bytes), (bytes))
SHORTAGE_OF(void *, calloc, NULL, ENOMEM, (size_t count, size_t bytes), (count, bytes))
SHORTAGE_OF(void *, realloc, NULL, ENOMEM, (void *memory, size_t bytes), (memory, bytes))
SHORTAGE_OF(void *, aligned_alloc, NULL, ENOMEM, (size_t alignment, size_t bytes), (alignment, bytes))
SHORTAGE_OF(char *, strdup, NULL, ENOMEM, (const char *text), (text))
SHORTAGE_OF(FILE *, open_memstream, NULL, ENOMEM, (char **text, size_t *bytes), (text, bytes))
SHORTAGE_OF(int, memfd_create, -1, EMFILE, (const char *name, unsigned flags), (name, flags))
SHORTAGE_OF(int, pipe, -1, EMFILE, (int *ends), (ends))
SHORTAGE_OF(int, socket, -1, EMFILE, (int domain, int type, int protocol), (domain, type, protocol))
SHORTAGE_OF(int, epoll_create1, -1, EMFILE, (int flags), (flags))
SHORTAGE_OF(int, fork, -1, EAGAIN, (void), ())
SHORTAGE_OF(int, pthread_create, EAGAIN, EAGAIN,
            (pthread_t * thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument),
            (thread, attributes, body, argument))

/* Waits look at such files as often as they last: only the first of these looks count. */
static inline bool shortage_counts(const char *path) {
    static _Atomic int looks;
    return strncmp(path, "/proc/", 6) != 0 || looks++ < 40;
}

extern FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode) {
    return shortage_counts(path) && shortage_is_now(EMFILE) ? NULL : __real_fopen(path, mode);
}

extern int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return shortage_counts(path) && shortage_is_now(EMFILE) ? -1 : __real_open(path, flags, mode);
}

extern void *__real_mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int descriptor, off_t offset) {
    void *mapped =
        shortage_is_now(ENOMEM) ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, descriptor, offset);
    shortage_mapped += mapped != MAP_FAILED;
    return mapped;
}

extern int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes) {
    shortage_mapped--;
    return __real_munmap(at, bytes);
}

static inline void shortage_begin(void) {
    shortage_left = shortage_chosen;
}

/* The rest of the scenario gets all that it asks for. */
static inline void shortage_end(void) {
    shortage_left = 0;
}

/* A status of a call that no allocation failed in, or that says so. */
static inline bool shortage_explains(int status) {
    return status == SPC_OK || (*shortage_met && (status == SPC_ENOMEM || status == SPC_ESYSTEM));
}

/* A call that changes nothing when it finds no memory: the next one works. */
#define TRY_AGAIN(call)                                                 \
    do {                                                                \
        int shortage_status = (call);                                   \
        CHECK(shortage_explains(shortage_status));                      \
        CHECK_OK(shortage_status == SPC_OK ? shortage_status : (call)); \
    } while (0)

static inline int shortage_descriptors(void) {
    int count = 0;
    for (int descriptor = 0; descriptor < 256; descriptor++) {
        count += fcntl(descriptor, F_GETFD) >= 0;
    }
    return count;
}

/* Ends the process by exit: that is where LeakSanitizer looks. */
static inline void shortage_run(long chosen, void (*scenario)(void)) {
    const int descriptors = shortage_descriptors();
    const long mapped = shortage_mapped;
    shortage_chosen = chosen;
    scenario();
    shortage_end();
    CHECK_EQ(shortage_descriptors(), descriptors);
    CHECK_EQ(shortage_mapped, mapped);
}

enum { SHORTAGE_ENDED_IN_ORDER = 3 };

/* A sanitized process takes long to start and to end. */
#ifdef __SANITIZE_THREAD__
#define SHORTAGE_PART 23
#else
#define SHORTAGE_PART (CHECK_SANITIZED ? 5 : 1)
#endif

static inline void shortage_sweep(const char *name, void (*scenario)(void)) {
    const long part = SHORTAGE_PART != 1 ? SHORTAGE_PART : check_environment("CHECK_PART", 1);
    const long only = check_environment("CHECK_SHORTAGE", 0);
    long chosen = 1;
    shortage_met =
        __real_mmap(NULL, sizeof *shortage_met, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shortage_met != MAP_FAILED);
    if (only != 0) {
        shortage_run(only, scenario);
        return;
    }
    for (int status = SHORTAGE_ENDED_IN_ORDER; status != 0; chosen += part) {
        fflush(NULL);
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            check_watchdog(30);
            shortage_run(chosen, scenario);
            exit(*shortage_met ? SHORTAGE_ENDED_IN_ORDER : 0);
        }
        const int how = check_wait(pid);
        *shortage_met = false;
        status = WIFEXITED(how) ? WEXITSTATUS(how) : 1000 + WTERMSIG(how);
        if (status != 0 && status != SHORTAGE_ENDED_IN_ORDER) {
            CHECK_FAIL("%s, allocation %ld fails: status %d", name, chosen, status);
        }
    }
    CHECK(chosen > 1 + part); /* the first one has failed, so the scenario counts */
    printf("    %s: %ld allocations\n", name, chosen - part - 1);
}

#define SWEEP(scenario) shortage_sweep(#scenario, scenario)

#endif
