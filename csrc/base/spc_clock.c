/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime with -std=c11 */
#endif
#include "base/spc_clock.h"

#include <time.h>

uint64_t spc_clock_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t spc_clock_deadline_ns(int64_t timeout_ns) {
    if (timeout_ns < 0) {
        return SPC_NO_DEADLINE;
    }
    return spc_clock_now_ns() + (uint64_t)timeout_ns;
}

void spc_clock_sleep_ns(uint64_t time_ns) {
    const struct timespec slice = {(time_t)(time_ns / UINT64_C(1000000000)),
                                   (long)(time_ns % UINT64_C(1000000000))};
    (void)nanosleep(&slice, NULL);
}
