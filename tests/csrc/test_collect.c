/* SPDX-License-Identifier: MIT */
/* Reductions of arrays: every operation, algorithm, operator and type gives the bits of the one tree. */
#include "collect_box.h"

static const spc_operation_t operations[] = {SPC_OPERATION_ARRAY_ALLREDUCE, SPC_OPERATION_ARRAY_REDUCE,
                                             SPC_OPERATION_ARRAY_REDUCE_SCATTER, SPC_OPERATION_ARRAY_SCAN,
                                             SPC_OPERATION_ARRAY_EXSCAN};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]), ARENA_BYTES = 1 << 20, SCRATCH_BYTES = 4096 };

static bool is_possible(const collect_case_t *it) {
    const bool needs_whole =
        it->call.algorithm == SPC_COLLECT_TREE || it->call.algorithm == SPC_COLLECT_BINARY_SWAP;
    return !needs_whole || is_whole(it);
}

static void run_case(spc_comm_t *comm, collect_case_t *it) {
    divide(it, spc_comm_size(comm));
    collect_part_t part = part_open(comm, it, it->seed % 3 == 0 || (it->seed + spc_comm_rank(comm)) % 4 == 0);
    CHECK_OK(spc_collect_run(part.collect, SPC_NO_DEADLINE));
    part_check(&part);
    part_close(&part);
}

/* ---- lengths ---- */

/* Around what anything is divided by: a word, a kernel's block, a grain, the scratch, a tile, a tile on each node. */
static uint64_t length_of(uint32_t number, uint32_t size) {
    static const uint64_t lengths[] = {0,   1,   2,   3,   15,  16,  17,   63,   64,  65,
                                       127, 128, 129, 511, 512, 513, 2047, 2048, 2049};
    const uint32_t fixed = sizeof(lengths) / sizeof(lengths[0]);
    if (number < fixed) {
        return lengths[number];
    }
    const uint64_t tile = 4096; /* of doubles */
    return (number - fixed) / 3 == 0 ? tile + (number - fixed) - 1 : size * tile + (number - fixed - 3) - 1;
}
enum { LENGTHS = 25 };

/*
 * Of so many cases each number of nodes gets another part; with sanitizers, or CHECK_PART=4, a smaller one.
 * CHECK_SCALE=9: all.
 */
static bool is_chosen(uint64_t seed, int size) {
    const long each = CHECK_SANITIZED ? 12 : 3 * check_environment("CHECK_PART", 1);
    const long parts = each / check_environment("CHECK_SCALE", 1);
    return parts <= 1 || (seed + (uint64_t)size) % (uint64_t)parts == 0;
}

static void all_lengths(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    uint64_t seed = 1;
    for (int operation = 0; operation < OPERATIONS; operation++) {
        for (int algorithm = 0; algorithm < SPC_COLLECT_ALGORITHM_COUNT; algorithm++) {
            for (uint32_t number = 0; number < LENGTHS; number++) {
                collect_case_t it = {.seed = seed++};
                it.call = (spc_collect_call_t){
                    .operation = operations[operation],
                    .algorithm = (spc_collect_algorithm_t)algorithm,
                    .type = SPC_TYPE_FLOAT64,
                    .count = length_of(number, (uint32_t)size),
                    .kind = SPC_KIND_ARRAY,
                };
                it.call.root =
                    operations[operation] == SPC_OPERATION_ARRAY_REDUCE ? number % (uint32_t)size : 0;
                if (is_possible(&it) && is_chosen(seed, size)) {
                    run_case(comm, &it);
                }
            }
        }
    }
    barrier(comm);
    CHECK(arena_is_free(comm));
    comm_box_leave(comm);
}

/* ---- operators and types ---- */

static void all_types(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank);
    uint64_t seed = 1;
    for (int operator = 0; operator < SPC_OPERATOR_COUNT; operator++) {
        for (uint32_t type = SPC_TYPE_WIDE + 1; type < SPC_TYPE_COUNT; type++) {
            if (!spc_ops_has((spc_operator_t)operator, type)) {
                continue;
            }
            collect_case_t it = {.seed = seed++};
            uint64_t state = seed + (uint64_t)size * 1000;
            it.call = (spc_collect_call_t){
                .operation = operations[check_below(&state, OPERATIONS)],
                .operator = (spc_operator_t)operator,
                .type = type,
                .count = check_below(&state, 300),
                .kind = SPC_KIND_ARRAY,
            };
            if (it.call.operation == SPC_OPERATION_ARRAY_REDUCE) {
                it.call.root = (uint32_t)(seed % (uint64_t)size);
            }
            do {
                it.call.algorithm = (spc_collect_algorithm_t)check_below(&state, SPC_COLLECT_ALGORITHM_COUNT);
            } while (!is_possible(&it));
            run_case(comm, &it);
        }
    }
    barrier(comm);
    CHECK(arena_is_free(comm));
    comm_box_leave(comm);
}

static void on_all_sizes(check_body_t body) {
    static const int sizes[] = {1, 2, 3, 4, 5, 8, 13};
    const spc_config_t config = {.arena_bytes = ARENA_BYTES, .scratch_bytes = SCRATCH_BYTES};
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        run_ranks(sizes[i], config, body);
    }
}

