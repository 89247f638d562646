/* SPDX-License-Identifier: MIT */
/* Nodes judged to wait for ever. The boards are written by the test: each rule by itself, and many nodes at once that
 * publish, wake and act while others look. What nodes themselves publish is in test_deadlock_programs.c. */
#include "comm_box.h"

#include "diagnose/spc_deadlock.h"
#include "message/spc_mailbox.h"
#include "message/spc_receipt.h"
#include "reduce/spc_reduce.h"

#define NODES 3
#define ALL_OTHERS (-2) /* whom a wait needs */
#define NOBODY (-3)

typedef struct table {
    comm_box_t box;
    spc_deadlock_t *deadlock;
    spc_board_entry_t entry[NODES];
    spc_board_pair_t pair[NODES][NODES + 1];
} table_t;

static spc_status_shared_t *status_of(const table_t *table) {
    return spc_segment_part(&table->box.segment, SPC_REGION_STATUS, 0);
}

static spc_event_shared_t *event_of(const table_t *table, uint32_t rank) {
    return spc_segment_part(&table->box.segment, SPC_REGION_EVENT, rank);
}

static spc_board_shared_t *board_of(const table_t *table, uint32_t rank) {
    return spc_segment_part(&table->box.segment, SPC_REGION_BOARD, rank);
}

static table_t *open_table(void) {
    table_t *table = calloc(1, sizeof *table);
    CHECK(table != NULL);
    table->box = comm_box_open((spc_config_t){.nodes = NODES, .slots = 4});
    CHECK_OK(spc_deadlock_create(&table->box.segment, &table->deadlock));
    for (uint32_t rank = 0; rank < NODES; rank++) {
        spc_status_set_live(status_of(table), rank, 1);
    }
    return table;
}

static void close_table(table_t *table) {
    spc_deadlock_destroy(table->deadlock);
    comm_box_close(&table->box);
    free(table);
}

/* Rank waits like this; it may be changed before publish. */
static void plan_wait(table_t *table, uint32_t rank, spc_board_kind_t kind, int needed) {
    const spc_segment_t *segment = &table->box.segment;
    table->entry[rank] = (spc_board_entry_t){
        .kind = kind,
        .epoch = spc_status_epoch(status_of(table)),
        .word = atomic_load(&event_of(table, rank)->word),
        .phase = 1,
        .lines_offset = spc_segment_offset(segment, spc_segment_part(segment, SPC_REGION_REDUCE, 0)),
    };
    memset(table->pair[rank], 0, sizeof table->pair[rank]);
    for (uint32_t other = 0; other < NODES; other++) {
        bool wanted = needed == ALL_OTHERS ? other != rank : needed == (int)other;
        table->pair[rank][other].needed = wanted ? other + 1 : 0;
    }
}

static void publish(table_t *table, uint32_t rank) {
    spc_board_publish(board_of(table, rank), &table->entry[rank], table->pair[rank], NODES + 1);
}

static void publish_wait(table_t *table, uint32_t rank, spc_board_kind_t kind, int needed) {
    plan_wait(table, rank, kind, needed);
    publish(table, rank);
}

static void change(table_t *table, uint32_t rank) {
    spc_board_retract(board_of(table, rank));
    publish(table, rank);
}

/* Where the phase of the waits lies: any line that says so will do. */
static void arrive(table_t *table, uint32_t rank) {
    spc_reduce_line_shared_t *lines = spc_segment_address(&table->box.segment, table->entry[0].lines_offset);
    atomic_store(&lines[rank].phase, 1);
}

/* A bit a rank. */
static uint32_t found(const table_t *table) {
    uint32_t mask = 0;
    for (uint32_t rank = 0; rank < NODES; rank++) {
        mask |= spc_deadlock_has(table->deadlock, rank) ? 1u << rank : 0;
    }
    return mask;
}

