/* SPDX-License-Identifier: MIT */
/*
 * The arena is cut into pieces, in a private vector in the order of their addresses, without gaps. A piece is free, or
 * held by a block. The owner is not notified when a block loses its last pin: it has to look. Each take looks at the
 * blocks taken last (so short-lived blocks are found, and reused while they are hot) and at a few others in turn; only
 * when no piece fits does it look at all of them. So a receiver that keeps thousands of arrays costs a take nothing.
 */
#include "segment/spc_arena.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

enum {
    SPC_ARENA_RECENT = 16, /* blocks taken last; looked at by every take */
    SPC_ARENA_TURN = 4,    /* pieces looked at by each take, in turn */
};

typedef struct spc_piece {
    uint64_t offset;
    uint64_t size_bytes; /* header included; a multiple of SPC_ARENA_ALIGNMENT */
    uint32_t pinned_by;  /* a rank whose pin was set at the last look */
    bool is_held;
    bool is_kept; /* and counted in kept_bytes */
} spc_piece_t;

struct spc_arena {
    unsigned char *base;
    const spc_status_shared_t *status;
    uint32_t owner;
    uint32_t nodes;
    uint64_t header_bytes;
    uint64_t kept_bytes; /* in blocks of spc_arena_alloc_kept that were in use at the last look */
    uint64_t kept_max;
    spc_piece_t *piece;
    uint32_t count;
    uint32_t room;                     /* of the vector */
    uint32_t first_free;               /* no free piece lies before this one */
    uint32_t turn;                     /* the piece looked at next */
    uint64_t recent[SPC_ARENA_RECENT]; /* offsets of blocks; SPC_ARENA_NONE */
    uint32_t recent_next;
};

#define SPC_ARENA_NONE UINT64_MAX

int spc_arena_create(void *base, uint64_t size_bytes, uint32_t owner, uint32_t nodes,
                     const spc_status_shared_t *status, spc_arena_t **arena) {
    spc_arena_t *made = calloc(1, sizeof *made);
    spc_piece_t *piece = calloc(SPC_ARENA_RECENT, sizeof *piece);
    if (made == NULL || piece == NULL) {
        free(made);
        free(piece);
        return SPC_ENOMEM;
    }
    *made = (spc_arena_t){
        .base = base,
        .status = status,
        .owner = owner,
        .nodes = nodes,
        .header_bytes = spc_round_up(sizeof(spc_block_shared_t) + nodes, SPC_ARENA_ALIGNMENT),
        .kept_max = size_bytes / 2,
        .piece = piece,
        .room = SPC_ARENA_RECENT,
    };
    memset(made->recent, 0xff, sizeof made->recent); /* SPC_ARENA_NONE */
    size_bytes -= size_bytes % SPC_ARENA_ALIGNMENT;
    if (size_bytes > 0) {
        piece[made->count++] = (spc_piece_t){.offset = 0, .size_bytes = size_bytes};
    }
    *arena = made;
    return SPC_OK;
}

void spc_arena_destroy(spc_arena_t *arena) {
    if (arena != NULL) {
        free(arena->piece);
        free(arena);
    }
}

/* ---- which nodes still use a block */

static bool is_pinned_by(const spc_arena_t *arena, spc_block_shared_t *block, uint32_t rank) {
    /* Pairs with spc_block_unpin. seq_cst, as part of the second test of an owner that waits for room. */
    if (atomic_load_explicit(&block->pin[rank], memory_order_seq_cst) == 0) {
        return false;
    }
    return !spc_status_is_gone(arena->status, rank);
}

/* Mostly one load: the node found to use the block last time still does. While the pins are read one by one the block
 * may pass from one node to another, and neither pin be seen: then `moves` has changed, and the block is in use. If it
 * has not, the node that had the block after the last move counted at first has kept its pin set all the time, or has
 * given the block back. */
static bool is_pinned(const spc_arena_t *arena, spc_piece_t *piece) {
    spc_block_shared_t *block = (spc_block_shared_t *)(arena->base + piece->offset);
    if (is_pinned_by(arena, block, piece->pinned_by)) {
        return true;
    }
    /* Both loads of it pair with spc_block_pass. */
    uint32_t moves = atomic_load_explicit(&block->moves, memory_order_seq_cst);
    for (uint32_t rank = 0; rank < arena->nodes; rank++) {
        if (is_pinned_by(arena, block, rank)) {
            piece->pinned_by = rank;
            return true;
        }
    }
    return atomic_load_explicit(&block->moves, memory_order_seq_cst) != moves;
}

