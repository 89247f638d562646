/* SPDX-License-Identifier: MIT */
/*
 * spc_clock: monotonic time in nanoseconds, and deadlines made of it.
 *
 * Code that depends on time takes a spc_clock_fn, so that tests can run it on a clock of their own.
 */
#ifndef SPC_CLOCK_H
#define SPC_CLOCK_H

#include <stdint.h>

#define SPC_NO_DEADLINE UINT64_MAX

typedef uint64_t (*spc_clock_fn)(void);

/* Monotonic, the same for all processes of the machine; about 25 ns. */
uint64_t spc_clock_now_ns(void);

/* now + timeout, which cannot overflow; a negative timeout means for ever (SPC_NO_DEADLINE). */
uint64_t spc_clock_deadline_ns(int64_t timeout_ns);

/* Sleeps for about that long; for polling changes that are not announced. */
void spc_clock_sleep_ns(uint64_t time_ns);

#endif
