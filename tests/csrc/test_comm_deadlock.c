/* SPDX-License-Identifier: MIT */
/* Deadlocks in real waits: what nodes publish, and what is proven from it. */
#include "deadlock_box.h"

#include <sys/prctl.h>

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

/* A node is told of something while it sleeps: the test rings for it, or in its place, and wakes nobody. */
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

/* A message of node 2 may have the handler of node 0 send to node 1. */
static void receive_with_a_handler(player_t *player) {
    if (player->rank == 0) {
        CHECK_OK(spc_comm_handle(player->comm, 5));
    }
    if (player->rank == 2) {
        compute_until(player, 1);
    }
    receive(player, player->comm, player->rank == 0 ? 1 : 0, 7);
}

static void handlers_are_no_proof(scene_t *scene) {
    nothing_while(scene, 3);
    CHECK_EQ(entry_of(scene, 0).flags & SPC_BOARD_HANDLES, SPC_BOARD_HANDLES);
    atomic_store(&scene->step, 1);
    await(scene, 7);
}

static void a_node_with_a_handler(void) {
    perform((spc_config_t){.nodes = 3}, receive_with_a_handler, handlers_are_no_proof);
}

/* Node 1 sends when node 0 waits without a doubt; that one's thread might answer. */
static void receive_with_a_handler_that_starts_a_thread(player_t *player) {
    if (player->rank == 0) {
        CHECK_OK(spc_comm_handle(player->comm, 5));
    } else {
        compute_until(player, 1);
        send_content(player->comm, 0, 5, 1, 8);
    }
    receive_from_next(player);
}

static void threads_of_a_handler_are_no_proof(scene_t *scene) {
    CHECK_EQ(entry_of(scene, 0).doubts, 0);
    atomic_store(&scene->step, 1);
    while (atomic_load(&scene->ready) == 0) {
        spc_platform_yield();
    }
    nothing_while(scene, 3);
    CHECK_EQ(entry_of(scene, 0).doubts, SPC_BOARD_THREADS);
}

static void a_node_whose_handler_starts_a_thread(void) {
    perform((spc_config_t){.nodes = 2}, receive_with_a_handler_that_starts_a_thread,
            threads_of_a_handler_are_no_proof);
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

/* Nodes 0 and 1 make a group with node 2, which waits for a message instead. */
static void group_without_its_last(player_t *player) {
    static const uint32_t members[] = {0, 1, 2};
    spc_comm_t *made;
    if (player->rank == 2) {
        receive(player, player->comm, 0, 7);
    } else {
        CHECK_EQ(spc_comm_create_group(player->comm, members, 3, 5, SPC_NO_DEADLINE, &made), CALLED_OFF);
    }
}

static void group_is_found(scene_t *scene) {
    await(scene, 7);
    spc_board_entry_t entry = entry_of(scene, 0);
    spc_signature_t call;
    memcpy(&call, entry.call, sizeof call);
    CHECK_EQ(entry.kind, SPC_BOARD_GATHERING);
    CHECK_EQ(entry.source, 2);
    CHECK_EQ(call.operation, SPC_OPERATION_CREATE_GROUP);
    CHECK_EQ(entry_of(scene, 1).source, 0);
}

static void a_group_that_one_never_joins(void) {
    perform((spc_config_t){.nodes = 3}, group_without_its_last, group_is_found);
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
    RUN(a_node_with_a_handler);
    RUN(a_node_whose_handler_starts_a_thread);
    RUN(a_node_that_ends);
    RUN(a_group_that_one_never_joins);
    fflush(NULL);
    _exit(check_done());
}

int main(void) {
    return in_a_child();
}
