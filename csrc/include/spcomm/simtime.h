/* SPDX-License-Identifier: MIT */
/*
 * simtime: the time of a discrete-event simulation, a double and four integer priorities that break ties, so that
 * a run is repeatable (SpeedesComm 2.2, SpSimTime).
 *
 * For C11 and C++11; stands alone; pure functions, which any thread may call anywhere. Shared memory and messages hold
 * this structure as it is: 24 bytes, no padding. All bytes zero is time 0 without priorities.
 *
 * Order: by time, then by the four priorities, the first one first; less is earlier. 0.0 and -0.0 are the same time.
 * A NaN is later than all other times, infinity too, and one NaN is as late as another. So the order is total, and a
 * minimum over all nodes does not depend on the order of comparisons. Python refuses NaN: an undefined time is a
 * mistake, but a comparison in C has no way to report it.
 *
 *     spcomm_simtime_t now = spcomm_simtime_from(1.5);
 *     now.priority[0] = 3;
 *     if (spcomm_simtime_compare(now, event) <= 0) ...
 */
#ifndef SPCOMM_SIMTIME_H
#define SPCOMM_SIMTIME_H

#include <stdbool.h>
#include <stdint.h>

#define SPCOMM_SIMTIME_PRIORITIES 4

typedef struct spcomm_simtime {
    double time;
    int32_t priority[SPCOMM_SIMTIME_PRIORITIES];
} spcomm_simtime_t;

#ifdef __cplusplus
static_assert(sizeof(spcomm_simtime_t) == 24, "spcomm_simtime_t travels between nodes");
#else
_Static_assert(sizeof(spcomm_simtime_t) == 24, "spcomm_simtime_t travels between nodes");
#endif

/* This time, with all priorities 0. */
static inline spcomm_simtime_t spcomm_simtime_from(double time) {
    spcomm_simtime_t result;
    result.time = time;
    for (int i = 0; i < SPCOMM_SIMTIME_PRIORITIES; i++) {
        result.priority[i] = 0;
    }
    return result;
}

/* The time alone. */
static inline double spcomm_simtime_time(spcomm_simtime_t simtime) {
    return simtime.time;
}

/* -1: `left` is earlier; 0: they are equal; 1: `right` is earlier. */
static inline int spcomm_simtime_compare(spcomm_simtime_t left, spcomm_simtime_t right) {
    if (left.time < right.time) {
        return -1;
    }
    if (left.time > right.time) {
        return 1;
    }
    const bool left_is_nan = left.time != left.time;
    const bool right_is_nan = right.time != right.time;
    if (left_is_nan != right_is_nan) {
        return left_is_nan ? 1 : -1;
    }
    for (int i = 0; i < SPCOMM_SIMTIME_PRIORITIES; i++) {
        if (left.priority[i] != right.priority[i]) {
            return left.priority[i] < right.priority[i] ? -1 : 1;
        }
    }
    return 0;
}

static inline bool spcomm_simtime_equal(spcomm_simtime_t left, spcomm_simtime_t right) {
    return spcomm_simtime_compare(left, right) == 0;
}

#endif
