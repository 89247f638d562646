/* SPDX-License-Identifier: MIT */
/*
 * Reductions of arrays that do not go well: interrupted, left, refused, without room, without a node. One thread plays
 * all nodes, by calls that do not wait, so that each stops at the same point every time.
 */
#include "collect_box.h"

enum { NODES = 4, ARENA_BYTES = 1 << 20, COUNT = 5000 };

typedef struct play {
    party_t party;
    collect_case_t it[NODES];
    collect_part_t part[NODES];
} play_t;

static play_t play_open(spc_collect_call_t call) {
    play_t play = {.party = party_open(NODES, (spc_config_t){.arena_bytes = ARENA_BYTES})};
    call.type = call.type != 0 ? call.type : SPC_TYPE_FLOAT64;
    call.count = call.count != 0 ? call.count : COUNT;
    call.kind = SPC_KIND_ARRAY;
    for (int rank = 0; rank < NODES; rank++) {
        play.it[rank] = (collect_case_t){.call = call, .seed = 7};
    }
    return play;
}

static void play_start(play_t *play, bool in_block) {
    for (int rank = 0; rank < NODES; rank++) {
        divide(&play->it[rank], NODES);
        play->part[rank] = part_open(play->party.comm[rank], &play->it[rank], in_block);
    }
}

static int go_on(play_t *play, int rank) {
    return spc_collect_run(play->part[rank].collect, AT_ONCE);
}

static void play_end(play_t *play) {
    for (int rank = 0; rank < NODES; rank++) {
        part_close(&play->part[rank]);
    }
}

static void all_arenas_are_free(play_t *play) {
    for (int rank = 0; rank < NODES; rank++) {
        CHECK(arena_is_free(play->party.comm[rank]));
    }
}

static const spc_operation_t operations[] = {SPC_OPERATION_ARRAY_ALLREDUCE, SPC_OPERATION_ARRAY_REDUCE,
                                             SPC_OPERATION_ARRAY_REDUCE_SCATTER, SPC_OPERATION_ARRAY_SCAN,
                                             SPC_OPERATION_ARRAY_EXSCAN};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

static bool is_possible(spc_operation_t operation, int algorithm) {
    const bool needs_whole = algorithm == SPC_COLLECT_TREE || algorithm == SPC_COLLECT_BINARY_SWAP;
    return !needs_whole || operation == SPC_OPERATION_ARRAY_ALLREDUCE
           || operation == SPC_OPERATION_ARRAY_REDUCE;
}

#define FOR_ALL_CALLS(call)                                                                           \
    for (int number = 0; number < OPERATIONS * SPC_COLLECT_ALGORITHM_COUNT; number++)                 \
        for (spc_collect_call_t call = {.operation = operations[number % OPERATIONS],                 \
                                        .algorithm = (spc_collect_algorithm_t)(number / OPERATIONS)}, \
                                *once = &call;                                                        \
             once != NULL && is_possible(call.operation, (int)call.algorithm); once = NULL)

/* ---- going on */

/* Every call is given up again and again, on each node after the other, forwards and backwards. */
TEST(what_was_left_goes_on) {
    FOR_ALL_CALLS(call) {
        play_t play = play_open(call);
        bool over[NODES] = {false};
        int left = NODES;
        play_start(&play, number % 2 == 0);
        for (int turn = 0; left > 0; turn++) {
            const int rank = turn / NODES % 2 == 0 ? turn % NODES : NODES - 1 - turn % NODES;
            if (over[rank]) {
                continue;
            }
            const int status = go_on(&play, rank);
            CHECK(status == SPC_OK || status == SPC_ETIMEDOUT);
            over[rank] = status == SPC_OK;
            left -= over[rank];
        }
        for (int rank = 0; rank < NODES; rank++) {
            CHECK_EQ(go_on(&play, rank), SPC_EINVAL); /* it is over */
            part_check(&play.part[rank]);
        }
        play_end(&play);
        all_arenas_are_free(&play);
        party_close(&play.party);
    }
}

