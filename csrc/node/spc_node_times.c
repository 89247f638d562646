/* SPDX-License-Identifier: MIT */
#include "node/spc_node_times.h"

#include <string.h>

#define LOOK_UP_NS UINT64_C(1000000) /* between two look-ups, each of which takes some µs */

static uint64_t smaller(uint64_t left, uint64_t right) {
    return left < right ? left : right;
}

static void store(_Atomic uint64_t *where, uint64_t value) {
    atomic_store_explicit(where, value, memory_order_relaxed);
}

static uint64_t load(const _Atomic uint64_t *where) {
    return atomic_load_explicit(where, memory_order_relaxed);
}

/* `computed_ns`: length of the computation that ends now; 0: a wait does. */
static void look_up(spc_node_times_t *times, uint64_t now_ns, uint64_t computed_ns) {
    uint64_t core_ns;
    if (now_ns - times->looked_up_ns < LOOK_UP_NS || !times->core_wait(&core_ns)) {
        return;
    }
    uint64_t more_ns = core_ns - times->core_ns;
    more_ns -= smaller(more_ns, computed_ns);
    store(&times->board->waited_ns, load(&times->board->waited_ns) - smaller(more_ns, times->new_waits_ns));
    store(&times->board->core_closed_ns, core_ns);
    times->looked_up_ns = now_ns;
    times->core_ns = core_ns;
    times->new_waits_ns = 0;
}

void spc_node_times_start(spc_node_times_t *times, spc_board_times_t *board, spc_clock_fn clock,
                          spc_core_wait_fn core_wait) {
    memset(times, 0, sizeof(*times));
    times->board = board;
    times->clock = clock;
    times->core_wait = core_wait;
    (void)core_wait(&times->core_ns); /* where the kernel has no count, it stays 0 */
    times->looked_up_ns = times->ended_ns = clock();
    store(&board->core_started_ns, times->core_ns);
    store(&board->core_closed_ns, times->core_ns);
    store(&board->started_ns, times->ended_ns);
}

void spc_node_times_begin_wait(spc_node_times_t *times) {
    if (times->depth++ != 0) {
        return;
    }
    times->begun_ns = times->clock();
    look_up(times, times->begun_ns, times->begun_ns - times->ended_ns);
    store(&times->board->waiting_since_ns, times->begun_ns);
}

void spc_node_times_end_wait(spc_node_times_t *times) {
    if (--times->depth != 0) {
        return;
    }
    times->ended_ns = times->clock();
    const uint64_t length_ns = times->ended_ns - times->begun_ns;
    times->new_waits_ns += length_ns;
    store(&times->board->waited_ns, load(&times->board->waited_ns) + length_ns);
    store(&times->board->waiting_since_ns, 0);
    look_up(times, times->ended_ns, 0);
}

void spc_node_times_close(spc_node_times_t *times, bool is_first) {
    const uint64_t now_ns = times->clock();
    if (is_first) {
        times->looked_up_ns = now_ns - LOOK_UP_NS; /* due */
        look_up(times, now_ns, now_ns - times->ended_ns);
    }
    store(&times->board->closed_ns, now_ns);
}