TEST(every_length_with_every_algorithm) {
    on_all_sizes(all_lengths);
}

TEST(every_operator_on_every_type) {
    on_all_sizes(all_types);
}

/* ---- communicators of some nodes ---- */

/* Odd and even ranks, the latter backwards: ranks here are not those of the segment. */
static void halves(int rank, int size, void *box) {
    spc_comm_t *comm = comm_box_join(box, rank), *half;
    (void)size;
    CHECK_OK(spc_comm_split(comm, rank % 2, rank % 2 == 0 ? -rank : rank, SPC_NO_DEADLINE, &half));
    for (uint64_t seed = 0; seed < 40; seed++) {
        collect_case_t it = {.seed = seed};
        it.call = (spc_collect_call_t){.operation = operations[seed % OPERATIONS],
                                       .algorithm = SPC_COLLECT_FLAT + (seed & 1),
                                       .type = SPC_TYPE_FLOAT64,
                                       .count = 100 * seed};
        run_case(half, &it);
    }
    CHECK_OK(spc_comm_close(half, SPC_NO_DEADLINE));
    spc_comm_destroy(half);
    comm_box_leave(comm);
}

TEST(in_parts_of_a_run) {
    run_ranks(7, (spc_config_t){.arena_bytes = ARENA_BYTES}, halves);
}

/* ---- who combines ---- */

#define ALL SPC_OPERATION_ARRAY_ALLREDUCE
#define SCAN SPC_OPERATION_ARRAY_SCAN
#define OWN ((spc_operator_t)255)

static void all_ways(int rank, int size, void *box) {
    static const struct {
        spc_operation_t operation;
        spc_collect_algorithm_t algorithm;
        spc_operator_t operator;
        uint32_t kind;
        uint32_t type;
        uint32_t count;
        spc_collect_combiner_t combiner;
        spc_collect_algorithm_t rounds; /* of BY_CALLER */
    } choices[] = {
        {ALL, 0, SPC_SUM, SPC_KIND_INT, 0, 0, SPC_COLLECT_AT_ONCE, 0},
        {SPC_OPERATION_REDUCE, 0, SPC_MAX, SPC_KIND_TUPLE, 0, 0, SPC_COLLECT_AT_ONCE, 0},
        {ALL, 0, SPC_PROD, SPC_KIND_INT, 0, 0, SPC_COLLECT_BY_CALLER, SPC_COLLECT_FLAT},
        {SCAN, 0, SPC_SUM, SPC_KIND_INT, 0, 0, SPC_COLLECT_BY_CALLER, SPC_COLLECT_FLAT},
        {ALL, SPC_COLLECT_TREE, SPC_SUM, SPC_KIND_INT, 0, 0, SPC_COLLECT_BY_CALLER, SPC_COLLECT_TREE},
        {ALL, 0, SPC_SUM, SPC_KIND_ARRAY, SPC_TYPE_INT32, 2, SPC_COLLECT_AT_ONCE, 0},
        {ALL, 0, SPC_SUM, SPC_KIND_ARRAY, SPC_TYPE_INT32, 3, SPC_COLLECT_BY_CORE, 0},
        {SCAN, 0, SPC_SUM, SPC_KIND_ARRAY, SPC_TYPE_INT32, 2, SPC_COLLECT_BY_CORE, 0},
        {ALL, 0, SPC_SUM, SPC_KIND_ARRAY, SPC_TYPE_NONE, 0, SPC_COLLECT_BY_CALLER, SPC_COLLECT_FLAT},
        {ALL, 0, OWN, 0, 0, 65535, SPC_COLLECT_BY_CALLER, SPC_COLLECT_FLAT},
        {ALL, 0, OWN, 0, 0, 65536, SPC_COLLECT_BY_CALLER, SPC_COLLECT_SLICES},
        {SCAN, 0, OWN, 0, 0, 65536, SPC_COLLECT_BY_CALLER, SPC_COLLECT_FLAT},
        {ALL, SPC_COLLECT_BINARY_SWAP, OWN, 0, 0, 8, SPC_COLLECT_BY_CALLER, SPC_COLLECT_BINARY_SWAP},
        {ALL, SPC_COLLECT_BINARY_SWAP, OWN, 0, 0, 0, SPC_COLLECT_BY_CALLER, SPC_COLLECT_FLAT},
    };
    spc_comm_t *comm = comm_box_join(box, rank);
    for (uint32_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        const spc_collect_call_t call = {
            .operation = choices[i].operation,
            .algorithm = choices[i].algorithm,
            .operator = choices[i].operator,
            .kind = choices[i].kind,
            .type = choices[i].type,
            .count = choices[i].count,
        };
        const spc_collect_way_t way = spc_collect_way(comm, &call);
        CHECK(way.combiner == choices[i].combiner);
        if (way.combiner == SPC_COLLECT_BY_CALLER) {
            CHECK(way.algorithm == (size == 1 ? SPC_COLLECT_FLAT : choices[i].rounds));
        }
    }
    comm_box_leave(comm);
}

TEST(who_combines) {
    on_all_sizes(all_ways);
}

TEST_MAIN()