/* Nothing by the first look, this by the second and third. */
#define CHECK_PROVEN(table, mask)                                                       \
    do {                                                                                \
        CHECK_EQ_U(spc_deadlock_look((table)->deadlock), 0);                            \
        for (int look = 0; look < 2; look++) {                                          \
            CHECK_EQ_U(spc_deadlock_look((table)->deadlock), __builtin_popcount(mask)); \
            CHECK_EQ_U(found(table), mask);                                             \
        }                                                                               \
    } while (0)

#define CHECK_NOTHING(table)                                 \
    for (int look = 0; look < 4; look++) {                   \
        CHECK_EQ_U(spc_deadlock_look((table)->deadlock), 0); \
        CHECK_EQ_U(found(table), 0);                         \
    }

/* Each case begins with three boards of receives in a circle, which alone would be proven. */
static table_t *open_circle(void) {
    table_t *table = open_table();
    for (uint32_t rank = 0; rank < NODES; rank++) {
        publish_wait(table, rank, SPC_BOARD_RECEIVE, (int)((rank + 1) % NODES));
    }
    return table;
}

/* ---- who waits for whom ---- */

TEST(a_circle_is_proven_by_two_looks) {
    table_t *table = open_circle();
    CHECK_PROVEN(table, 7u);
    spc_board_retract(board_of(table, 1));
    CHECK_NOTHING(table);
    publish(table, 1);
    CHECK_PROVEN(table, 7u);
    close_table(table);
}

TEST(nobody_waits) {
    table_t *table = open_table();
    CHECK_NOTHING(table);
    close_table(table);
}

TEST(who_needs_an_able_one_is_able) {
    table_t *table = open_table();
    publish_wait(table, 0, SPC_BOARD_RECEIVE, 1);
    publish_wait(table, 1, SPC_BOARD_RECEIPT, 2);
    CHECK_NOTHING(table); /* node 2 computes */
    publish_wait(table, 2, SPC_BOARD_RECEIVE, 2);
    CHECK_PROVEN(table, 7u);
    close_table(table);
}

TEST(the_part_of_one_in_a_collective) {
    table_t *table = open_table();
    publish_wait(table, 0, SPC_BOARD_GATHERING, 1);
    CHECK_NOTHING(table); /* node 1 computes, and may send its part yet */
    publish_wait(table, 1, SPC_BOARD_GATHERING, 2);
    CHECK_NOTHING(table);
    publish_wait(table, 2, SPC_BOARD_RECEIVE, 0);
    CHECK_PROVEN(table, 7u);
    close_table(table);
}

TEST(a_closed_subset) {
    table_t *table = open_table();
    publish_wait(table, 0, SPC_BOARD_RECEIPT, 1);
    publish_wait(table, 1, SPC_BOARD_RECEIVE, 0);
    CHECK_PROVEN(table, 3u);
    close_table(table);
}

/* The receiver sleeps again, and the sender has not been woken yet. */
TEST(a_receipt_that_was_given) {
    table_t *table = open_table();
    const spc_segment_t *segment = &table->box.segment;
    spc_row_shared_t *row = spc_mailbox_row(spc_segment_part(segment, SPC_REGION_MAILBOX, 1), 0, 4);
    plan_wait(table, 0, SPC_BOARD_RECEIPT, 1);
    table->entry[0].lines_offset = spc_segment_offset(segment, row);
    publish(table, 0);
    publish_wait(table, 1, SPC_BOARD_RECEIVE, 0);
    CHECK_PROVEN(table, 3u);
    spc_receipt_give(row, 1);
    CHECK_NOTHING(table);
    close_table(table);
}

TEST(any_of_several_is_enough) {
    table_t *table = open_table();
    publish_wait(table, 0, SPC_BOARD_RECEIVE, ALL_OTHERS);
    publish_wait(table, 1, SPC_BOARD_RECEIVE, 0);
    CHECK_NOTHING(table);
    publish_wait(table, 2, SPC_BOARD_RECEIVE, ALL_OTHERS);
    CHECK_PROVEN(table, 7u);
    close_table(table);
}

