/* SPDX-License-Identifier: MIT */
/* The report of a deadlock, word by word, of nodes that wait. */
#include "deadlock_box.h"

#include "base/spc_process.h"
#include "diagnose/spc_call_text.h"
#include "diagnose/spc_deadlock_report.h"

#define TRY(why, advice) "  " why "\n  Try: " advice "     (spcomm explain SP101)\n"
#define RECEIVE_FIRST                                                               \
    TRY("No matching message has been sent: each of these nodes waits to receive.", \
        "let one node send before it receives, or use sendrecv().")

static void says(scene_t *scene, const char *expected) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    CHECK(out != NULL);
    const spc_deadlock_report_options_t options = {0};
    spc_waits_t waits;
    CHECK_OK(spc_waits_read(&scene->box.segment, scene->deadlock, &waits));
    CHECK_OK(spc_deadlock_report_write(&waits, &options, out));
    spc_waits_free(&waits);
    fclose(out);
    char *limit = strstr(text, "limit of "); /* of 98K or more, by what was in the ring when it was reached */
    if (limit != NULL) {
        char *end;
        const unsigned long kilobytes = strtoul(limit + 9, &end, 10);
        CHECK(kilobytes >= 98 && kilobytes < 2000);
        limit[9] = 'N';
        memmove(limit + 10, end, strlen(end) + 1);
    }
    CHECK_STR(text, expected);
    free(text);
}

static void receive(spc_comm_t *comm, int32_t source, int32_t tag) {
    spc_message_t message;
    CHECK_EQ(recv_until(comm, source, tag, SPC_NO_DEADLINE, &message), CALLED_OFF);
}

static void meet(spc_comm_t *comm) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    CHECK_EQ(spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, SPC_NO_DEADLINE), CALLED_OFF);
}

static int32_t other_by(const player_t *player, uint32_t offset) {
    return (int32_t)((player->rank + offset) % player->scene->nodes);
}

/* ---- circles ---- */

static void receive_from_next(player_t *player) {
    receive(player->comm, other_by(player, 1), 7);
}

static void receive_from_previous(player_t *player) {
    receive(player->comm, other_by(player, player->scene->nodes - 1), SPC_ANY_TAG);
}

static void next_is_said(scene_t *scene) {
    await(scene, 15);
    says(scene, "spcomm: DEADLOCK — all 4 nodes wait, and no message is on its way\n"
                "  nodes 0-3  recv(source=rank+1, tag=7)\n"
                "  circle: 0 → 1 → 2 → 3 → 0\n" RECEIVE_FIRST);
}

static void previous_is_said(scene_t *scene) {
    await(scene, 7);
    says(scene, "spcomm: DEADLOCK — all 3 nodes wait, and no message is on its way\n"
                "  nodes 0-2  recv(source=rank-1, tag=ANY)\n"
                "  circle: 0 → 2 → 1 → 0\n" RECEIVE_FIRST);
}

static void circles(void) {
    perform((spc_config_t){.nodes = 4}, receive_from_next, next_is_said);
    perform((spc_config_t){.nodes = 3}, receive_from_previous, previous_is_said);
}

static void from_a_star(player_t *player) {
    receive(player->comm, player->rank == 0 ? 2 : 0, 1);
}

/* Nodes 0 and 2 may be proven first. */
static void star_is_said(scene_t *scene) {
    await(scene, 7);
    says(scene, "spcomm: DEADLOCK — all 3 nodes wait, and no message is on its way\n"
                "  node 0     recv(source=2, tag=1)\n"
                "  nodes 1-2  recv(source=0, tag=1)\n"
                "  circle: 0 → 2 → 0\n" RECEIVE_FIRST);
}

static void a_star(void) {
    perform((spc_config_t){.nodes = 3}, from_a_star, star_is_said);
}

/* ---- some nodes, or one ---- */

static void two_of_three(player_t *player) {
    if (player->rank == 1) {
        compute_until(player, 1);
    } else {
        receive(player->comm, 2 - (int32_t)player->rank, (int32_t)player->rank);
    }
}

static void two_are_said(scene_t *scene) {
    await(scene, 5);
    says(scene, "spcomm: DEADLOCK — nodes 0, 2 of 3 wait for each other only, and no message is on its way\n"
                "  node 0  recv(source=2, tag=0)\n"
                "  node 2  recv(source=0, tag=2)\n"
                "  circle: 0 → 2 → 0\n" RECEIVE_FIRST);
}

static void from_itself(player_t *player) {
    if (player->rank == 0) {
        compute_until(player, 1);
    } else {
        receive(player->comm, 1, 4);
    }
}

static void itself_is_said(scene_t *scene) {
    await(scene, 2);
    says(scene, "spcomm: DEADLOCK — node 1 of 2 waits for what can never come\n"
                "  node 1  recv(source=1, tag=4)\n"
                "  circle: 1 → 1\n" TRY("Node 1 receives from itself, and nobody else can.",
                                        "check how the rank is computed."));
}

