/* SPDX-License-Identifier: MIT */
/*
 * spc_atomic: additions to <stdatomic.h> for shared memory.
 *
 * The core uses C11 atomics directly, with explicit memory orders; a comment at each use names its partner.
 * No fences: ThreadSanitizer does not understand them, and a sequentially consistent operation on the word itself
 * is as cheap. All atomics in the segment must be lock-free, or two processes would use two different locks.
 */
#ifndef SPC_ATOMIC_H
#define SPC_ATOMIC_H

#include <stdatomic.h>
#include <stdint.h>

#define SPC_CACHE_LINE 64

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "32-bit atomics must be lock-free");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "64-bit atomics must be lock-free");
_Static_assert(sizeof(_Atomic uint32_t) == 4, "an atomic word in shared memory has no hidden parts");
_Static_assert(sizeof(_Atomic uint64_t) == 8, "an atomic word in shared memory has no hidden parts");

/* Hints to the core that this is a polling loop, so that a sibling thread gets its share. */
static inline void spc_cpu_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ __volatile__("yield" ::: "memory");
#endif
}

/* The next multiple of `alignment`, a power of two. */
static inline uint64_t spc_round_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

#endif