TEST(a_phase_waits_for_the_absent) {
    table_t *table = open_table();
    publish_wait(table, 0, SPC_BOARD_PHASE, ALL_OTHERS);
    publish_wait(table, 1, SPC_BOARD_RECEIVE, 0);
    arrive(table, 0);
    CHECK_NOTHING(table); /* node 2 may arrive, or end, which ends the barrier */
    arrive(table, 2);
    CHECK_PROVEN(table, 3u);
    arrive(table, 1);
    CHECK_NOTHING(table); /* complete */
    close_table(table);
}

/* Then it is completed by nobody; but an end makes it fail. */
TEST(a_phase_that_one_in_vain_never_reaches) {
    table_t *table = open_table();
    spc_deadlock_t *strict = table->deadlock;
    CHECK_OK(spc_deadlock_create(&table->box.segment, &table->deadlock));
    spc_deadlock_find_vain(table->deadlock);
    publish_wait(table, 0, SPC_BOARD_PHASE, ALL_OTHERS);
    arrive(table, 0);
    CHECK_NOTHING(table); /* the others compute, and may arrive */
    publish_wait(table, 1, SPC_BOARD_RECEIVE, 2);
    CHECK_NOTHING(table); /* node 2 may send, and both may arrive */
    plan_wait(table, 1, SPC_BOARD_RECEIVE, ALL_OTHERS);
    change(table, 1);
    CHECK_NOTHING(table); /* the same */
    plan_wait(table, 1, SPC_BOARD_RECEIVE, 0);
    change(table, 1);
    CHECK_PROVEN(table, 3u); /* whatever node 2 does */
    CHECK_EQ_U(spc_deadlock_look(strict) + spc_deadlock_look(strict), 0);
    arrive(table, 1);
    CHECK_NOTHING(table); /* it has sent before */
    spc_deadlock_destroy(strict);
    close_table(table);
}

TEST(handlers_may_end_what_seems_in_vain) {
    table_t *table = open_table();
    spc_deadlock_find_vain(table->deadlock);
    plan_wait(table, 0, SPC_BOARD_PHASE, ALL_OTHERS);
    table->entry[0].flags = SPC_BOARD_HANDLES;
    publish(table, 0);
    publish_wait(table, 1, SPC_BOARD_RECEIVE, 0);
    arrive(table, 0);
    CHECK_NOTHING(table);
    table->entry[0].flags = 0;
    change(table, 0);
    CHECK_PROVEN(table, 3u);
    close_table(table);
}

TEST(a_cycle_may_still_get_messages) {
    table_t *table = open_table();
    publish_wait(table, 0, SPC_BOARD_CYCLE, ALL_OTHERS);
    publish_wait(table, 1, SPC_BOARD_RECEIVE, 0);
    arrive(table, 0);
    arrive(table, 2); /* it computes, between two receives: what it has sent may be in its queue */
    CHECK_NOTHING(table);
    publish_wait(table, 2, SPC_BOARD_CYCLE, ALL_OTHERS);
    CHECK_PROVEN(table, 7u);
    arrive(table, 1);
    CHECK_NOTHING(table);
    close_table(table);
}

TEST(anybody_may_give_back_room) {
    table_t *table = open_table();
    for (uint32_t rank = 0; rank < 2; rank++) {
        plan_wait(table, rank, SPC_BOARD_SEND, NOBODY);
        table->pair[rank][1 - rank].lent = 1;
        publish(table, rank);
    }
    CHECK_NOTHING(table); /* node 2 computes, and may hold what they need */
    publish_wait(table, 2, SPC_BOARD_RECEIVE, 0);
    CHECK_PROVEN(table, 7u);
    close_table(table);
}

