/* SPDX-License-Identifier: MIT */
/*
 * Faults: processes that are killed or stopped at the worst points. The test is their launcher: it marks those whose
 * process has ended. The others get what the dead one had announced, then the right status, and nothing hangs.
 */
#include "comm_box.h"

#include <sys/mman.h>

#include "message/spc_mailbox.h"
#include "message/spc_outbox.h"
#include "message/spc_ring.h"

typedef struct fault { /* in memory that all processes share */
    comm_box_t box;
    _Atomic int progress;
    uint64_t random;
    int point;
} fault_t;

static fault_t *make_fault(spc_config_t config) {
    fault_t *fault = mmap(NULL, sizeof *fault, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(fault != MAP_FAILED);
    fault->box = comm_box_open(config);
    return fault;
}

static void free_fault(fault_t *fault) {
    comm_box_close(&fault->box);
    munmap(fault, sizeof *fault);
}

static void die(void) {
    raise(SIGKILL);
}

static void launch(int n, check_body_t body, fault_t *fault, pid_t *pid) {
    for (int rank = 0; rank < n; rank++) {
        pid[rank] = check_fork(rank, n, body, fault);
    }
}

/* Waits for all, marks each at once; returns how many were killed. Any other failure fails the test. */
static int watch(int n, fault_t *fault, const pid_t *pid) {
    int killed = 0;
    for (int left = n; left > 0; left--) {
        int status, rank = 0;
        pid_t ended = waitpid(-1, &status, 0);
        while (pid[rank] != ended) {
            CHECK(++rank < n);
        }
        if (WIFSIGNALED(status)) {
            CHECK_EQ(WTERMSIG(status), SIGKILL);
            spc_comm_mark_ended(&fault->box.segment, (uint32_t)rank, SPC_NODE_DIED, -SIGKILL);
            killed++;
        } else {
            CHECK_EQ(WEXITSTATUS(status), 0);
            spc_comm_mark_ended(&fault->box.segment, (uint32_t)rank, SPC_NODE_FINISHED, 0);
        }
    }
    return killed;
}

static void run(int n, spc_config_t config, check_body_t body, int point, int killed) {
    pid_t pid[8];
    config.nodes = (uint32_t)n;
    fault_t *fault = make_fault(config);
    fault->point = point;
    launch(n, body, fault, pid);
    CHECK_EQ(watch(n, fault, pid), killed);
    free_fault(fault);
}

static void expect_lost(spc_comm_t *comm, int status, int rank) {
    spc_node_state_t state;
    int32_t reason;
    CHECK_EQ(status, SPC_ELOST);
    CHECK_EQ(spc_comm_culprit(comm, &state, &reason), rank);
    CHECK_EQ(state, SPC_NODE_DIED);
    CHECK_EQ(reason, -SIGKILL);
}

static const spc_config_t small = {.slots = 4, .ring_bytes = 1024, .arena_bytes = 65536};

/* The survivors still work, all kinds of messages, also multicasts that name the dead one. */
static void go_on(spc_comm_t *comm, int rank, int size, int dead) {
    int32_t all[8];
    for (int i = 0; i < size; i++) {
        all[i] = i;
    }
    for (int i = 0; i < 60; i++) {
        uint64_t bytes = i % 4 == 3 ? 20000 : 60 * (uint64_t)(i % 4);
        CHECK_OK(send_until(comm, all, (uint32_t)size, i, (uint64_t)(rank + i), bytes, SPC_NO_DEADLINE));
        for (int source = 0; source < size; source++) {
            if (source != dead) {
                recv_content(comm, source, i, (uint64_t)(source + i), bytes);
            }
        }
    }
}

/* ---- killed while sending; rank 0 is the one who dies */

enum {
    AFTER_ANNOUNCING,
    BEFORE_RINGING,
    BEFORE_ANNOUNCING,
    WITHIN_PARTS,
    WITH_A_BLOCK,
    WITH_A_QUEUE,
    POINTS
};

/* The sender's halves, to stop between two of their steps. */
static void die_before_announcing(const comm_box_t *box, int point) {
    const spc_segment_t *segment = &box->segment;
    const int32_t to[2] = {1, 2};
    spc_ring_t *ring;
    spc_ring_header_shared_t *headers;
    void *payload;
    spc_mailbox_writer_t writer;
    CHECK_OK(spc_ring_create(spc_segment_part(segment, SPC_REGION_RING, 0), segment->config->ring_bytes, 3,
                             spc_segment_part(segment, SPC_REGION_STATUS, 0), &ring));
    CHECK_OK(spc_ring_reserve(ring, to, 2, 100, &headers, &payload));
    memset(payload, 1, 100);
    if (point == BEFORE_ANNOUNCING) {
        die();
    }
    spc_mailbox_writer_init(&writer, spc_segment_part(segment, SPC_REGION_MAILBOX, 1), 0,
                            segment->config->slots);
    const spc_envelope_t envelope = {.tag = 77, .length_bytes = 100, .flags = SPC_SLOT_RING};
    spc_slot_shared_t *slot = spc_mailbox_next(&writer);
    spc_slot_write_envelope(slot, &envelope);
    slot->payload.offset = spc_segment_offset(segment, &headers[0]);
    atomic_store(&slot->sequence, 1);
    die(); /* the bell has not rung, and node 2 was not told at all */
}

static void die_sending(const comm_box_t *box, int point) {
    if (point == BEFORE_ANNOUNCING || point == BEFORE_RINGING) {
        die_before_announcing(box, point);
    }
    spc_comm_t *comm = comm_box_join(box, 0);
    for (int i = 0; i < 2; i++) {
        send_content(comm, 1, i, (uint64_t)i, 100);
        send_content(comm, 2, i, (uint64_t)i, 20);
    }
    if (point == WITHIN_PARTS) {
        const int32_t to[2] = {1, 2};
        send_content(comm, 1, 9, 9, 8000); /* more than ring and row hold; never goes on */
        CHECK_OK(send_until(comm, to, 2, 9, 9, 8100, SPC_NO_DEADLINE));
    } else if (point == WITH_A_BLOCK) {
        send_content(comm, 1, 2, 2, 30000);
    } else if (point == WITH_A_QUEUE) {
        for (int i = 2; i < 20; i++) {
            send_content(comm, 1, i, (uint64_t)i, 10);
        }
    }
    die();
}

static void survive_sender(spc_comm_t *comm, int rank, int point) {
    spc_message_t message;
    if (point == BEFORE_RINGING && rank == 1) {
        CHECK_OK(recv_until(comm, SPC_ANY_SOURCE, 77, SPC_NO_DEADLINE, &message));
        CHECK_EQ_U(message.length_bytes, 100);
        CHECK_EQ(message.bytes[99], 1);
        spc_message_release(comm, &message);
    } else if (point != BEFORE_ANNOUNCING && point != BEFORE_RINGING) {
        int count = 2 + (rank == 1 && (point == WITH_A_BLOCK || point == WITH_A_QUEUE));
        for (int i = 0; i < count; i++) {
            uint64_t bytes = rank == 2 ? 20 : i < 2 ? 100 : point == WITH_A_BLOCK ? 30000 : 10;
            recv_content(comm, 0, i, (uint64_t)i, bytes);
        }
    }
    if (point == WITH_A_QUEUE) { /* some more may have been announced, in order; the rest is lost */
        int next = rank == 1 ? 3 : 2;
        while (recv_until(comm, 0, SPC_ANY_TAG, SPC_NO_DEADLINE, &message) == SPC_OK) {
            CHECK_EQ(message.tag, next++);
            spc_message_release(comm, &message);
        }
    }
    expect_lost(comm, recv_until(comm, 0, SPC_ANY_TAG, SPC_NO_DEADLINE, &message), 0);
}

static void sender_body(int rank, int size, void *argument) {
    const fault_t *fault = argument;
    if (rank == 0) {
        die_sending(&fault->box, fault->point);
    }
    spc_comm_t *comm = comm_box_join(&fault->box, rank);
    survive_sender(comm, rank, fault->point);
    go_on(comm, rank, size, 0);
    comm_box_leave(comm);
}

TEST(a_sender_is_killed) {
    for (int point = 0; point < POINTS; point++) {
        run(3, small, sender_body, point, 1);
    }
}

/* Nobody else may send: ANY ends, too. */
static void last_sender_body(int rank, int size, void *argument) {
    const fault_t *fault = argument;
    spc_message_t message;
    spc_comm_t *comm = comm_box_join(&fault->box, rank);
    (void)size;
    if (rank == 0) {
        send_content(comm, 1, 5, 5, 100);
        die();
    }
    recv_content(comm, 0, 5, 5, 100);
    expect_lost(comm, recv_until(comm, SPC_ANY_SOURCE, SPC_ANY_TAG, SPC_NO_DEADLINE, &message), 0);
    comm_box_leave(comm);
}

TEST(the_last_sender_is_killed) {
    run(2, small, last_sender_body, 0, 1);
}

/* ---- killed while receiving: holding messages, or in the middle of parts */

static void receiver_body(int rank, int size, void *argument) {
    const fault_t *fault = argument;
    spc_comm_t *comm = comm_box_join(&fault->box, rank);
    spc_message_t message;
    if (rank == 0) {
        CHECK_OK(recv_until(comm, 1, 0, SPC_NO_DEADLINE, &message)); /* in the ring, never released */
        CHECK_OK(recv_until(comm, 2, 1, SPC_NO_DEADLINE, &message)); /* in the arena */
        die();
    }
    for (int i = 0; i < 40; i++) { /* more than fits anywhere: waits at the limit until node 0 is dead */
        send_content(comm, 0, i == 0 && rank == 2 ? 1 : i, (uint64_t)i,
                     i == 0 && rank == 2 ? 50000 : 100 + 300 * (uint64_t)(i % 5));
    }
    expect_lost(comm, recv_until(comm, 0, SPC_ANY_TAG, SPC_NO_DEADLINE, &message), 0);
    go_on(comm, rank, size, 0);
    comm_box_leave(comm);
}

TEST(a_receiver_is_killed) {
    run(3, (spc_config_t){.slots = 4, .ring_bytes = 1024, .arena_bytes = 65536, .queue_limit_bytes = 4096},
        receiver_body, 0, 1);
}

/* ---- killed inside a collective */

static int die_in_check(void *argument) {
    (void)argument;
    die();
    return SPC_OK;
}

static void barrier_body(int rank, int size, void *argument) {
    const fault_t *fault = argument;
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    const spc_comm_options_t options = {.descriptor = fault->box.descriptor,
                                        .rank = (uint32_t)rank,
                                        .check = rank == 0 ? die_in_check : NULL};
    spc_comm_t *comm;
    CHECK_OK(spc_comm_create(&options, &comm));
    if (rank == 0) {
        barrier(comm); /* enters, waits, dies: the others come later or never */
    }
    if (fault->point == 0) {
        /* It had arrived: this barrier is complete, the next one never. */
        spc_message_t message;
        expect_lost(comm, recv_until(comm, 0, 0, SPC_NO_DEADLINE, &message), 0);
        barrier(comm);
    }
    if (fault->point == 1 && rank == 1) {
        go_on(comm, rank, size, 0);
        expect_lost(comm, spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE), 2);
    } else if (fault->point == 1) {
        go_on(comm, rank, size, 0);
        die(); /* before the barrier that 1 waits in */
    } else {
        uint64_t phase;
        CHECK_OK(spc_comm_fuzzy_enter(comm, &phase));
        expect_lost(comm, spc_comm_fuzzy_wait(comm, phase, SPC_NO_DEADLINE), 0);
        expect_lost(comm, spc_comm_fuzzy_done(comm, phase), 0);
        expect_lost(comm, spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE), 0);
        go_on(comm, rank, size, 0);
    }
    comm_box_leave(comm);
}

