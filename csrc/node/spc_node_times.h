/* SPDX-License-Identifier: MIT */
/*
 * spc_node_times: the time that the first thread of a node spends waiting, counted on its board.
 *
 * The states are those of docs/reference/time.md: what is neither waiting nor waiting for a core is computing, for the
 * reader of the board. Waiting for a core takes precedence. The kernel counts that time without saying when it was; so
 * a look-up, at most once in a millisecond, assigns what is new to the span that is nearest: at the begin of a wait
 * first to the computation before it, at the end of a wait to the wait.
 *
 * Time and the kernel's count come from two functions, so that tests can run it on times of their own.
 */
#ifndef SPC_NODE_TIMES_H
#define SPC_NODE_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_clock.h"
#include "segment/spc_board.h"

typedef bool (*spc_core_wait_fn)(uint64_t *waited_ns); /* as spc_platform_core_wait */

typedef struct spc_node_times {
    spc_board_times_t *board;
    spc_clock_fn clock;
    spc_core_wait_fn core_wait;
    uint64_t looked_up_ns; /* when the kernel's count was looked up */
    uint64_t core_ns;      /* the count */
    uint64_t new_waits_ns; /* length of the waits that have ended since */
    uint64_t begun_ns;     /* the last wait */
    uint64_t ended_ns;
    uint32_t depth; /* a wait within a wait, by a signal's handler, is part of it */
} spc_node_times_t;

void spc_node_times_start(spc_node_times_t *times, spc_board_times_t *board, spc_clock_fn clock,
                          spc_core_wait_fn core_wait);

/* Called by the first thread only. */
void spc_node_times_begin_wait(spc_node_times_t *times);
void spc_node_times_end_wait(spc_node_times_t *times);

/* Any thread. Only the first can look up its time without a core; for another the last look-up has to do. */
void spc_node_times_close(spc_node_times_t *times, bool is_first);

#endif
