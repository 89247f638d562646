/* SPDX-License-Identifier: MIT */
/* What nodes publish in real waits, and what is proven from it. Ranks are threads; each goes through its part of a
 * scene, which ends in a wait without end, and is called off when the test has looked. */
#include "comm_box.h"

#include <sys/prctl.h>

#include "diagnose/spc_deadlock.h"
#include "segment/spc_board.h"

#define NODES_MAX 4
#define CALLED_OFF SPC_EINTERRUPTED
#define LOOKS 200

typedef struct scene scene_t;

typedef struct player {
    scene_t *scene;
    uint32_t rank;
    int32_t threads; /* others of its program, as it says */
    spc_comm_t *comm;
    spc_comm_t *part;
    _Atomic bool leaves;
    _Atomic bool gone;
} player_t;

struct scene {
    comm_box_t box;
    spc_deadlock_t *deadlock;
    uint32_t nodes;
    void (*act)(player_t *player);
    _Atomic bool over; /* waits are called off */
    _Atomic uint32_t ready; /* nodes that have come as far as the test wants them */
    _Atomic uint32_t played;
    _Atomic uint32_t step; /* of the test: nodes that compute wait for it */
    player_t player[NODES_MAX];
};

/* ---- the stage ---- */

static int is_called_off(void *argument) {
    const player_t *player = argument;
    return atomic_load(&player->scene->over) && !atomic_load(&player->leaves);
}

static int32_t count_threads(void *argument, spc_board_entry_t *entry) {
    const player_t *player = argument;
    entry->line = 100 + player->rank;
    return player->threads;
}

static void play(int rank, int size, void *argument) {
    scene_t *scene = argument;
    player_t *player = &scene->player[rank];
    const spc_comm_options_t options = {
        .descriptor = scene->box.descriptor,
        .rank = (uint32_t)rank,
        .check = is_called_off,
        .locate = count_threads,
        .check_argument = player,
        .own_signals = UINT64_C(1) << (SIGALRM - 1), /* the test's own */
    };
    (void)size;
    player->rank = (uint32_t)rank;
    CHECK_OK(spc_comm_create_within(ONE_MAPPING ? &scene->box.segment : NULL, &options, &player->comm));
    scene->act(player);
    atomic_store(&player->leaves, true);
    atomic_fetch_add(&scene->played, 1);
    while (atomic_load(&scene->played) != scene->nodes) { /* who leaves ends waits of others */
        spc_platform_yield();
    }
    if (player->part != NULL) {
        (void)spc_comm_close(player->part, AT_ONCE);
        spc_comm_destroy(player->part);
    }
    (void)spc_comm_close(player->comm, AT_ONCE); /* what is queued may not be sent, or it has left already */
    spc_comm_destroy(player->comm);
    atomic_store(&player->gone, true);
}

static void *play_all(void *argument) {
    scene_t *scene = argument;
    check_threads((int)scene->nodes, play, scene);
    return NULL;
}

static void call_off(scene_t *scene) {
    atomic_store(&scene->over, true);
    for (uint32_t left = scene->nodes; left != 0;) {
        left = 0;
        for (uint32_t rank = 0; rank < scene->nodes; rank++) { /* again: it may not have slept yet */
            spc_event_raise(spc_segment_part(&scene->box.segment, SPC_REGION_EVENT, rank),
                            scene->box.segment.config->features);
            left += !atomic_load(&scene->player[rank].gone);
        }
        spc_platform_yield();
    }
}

/* Runs the scene; `test` has the looks. */
static void perform(spc_config_t config, void (*act)(player_t *player), void (*test)(scene_t *scene)) {
    scene_t scene = {.box = comm_box_open(config), .nodes = config.nodes, .act = act};
    pthread_t thread;
    for (uint32_t rank = 0; rank < NODES_MAX; rank++) {
        scene.player[rank].scene = &scene;
    }
    CHECK_OK(spc_deadlock_create(&scene.box.segment, &scene.deadlock));
    CHECK_OK(pthread_create(&thread, NULL, play_all, &scene));
    test(&scene);
    call_off(&scene);
    CHECK_OK(pthread_join(thread, NULL));
    spc_deadlock_destroy(scene.deadlock);
    comm_box_close(&scene.box);
}

/* ---- looking ---- */

static uint32_t stuck_of(const scene_t *scene, uint32_t rank) {
    return spc_board_stuck(spc_segment_part(&scene->box.segment, SPC_REGION_BOARD, rank));
}

static spc_board_entry_t entry_of(const scene_t *scene, uint32_t rank) {
    spc_board_entry_t entry;
    uint32_t stuck;
    do {
        stuck = stuck_of(scene, rank);
    } while (
        !spc_board_is_stuck(stuck)
        || !spc_board_read(spc_segment_part(&scene->box.segment, SPC_REGION_BOARD, rank), stuck, &entry));
    return entry;
}