TEST(a_node_is_killed_in_a_barrier) {
    run(3, small, barrier_body, 0, 1);
    run(3, small, barrier_body, 1, 2);
}

/* ---- killed anywhere: rank 0 sends for ever, and is killed when the others have seen enough */

static void anywhere_body(int rank, int size, void *argument) {
    fault_t *fault = argument;
    spc_comm_t *comm = comm_box_join(&fault->box, rank);
    const int32_t all[3] = {0, 1, 2};
    for (int i = 0; rank == 0; i++) {
        uint64_t seed = (uint64_t)i, bytes = check_below(&seed, 400) * (1 + (uint64_t)(i % 10 == 0) * 40);
        CHECK_OK(send_until(comm, all + 1, 2, i, (uint64_t)i, bytes, SPC_NO_DEADLINE));
    }
    for (int i = 0;; i++) {
        spc_message_t message;
        uint64_t seed = (uint64_t)i, bytes = check_below(&seed, 400) * (1 + (uint64_t)(i % 10 == 0) * 40);
        /* ANY ends only when both others have ended: the survivors would wait for each other. */
        bool any = i % 3 == 0 && rank == 1;
        int status =
            recv_until(comm, any ? SPC_ANY_SOURCE : 0, i % 2 ? i : SPC_ANY_TAG, SPC_NO_DEADLINE, &message);
        if (status != SPC_OK) {
            CHECK(status == SPC_ELOST || (any && status == SPC_EFINISHED)); /* node 2 may have ended last */
            break;
        }
        message_check(&message, 0, i, (uint64_t)i, bytes);
        spc_message_release(comm, &message);
        atomic_fetch_add(&fault->progress, 1);
    }
    (void)size;
    comm_box_leave(comm);
}

