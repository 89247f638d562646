/* SPDX-License-Identifier: MIT */
/*
 * spc_arena: each sender's store of large blocks, freed in any order.
 *
 * A block is [header and pins][payload]. There is one pin byte per node; a node that uses the block has its pin
 * set. The owner of the arena sets pins when it hands a block to receivers; a receiver clears its own when its
 * last view has died (one release store, from any thread, safe inside garbage collection). While the owner writes a
 * block it holds a pin itself, which it clears before it announces the block, for a receiver may hand the block back at
 * once. The owner finds blocks without pins again when it next needs room. There is no shared count, hence no state
 * that a dead node could leave wrong: once its process is gone, its pins are ignored. The owner takes back the pins of
 * a block itself if no receiver will touch it. Blocks are given out lowest address first, which keeps them hot, and
 * neighbours are joined at once.
 *
 * A node that alone uses a block, of any node's arena, may pass it on to another node. For the owner, which may look at
 * that moment, the block is never without a pin: `moves` is raised after the receiver's pin has been set and before the
 * giver's is cleared, and an owner that has found no pin takes the block only if `moves` has not changed while it
 * looked (tests/models/arena_moves.pml). If the giver is killed in between, the block is lost until the end of the run;
 * if the receiver is killed, its pin is ignored as ever.
 *
 * The owner calls create, take, used and destroy under its communicator's lock, and pin while the block is pinned for
 * itself. Any thread may unpin.
 */
#ifndef SPC_ARENA_H
#define SPC_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/spc_atomic.h"
#include "segment/spc_status.h"

#define SPC_ARENA_ALIGNMENT 64

typedef struct spc_block_shared {
    uint64_t capacity_bytes; /* of the payload; written by the owner */
    uint32_t owner;          /* rank whose arena it is */
    uint32_t payload_offset; /* from this header */
    _Atomic uint32_t moves;  /* raised by a node that passes it on; modulo 2^32 */
    uint32_t reserved;
    _Atomic uint8_t pin[]; /* one byte for each node */
} spc_block_shared_t;

_Static_assert(sizeof(spc_block_shared_t) == 24, "spc_block_shared_t lies in shared memory");

typedef struct spc_arena spc_arena_t; /* private to the owner */

/* `base` is the owner's part of the arena region. SPC_ENOMEM. */
int spc_arena_create(void *base, uint64_t size_bytes, uint32_t owner, uint32_t nodes,
                     const spc_status_shared_t *status, spc_arena_t **arena);
void spc_arena_destroy(spc_arena_t *arena);

/* Takes a block with room for `length_bytes`, pinned for the owner itself. SPC_EAGAIN: no piece fits now. */
int spc_arena_alloc(spc_arena_t *arena, uint64_t length_bytes, spc_block_shared_t **block);

/* The same, for a copy that a node may keep for long: such blocks take no more than half of the arena in all.
 * SPC_EAGAIN also if they would. */
int spc_arena_alloc_kept(spc_arena_t *arena, uint64_t length_bytes, spc_block_shared_t **block);

/* Bytes in blocks that are given out; for tests and statistics. Looks at every block. */
uint64_t spc_arena_used(spc_arena_t *arena);

/* Called before the block is announced to `rank` (the announcement's release publishes the pin). */
static inline void spc_block_pin(spc_block_shared_t *block, uint32_t rank) {
    atomic_store_explicit(&block->pin[rank], 1, memory_order_relaxed);
}

/* Called by `rank`, when it no longer reads or writes the payload. Pairs with the owner's load in spc_arena_alloc, and
 * with spc_block_is_sole: this node's accesses to the payload happen before the owner gives the block out again, or its
 * last user writes. seq_cst, because the owner may sleep until there is room: the caller notifies its event next. */
static inline void spc_block_unpin(spc_block_shared_t *block, uint32_t rank) {
    atomic_store_explicit(&block->pin[rank], 0, memory_order_seq_cst);
}

/* Called by `from`, which alone uses the block, before it announces the block to `to`: from then on `to` alone uses it.
 * `from` must not touch the block afterwards. All three are seq_cst, and their order matters: they pair with the loads
 * of is_pinned in spc_arena.c. */
static inline void spc_block_pass(spc_block_shared_t *block, uint32_t from, uint32_t to) {
    atomic_store_explicit(&block->pin[to], 1, memory_order_seq_cst);
    atomic_fetch_add_explicit(&block->moves, 1, memory_order_seq_cst);
    atomic_store_explicit(&block->pin[from], 0, memory_order_seq_cst);
}

/* Called by `rank`, which has its pin: whether no other node has one. If so, none will have one later, for pins are set
 * before a block is announced, and the block is as if it had been sent to `rank` alone. */
static inline bool spc_block_is_sole(spc_block_shared_t *block, uint32_t rank, uint32_t nodes) {
    bool sole = true;
    for (uint32_t other = 0; other < nodes && sole; other++) {
        /* Pairs with spc_block_unpin: the other node's reads happen before this node writes. */
        sole = other == rank || atomic_load_explicit(&block->pin[other], memory_order_acquire) == 0;
    }
    return sole;
}

static inline void *spc_block_payload(spc_block_shared_t *block) {
    return (unsigned char *)block + block->payload_offset;
}

#endif
