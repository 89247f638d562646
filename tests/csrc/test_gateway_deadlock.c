/* SPDX-License-Identifier: MIT */
/* Deadlocks over two boxes: what the gateways prove together, and what they do not as long as one is silent. */
#include "wide_box.h"

#include "segment/spc_board.h"

enum { NODES = 4 };

typedef struct stage {
    wide_box_t wide;
    _Atomic uint32_t blocked; /* times that a gateway has said so */
    _Atomic bool over; /* waits are called off */
    _Atomic uint32_t left;
    void (*act)(spc_comm_t *comm, int rank);
} stage_t;

static void note_blocked(void *argument) {
    atomic_fetch_add((_Atomic uint32_t *)argument, 1);
}

static int is_called_off(void *argument) {
    return atomic_load((const _Atomic bool *)argument);
}

static int32_t no_other_threads(void *argument, spc_board_entry_t *entry, uint64_t *own_signals) {
    (void)own_signals;
    (void)argument;
    entry->line = 7;
    return 0;
}

static void play(int rank, int size, void *argument) {
    stage_t *stage = argument;
    const comm_box_t *box = &stage->wide.box[stage->wide.place[rank]];
    const spc_comm_options_t options = {
        .descriptor = box->descriptor,
        .rank = (uint32_t)rank,
        .check = is_called_off,
        .locate = no_other_threads,
        .check_argument = &stage->over,
        .own_signals = UINT64_C(1) << (SIGALRM - 1), /* the test's own */
    };
    spc_comm_t *comm;
    CHECK_OK(spc_comm_create_within(ONE_MAPPING ? &box->segment : NULL, &options, &comm));
    stage->act(comm, rank);
    atomic_fetch_add(&stage->left, 1);
    while (atomic_load(&stage->left) != (uint32_t)size) { /* who leaves ends waits of others */
        spc_platform_yield();
    }
    (void)spc_comm_close(comm, 0);
    spc_comm_destroy(comm);
}

static void *play_all(void *argument) {
    check_threads(NODES, play, argument);
    return NULL;
}

static void open_stage(stage_t *stage, void (*act)(spc_comm_t *comm, int rank)) {
    const spc_gateway_options_t given = {.blocked = note_blocked, .argument = &stage->blocked};
    const spc_gateway_options_t options[WIDE_BOXES] = {given, given};
    *stage = (stage_t){.act = act};
    wide_open_with(&stage->wide, (spc_config_t){.nodes = NODES}, (const uint16_t[]){0, 1, 0, 1}, options);
}

/* A wait that was called off is woken: whoever sleeps looks around. */
static void call_off(stage_t *stage) {
    atomic_store(&stage->over, true);
    while (atomic_load(&stage->left) != NODES) {
        for (uint32_t rank = 0; rank < NODES; rank++) {
            const spc_segment_t *segment = &stage->wide.box[stage->wide.place[rank]].segment;
            spc_event_raise(spc_segment_part(segment, SPC_REGION_EVENT, rank), segment->config->features);
        }
        spc_platform_yield();
    }
}

/* Runs until a gateway has proven something; `expected`: a bit for each node that it is about. */
static void prove(void (*act)(spc_comm_t *comm, int rank), uint32_t expected) {
    stage_t stage;
    pthread_t thread;
    open_stage(&stage, act);
    wide_start(&stage.wide);
    CHECK_EQ(pthread_create(&thread, NULL, play_all, &stage), 0);
    while (atomic_load(&stage.blocked) == 0) {
        spc_platform_yield();
    }
    const spc_segment_t *together;
    CHECK_EQ(spc_gateway_blocked(stage.wide.gateway[1], &together), SPC_GATEWAY_PROVEN_NOTHING);
    CHECK_EQ(spc_gateway_blocked(stage.wide.gateway[0], &together), SPC_GATEWAY_PROVEN_DEADLOCK);
    uint32_t found = 0;
    for (uint32_t rank = 0; rank < NODES; rank++) {
        const spc_board_shared_t *board = spc_segment_part(together, SPC_REGION_BOARD, rank);
        const uint32_t stuck = spc_board_stuck(board);
        spc_board_entry_t entry;
        if (spc_board_is_stuck(stuck)) {
            CHECK(spc_board_read(board, stuck, &entry));
            CHECK_EQ_U(entry.line, 7);
            found |= 1U << rank;
        }
    }
    CHECK_EQ_U(found, expected);
    call_off(&stage);
    pthread_join(thread, NULL);
    CHECK_EQ_U(atomic_load(&stage.blocked), 1);
    wide_close(&stage.wide);
}

