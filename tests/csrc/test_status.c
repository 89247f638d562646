/* SPDX-License-Identifier: MIT */
/* Status: one line a node, the first end counts, and an end wakes everybody who sleeps. */
#include "check.h"

#include "base/spc_error.h"
#include "base/spc_wait.h"
#include "segment/spc_status.h"

#define NODES 8

typedef struct box {
    spc_status_shared_t *status;
    spc_event_shared_t event[NODES];
    uint32_t features;
    uint64_t note[NODES]; /* what a node did before its end; not atomic */
} box_t;

static box_t *make_box(void) {
    box_t *box = aligned_alloc(64, sizeof *box + 64 - sizeof *box % 64);
    CHECK(box != NULL);
    memset(box, 0, sizeof *box);
    box->status = aligned_alloc(64, spc_status_bytes(NODES));
    CHECK(box->status != NULL);
    memset(box->status, 0, spc_status_bytes(NODES));
    box->features = spc_platform_features(0);
    return box;
}

static void free_box(box_t *box) {
    free(box->status);
    free(box);
}

static void end(box_t *box, uint32_t rank, spc_node_state_t state, int32_t reason) {
    spc_status_end(box->status, rank, state, reason, box->event, NODES, box->features);
}

TEST(zero_means_starting) {
    box_t *box = make_box();
    for (uint32_t rank = 0; rank < NODES; rank++) {
        CHECK_EQ(spc_status_state(box->status, rank), SPC_NODE_STARTING);
    }
    CHECK_EQ_U(spc_status_epoch(box->status), 0);
    free_box(box);
}

TEST(errors_that_are_alive_are_counted) {
    box_t *box = make_box();
    spc_status_count_raised(box->status, 2, 1);
    spc_status_count_raised(box->status, 2, 1);
    spc_status_count_raised(box->status, 2, -1);
    CHECK(spc_status_has_raised(box->status, 2));
    CHECK(!spc_status_has_raised(box->status, 1));
    spc_status_count_raised(box->status, 2, -1);
    CHECK(!spc_status_has_raised(box->status, 2));
    free_box(box);
}

TEST(nodes_come_and_go) {
    box_t *box = make_box();
    spc_status_set_live(box->status, 2, 4711);
    CHECK_EQ(spc_status_state(box->status, 2), SPC_NODE_LIVE);
    CHECK_EQ(atomic_load(&box->status->line[2].process), 4711);
    CHECK_EQ(spc_status_state(box->status, 1), SPC_NODE_STARTING);
    end(box, 2, SPC_NODE_FINISHED, 3);
    CHECK_EQ(spc_status_state(box->status, 2), SPC_NODE_FINISHED);
    CHECK_EQ(atomic_load(&box->status->line[2].reason), 3);
    CHECK_EQ_U(spc_status_epoch(box->status), 1);
    end(box, 1, SPC_NODE_DIED, -9); /* one that never started counts too */
    CHECK_EQ(spc_status_state(box->status, 1), SPC_NODE_DIED);
    CHECK_EQ_U(spc_status_epoch(box->status), 2);
    free_box(box);
}

TEST(first_end_counts) {
    box_t *box = make_box();
    end(box, 0, SPC_NODE_FINISHED, 0);
    end(box, 0, SPC_NODE_DIED, -11);
    CHECK_EQ(spc_status_state(box->status, 0), SPC_NODE_FINISHED);
    CHECK_EQ(atomic_load(&box->status->line[0].reason), 0);
    CHECK_EQ_U(spc_status_epoch(box->status), 1);
    end(box, 3, SPC_NODE_DIED, -9);
    end(box, 3, SPC_NODE_FINISHED, 0);
    CHECK_EQ(spc_status_state(box->status, 3), SPC_NODE_DIED);
    CHECK_EQ_U(spc_status_epoch(box->status), 2);
    free_box(box);
}

TEST(an_end_bumps_every_event) {
    box_t *box = make_box();
    end(box, 5, SPC_NODE_DIED, -9);
    for (int i = 0; i < NODES; i++) {
        CHECK_EQ_U(atomic_load(&box->event[i].word), 1);
    }
    free_box(box);
}

TEST(gone_is_more_than_ended) {
    box_t *box = make_box();
    end(box, 4, SPC_NODE_FINISHED, 0);
    CHECK(!spc_status_is_gone(box->status, 4));
    spc_status_set_gone(box->status, 4, box->event, NODES, box->features);
    spc_status_set_gone(box->status, 4, box->event, NODES, box->features);
    CHECK(spc_status_is_gone(box->status, 4));
    CHECK(!spc_status_is_gone(box->status, 3));
    CHECK_EQ(spc_status_state(box->status, 4), SPC_NODE_FINISHED);
    CHECK_EQ_U(spc_status_epoch(box->status), 1);
    CHECK_EQ_U(atomic_load(&box->event[7].word), 2); /* everybody looks for room again, once */
    free_box(box);
}

/* All sleep, without end, until rank 0 has ended; then they read what it did before. */

static bool first_has_ended(void *argument) {
    box_t *box = argument;
    return spc_status_epoch(box->status) > 0;
}

static void sleep_until_first_ends(int rank, int size, void *argument) {
    box_t *box = argument;
    (void)size;
    if (rank == 0) {
        spc_status_set_live(box->status, 0, 1);
        for (int i = 1; i < NODES; i++) {
            box->note[i] = 100 + (uint64_t)i;
        }
        end(box, 0, SPC_NODE_DIED, -6);
        return;
    }
    spc_waiter_t waiter;
    spc_wait_callbacks_t callbacks = {.test = first_has_ended};
    spc_waiter_init(&waiter, SPC_WAIT_SLEEP, box->features);
    waiter.slice_ns = UINT64_MAX;
    CHECK_OK(spc_wait(&waiter, &box->event[rank].word, &box->event[rank].sleeping, &callbacks, box,
                      SPC_NO_DEADLINE));
    CHECK_EQ(spc_status_state(box->status, 0), SPC_NODE_DIED);
    CHECK_EQ(atomic_load_explicit(&box->status->line[0].reason, memory_order_relaxed), -6);
    CHECK_EQ_U(box->note[rank], 100 + rank);
}

TEST(an_end_wakes_everybody) {
    for (long i = check_scale(200); i > 0; i--) {
        box_t *box = make_box();
        check_threads(NODES, sleep_until_first_ends, box);
        free_box(box);
    }
}

TEST_MAIN()
