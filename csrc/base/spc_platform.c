/* SPDX-License-Identifier: MIT */
/* The platform's functions: each dispatches on the feature mask, and has the fallback that needs only POSIX. */
#if defined(__APPLE__) && !defined(_DARWIN_C_SOURCE)
#define _DARWIN_C_SOURCE
#elif !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#endif
#include "base/spc_platform.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#endif

#include "base/spc_cgroup.h"
#include "base/spc_clock.h"
#include "base/spc_error.h"

/* ---- features that Linux has beyond POSIX; on other systems none is ever found, and the stubs below never run */

#ifdef __linux__

/* System calls go by number where the C library may be too old. */
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

static int native_memory_create(uint64_t size_bytes, int *descriptor) {
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

static void native_sleep(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns) {
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / UINT64_C(1000000000)),
        .tv_nsec = (long)(timeout_ns % UINT64_C(1000000000)),
    };
    /* Not the PRIVATE kind: sleeper and waker are different processes. All results mean: look again. */
    syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL, 0);
}

static void native_wake(_Atomic uint32_t *word) {
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static int native_wipe_on_fork(void *page, uint64_t size_bytes) {
    return madvise(page, size_bytes, MADV_WIPEONFORK) == 0 ? SPC_OK : SPC_ESYSTEM;
}

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
    return native_memory_create(4096, &descriptor) == SPC_OK && probe_descriptor(descriptor);
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
    bool works = native_wipe_on_fork(page, size_bytes) == SPC_OK;
    munmap(page, size_bytes);
    return works;
}

static uint32_t native_features(void) {
    uint32_t features = 0;
    features |= probe_memfd() ? SPC_FEATURE_memfd : 0;
    features |= probe_futex() ? SPC_FEATURE_futex : 0;
    features |= probe_descriptor((int)syscall(SYS_pidfd_open, getpid(), 0)) ? SPC_FEATURE_pidfd : 0;
    features |= probe_descriptor(epoll_create1(EPOLL_CLOEXEC)) ? SPC_FEATURE_epoll : 0;
    features |= probe_wipe_on_fork() ? SPC_FEATURE_wipe_on_fork : 0;
    return features;
}