TEST(nothing_comes_of_what_is_not_over) {
    play_t play = play_open(
        (spc_collect_call_t){.operation = SPC_OPERATION_ARRAY_ALLREDUCE, .algorithm = SPC_COLLECT_SLICES});
    spc_block_shared_t *block;
    play_start(&play, false);
    for (int rank = 0; rank < NODES; rank++) {
        CHECK_EQ(go_on(&play, rank), SPC_ETIMEDOUT);
        CHECK(spc_collect_take_result(play.part[rank].collect, &block) == NULL);
        CHECK(block == NULL);
    }
    for (int rank = 0; rank < NODES - 1;
         rank++) { /* the last one has shown all; its work is done, theirs begins */
        CHECK_EQ(go_on(&play, rank), rank < NODES - 2 ? SPC_ETIMEDOUT : SPC_OK);
        CHECK(rank == NODES - 2 || spc_collect_take_result(play.part[rank].collect, &block) == NULL);
    }
    play_end(&play);
    party_close(&play.party);
}

static int try_barrier(spc_comm_t *comm) {
    const spc_signature_t signature = {.operation = SPC_OPERATION_BARRIER};
    return spc_comm_collective(comm, &signature, NULL, NULL, 0, NULL, AT_ONCE);
}

TEST(another_call_is_refused_meanwhile) {
    play_t play = play_open(
        (spc_collect_call_t){.operation = SPC_OPERATION_ARRAY_ALLREDUCE, .algorithm = SPC_COLLECT_SLICES});
    int status = SPC_ETIMEDOUT;
    play_start(&play, false);
    CHECK_EQ(go_on(&play, 0), SPC_ETIMEDOUT);
    CHECK_EQ(try_barrier(play.party.comm[0]), SPC_EMISMATCH);
    for (int turn = 0; turn < 4 * NODES; turn++) {
        status = go_on(&play, turn % NODES);
    }
    CHECK_EQ(status, SPC_EINVAL); /* over on all */
    part_check(&play.part[0]);
    play_end(&play);
    party_close(&play.party);
}

/* ---- refused */

/* `it` is what one node calls differently. */
static void check_mismatch(spc_collect_call_t call, spc_collect_call_t other) {
    for (int different = 0; different < NODES; different += NODES - 1) {
        play_t play = play_open(call);
        other.count = other.count != 0 ? other.count : COUNT;
        other.type = other.type != 0 ? other.type : SPC_TYPE_FLOAT64;
        other.kind = SPC_KIND_ARRAY;
        play.it[different].call = other;
        play_start(&play, different == 0);
        for (int rank = 0; rank < NODES; rank++) {
            CHECK_EQ(go_on(&play, rank), rank + 1 < NODES ? SPC_ETIMEDOUT : SPC_EMISMATCH);
        }
        for (int rank = 0; rank < NODES - 1; rank++) {
            CHECK_EQ(go_on(&play, rank), SPC_EMISMATCH);
        }
        play_end(&play);
        all_arenas_are_free(&play);
        for (int rank = 0; rank < NODES; rank++) { /* and the next operation works */
            CHECK_EQ(try_barrier(play.party.comm[rank]), rank + 1 < NODES ? SPC_ETIMEDOUT : SPC_OK);
        }
        party_close(&play.party);
    }
}

TEST(different_calls_are_a_mismatch) {
    FOR_ALL_CALLS(call) {
        spc_collect_call_t other = call;
        other.operator = SPC_MAX;
        check_mismatch(call, other);
        other = call;
        other.type = SPC_TYPE_INT64;
        check_mismatch(call, other);
        other = call;
        other.count = COUNT - 1;
        check_mismatch(call, other);
        other = call;
        other.hash = 1;
        check_mismatch(call, other);
        if (call.operation == SPC_OPERATION_ARRAY_REDUCE) {
            other = call;
            other.root = 1;
            check_mismatch(call, other);
        }
        other = call;
        other.operation = operations[(number + 1) % OPERATIONS];
        if (is_possible(other.operation, (int)other.algorithm)) {
            check_mismatch(call, other);
        }
        other = call;
        other.algorithm = call.algorithm == SPC_COLLECT_FLAT ? SPC_COLLECT_SLICES : SPC_COLLECT_FLAT;
        check_mismatch(call, other);
    }
}