static uint32_t look(scene_t *scene) {
    uint32_t mask = 0;
    uint32_t count = spc_deadlock_look(scene->deadlock);
    for (uint32_t rank = 0; rank < scene->nodes; rank++) {
        mask |= spc_deadlock_has(scene->deadlock, rank) ? 1u << rank : 0;
    }
    CHECK_EQ_U(__builtin_popcount(mask), count);
    return mask;
}

/* Until these are proven. What is proven on the way may only be some of them. */
static void await(scene_t *scene, uint32_t mask) {
    uint32_t found = 0;
    while (found != mask) {
        found = look(scene);
        CHECK_EQ_U(found & ~mask, 0);
        spc_platform_yield();
    }
}

/* Nothing is found while these wait, all of them, and have published it. */
static void nothing_while(scene_t *scene, uint32_t mask) {
    uint32_t looks = 0;
    while (looks < LOOKS) {
        bool all = true;
        for (uint32_t rank = 0; rank < scene->nodes; rank++) {
            all = all && (!(mask >> rank & 1) || spc_board_is_stuck(stuck_of(scene, rank)));
        }
        CHECK_EQ_U(look(scene), 0);
        looks += all;
        spc_platform_yield();
    }
}

static void compute_until(const player_t *player, uint32_t step) {
    while (atomic_load(&player->scene->step) < step && !atomic_load(&player->scene->over)) {
        spc_platform_yield();
    }
}

/* ---- waits that nothing ends ---- */

static void receive(player_t *player, spc_comm_t *comm, int32_t source, int32_t tag) {
    spc_message_t message;
    (void)player;
    CHECK_EQ(recv_until(comm, source, tag, SPC_NO_DEADLINE, &message), CALLED_OFF);
}

static void meet(spc_comm_t *comm) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    CHECK_EQ(spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE), CALLED_OFF);
}

static int32_t next_of(const player_t *player) {
    return (int32_t)((player->rank + 1) % player->scene->nodes);
}

/* ---- receives ---- */

static void receive_from_next(player_t *player) {
    receive(player, player->comm, next_of(player), 7);
}

static void circle_is_found(scene_t *scene) {
    await(scene, 7);
    spc_board_entry_t entry = entry_of(scene, 1);
    CHECK_EQ(entry.kind, SPC_BOARD_RECEIVE);
    CHECK_EQ(entry.source, 2);
    CHECK_EQ(entry.tag, 7);
    CHECK_EQ(entry.line, 101);
    CHECK_EQ(entry.doubts, 0);
}

static void a_circle_of_receives(void) {
    perform((spc_config_t){.nodes = 3}, receive_from_next, circle_is_found);
}

static void alone_is_found(scene_t *scene) {
    await(scene, 1);
}

static void receive_from_anybody(player_t *player) {
    receive(player, player->comm, SPC_ANY_SOURCE, SPC_ANY_TAG);
}

static void a_node_alone(void) {
    perform((spc_config_t){.nodes = 1}, receive_from_anybody, alone_is_found);
}

/* The last node computes; then it does as the others. */
static void receive_in_a_knot(player_t *player) {
    if (player->rank == 2) {
        compute_until(player, 1);
    }
    receive(player, player->comm, player->rank == 1 ? 0 : SPC_ANY_SOURCE, SPC_ANY_TAG);
}

static void knot_when_all_wait(scene_t *scene) {
    nothing_while(scene, 3);
    atomic_store(&scene->step, 1);
    await(scene, 7);
}

static void a_knot_of_any(void) {
    perform((spc_config_t){.nodes = 3}, receive_in_a_knot, knot_when_all_wait);
}

static void two_of_three(player_t *player) {
    if (player->rank == 2) {
        compute_until(player, 1);
    } else {
        receive(player, player->comm, 1 - (int32_t)player->rank, 1);
    }
}

static void two_are_found(scene_t *scene) {
    await(scene, 3);
}

static void a_closed_subset_while_another_computes(void) {
    perform((spc_config_t){.nodes = 3}, two_of_three, two_are_found);
}

/* Node 1 has sent with another tag than is asked for. */
static void ask_for_another_tag(player_t *player) {
    if (player->rank == 1) {
        send_content(player->comm, 0, 5, 1, 8);
        send_content(player->comm, 0, 5, 1, 20000);
    }
    receive(player, player->comm, 1 - (int32_t)player->rank, 6);
}