static void native_change_core(void) {
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

static bool native_core_wait(uint64_t *waited_ns) {
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

/* processors in this thread's mask; 0: unknown */
static uint32_t native_affinity(void) {
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

/* free bytes where shm_open makes memory; UINT64_MAX: unknown */
static uint64_t native_memory_room(void) {
    struct statvfs mount;
    if (statvfs("/dev/shm", &mount) != 0) {
        return UINT64_MAX;
    }
    return (uint64_t)mount.f_bavail * mount.f_frsize;
}

#else

static uint32_t native_features(void) {
    return 0;
}
static int native_memory_create(uint64_t size_bytes, int *descriptor) {
    (void)size_bytes;
    (void)descriptor;
    return SPC_ESYSTEM;
}
static void native_sleep(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns) {
    (void)word;
    (void)expected;
    (void)timeout_ns;
}
static void native_wake(_Atomic uint32_t *word) {
    (void)word;
}
static int native_wipe_on_fork(void *page, uint64_t size_bytes) {
    (void)page;
    (void)size_bytes;
    return SPC_ESYSTEM;
}
static void native_change_core(void) {
}
static bool native_core_wait(uint64_t *waited_ns) {
    (void)waited_ns;
    return false;
}
static uint32_t native_affinity(void) {
    return 0;
}
static uint64_t native_memory_room(void) {
    return UINT64_MAX;
}

#endif

/* ---- the platform's functions */

uint32_t spc_platform_features(uint32_t disabled) {
    return native_features() & ~disabled;
}

/* A name that no other process has, for the moment until it is unlinked. */
static int open_unnamed(int *descriptor) {
    for (uint32_t attempt = 0; attempt < 1000; attempt++) {
        char name[31]; /* macOS allows no more */
        snprintf(name, sizeof name, "/spcomm-%lx-%lx", (unsigned long)getpid(),
                 (unsigned long)((spc_clock_now_ns() + attempt) & 0xffffffff));
        int made = shm_open(name, O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
        if (made >= 0) {
            shm_unlink(name);
            *descriptor = made;
            return SPC_OK;
        }
        if (errno != EEXIST && errno != EINTR) {
            return SPC_ESYSTEM;
        }
    }
    return SPC_ESYSTEM;
}

/* Zero or an error number. Reserves the memory where the system can, so that a full mount is an error here
 * and not a SIGBUS later: there ftruncate alone promises nothing. */
static int set_size(int descriptor, uint64_t size_bytes) {
    int error;
    do {
#ifdef __APPLE__
        error = ftruncate(descriptor, (off_t)size_bytes) == 0 ? 0 : errno;
#else
        error = posix_fallocate(descriptor, 0, (off_t)size_bytes); /* leaves errno alone */
#endif
    } while (error == EINTR);
    return error;
}

static int memory_create_by_name(uint64_t size_bytes, int *descriptor) {
    int made;
    int status = open_unnamed(&made);
    if (status != SPC_OK) {
        return status;
    }
    int error = fcntl(made, F_SETFD, FD_CLOEXEC) == 0 ? set_size(made, size_bytes) : errno;
    if (error != 0) {
        close(made);
        errno = error;
        return SPC_ESYSTEM;
    }
    *descriptor = made;
    return SPC_OK;
}

int spc_platform_memory_create(uint32_t features, uint64_t size_bytes, int *descriptor) {
    if (size_bytes == 0 || size_bytes > INT64_MAX) {
        return SPC_EINVAL;
    }
    if (size_bytes > spc_platform_file_limit()) {
        errno = EFBIG;
        return SPC_ESYSTEM;
    }
    if (features & SPC_FEATURE_memfd) {
        return native_memory_create(size_bytes, descriptor);
    }
    return memory_create_by_name(size_bytes, descriptor);
}

bool spc_platform_memory_is_sparse(uint32_t features) {
    return (features & SPC_FEATURE_memfd) != 0;
}

uint64_t spc_platform_memory_room(void) {
    return native_memory_room();
}

/* Looks at the word after 50 µs, then after twice that, up to 2 ms: short waits stay short, long ones cost
 * little. */
static void sleep_in_slices(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns) {
    uint64_t left_ns = timeout_ns;
    uint64_t slice_ns = 50000;
    /* acquire: as strong as a caller may expect from a sleep that ends because of the word. */
    while (left_ns > 0 && atomic_load_explicit(word, memory_order_acquire) == expected) {
        uint64_t now_ns = slice_ns < left_ns ? slice_ns : left_ns;
        struct timespec slice = {.tv_sec = 0, .tv_nsec = (long)now_ns};
        if (nanosleep(&slice, NULL) != 0) {
            return; /* a signal: the caller handles it afterwards */
        }
        left_ns = left_ns == UINT64_MAX ? left_ns : left_ns - now_ns;
        slice_ns = slice_ns < 2000000 ? 2 * slice_ns : slice_ns;
    }
}

void spc_platform_memory_touch(void *start, uint64_t size_bytes) {
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    for (uint64_t at = 0; at < size_bytes; at += page_bytes) {
        volatile unsigned char *byte = (unsigned char *)start + at;
        *byte = *byte; /* a write: a page that is only read may be one that all share */
    }
}

void spc_platform_sleep(uint32_t features, _Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns) {
    if (features & SPC_FEATURE_futex) {
        native_sleep(word, expected, timeout_ns);
    } else {
        sleep_in_slices(word, expected, timeout_ns);
    }
}

void spc_platform_wake(uint32_t features, _Atomic uint32_t *word) {
    if (features & SPC_FEATURE_futex) {
        native_wake(word);
    }
}

void spc_platform_change_core(void) {
    native_change_core();
}

void spc_platform_yield(void) {
    sched_yield();
}

bool spc_platform_core_wait(uint64_t *waited_ns) {
    return native_core_wait(waited_ns);
}

double spc_platform_cores(void) {
    uint32_t allowed = native_affinity();
    if (allowed == 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        allowed = online > 0 ? (uint32_t)online : 1;
    }
    double quota = spc_cgroup_cores("");
    return quota < (double)allowed ? quota : (double)allowed;
}

/* UINT64_MAX: the process has no such limit. */
static uint64_t resource_limit(int resource) {
    struct rlimit limit;
    bool found = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return found ? (uint64_t)limit.rlim_cur : UINT64_MAX;
}

uint64_t spc_platform_file_limit(void) {
    return resource_limit(RLIMIT_FSIZE);
}

uint64_t spc_platform_memory_limit(void) {
    uint64_t limit_bytes = spc_cgroup_memory_bytes("");
    uint64_t space_bytes = resource_limit(RLIMIT_AS);
    limit_bytes = space_bytes < limit_bytes ? space_bytes : limit_bytes;
    long pages = sysconf(_SC_PHYS_PAGES);
    long page_bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0) {
        uint64_t physical_bytes = (uint64_t)pages * (uint64_t)page_bytes;
        limit_bytes = physical_bytes < limit_bytes ? physical_bytes : limit_bytes;
    }
    return limit_bytes;
}

static size_t mark_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

int spc_owner_mark_init(spc_owner_mark_t *mark, uint32_t features) {
    *mark = (spc_owner_mark_t){.page = NULL, .pid = (int32_t)getpid()};
    if (!(features & SPC_FEATURE_wipe_on_fork)) {
        return SPC_OK;
    }
    void *page = mmap(NULL, mark_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return SPC_ENOMEM;
    }
    if (native_wipe_on_fork(page, mark_bytes()) != SPC_OK) {
        munmap(page, mark_bytes());
        return SPC_ESYSTEM;
    }
    mark->page = page;
    *mark->page = 1;
    return SPC_OK;
}

void spc_owner_mark_fini(spc_owner_mark_t *mark) {
    if (mark->page != NULL) {
        munmap((void *)(uintptr_t)mark->page, mark_bytes());
    }
    *mark = (spc_owner_mark_t){.page = NULL, .pid = 0};
}

bool spc_owner_mark_holds_slow(const spc_owner_mark_t *mark) {
    return mark->pid == (int32_t)getpid();
}