/* It sends to node 0, whose handler then sends to node 1. */
TEST(a_handler_may_do_anything_for_anybody) {
    table_t *table = open_table();
    plan_wait(table, 0, SPC_BOARD_RECEIVE, 1);
    table->entry[0].flags = SPC_BOARD_HANDLES;
    publish(table, 0);
    publish_wait(table, 1, SPC_BOARD_RECEIVE, 0);
    CHECK_NOTHING(table);
    publish_wait(table, 2, SPC_BOARD_RECEIVE, 1);
    CHECK_PROVEN(table, 7u);
    close_table(table);
}

/* ---- why a wait may end although nobody does anything ---- */

TEST(a_doubt_is_no_proof) {
    for (uint32_t doubt = SPC_BOARD_TIMED; doubt <= SPC_BOARD_AT_END; doubt *= 2) {
        table_t *table = open_circle();
        table->entry[2].doubts = doubt;
        change(table, 2);
        CHECK_NOTHING(table);
        table->entry[2].doubts = 0;
        change(table, 2);
        CHECK_PROVEN(table, 7u);
        close_table(table);
    }
}

/* For a warning: what the nodes wait for comes only if something of the program's own ends it. */
TEST(a_doubt_is_overlooked) {
    table_t *table = open_circle();
    spc_deadlock_overlook(table->deadlock, SPC_BOARD_THREADS | SPC_BOARD_TIMER);
    table->entry[2].doubts = SPC_BOARD_THREADS;
    change(table, 2);
    CHECK_PROVEN(table, 7u);
    table->entry[2].doubts = SPC_BOARD_THREADS | SPC_BOARD_TIMED;
    change(table, 2);
    CHECK_NOTHING(table);
    close_table(table);
}

TEST(an_unknown_wait_is_no_proof) {
    table_t *table = open_circle();
    table->entry[0].kind = SPC_BOARD_NOTHING;
    change(table, 0);
    CHECK_NOTHING(table);
    close_table(table);
}

/* As if it were stopped: it has been told, and does not look. */
TEST(who_was_told_of_something_will_look) {
    table_t *table = open_circle();
    CHECK_PROVEN(table, 7u);
    atomic_fetch_add(&event_of(table, 1)->word, 1);
    CHECK_NOTHING(table);
    table->entry[1].word++; /* it has looked, and waits again */
    change(table, 1);
    CHECK_PROVEN(table, 7u);
    close_table(table);
}

static void announce(table_t *table, uint32_t from, uint32_t to) {
    spc_mailbox_writer_t writer;
    spc_mailbox_writer_init(&writer, spc_segment_part(&table->box.segment, SPC_REGION_MAILBOX, to), from, 4);
    spc_mailbox_announce(&writer);
}

TEST(a_message_on_its_way) {
    table_t *table = open_circle();
    announce(table, 1, 0); /* its receiver has not been told so far */
    CHECK_NOTHING(table);
    table->pair[0][1].received = 1; /* it was another one than it waits for */
    change(table, 0);
    CHECK_PROVEN(table, 7u);
    announce(table, 0, 2);
    CHECK_NOTHING(table);
    table->pair[2][0].received = 1;
    change(table, 2);
    CHECK_PROVEN(table, 7u);
    close_table(table);
}

/* A node that waits reads what comes: there will be room. */
TEST(what_is_queued_will_be_sent) {
    table_t *table = open_circle();
    table->pair[2][1].queued = 1;
    change(table, 2);
    CHECK_NOTHING(table);
    table->pair[2][1].queued = 0;
    change(table, 2);
    CHECK_PROVEN(table, 7u);
    close_table(table);
}

/* ---- ends ---- */

static void end(table_t *table, uint32_t rank, spc_node_state_t state) {
    spc_status_end(status_of(table), rank, state, 0, event_of(table, 0), NODES + 1, 0);
}

