/* SPDX-License-Identifier: MIT */
/*
 * spc_ticks: a counter that is cheaper to read than the clock, for stamps that are written at every step and converted
 * to time when they are read.
 *
 * On x86-64 it is the processor's time stamp counter, where the kernel itself keeps time by it (then it runs at one
 * rate, and all cores agree on it); about 10 ns in a virtual machine, where the clock takes 25 to 30. Elsewhere it is
 * the clock, and a tick is a nanosecond. Two anchors, one before and one after the counted ticks, convert ticks to
 * spc_clock's time. Any thread may call any function here.
 */
#ifndef SPC_TICKS_H
#define SPC_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_clock.h"

typedef struct spc_ticks_anchor {
    uint64_t ticks;
    uint64_t time_ns; /* at that moment, to some 50 ns */
} spc_ticks_anchor_t;

/* Whether there is a reliable counter. Reads a file: call it once, and pass the result to all that share an anchor. */
bool spc_ticks_are_counted(void);

static inline uint64_t spc_ticks_now(bool are_counted) {
#if defined(__x86_64__)
    if (are_counted) {
        return __builtin_ia32_rdtsc();
    }
#else
    (void)are_counted;
#endif
    return spc_clock_now_ns();
}

spc_ticks_anchor_t spc_ticks_anchor(bool are_counted);

/* The time of `ticks`, by the rate between two anchors; `end` is not before `begin`. */
uint64_t spc_ticks_to_ns(const spc_ticks_anchor_t *begin, const spc_ticks_anchor_t *end, uint64_t ticks);

#endif
