/* SPDX-License-Identifier: MIT */
#include "base/spc_ticks.h"

#include <stdio.h>
#include <string.h>

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

#define FARTHEST_NS 9e18 /* close to the most that an int64_t holds: 285 years */

enum { TRIES = 8 };

bool spc_ticks_are_counted(void) {
#if defined(__x86_64__) && defined(__linux__)
    char name[8] = "";
    FILE *file = fopen(CLOCKSOURCE, "re");
    if (file == NULL) {
        return false;
    }
    const bool is_read = fgets(name, sizeof name, file) != NULL;
    fclose(file);
    return is_read && strcmp(name, "tsc\n") == 0;
#else
    return false;
#endif
}

/* A thread that loses its core between the two looks has a bad pair; the closest of a few is good. */
spc_ticks_anchor_t spc_ticks_anchor(bool are_counted) {
    spc_ticks_anchor_t best = {0, 0};
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        const uint64_t before = spc_ticks_now(are_counted);
        const uint64_t time_ns = spc_clock_now_ns();
        const uint64_t spent = spc_ticks_now(are_counted) - before;
        if (spent < shortest) {
            shortest = spent;
            best = (spc_ticks_anchor_t){before + spent / 2, time_ns};
        }
    }
    return best;
}

uint64_t spc_ticks_to_ns(const spc_ticks_anchor_t *begin, const spc_ticks_anchor_t *end, uint64_t ticks) {
    if (end->ticks <= begin->ticks) {
        return begin->time_ns;
    }
    const double rate = (double)(end->time_ns - begin->time_ns) / (double)(end->ticks - begin->ticks);
    const double later_ns = (double)(int64_t)(ticks - begin->ticks) * rate;
    /* Ticks that were never counted: a C program's conversion of such a number has no meaning. */
    const bool is_far = !(later_ns > -(double)begin->time_ns && later_ns < FARTHEST_NS);
    return is_far ? begin->time_ns : begin->time_ns + (uint64_t)(int64_t)later_ns;
}