TEST(a_node_is_killed_anywhere) {
    uint64_t random = check_seed();
    for (long round = check_scale(40); round > 0; round--) {
        pid_t pid[3];
        fault_t *fault = make_fault((spc_config_t){.nodes = 3,
                                                   .slots = 1 + (uint32_t)check_below(&random, 4),
                                                   .ring_bytes = 1024,
                                                   .arena_bytes = 32768,
                                                   .queue_limit_bytes = 4096});
        int enough = (int)check_below(&random, 300);
        launch(3, anywhere_body, fault, pid);
        while (atomic_load(&fault->progress) < enough) {
            spc_platform_yield();
        }
        kill(pid[0], SIGKILL);
        CHECK_EQ(watch(3, fault, pid), 1);
        free_fault(fault);
    }
}

/* ---- stopped while others go on; the test plays the shell */

static uint64_t mixed_length(int i) {
    uint64_t state = (uint64_t)i;
    return check_below(&state, 8) == 0 ? check_below(&state, 12000) : check_below(&state, 300);
}

enum { FOR_THE_STOPPED = 200, AMONG_OTHERS = 300 };

static void stopped_body(int rank, int size, void *argument) {
    fault_t *fault = argument;
    spc_comm_t *comm = comm_box_join(&fault->box, rank);
    const int32_t all[3] = {0, 1, 2};
    (void)size;
    barrier(comm);
    if (rank == 0) {
        raise(SIGSTOP);
        for (int i = 0; i < FOR_THE_STOPPED; i++) { /* all there, in order, from both */
            recv_content(comm, 1, i, (uint64_t)i, mixed_length(i));
            recv_content(comm, 2, i, (uint64_t)i, mixed_length(i));
        }
    } else {
        for (int i = 0; i < AMONG_OTHERS; i++) {
            if (i < FOR_THE_STOPPED) {
                CHECK_OK(send_until(comm, i % 2 ? all : all + 1, i % 2 ? 3 : 2, i, (uint64_t)i,
                                    mixed_length(i), SPC_NO_DEADLINE));
                if (i % 2 == 0) {
                    send_content(comm, 0, i, (uint64_t)i, mixed_length(i));
                }
            } else {
                CHECK_OK(send_until(comm, all + 1, 2, i, (uint64_t)i, mixed_length(i), SPC_NO_DEADLINE));
            }
            recv_content(comm, 3 - rank, i, (uint64_t)i, mixed_length(i));
            recv_content(comm, rank, i, (uint64_t)i, mixed_length(i));
        }
        atomic_fetch_add(&fault->progress, 1);
    }
    comm_box_leave(comm);
}

TEST(a_node_is_stopped) {
    for (int tiny = 0; tiny < 2; tiny++) {
        pid_t pid[3];
        int status;
        fault_t *fault = make_fault((spc_config_t){.nodes = 3,
                                                   .slots = tiny ? 1 : 32,
                                                   .ring_bytes = tiny ? 1024 : 65536,
                                                   .arena_bytes = tiny ? 1 : 1 << 20});
        launch(3, stopped_body, fault, pid);
        CHECK_EQ(waitpid(pid[0], &status, WUNTRACED), pid[0]);
        CHECK(WIFSTOPPED(status));
        while (atomic_load(&fault->progress) < 2) { /* the others need nothing of it */
            spc_platform_yield();
        }
        kill(pid[0], SIGCONT);
        CHECK_EQ(watch(3, fault, pid), 0);
        free_fault(fault);
    }
}

TEST_MAIN()
