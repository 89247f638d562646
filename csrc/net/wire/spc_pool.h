/* SPDX-License-Identifier: MIT */
/*
 * spc_pool: memory for long frames, kept for the next.
 *
 * A stream of long messages needs a quarter of a megabyte many thousand times a second, and an allocator that gives it
 * back to the system in between has all of its pages cleared each time. So the pool keeps a few pieces of that size;
 * the allocator serves shorter ones, and any beyond these.
 *
 * One thread at a time: the pool belongs to its owner, and all callers hold the owner's lock.
 */
#ifndef SPC_POOL_H
#define SPC_POOL_H

#include <stddef.h>
#include <stdint.h>

typedef struct spc_pool {
    void *first; /* each piece begins with the address of the next */
    uint32_t kept;
} spc_pool_t; /* {0} is an empty one */

void spc_pool_fini(spc_pool_t *pool);

/* At a multiple of 16; NULL: there is no memory. Memory is given back with the same length, to the same pool; a pool
 * that is NULL keeps nothing. */
void *spc_pool_take(spc_pool_t *pool, size_t length_bytes);
void spc_pool_give(spc_pool_t *pool, void *memory, size_t length_bytes); /* NULL is allowed */

#endif