TEST(an_end_counts_when_it_was_considered) {
    table_t *table = open_table();
    publish_wait(table, 0, SPC_BOARD_RECEIVE, ALL_OTHERS);
    publish_wait(table, 1, SPC_BOARD_RECEIVE, ALL_OTHERS);
    CHECK_NOTHING(table);
    end(table, 2, SPC_NODE_FINISHED);
    CHECK_NOTHING(table); /* they have not looked at it */
    for (uint32_t rank = 0; rank < 2; rank++) {
        plan_wait(table, rank, SPC_BOARD_RECEIVE, ALL_OTHERS);
        change(table, rank);
    }
    CHECK_PROVEN(table, 3u);
    table->entry[0].epoch--;
    change(table, 0);
    CHECK_NOTHING(table);
    close_table(table);
}

/* It is stopped, or killed, while it ends: nobody has been told so far, and who waits for it will fail. */
TEST(an_end_that_was_not_told) {
    table_t *table = open_table();
    publish_wait(table, 0, SPC_BOARD_RECEIVE, 2);
    publish_wait(table, 1, SPC_BOARD_RECEIVE, 0);
    atomic_store(&status_of(table)->line[2].state, SPC_NODE_FINISHED);
    CHECK_NOTHING(table);
    end(table, 2, SPC_NODE_DIED); /* the launcher, later */
    CHECK_EQ(spc_status_state(status_of(table), 2), SPC_NODE_FINISHED);
    CHECK(spc_status_is_told(status_of(table), 2));
    CHECK_EQ_U(spc_status_epoch(status_of(table)), 1);
    CHECK_NOTHING(table); /* they have to look at it */
    close_table(table);
}

TEST(who_has_ended_does_not_wait) {
    table_t *table = open_circle();
    end(table, 1, SPC_NODE_DIED);
    CHECK_NOTHING(table);
    for (uint32_t rank = 0; rank < NODES; rank++) {
        table->entry[rank].epoch = table->entry[rank].word = 1;
        change(table, rank);
    }
    CHECK_PROVEN(table, 5u);
    close_table(table);
}

/* ---- while nodes run ---- */

/* One ball goes round: who has it is awake, and all others wait for it, so nobody waits for ever. A wait is as in a
 * real node: read the word, test, publish, sleep until the word has changed, retract. */
typedef struct ball {
    table_t *table;
    uint32_t rounds;
    _Atomic uint32_t thrown[NODES]; /* to that rank, how often */
    _Atomic uint32_t left; /* players that go on */
} ball_t;

static void catch_ball(ball_t *ball, uint32_t rank, uint32_t number) {
    spc_event_shared_t *event = event_of(ball->table, rank);
    for (;;) {
        plan_wait(ball->table, rank, SPC_BOARD_RECEIVE, ALL_OTHERS);
        if (atomic_load(&ball->thrown[rank]) >= number) {
            return;
        }
        publish(ball->table, rank);
        while (atomic_load(&event->word) == ball->table->entry[rank].word) {
            spc_platform_yield();
        }
        spc_board_retract(board_of(ball->table, rank));
    }
}

static void play(ball_t *ball, uint32_t rank) {
    uint32_t next = (rank + 1) % NODES;
    for (uint32_t number = 1; number <= ball->rounds; number++) {
        if (rank != 0 || number != 1) {
            catch_ball(ball, rank, rank == 0 ? number - 1 : number);
        }
        atomic_fetch_add(&ball->thrown[next], 1);
        atomic_fetch_add(&event_of(ball->table, next)->word, 1);
    }
    atomic_fetch_sub(&ball->left, 1);
}

static void ball_body(int rank, int size, void *argument) {
    ball_t *ball = argument;
    if (rank + 1 < size) {
        play(ball, (uint32_t)rank);
        return;
    }
    while (atomic_load(&ball->left) == NODES) { /* until the first one leaves, and never comes back */
        CHECK_EQ_U(spc_deadlock_look(ball->table->deadlock), 0);
    }
}

TEST(no_look_is_taken_in_by_a_game) {
    ball_t ball = {.table = open_table(), .rounds = (uint32_t)check_scale(3000), .left = NODES};
    check_threads(NODES + 1, ball_body, &ball);
    close_table(ball.table);
}

TEST_MAIN()