static void near_miss_is_found(scene_t *scene) {
    await(scene, 3);
    spc_board_entry_t entry = entry_of(scene, 0);
    CHECK_EQ_U(entry.near_count, 2);
    CHECK_EQ(entry.near_source, 1);
    CHECK_EQ(entry.near_tag, 5);
    CHECK_EQ_U(entry_of(scene, 1).near_count, 0);
}

static void a_message_with_another_tag(void) {
    perform((spc_config_t){.nodes = 2}, ask_for_another_tag, near_miss_is_found);
}

static void look_for_messages(player_t *player) {
    int32_t source, tag;
    uint64_t length;
    CHECK_EQ(spc_comm_probe(player->comm, SPC_CONTEXT_USER, next_of(player), 1, SPC_NO_DEADLINE, &source,
                            &tag, &length),
             CALLED_OFF);
}

static void a_circle_of_probes(void) {
    perform((spc_config_t){.nodes = 2}, look_for_messages, two_are_found);
}

/* ---- collectives ---- */

/* Node 1 never comes; node 2 comes late. */
static void miss_a_barrier(player_t *player) {
    if (player->rank == 2) {
        compute_until(player, 1);
    }
    if (player->rank == 1) {
        receive(player, player->comm, 0, 1);
    } else {
        meet(player->comm);
    }
}

static void a_barrier_that_one_never_reaches(void) {
    perform((spc_config_t){.nodes = 3}, miss_a_barrier, knot_when_all_wait);
}

static void miss_a_fuzzy_barrier(player_t *player) {
    uint64_t phase;
    if (player->rank == 1) {
        receive(player, player->comm, 0, 1);
        return;
    }
    CHECK_OK(spc_comm_fuzzy_enter(player->comm, &phase));
    if (player->rank == 2) { /* it has arrived, and never asks */
        compute_until(player, 1);
        return;
    }
    CHECK_EQ(spc_comm_fuzzy_wait(player->comm, phase, SPC_NO_DEADLINE), CALLED_OFF);
}

static void a_fuzzy_barrier_that_one_never_reaches(void) {
    perform((spc_config_t){.nodes = 3}, miss_a_fuzzy_barrier, two_are_found);
}

static void miss_a_cycle(player_t *player) {
    spc_message_t message;
    bool over;
    if (player->rank == 2) {
        compute_until(player, 1);
    }
    if (player->rank == 1) {
        receive(player, player->comm, 0, 1);
    } else {
        CHECK_EQ(spc_comm_coordinated_recv(player->comm, SPC_NO_DEADLINE, &message, &over), CALLED_OFF);
    }
}

static void a_cycle_that_one_never_reaches(void) {
    perform((spc_config_t){.nodes = 3}, miss_a_cycle, knot_when_all_wait);
}

/* In two parts; nodes 1 and 3 of the run are the second one, in the other order. */
static void split_and_miss(player_t *player) {
    int64_t rank = player->rank;
    CHECK_OK(spc_comm_split(player->comm, rank % 2, -rank, SPC_NO_DEADLINE, &player->part));
    if (rank % 2 == 0) {
        barrier(player->part);
        atomic_fetch_add(&player->scene->ready, 1);
        compute_until(player, 1);
    } else if (rank == 1) {
        meet(player->part);
    } else {
        receive(player, player->part, SPC_ANY_SOURCE, 3);
    }
}

static void part_is_found(scene_t *scene) {
    await(scene, 10);
    CHECK_NE(entry_of(scene, 1).communicator, 0);
    CHECK_EQ_U(entry_of(scene, 1).rank, 1);
    CHECK_EQ_U(entry_of(scene, 3).rank, 0);
    CHECK_EQ_U(entry_of(scene, 3).size, 2);
    while (atomic_load(&scene->ready) != 2) {
        spc_platform_yield();
    }
}

static void within_a_part(void) {
    perform((spc_config_t){.nodes = 4}, split_and_miss, part_is_found);
}

/* ---- queues ---- */

static void send_without_end(player_t *player) {
    int status = SPC_OK;
    int32_t to = next_of(player);
    while (status == SPC_OK) {
        status = send_until(player->comm, &to, 1, 1, 1, 3000, SPC_NO_DEADLINE);
    }
    CHECK_EQ(status, CALLED_OFF);
}

static void full_queues_are_found(scene_t *scene) {
    await(scene, 3);
    CHECK_EQ(entry_of(scene, 0).kind, SPC_BOARD_SEND);
    CHECK_EQ(entry_of(scene, 0).source, 1);
}

static void full_queues_on_both_sides(void) {
    perform((spc_config_t){.nodes = 2, .slots = 4, .queue_limit_bytes = 100000}, send_without_end,
            full_queues_are_found);
}