static void any_is_said(scene_t *scene) {
    await(scene, 3);
    says(scene, "spcomm: DEADLOCK — both nodes wait, and no message is on its way\n"
                "  nodes 0-1  recv(source=ANY, tag=ANY)\n" RECEIVE_FIRST);
}

static void from_anybody(player_t *player) {
    receive(player->comm, SPC_ANY_SOURCE, SPC_ANY_TAG);
}

static void not_all(void) {
    perform((spc_config_t){.nodes = 3}, two_of_three, two_are_said);
    perform((spc_config_t){.nodes = 2}, from_itself, itself_is_said);
    perform((spc_config_t){.nodes = 2}, from_anybody, any_is_said);
}

/* ---- collective operations, near misses, full queues ---- */

static void barrier_against_receive(player_t *player) {
    if (player->rank == 1) {
        receive(player->comm, 0, 0);
    } else {
        meet(player->comm);
    }
}

static void barrier_is_said(scene_t *scene) {
    await(scene, 7);
    says(scene,
         "spcomm: DEADLOCK — all 3 nodes wait, and no message is on its way\n"
         "  nodes 0, 2  barrier()\n"
         "  node 1      recv(source=0, tag=0)\n"
         "  circle: 0 → 1 → 0\n" TRY("Nodes 0, 2 wait in barrier() for node 1, which must call it, too.",
                                     "have every node call barrier(), also those that take another branch, "
                                     "before it waits for them."));
}

static void a_barrier(void) {
    perform((spc_config_t){.nodes = 3}, barrier_against_receive, barrier_is_said);
}

static void send_another_tag(player_t *player) {
    int32_t other = 1 - (int32_t)player->rank;
    send_content(player->comm, other, 3, 1, 8);
    receive(player->comm, other, 4);
}

static void near_is_said(scene_t *scene) {
    await(scene, 3);
    says(scene, "spcomm: DEADLOCK — both nodes wait, and no message is on its way\n"
                "  node 0  recv(source=1, tag=4)\n"
                "  node 1  recv(source=0, tag=4)\n"
                "  circle: 0 → 1 → 0\n" TRY(
                    "Node 0 has a message from node 1 with tag 3, and waits for one of tag 4.",
                    "receive with tag=3, or send what is waited for."));
}

static void a_near_miss(void) {
    perform((spc_config_t){.nodes = 2}, send_another_tag, near_is_said);
}

static void send_without_end(player_t *player) {
    int status = SPC_OK;
    int32_t to = other_by(player, 1);
    while (status == SPC_OK) {
        status = send_until(player->comm, &to, 1, 2, 1, 3000, SPC_NO_DEADLINE);
    }
    CHECK_EQ(status, CALLED_OFF);
}

static void full_is_said(scene_t *scene) {
    await(scene, 3);
    says(scene,
         "spcomm: DEADLOCK — both nodes wait, and no message is on its way\n"
         "  node 0  send(dest=1, tag=2)\n"
         "  node 1  send(dest=0, tag=2)\n"
         "  circle: 0 → 1 → 0\n" TRY("The queues are full: every node sends more than anybody receives.",
                                     "receive between the sends; a limit of NK lets these sends go on, and "
                                     "only moves the point where it stops."));
}

static void full_queues(void) {
    perform((spc_config_t){.nodes = 2, .slots = 4, .queue_limit_bytes = 100000}, send_without_end,
            full_is_said);
}

/* Node 1 enters, and leaves the call before the others have come. */
static void gather_and_leave(player_t *player) {
    static const unsigned char part[20000];
    const spc_payload_t payload = {.data = part, .data_bytes = sizeof part, .format = SPC_FORMAT_BYTES};
    spc_gathering_t call = {.operation = SPC_OPERATION_DATA_GATHER, .payloads = &payload, .payload_count = 1};
    if (player->rank == 1) {
        CHECK_EQ(spc_comm_gathering_poll(player->comm, &call), SPC_EAGAIN);
        send_content(player->comm, 0, 1, 1, 8);
        receive(player->comm, 0, 0);
    } else {
        recv_content(player->comm, 1, 1, 1, 8);
        CHECK_EQ(spc_comm_gathering(player->comm, &call, SPC_NO_DEADLINE), CALLED_OFF);
    }
    spc_comm_gathering_end(player->comm, &call);
}

static void part_is_said(scene_t *scene) {
    await(scene, 3);
    says(scene, "spcomm: DEADLOCK — both nodes wait, and no message is on its way\n"
                "  node 0  gather(root=0) for the part of node 1\n"
                "  node 1  recv(source=0, tag=0)\n"
                "  circle: 0 → 1 → 0\n" TRY(
                    "Node 0 waits in gather(root=0) for the part of node 1, which has left that "
                    "call before its end.",
                    "after an interruption, end it by the same call again."));
}

static void a_part_that_never_comes(void) {
    perform((spc_config_t){.nodes = 2, .arena_bytes = 1}, gather_and_leave, part_is_said);
}

/* ---- calls and places ---- */

