/* SPDX-License-Identifier: MIT */
#include "net/wire/spc_pool.h"

#include <stdbool.h>
#include <stdlib.h>

#include "net/wire/spc_frame.h"

enum {
    KEPT_MAX = 8,
    PIECE_BYTES = SPC_FRAME_BODY_MAX + 4096, /* a whole frame and its owner's prefix */
    LONG_BYTES = PIECE_BYTES / 4,            /* a shorter frame would leave too much of a piece unused */
};

static bool is_long(size_t length_bytes) {
    return length_bytes > LONG_BYTES && length_bytes <= PIECE_BYTES;
}

void spc_pool_fini(spc_pool_t *pool) {
    while (pool->first != NULL) {
        void *piece = pool->first;
        pool->first = *(void **)piece;
        free(piece);
    }
    pool->kept = 0;
}

void *spc_pool_take(spc_pool_t *pool, size_t length_bytes) {
    if (pool == NULL || !is_long(length_bytes)) {
        return malloc(length_bytes);
    }
    void *piece = pool->first;
    if (piece == NULL) {
        return malloc(PIECE_BYTES);
    }
    pool->first = *(void **)piece;
    pool->kept--;
    return piece;
}

void spc_pool_give(spc_pool_t *pool, void *memory, size_t length_bytes) {
    if (memory == NULL || pool == NULL || !is_long(length_bytes) || pool->kept == KEPT_MAX) {
        free(memory);
        return;
    }
    *(void **)memory = pool->first;
    pool->first = memory;
    pool->kept++;
}