/* ---- the vector of pieces */

static void remove_piece(spc_arena_t *arena, uint32_t index) {
    arena->count--;
    memmove(&arena->piece[index], &arena->piece[index + 1], (arena->count - index) * sizeof *arena->piece);
}

/* Makes an empty place at `index`. */
static int insert_piece(spc_arena_t *arena, uint32_t index) {
    if (arena->count == arena->room) {
        spc_piece_t *grown = realloc(arena->piece, 2 * (size_t)arena->room * sizeof *grown);
        if (grown == NULL) {
            return SPC_ENOMEM;
        }
        arena->piece = grown;
        arena->room *= 2;
    }
    memmove(&arena->piece[index + 1], &arena->piece[index], (arena->count - index) * sizeof *arena->piece);
    arena->count++;
    return SPC_OK;
}

/* The last piece that does not begin behind `offset`. */
static uint32_t find_piece(const spc_arena_t *arena, uint64_t offset) {
    uint32_t low = 0;
    uint32_t high = arena->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (arena->piece[middle].offset <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Frees the piece: no node uses it any more. */
static void let_go(spc_arena_t *arena, spc_piece_t *piece) {
    arena->kept_bytes -= piece->is_kept ? piece->size_bytes : 0;
    piece->is_held = piece->is_kept = false;
}

/* Joins the piece with its free neighbours; returns its new position. */
static uint32_t free_piece(spc_arena_t *arena, uint32_t index) {
    let_go(arena, &arena->piece[index]);
    if (index + 1 < arena->count && !arena->piece[index + 1].is_held) {
        arena->piece[index].size_bytes += arena->piece[index + 1].size_bytes;
        remove_piece(arena, index + 1);
    }
    if (index > 0 && !arena->piece[index - 1].is_held) {
        index--;
        arena->piece[index].size_bytes += arena->piece[index + 1].size_bytes;
        remove_piece(arena, index + 1);
    }
    if (index < arena->first_free) {
        arena->first_free = index;
    }
    return index;
}

/* ---- looking for blocks without pins */

static void reclaim_recent(spc_arena_t *arena) {
    for (uint32_t i = 0; i < SPC_ARENA_RECENT; i++) {
        uint64_t offset = arena->recent[i];
        if (offset == SPC_ARENA_NONE) {
            continue;
        }
        uint32_t index = find_piece(arena, offset);
        spc_piece_t *piece = &arena->piece[index];
        if (piece->offset != offset || !piece->is_held) {
            arena->recent[i] = SPC_ARENA_NONE; /* found free by another way */
        } else if (!is_pinned(arena, piece)) {
            arena->recent[i] = SPC_ARENA_NONE;
            free_piece(arena, index);
        }
    }
}

static void reclaim_in_turn(spc_arena_t *arena) {
    for (uint32_t i = 0; i < SPC_ARENA_TURN; i++) {
        arena->turn = arena->turn < arena->count ? arena->turn : 0;
        spc_piece_t *piece = &arena->piece[arena->turn];
        if (piece->is_held && !is_pinned(arena, piece)) {
            arena->turn = free_piece(arena, arena->turn);
        }
        arena->turn++;
    }
}

/* One pass that moves each remaining piece once: freeing one after another would move the rest each time. */
static void reclaim_all(spc_arena_t *arena) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < arena->count; i++) {
        spc_piece_t piece = arena->piece[i];
        if (piece.is_held && !is_pinned(arena, &piece)) {
            let_go(arena, &piece);
        }
        if (kept > 0 && !piece.is_held && !arena->piece[kept - 1].is_held) {
            arena->piece[kept - 1].size_bytes += piece.size_bytes;
        } else {
            arena->piece[kept++] = piece;
        }
    }
    arena->count = kept;
    arena->first_free = 0;
}

/* ---- giving blocks out */