TEST(parts_of_different_lengths_are_a_mismatch) {
    const spc_collect_call_t call = {.operation = SPC_OPERATION_ARRAY_REDUCE_SCATTER,
                                     .algorithm = SPC_COLLECT_SLICES};
    play_t play = play_open(call);
    play.it[2].seed = 8; /* they follow from it */
    play_start(&play, false);
    for (int rank = 0; rank < NODES; rank++) {
        CHECK_EQ(go_on(&play, rank), rank + 1 < NODES ? SPC_ETIMEDOUT : SPC_EMISMATCH);
    }
    play_end(&play);
    party_close(&play.party);
}

#define CHECK_REFUSED(change)                                            \
    do {                                                                 \
        spc_collect_call_t changed = good;                               \
        changed.change;                                                  \
        CHECK_EQ(spc_collect_create(comm, &changed, &made), SPC_EINVAL); \
    } while (0)

TEST(wrong_calls_are_refused) {
    play_t play = play_open((spc_collect_call_t){.operation = SPC_OPERATION_ARRAY_ALLREDUCE});
    spc_comm_t *comm = play.party.comm[0];
    uint64_t counts[NODES] = {10, 20, 30, 40}, wrong[NODES] = {10, 20, 30, 41},
             huge[NODES] = {0, 0, UINT64_MAX, 101};
    spc_collect_call_t good = play.it[0].call;
    spc_collect_t *made;
    CHECK_REFUSED(operation = SPC_OPERATION_GATHER);
    CHECK_REFUSED(operation = SPC_OPERATION_BARRIER);
    CHECK_REFUSED(operation = SPC_OPERATION_COUNT);
    CHECK_REFUSED(algorithm = SPC_COLLECT_ALGORITHM_COUNT);
    CHECK_REFUSED(operator = SPC_OPERATOR_COUNT);
    CHECK_REFUSED(operator = SPC_BITWISE_AND);
    CHECK_REFUSED(operator = SPC_MINLOC);
    CHECK_REFUSED(type = SPC_TYPE_NONE);
    CHECK_REFUSED(type = SPC_TYPE_INT);
    CHECK_REFUSED(type = SPC_TYPE_WIDE);
    CHECK_REFUSED(type = SPC_TYPE_COUNT);
    CHECK_REFUSED(root = NODES);
    CHECK_REFUSED(count = UINT64_MAX / 8);
    good.operation = SPC_OPERATION_ARRAY_SCAN;
    CHECK_REFUSED(algorithm = SPC_COLLECT_TREE);
    CHECK_REFUSED(algorithm = SPC_COLLECT_BINARY_SWAP);
    good.operation = SPC_OPERATION_ARRAY_REDUCE_SCATTER;
    good.count = 100;
    CHECK_REFUSED(counts = wrong);
    CHECK_REFUSED(counts = huge);
    good.counts = counts;
    CHECK_OK(spc_collect_create(comm, &good, &made));
    CHECK_EQ_U(spc_collect_memory_bytes(comm, &good), 80);
    spc_collect_destroy(made);
    party_close(&play.party);
}

/* ---- without room */

TEST(one_without_room_is_known_to_all) {
    FOR_ALL_CALLS(call) {
        if (call.algorithm != SPC_COLLECT_SLICES && call.algorithm != SPC_COLLECT_BINARY_SWAP) {
            continue;
        }
        play_t play = play_open(call);
        spc_block_shared_t *held;
        CHECK_OK(spc_comm_take_block(play.party.comm[2], ARENA_BYTES - 20000, &held));
        play_start(&play, false);
        for (int rank = 0; rank < NODES; rank++) {
            CHECK_EQ(go_on(&play, rank), rank + 1 < NODES ? SPC_ETIMEDOUT : SPC_ENOMEM);
        }
        for (int rank = 0; rank < NODES - 1; rank++) {
            CHECK_EQ(go_on(&play, rank), SPC_ENOMEM);
        }
        play_end(&play);
        spc_comm_release_block(play.party.comm[2], held);
        all_arenas_are_free(&play);
        party_close(&play.party);
    }
}

