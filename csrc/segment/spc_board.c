/* SPDX-License-Identifier: MIT */
#include "segment/spc_board.h"

#include <string.h>

uint64_t spc_board_bytes(uint32_t nodes) {
    return sizeof(spc_board_shared_t) + (uint64_t)(nodes + 1) * sizeof(spc_board_pair_t);
}

/* Release: a reader that sees a word of a later publication also sees `stuck` as it was after the retraction before.
 * Pairs with load_words. */
static void store_words(_Atomic uint32_t *words, const void *from, uint64_t count) {
    const unsigned char *bytes = from;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, bytes + 4 * i, 4);
        atomic_store_explicit(&words[i], word, memory_order_release);
    }
}

/* Acquire: `stuck` is read again after them. Pairs with store_words. */
static void load_words(const _Atomic uint32_t *words, void *to, uint64_t count) {
    unsigned char *bytes = to;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t word = atomic_load_explicit(&words[i], memory_order_acquire);
        memcpy(bytes + 4 * i, &word, 4);
    }
}

void spc_board_publish(spc_board_shared_t *board, const spc_board_entry_t *entry,
                       const spc_board_pair_t *pair, uint32_t count) {
    store_words(board->entry, entry, SPC_BOARD_ENTRY_WORDS);
    store_words(board->pair, pair, count * SPC_BOARD_PAIR_WORDS);
    /* Pairs with spc_board_stuck: a reader that sees it odd sees the words, and all messages that this node has
     * sent. */
    atomic_fetch_add_explicit(&board->stuck, 1, memory_order_seq_cst);
}

void spc_board_retract(spc_board_shared_t *board) {
    /* seq_cst, before any other action of this node. Pairs with spc_board_stuck. */
    atomic_fetch_add_explicit(&board->stuck, 1, memory_order_seq_cst);
}

bool spc_board_read(const spc_board_shared_t *board, uint32_t stuck, spc_board_entry_t *entry) {
    load_words(board->entry, entry, SPC_BOARD_ENTRY_WORDS);
    entry->function[SPC_BOARD_FUNCTION_BYTES - 1] = '\0';
    entry->file[SPC_BOARD_FILE_BYTES - 1] = '\0';
    entry->more[SPC_BOARD_MORE_BYTES - 1] = '\0';
    return spc_board_stuck(board) == stuck;
}

spc_board_pair_t spc_board_read_pair(const spc_board_shared_t *board, uint32_t rank) {
    spc_board_pair_t pair;
    load_words(&board->pair[rank * SPC_BOARD_PAIR_WORDS], &pair, SPC_BOARD_PAIR_WORDS);
    return pair;
}

static uint64_t load(const _Atomic uint64_t *where) {
    return atomic_load_explicit(where, memory_order_relaxed);
}

spc_board_spent_t spc_board_read_times(const spc_board_shared_t *board) {
    const spc_board_times_t *times = &board->times;
    return (spc_board_spent_t){
        .started_ns = load(&times->started_ns),
        .closed_ns = load(&times->closed_ns),
        .core_started_ns = load(&times->core_started_ns),
        .core_closed_ns = load(&times->core_closed_ns),
        .waiting_since_ns = load(&times->waiting_since_ns),
        .waited_ns = load(&times->waited_ns),
    };
}