static void call_is(spc_board_entry_t entry, const char *expected) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    CHECK(out != NULL);
    spc_call_text_write(&entry, NULL, out);
    spc_call_text_write_place(&entry, out);
    fclose(out);
    CHECK_STR(text, expected);
    free(text);
}

static spc_board_entry_t phase(spc_signature_t call) {
    spc_board_entry_t entry = {.kind = SPC_BOARD_PHASE};
    memcpy(entry.call, &call, sizeof call);
    return entry;
}

static spc_signature_t reduction(spc_operator_t operator, uint64_t kind, spc_type_t type, uint32_t letter) {
    return (spc_signature_t){.operation = SPC_OPERATION_REDUCE,
                             .operator = (uint8_t)operator,
                             .type = (uint8_t)type,
                             .root = letter,
                             .length_bytes = 40,
                             .layout = kind << 56};
}

static void calls_by_name(void) {
    call_is((spc_board_entry_t){.kind = SPC_BOARD_CYCLE}, "coordinated_recv()");
    call_is((spc_board_entry_t){.kind = SPC_BOARD_RECEIPT, .source = 3, .tag = 5}, "ssend(dest=3, tag=5)");
    call_is((spc_board_entry_t){.kind = SPC_BOARD_SEND, .source = -1, .tag = 5, .size = 2},
            "send(dest=several nodes, tag=5)");
    call_is((spc_board_entry_t){.kind = SPC_BOARD_SEND, .source = -1, .tag = -1, .size = 2},
            "the end of the program, with messages still queued");
    call_is(phase((spc_signature_t){.operation = SPC_OPERATION_FUZZY}), "fuzzy_barrier()");
    call_is(phase((spc_signature_t){.operation = SPC_OPERATION_COORDINATED}), "coordinated_recv()");
    call_is(phase((spc_signature_t){.operation = SPC_OPERATION_SPLIT}), "split()");
    call_is(phase(reduction(SPC_SUM, SPC_KIND_INT, SPC_TYPE_INT, 0)), "global_sum() of an int");
    call_is(phase(reduction(SPC_MIN, SPC_KIND_ARRAY, SPC_TYPE_FLOAT64, 0)),
            "global_min() of an array of float64, 40 bytes");
    call_is(phase(reduction(SPC_MAX, SPC_KIND_SCALAR, SPC_TYPE_NONE, 'F')),
            "global_max() of a NumPy scalar of complex64");
    call_is(phase(reduction(SPC_MAX, SPC_KIND_TUPLE, SPC_TYPE_INT, 0)), "global_max() of a tuple, 40 bytes");
    spc_signature_t array = reduction(SPC_BITWISE_XOR, SPC_KIND_ARRAY, SPC_TYPE_BOOL, 0);
    array.operation = SPC_OPERATION_ARRAY_EXSCAN;
    call_is(phase(array), "exscan(op=BXOR) of an array of bool, 40 bytes");
    array = reduction(SPC_PROD, SPC_KIND_ARRAY, SPC_TYPE_COMPLEX64, 2);
    array.operation = SPC_OPERATION_ARRAY_REDUCE;
    call_is(phase(array), "reduce(op=PROD, root=2) of an array of complex64, 40 bytes");
}

static void collectives_that_move_data(void) {
    static const char *const rooted[] = {"bcast(root=3)", "gather(root=3)", "allgather()", "scatter(root=3)",
                                         "alltoall()"};
    for (int i = 0; i < 5; i++) {
        spc_board_entry_t entry =
            phase((spc_signature_t){.operation = (uint8_t)(SPC_OPERATION_DATA_BCAST + i), .root = 3});
        call_is(entry, rooted[i]);
        entry.kind = SPC_BOARD_SEND;
        entry.source = -1;
        call_is(entry, rooted[i]);
    }
    spc_board_entry_t entry = phase((spc_signature_t){.operation = SPC_OPERATION_DATA_GATHER});
    entry.kind = SPC_BOARD_GATHERING;
    entry.source = 2;
    call_is(entry, "gather(root=0) for the part of node 2");
}

static void places(void) {
    call_is((spc_board_entry_t){.kind = SPC_BOARD_CYCLE, .file = "/a/b.py", .line = 3, .function = "step"},
            "coordinated_recv()b.py:3 in step");
    call_is((spc_board_entry_t){.kind = SPC_BOARD_CYCLE, .file = "b.py", .line = 3, .function = "<module>"},
            "coordinated_recv()b.py:3");
}

static int all_cases(void) {
    RUN(circles);
    RUN(a_star);
    RUN(not_all);
    RUN(a_barrier);
    RUN(a_near_miss);
    RUN(full_queues);
    RUN(calls_by_name);
    RUN(collectives_that_move_data);
    RUN(a_part_that_never_comes);
    RUN(places);
    return check_done();
}

/* Under the program's alarm nothing could be proven, for it is a timer. A child has none; the alarm ends the wait. */
int main(void) {
    unsigned left = alarm(0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)spc_process_die_with_parent(SIGKILL);
        exit(all_cases());
    }
    alarm(left);
    return check_wait(child) == 0 ? 0 : 1;
}