static void without_arenas(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    collect_case_t it = {.seed = 3,
                         .call = {.operation = SPC_OPERATION_ARRAY_ALLREDUCE,
                                  .algorithm = SPC_COLLECT_SLICES,
                                  .type = SPC_TYPE_FLOAT32,
                                  .count = 999}};
    (void)size;
    collect_part_t part = part_open(comm, &it, false);
    CHECK_EQ(spc_collect_run(part.collect, SPC_NO_DEADLINE), SPC_ENOMEM);
    part_close(&part);
    it.call.algorithm = SPC_COLLECT_TREE; /* the way out */
    part = part_open(comm, &it, false);
    CHECK_OK(spc_collect_run(part.collect, SPC_NO_DEADLINE));
    part_check(&part);
    part_close(&part);
    comm_box_leave(comm);
}

TEST(a_run_without_arenas_uses_the_tree) {
    run_ranks(3, (spc_config_t){.arena_bytes = 1}, without_arenas);
}

/* ---- without a node */

static bool is_written_by_others(const spc_collect_call_t *call, int rank) {
    switch (call->operation) {
    case SPC_OPERATION_ARRAY_REDUCE:
        return rank == (int)call->root;
    case SPC_OPERATION_ARRAY_REDUCE_SCATTER:
        return false;
    case SPC_OPERATION_ARRAY_EXSCAN:
        return rank != 0;
    default:
        return true;
    }
}

/* Node `dead` has shown its block and never comes to the end. What the others hold is free when they all have let go,
 * and not before: another could still write there. */
static void check_death(spc_collect_call_t call, int dead, bool in_block) {
    play_t play = play_open(call);
    play_start(&play, in_block);
    CHECK_EQ(go_on(&play, dead), SPC_ETIMEDOUT);
    for (int turn = 0; turn < NODES; turn++) { /* the last one opens the phase, and does its work */
        if (turn != dead) {
            CHECK_EQ(go_on(&play, turn), SPC_ETIMEDOUT);
        }
    }
    spc_comm_mark_ended(&play.party.box.segment, (uint32_t)dead, SPC_NODE_DIED, -9);
    for (int rank = 0; rank < NODES; rank++) {
        const int status = rank == dead ? SPC_ELOST : go_on(&play, rank);
        CHECK_EQ(status, SPC_ELOST);
    }
    int last = dead == NODES - 1 ? NODES - 2 : NODES - 1;
    for (int rank = 0; rank < NODES; rank++) {
        if (rank != dead && rank != last) {
            const bool is_shared = is_written_by_others(&call, rank);
            part_close(&play.part[rank]);
            CHECK_EQ(arena_is_free(play.party.comm[rank]), !is_shared);
        }
    }
    part_close(&play.part[last]);
    for (int rank = 0; rank < NODES; rank++) {
        CHECK(rank == dead || arena_is_free(play.party.comm[rank]));
    }
    part_close(&play.part[dead]);
    party_close(&play.party);
}

/* Nobody will ever write anywhere, and asking again gives the same. */
TEST(a_node_dies_before_it_comes) {
    for (int dead = 0; dead < NODES; dead++) {
        FOR_ALL_CALLS(call) {
            play_t play = play_open(call);
            play_start(&play, false);
            spc_comm_mark_ended(&play.party.box.segment, (uint32_t)dead, SPC_NODE_DIED, -9);
            for (int turn = 0; turn < 2 * NODES; turn++) {
                const int status = turn % NODES == dead ? SPC_ELOST : go_on(&play, turn % NODES);
                CHECK_EQ(status, SPC_ELOST);
            }
            play_end(&play);
            all_arenas_are_free(&play);
            party_close(&play.party);
        }
    }
}

TEST(a_node_dies_in_the_middle) {
    for (int dead = 0; dead < NODES; dead++) {
        for (int i = 0; i < OPERATIONS; i++) {
            check_death((spc_collect_call_t){.operation = operations[i], .algorithm = SPC_COLLECT_SLICES},
                        dead, i % 2 == 0);
        }
        check_death((spc_collect_call_t){.operation = SPC_OPERATION_ARRAY_ALLREDUCE,
                                         .algorithm = SPC_COLLECT_BINARY_SWAP},
                    dead, true);
    }
}

TEST_MAIN()
