/* SPDX-License-Identifier: MIT */
/*
 * spc_platform_native: features that one system has and others lack, private to the two platform files.
 *
 * spc_platform_posix.c dispatches: it calls these for the features in the mask, and has the fallback for
 * each. spc_platform_linux.c implements them; on other systems no feature is ever found, and the stubs below
 * never run.
 */
#ifndef SPC_PLATFORM_NATIVE_H
#define SPC_PLATFORM_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_atomic.h"
#include "base/spc_error.h"

#ifdef __linux__

uint32_t spc_native_features(void);
int spc_native_memory_create(uint64_t size_bytes, int *descriptor);
void spc_native_sleep(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void spc_native_wake(_Atomic uint32_t *word);
int spc_native_wipe_on_fork(void *page, uint64_t size_bytes);
void spc_native_change_core(void);
bool spc_native_core_wait(uint64_t *waited_ns);
uint32_t spc_native_affinity(void);    /* processors in this thread's mask; 0: unknown */
uint64_t spc_native_memory_room(void); /* free bytes where shm_open makes memory; UINT64_MAX: unknown */

#else

static inline uint32_t spc_native_features(void) {
    return 0;
}
static inline int spc_native_memory_create(uint64_t size_bytes, int *descriptor) {
    (void)size_bytes;
    (void)descriptor;
    return SPC_ESYSTEM;
}
static inline void spc_native_sleep(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns) {
    (void)word;
    (void)expected;
    (void)timeout_ns;
}
static inline void spc_native_wake(_Atomic uint32_t *word) {
    (void)word;
}
static inline int spc_native_wipe_on_fork(void *page, uint64_t size_bytes) {
    (void)page;
    (void)size_bytes;
    return SPC_ESYSTEM;
}
static inline void spc_native_change_core(void) {
}
static inline bool spc_native_core_wait(uint64_t *waited_ns) {
    (void)waited_ns;
    return false;
}
static inline uint32_t spc_native_affinity(void) {
    return 0;
}
static inline uint64_t spc_native_memory_room(void) {
    return UINT64_MAX;
}

#endif

#endif
