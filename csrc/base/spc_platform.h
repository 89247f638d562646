/* SPDX-License-Identifier: MIT */
/*
 * spc_platform: features of the operating system, probed at run time, each with a fallback.
 *
 *   memfd          anonymous sealed memory           else an unlinked shm_open object sized by posix_fallocate
 *   futex          sleeping on a word                else sleeping in short, growing slices
 *   wipe_on_fork   a page that a forked child loses  else comparing getpid()
 *   epoll          the server's wait for sockets     else poll
 *   pidfd                                            probed and reported; nothing here needs it
 *
 * Only spc_platform.c and spc_process.c include system headers of one system. A feature can be disabled by a mask, so
 * that tests can force every fallback. Any thread of any process may call any function here.
 */
#ifndef SPC_PLATFORM_H
#define SPC_PLATFORM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_atomic.h"

/* X(name, bit): names as in SPCOMM_DISABLE. */
#define SPC_FEATURES(X) \
    X(memfd, 0)         \
    X(futex, 1)         \
    X(pidfd, 2)         \
    X(epoll, 3)         \
    X(wipe_on_fork, 4)

enum {
#define SPC_FEATURE_ENUM(name, bit) SPC_FEATURE_##name = 1u << (bit),
    SPC_FEATURES(SPC_FEATURE_ENUM)
#undef SPC_FEATURE_ENUM
};

/* The features that this kernel has and permits, without those in `disabled`. */
uint32_t spc_platform_features(uint32_t disabled);

/* A file descriptor (close-on-exec) of zeroed memory that neither shrinks nor grows any more; gone with its last user.
 * With memfd it is sparse; without, all of it is reserved at once: SPC_ESYSTEM with errno ENOSPC if there is no
 * room, and with EFBIG beyond the limit of files, where the system would send SIGXFSZ. */
int spc_platform_memory_create(uint32_t features, uint64_t size_bytes, int *descriptor);

/* Whether memory made with these features takes room only where it is touched. */
bool spc_platform_memory_is_sparse(uint32_t features);

/* Bytes that an unsparse segment may take (the free room of the shared-memory mount); UINT64_MAX if unknown. */
uint64_t spc_platform_memory_room(void);

/* Touches whole pages of shared memory, so that they are there before they are used. No other process writes them
 * yet. */
void spc_platform_memory_touch(void *start, uint64_t size_bytes);

/* Sleeps while *word == expected, timeout_ns at most; may return at any time for no reason. Works between processes. */
void spc_platform_sleep(uint32_t features, _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);

/* Wakes all threads that sleep on `word`. No-op for threads that sleep in slices: they look again by themselves. */
void spc_platform_wake(uint32_t features, _Atomic uint32_t *word);

/* Lets another process run on this core. */
void spc_platform_yield(void);

/* Moves this thread to another core that it may use, once: it is not bound there. No-op where that is unavailable. */
void spc_platform_change_core(void);

/* Nanoseconds for which the calling thread has been ready without a core, ever. False: the system does not say. */
bool spc_platform_core_wait(uint64_t *waited_ns);

/* The cores this process may use: the affinity mask, limited by the cgroup's quota; fractions count. */
double spc_platform_cores(void);

/* The memory this process may use: the machine's, limited by the cgroup's and by the process's own (ulimit -v). */
uint64_t spc_platform_memory_limit(void);

/* The size of the largest file that this process may make (ulimit -f), which counts for memory. UINT64_MAX: any. */
uint64_t spc_platform_file_limit(void);

/* A mark of the process that made it, which is invalid in a forked child. */
typedef struct spc_owner_mark {
    volatile uint32_t *page; /* NULL: compare `pid` */
    int32_t pid;
} spc_owner_mark_t;

int spc_owner_mark_init(spc_owner_mark_t *mark, uint32_t features);
void spc_owner_mark_fini(spc_owner_mark_t *mark);
bool spc_owner_mark_holds_slow(const spc_owner_mark_t *mark);

static inline bool spc_owner_mark_holds(const spc_owner_mark_t *mark) {
    return mark->page != 0 ? *mark->page != 0 : spc_owner_mark_holds_slow(mark);
}

#endif