/* Node 1 receives after a while; node 0 then finishes. */
static void send_to_one_who_computes(player_t *player) {
    if (player->rank == 0) {
        for (int32_t i = 0; i < 200; i++) {
            send_content(player->comm, 1, i, 1, 3000);
        }
        receive(player, player->comm, 1, 1);
        return;
    }
    compute_until(player, 1);
    for (int32_t i = 0; i < 200; i++) {
        recv_content(player->comm, 0, i, 1, 3000);
    }
    receive(player, player->comm, 0, 1);
}

static void nothing_until_both_receive(scene_t *scene) {
    nothing_while(scene, 1);
    CHECK_EQ(entry_of(scene, 0).kind, SPC_BOARD_SEND);
    atomic_store(&scene->step, 1);
    await(scene, 3);
    CHECK_EQ(entry_of(scene, 0).kind, SPC_BOARD_RECEIVE);
}

static void a_full_queue_that_is_emptied(void) {
    perform((spc_config_t){.nodes = 2, .slots = 4, .queue_limit_bytes = 100000}, send_to_one_who_computes,
            nothing_until_both_receive);
}

/* ---- no proof ---- */

static void receive_for_some_time(player_t *player) {
    spc_message_t message;
    uint64_t deadline_ns = player->rank == 0 ? in_seconds(100000) : SPC_NO_DEADLINE;
    CHECK_EQ(recv_until(player->comm, next_of(player), 1, deadline_ns, &message), CALLED_OFF);
}

static void timed_wait_is_no_proof(scene_t *scene) {
    nothing_while(scene, 3);
    CHECK_EQ(entry_of(scene, 0).doubts, SPC_BOARD_TIMED);
}

static void a_wait_with_a_time_limit(void) {
    perform((spc_config_t){.nodes = 2}, receive_for_some_time, timed_wait_is_no_proof);
}

static void receive_beside_a_thread(player_t *player) {
    player->threads = player->rank == 0;
    receive_from_next(player);
}

static void threads_are_no_proof(scene_t *scene) {
    nothing_while(scene, 3);
    CHECK_EQ(entry_of(scene, 0).doubts, SPC_BOARD_THREADS);
}

static void a_node_with_other_threads(void) {
    perform((spc_config_t){.nodes = 2}, receive_beside_a_thread, threads_are_no_proof);
}

/* What a node was told while it sleeps: the test rings for it, or in its place, and wakes nobody. */
static void told_ones_are_no_proof(scene_t *scene) {
    spc_event_shared_t *event = spc_segment_part(&scene->box.segment, SPC_REGION_EVENT, 0);
    for (int round = 0; round < 3;) {
        await(scene, 3);
        uint32_t before = stuck_of(scene, 0);
        atomic_fetch_add(&event->word, 1);
        uint32_t found = look(scene);
        round +=
            spc_board_is_stuck(before) && stuck_of(scene, 0) == before; /* else it has looked meanwhile */
        CHECK(found == 0 || stuck_of(scene, 0) != before);
        spc_event_raise(event, scene->box.segment.config->features);
    }
}

static void a_node_that_was_told_of_something(void) {
    perform((spc_config_t){.nodes = 2}, receive_from_next, told_ones_are_no_proof);
}

/* The last node ends: who waits for anybody has to look at that first; and then the others are a knot. */
static void receive_or_end(player_t *player) {
    if (player->rank == 2) {
        compute_until(player, 1);
        atomic_store(&player->leaves, true);
        CHECK_OK(spc_comm_close(player->comm, SPC_NO_DEADLINE));
        return;
    }
    receive(player, player->comm, SPC_ANY_SOURCE, 1);
}

static void knot_after_an_end(scene_t *scene) {
    nothing_while(scene, 3);
    atomic_store(&scene->step, 1);
    await(scene, 3);
}

static void a_node_that_ends(void) {
    perform((spc_config_t){.nodes = 3}, receive_or_end, knot_after_an_end);
}

/* Ranks need a process without timers: this one has the watchdog, and is not left behind. */
static int in_a_child(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) {
        int status = check_wait(child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    RUN(a_circle_of_receives);
    RUN(a_node_alone);
    RUN(a_knot_of_any);
    RUN(a_closed_subset_while_another_computes);
    RUN(a_message_with_another_tag);
    RUN(a_circle_of_probes);
    RUN(a_barrier_that_one_never_reaches);
    RUN(a_fuzzy_barrier_that_one_never_reaches);
    RUN(a_cycle_that_one_never_reaches);
    RUN(within_a_part);
    RUN(full_queues_on_both_sides);
    RUN(a_full_queue_that_is_emptied);
    RUN(a_wait_with_a_time_limit);
    RUN(a_node_with_other_threads);
    RUN(a_node_that_was_told_of_something);
    RUN(a_node_that_ends);
    fflush(NULL);
    _exit(check_done());
}

int main(void) {
    return in_a_child();
}