/* ---- what is proven */

static void wait_for(spc_comm_t *comm, int source) {
    spc_message_t message;
    CHECK_EQ(recv_until(comm, source, 1, SPC_NO_DEADLINE, &message), SPC_EINTERRUPTED);
}

static void in_a_ring(spc_comm_t *comm, int rank) {
    wait_for(comm, (rank + 1) % NODES);
}

static void wait_at_a_barrier(spc_comm_t *comm) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    CHECK_EQ(spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE), SPC_EINTERRUPTED);
}

static void at_a_barrier_but_one(spc_comm_t *comm, int rank) {
    if (rank == 1) {
        wait_for(comm, 0);
    } else {
        wait_at_a_barrier(comm);
    }
}

/* Until it is called off, but nobody can know that. */
static void wait_with_a_limit(spc_comm_t *comm, int source) {
    const uint64_t deadline_ns = spc_clock_deadline_ns(INT64_C(1000000000) * 1000);
    spc_message_t message;
    CHECK_EQ(recv_until(comm, source, 1, deadline_ns, &message), SPC_EINTERRUPTED);
}

/* Node 3 goes on, and has arrived: it is nobody's hope. In box 0 that is not known, since node 1 has not. */
static void after_an_arrival(spc_comm_t *comm, int rank) {
    uint64_t phase;
    if (rank == 3) {
        CHECK_OK(spc_comm_fuzzy_enter(comm, &phase));
        wait_with_a_limit(comm, 0);
    } else if (rank == 1) {
        wait_for(comm, 2);
    } else {
        CHECK_OK(spc_comm_fuzzy_enter(comm, &phase));
        CHECK_EQ(spc_comm_fuzzy_wait(comm, phase, SPC_NO_DEADLINE), SPC_EINTERRUPTED);
    }
}

/* Nodes 0 and 1 need each other only; 2 has a time limit, and 3 waits for it. */
static void in_a_closed_set(spc_comm_t *comm, int rank) {
    if (rank < 2) {
        wait_for(comm, 1 - rank);
    } else if (rank == 3) {
        wait_for(comm, 2);
    } else {
        wait_with_a_limit(comm, 3);
    }
}

static void deadlocks(void) {
    prove(in_a_ring, 15);
    prove(at_a_barrier_but_one, 15);
    prove(after_an_arrival, 7);
    prove(in_a_closed_set, 3);
}

/* ---- what is not */

/* All wait, and a message lies where the gateway of box 1 has not looked. */
static void along_a_chain(spc_comm_t *comm, int rank) {
    if (rank == 1) {
        send_content(comm, 0, 1, 5, 8);
    }
    recv_content(comm, (rank + 1) % NODES, 1, 5, 8);
    if (rank != 1) {
        send_content(comm, (rank + NODES - 1) % NODES, 1, 5, 8);
    }
}

static void a_silent_box_proves_nothing(void) {
    stage_t stage;
    pthread_t thread;
    spc_link_counts_t counts;
    open_stage(&stage, along_a_chain);
    spc_gateway_count(stage.wide.gateway[0], &counts);
    pthread_t *gateways = stage.wide.thread;
    CHECK_EQ(pthread_create(&gateways[0], NULL, wide_run_gateway, stage.wide.gateway[0]), 0);
    CHECK_EQ(pthread_create(&thread, NULL, play_all, &stage), 0);
    while (counts.sent[SPC_FRAME_BOARD].frames < 2) { /* it has asked, and has read its own */
        spc_gateway_count(stage.wide.gateway[0], &counts);
        spc_platform_yield();
    }
    const spc_segment_t *together;
    CHECK_EQ(spc_gateway_blocked(stage.wide.gateway[0], &together), SPC_GATEWAY_PROVEN_NOTHING);
    CHECK_EQ(pthread_create(&gateways[1], NULL, wide_run_gateway, stage.wide.gateway[1]), 0);
    pthread_join(thread, NULL);
    CHECK_EQ_U(atomic_load(&stage.blocked), 0);
    wide_close(&stage.wide);
}

static void run_all(void) {
    RUN(deadlocks);
    RUN(a_silent_box_proves_nothing);
}

int main(void) {
    return wide_main(run_all);
}
