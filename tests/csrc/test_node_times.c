/* SPDX-License-Identifier: MIT */
/* A node's times, exactly: the clock and the kernel's count are numbers of the test. */
#include "check.h"

#include "node/spc_node_times.h"

#define MS UINT64_C(1000000)

static uint64_t now_ns, core_ns, look_ups;
static bool has_count;

static uint64_t read_clock(void) {
    return now_ns;
}

static bool read_core_wait(uint64_t *waited_ns) {
    look_ups++;
    *waited_ns = core_ns;
    return has_count;
}

/* At 100 ms; by then the thread has been without a core for 7 ms. */
static spc_node_times_t start(spc_board_times_t *board) {
    spc_node_times_t times;
    memset(board, 0, sizeof *board);
    now_ns = 100 * MS, core_ns = 7 * MS, look_ups = 0, has_count = true;
    spc_node_times_start(&times, board, read_clock, read_core_wait);
    CHECK_EQ(board->started_ns, 100 * MS);
    CHECK_EQ(board->core_started_ns, 7 * MS);
    return times;
}

/* `queued_ns` of it without a core. */
static void pass(uint64_t time_ns, uint64_t queued_ns) {
    now_ns += time_ns;
    core_ns += queued_ns;
}

static void wait_for(spc_node_times_t *times, uint64_t time_ns, uint64_t queued_ns) {
    spc_node_times_begin_wait(times);
    CHECK_EQ(times->board->waiting_since_ns, now_ns);
    pass(time_ns, queued_ns);
    spc_node_times_end_wait(times);
    CHECK_EQ(times->board->waiting_since_ns, 0);
}

TEST(waits_add_up_and_nothing_else_counts) {
    spc_board_times_t board;
    spc_node_times_t times = start(&board);
    pass(5 * MS, 0); /* computing, or asleep: the same to it */
    wait_for(&times, 3 * MS, 0);
    pass(2 * MS, 0);
    wait_for(&times, 1, 0);
    CHECK_EQ(board.waited_ns, 3 * MS + 1);
    pass(4 * MS, 0);
    spc_node_times_close(&times, true);
    CHECK_EQ(board.closed_ns - board.started_ns, 14 * MS + 1);
    CHECK_EQ(board.core_closed_ns, 7 * MS);
    CHECK_EQ(board.waited_ns, 3 * MS + 1);
}

TEST(time_without_a_core_is_that_of_the_nearest_span) {
    spc_board_times_t board;
    spc_node_times_t times = start(&board);
    pass(5 * MS, 2 * MS); /* preempted while it computes */
    wait_for(&times, 3 * MS, 0);
    CHECK_EQ(board.waited_ns, 3 * MS);
    wait_for(&times, 4 * MS, 1 * MS); /* woken, and without a core */
    CHECK_EQ(board.waited_ns, 6 * MS);
    pass(2 * MS, 2 * MS);
    spc_node_times_close(&times, true);
    CHECK_EQ(board.waited_ns, 6 * MS);
    CHECK_EQ(board.core_closed_ns - board.core_started_ns, 5 * MS);
}

/* Ten waits within a millisecond have one look-up; the kernel's count is not more than all of them. */
TEST(short_waits_share_a_look_up) {
    spc_board_times_t board;
    spc_node_times_t times = start(&board);
    look_ups = 0;
    for (int i = 0; i < 10; i++) {
        pass(MS / 20, 0);
        wait_for(&times, MS / 20, MS / 40);
    }
    CHECK_EQ(look_ups, 1);
    CHECK_EQ(board.waited_ns, MS / 4);
}

TEST(more_than_the_waits_is_the_computations) {
    spc_board_times_t board;
    spc_node_times_t times = start(&board);
    wait_for(&times, MS / 2, 0);
    pass(MS, MS + MS / 4); /* the kernel adds it late */
    wait_for(&times, MS / 2, 0);
    CHECK_EQ(board.waited_ns, 3 * MS / 4);
    pass(MS, 9 * MS);
    wait_for(&times, 2 * MS, 0);
    CHECK_EQ(board.waited_ns, 9 * MS / 4);
}

TEST(a_wait_within_a_wait_counts_once) {
    spc_board_times_t board;
    spc_node_times_t times = start(&board);
    spc_node_times_begin_wait(&times);
    pass(MS, 0);
    spc_node_times_begin_wait(&times);
    pass(MS, 0);
    spc_node_times_end_wait(&times);
    CHECK_EQ(board.waiting_since_ns, 100 * MS);
    pass(MS, 0);
    spc_node_times_end_wait(&times);
    CHECK_EQ(board.waited_ns, 3 * MS);
}

TEST(another_thread_that_closes_reads_no_count) {
    spc_board_times_t board;
    spc_node_times_t times = start(&board);
    wait_for(&times, 2 * MS, MS);
    pass(5 * MS, 4 * MS);
    look_ups = 0;
    spc_node_times_close(&times, false);
    CHECK_EQ(look_ups, 0);
    CHECK_EQ(board.core_closed_ns - board.core_started_ns, MS);
    CHECK_EQ(board.waited_ns, MS);
}

TEST(a_system_without_the_count_has_waits_only) {
    spc_board_times_t board;
    memset(&board, 0, sizeof board);
    spc_node_times_t times;
    now_ns = MS, core_ns = 0, has_count = false;
    spc_node_times_start(&times, &board, read_clock, read_core_wait);
    wait_for(&times, 2 * MS, 0);
    spc_node_times_close(&times, true);
    CHECK_EQ(board.waited_ns, 2 * MS);
    CHECK_EQ(board.core_closed_ns, 0);
}

TEST_MAIN()