/* The lowest free piece that is large enough; false if there is none. */
static bool find_free(spc_arena_t *arena, uint64_t size_bytes, uint32_t *index) {
    while (arena->first_free < arena->count && arena->piece[arena->first_free].is_held) {
        arena->first_free++;
    }
    for (uint32_t i = arena->first_free; i < arena->count; i++) {
        if (!arena->piece[i].is_held && arena->piece[i].size_bytes >= size_bytes) {
            *index = i;
            return true;
        }
    }
    return false;
}

/* Cuts the rest off, unless no block would fit into it. */
static int split_piece(spc_arena_t *arena, uint32_t index, uint64_t size_bytes) {
    uint64_t rest_bytes = arena->piece[index].size_bytes - size_bytes;
    if (rest_bytes < arena->header_bytes + SPC_ARENA_ALIGNMENT) {
        return SPC_OK;
    }
    int status = insert_piece(arena, index + 1);
    if (status != SPC_OK) {
        return status;
    }
    uint64_t offset = arena->piece[index].offset;
    arena->piece[index].size_bytes = size_bytes;
    arena->piece[index + 1] = (spc_piece_t){.offset = offset + size_bytes, .size_bytes = rest_bytes};
    return SPC_OK;
}

static spc_block_shared_t *hold_piece(spc_arena_t *arena, spc_piece_t *piece) {
    piece->is_held = true;
    piece->pinned_by = arena->owner;
    arena->recent[arena->recent_next++ % SPC_ARENA_RECENT] = piece->offset;
    spc_block_shared_t *block = (spc_block_shared_t *)(arena->base + piece->offset);
    block->capacity_bytes = piece->size_bytes - arena->header_bytes;
    block->owner = arena->owner;
    block->payload_offset = (uint32_t)arena->header_bytes;
    atomic_store_explicit(&block->moves, 0, memory_order_relaxed); /* no other node knows of the block yet */
    for (uint32_t rank = 0; rank < arena->nodes; rank++) {
        /* relaxed: other nodes get the block by a later release. An older payload may have lain here. */
        atomic_store_explicit(&block->pin[rank], rank == arena->owner, memory_order_relaxed);
    }
    return block;
}

/* Whether a block of that size may be given out, and at which place. */
static bool may_take(spc_arena_t *arena, uint64_t size_bytes, bool kept, uint32_t *index) {
    return (!kept || arena->kept_bytes + size_bytes <= arena->kept_max)
           && find_free(arena, size_bytes, index);
}

static int take(spc_arena_t *arena, uint64_t length_bytes, bool kept, spc_block_shared_t **block) {
    if (arena->count == 0 || length_bytes > UINT64_MAX / 2) {
        return SPC_EAGAIN;
    }
    uint64_t payload_bytes = length_bytes > 0 ? length_bytes : 1;
    uint64_t size_bytes = arena->header_bytes + spc_round_up(payload_bytes, SPC_ARENA_ALIGNMENT);
    uint32_t index;
    reclaim_recent(arena);
    reclaim_in_turn(arena);
    if (!may_take(arena, size_bytes, kept, &index)) {
        reclaim_all(arena);
        if (!may_take(arena, size_bytes, kept, &index)) {
            return SPC_EAGAIN;
        }
    }
    int status = split_piece(arena, index, size_bytes);
    if (status == SPC_OK) {
        spc_piece_t *piece = &arena->piece[index];
        *block = hold_piece(arena, piece);
        piece->is_kept = kept;
        arena->kept_bytes += kept ? piece->size_bytes : 0;
    }
    return status;
}

int spc_arena_alloc(spc_arena_t *arena, uint64_t length_bytes, spc_block_shared_t **block) {
    return take(arena, length_bytes, false, block);
}

int spc_arena_alloc_kept(spc_arena_t *arena, uint64_t length_bytes, spc_block_shared_t **block) {
    return take(arena, length_bytes, true, block);
}

uint64_t spc_arena_used(spc_arena_t *arena) {
    uint64_t used_bytes = 0;
    reclaim_all(arena);
    for (uint32_t i = 0; i < arena->count; i++) {
        used_bytes += arena->piece[i].is_held ? arena->piece[i].size_bytes : 0;
    }
    return used_bytes;
}
