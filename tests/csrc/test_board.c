/* SPDX-License-Identifier: MIT */
/* The status board: what is read is what was published, or the read says that it is not. */
#include "check.h"

#include "segment/spc_board.h"

#define NODES 5 /* pairs, with the gateway: 6 */

static spc_board_shared_t *make_board(void) {
    uint64_t bytes = spc_board_bytes(NODES);
    spc_board_shared_t *board = aligned_alloc(64, bytes + 64 - bytes % 64);
    CHECK(board != NULL);
    memset(board, 0, bytes);
    return board;
}

/* All that is said follows from one number. */
static void make_words(uint32_t number, spc_board_entry_t *entry, spc_board_pair_t pairs[NODES + 1]) {
    memset(entry, 0, sizeof *entry);
    memset(entry->file, 'a' + (int)(number % 26), SPC_BOARD_FILE_BYTES - 1);
    memset(entry->function, 'a' + (int)(number % 26), SPC_BOARD_FUNCTION_BYTES - 1);
    memset(entry->call, (int)(number % 251), SPC_BOARD_CALL_BYTES);
    entry->kind = number;
    entry->word = ~number;
    entry->source = (int32_t)number;
    entry->phase = number * UINT64_C(0x100000001);
    for (uint32_t i = 0; i <= NODES; i++) {
        pairs[i] = (spc_board_pair_t){number, number + i, number - i, number ^ i};
    }
}

static void publish(spc_board_shared_t *board, uint32_t number) {
    spc_board_entry_t entry;
    spc_board_pair_t pairs[NODES + 1];
    make_words(number, &entry, pairs);
    spc_board_publish(board, &entry, pairs, NODES + 1);
}

/* Reads as a reader does: true if all of it was there at one moment. */
static bool read_all(const spc_board_shared_t *board, uint32_t stuck, spc_board_entry_t *entry,
                     spc_board_pair_t pairs[NODES + 1]) {
    bool whole = spc_board_read(board, stuck, entry);
    for (uint32_t i = 0; i <= NODES; i++) {
        pairs[i] = spc_board_read_pair(board, i);
    }
    return whole && spc_board_stuck(board) == stuck;
}

static void check_is(const spc_board_shared_t *board, uint32_t number) {
    spc_board_entry_t expected, found;
    spc_board_pair_t expected_pairs[NODES + 1], found_pairs[NODES + 1];
    make_words(number, &expected, expected_pairs);
    CHECK(read_all(board, spc_board_stuck(board), &found, found_pairs));
    CHECK_MEM(&found, &expected, sizeof found);
    CHECK_MEM(found_pairs, expected_pairs, sizeof found_pairs);
}

TEST(zero_is_not_stuck) {
    spc_board_shared_t *board = make_board();
    CHECK(!spc_board_is_stuck(spc_board_stuck(board)));
    free(board);
}

TEST(what_is_published_can_be_read) {
    spc_board_shared_t *board = make_board();
    for (uint32_t number = 1; number < 100; number += 7) {
        publish(board, number);
        CHECK(spc_board_is_stuck(spc_board_stuck(board)));
        check_is(board, number);
        spc_board_retract(board);
        CHECK(!spc_board_is_stuck(spc_board_stuck(board)));
    }
    free(board);
}

TEST(an_old_stuck_is_told) {
    spc_board_shared_t *board = make_board();
    spc_board_entry_t entry;
    publish(board, 1);
    uint32_t stuck = spc_board_stuck(board);
    CHECK(spc_board_read(board, stuck, &entry));
    spc_board_retract(board);
    CHECK(!spc_board_read(board, stuck, &entry));
    publish(board, 2); /* published again is not the same */
    CHECK(!spc_board_read(board, stuck, &entry));
    free(board);
}

TEST(texts_end) {
    spc_board_shared_t *board = make_board();
    spc_board_entry_t entry = {.line = 1};
    spc_board_pair_t pairs[NODES + 1] = {{0}};
    memset(entry.file, 'x', sizeof entry.file);
    memset(entry.function, 'x', sizeof entry.function);
    spc_board_publish(board, &entry, pairs, NODES + 1);
    CHECK(spc_board_read(board, spc_board_stuck(board), &entry));
    CHECK_EQ_U(strlen(entry.file), SPC_BOARD_FILE_BYTES - 1);
    CHECK_EQ_U(strlen(entry.function), SPC_BOARD_FUNCTION_BYTES - 1);
    free(board);
}

/* ---- one writer, several readers ---- */

typedef struct traffic {
    spc_board_shared_t *board;
    uint32_t rounds;
    _Atomic uint32_t ready; /* readers that have read something whole: the writer goes on until all have */
    _Atomic uint32_t over;
} traffic_t;

static void write_numbers(traffic_t *traffic, uint32_t readers) {
    uint32_t number = 0;
    while (number < traffic->rounds || atomic_load(&traffic->ready) != readers) {
        number++;
        publish(traffic->board, number);
        spc_board_retract(traffic->board);
    }
    publish(traffic->board, number + 1);
    atomic_store(&traffic->over, 1);
}

static void read_numbers(traffic_t *traffic) {
    spc_board_entry_t expected, found;
    spc_board_pair_t expected_pairs[NODES + 1], found_pairs[NODES + 1];
    bool told = false;
    uint32_t before = 0;
    bool last = false;
    while (!last) {
        last = atomic_load(&traffic->over) != 0; /* one more round: what stays published must be read */
        uint32_t stuck = spc_board_stuck(traffic->board);
        if (!spc_board_is_stuck(stuck) || !read_all(traffic->board, stuck, &found, found_pairs)) {
            CHECK(!last);
            continue;
        }
        uint32_t number = stuck / 2 + 1;
        CHECK(number >= before);
        before = number;
        make_words(number, &expected, expected_pairs);
        CHECK_MEM(&found, &expected, sizeof found);
        CHECK_MEM(found_pairs, expected_pairs, sizeof found_pairs);
        if (!told) {
            told = true;
            atomic_fetch_add(&traffic->ready, 1);
        }
    }
}

static void traffic_body(int rank, int size, void *argument) {
    if (rank == 0) {
        write_numbers(argument, (uint32_t)size - 1);
    } else {
        read_numbers(argument);
    }
}

TEST(nothing_torn_is_believed) {
    traffic_t traffic = {.board = make_board(), .rounds = (uint32_t)check_scale(50000)};
    check_threads(4, traffic_body, &traffic);
    free(traffic.board);
}

TEST_MAIN()
