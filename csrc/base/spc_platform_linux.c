/* SPDX-License-Identifier: MIT */
/* Features of Linux beyond POSIX. System calls go by number where the C library may be too old. */
#ifdef __linux__

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/spc_platform_native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/spc_platform.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* Each probe does the real operation on a small scale: a kernel may lack it, and a sandbox may forbid it. */

static bool probe_descriptor(int descriptor) {
    if (descriptor < 0) {
        return false;
    }
    close(descriptor);
    return true;
}

static bool probe_memfd(void) {
    int descriptor;
    return spc_native_memory_create(4096, &descriptor) == SPC_OK && probe_descriptor(descriptor);
}

static bool probe_futex(void) {
    _Atomic uint32_t word = 0;
    return syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0;
}

static bool probe_wipe_on_fork(void) {
    size_t size_bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return false;
    }
    bool works = spc_native_wipe_on_fork(page, size_bytes) == SPC_OK;
    munmap(page, size_bytes);
    return works;
}

uint32_t spc_native_features(void) {
    uint32_t features = 0;
    features |= probe_memfd() ? SPC_FEATURE_memfd : 0;
    features |= probe_futex() ? SPC_FEATURE_futex : 0;
    features |= probe_descriptor((int)syscall(SYS_pidfd_open, getpid(), 0)) ? SPC_FEATURE_pidfd : 0;
    features |= probe_descriptor(epoll_create1(EPOLL_CLOEXEC)) ? SPC_FEATURE_epoll : 0;
    features |= probe_wipe_on_fork() ? SPC_FEATURE_wipe_on_fork : 0;
    return features;
}

int spc_native_memory_create(uint64_t size_bytes, int *descriptor) {
    int made = memfd_create("spcomm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (made < 0) {
        return SPC_ESYSTEM;
    }
    /* Sealed: no process can truncate the memory under the others, which would die of SIGBUS. */
    if (ftruncate(made, (off_t)size_bytes) != 0
        || fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        int error = errno;
        close(made);
        errno = error;
        return SPC_ESYSTEM;
    }
    *descriptor = made;
    return SPC_OK;
}

void spc_native_sleep(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns) {
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / UINT64_C(1000000000)),
        .tv_nsec = (long)(timeout_ns % UINT64_C(1000000000)),
    };
    /* Not the PRIVATE kind: sleeper and waker are different processes. All results mean: look again. */
    syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL, 0);
}

void spc_native_wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

int spc_native_wipe_on_fork(void *page, uint64_t size_bytes) {
    return madvise(page, size_bytes, MADV_WIPEONFORK) == 0 ? SPC_OK : SPC_ESYSTEM;
}

void spc_native_change_core(void) {
    cpu_set_t allowed;
    int here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return; /* a machine with more processors than the set holds is large enough without this */
    }
    cpu_set_t elsewhere = allowed;
    CPU_CLR((size_t)here, &elsewhere);
    if (CPU_COUNT(&elsewhere) > 0 && sched_setaffinity(0, sizeof elsewhere, &elsewhere) == 0) {
        sched_setaffinity(0, sizeof allowed, &allowed);
    }
}

bool spc_native_core_wait(uint64_t *waited_ns) {
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    char text[80]; /* three numbers: time on a core, time ready without one, turns */
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    char *rest;
    strtoull(text, &rest, 10);
    char *end;
    *waited_ns = strtoull(rest, &end, 10);
    return end != rest;
}

uint32_t spc_native_affinity(void) {
    /* The kernel refuses a set that is smaller than its own, whose size it does not report. */
    for (int processors = 1024; processors <= 1 << 20; processors *= 4) {
        cpu_set_t *set = CPU_ALLOC(processors);
        if (set == NULL) {
            return 0;
        }
        size_t size_bytes = CPU_ALLOC_SIZE(processors);
        int failed = sched_getaffinity(0, size_bytes, set);
        int error = errno;
        int count = failed ? 0 : CPU_COUNT_S(size_bytes, set);
        CPU_FREE(set);
        if (!failed || error != EINVAL) {
            return (uint32_t)count;
        }
    }
    return 0;
}

uint64_t spc_native_memory_room(void) {
    struct statvfs mount;
    if (statvfs("/dev/shm", &mount) != 0) {
        return UINT64_MAX;
    }
    return (uint64_t)mount.f_bavail * mount.f_frsize;
}

#else
typedef int spc_platform_linux_is_empty_here; /* ISO C requires a declaration */
#endif
