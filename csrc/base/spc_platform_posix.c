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
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/spc_cgroup.h"
#include "base/spc_clock.h"
#include "base/spc_error.h"
#include "base/spc_platform_native.h"

uint32_t spc_platform_features(uint32_t disabled) {
    return spc_native_features() & ~disabled;
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
        return spc_native_memory_create(size_bytes, descriptor);
    }
    return memory_create_by_name(size_bytes, descriptor);
}

bool spc_platform_memory_is_sparse(uint32_t features) {
    return (features & SPC_FEATURE_memfd) != 0;
}

uint64_t spc_platform_memory_room(void) {
    return spc_native_memory_room();
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
        spc_native_sleep(word, expected, timeout_ns);
    } else {
        sleep_in_slices(word, expected, timeout_ns);
    }
}

void spc_platform_wake(uint32_t features, _Atomic uint32_t *word) {
    if (features & SPC_FEATURE_futex) {
        spc_native_wake(word);
    }
}

void spc_platform_change_core(void) {
    spc_native_change_core();
}

void spc_platform_yield(void) {
    sched_yield();
}

bool spc_platform_core_wait(uint64_t *waited_ns) {
    return spc_native_core_wait(waited_ns);
}

double spc_platform_cores(void) {
    uint32_t allowed = spc_native_affinity();
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
    if (spc_native_wipe_on_fork(page, mark_bytes()) != SPC_OK) {
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
