/* SPDX-License-Identifier: MIT */
/*
 * spc_ring: each sender's circular buffer of messages (SpeedesComm 3.2, figures 2 and 3).
 *
 * A message to k nodes is written once, behind k headers. Each receiver gets the offset of its own header, finds
 * the payload from there, and marks its header read; the sender reclaims messages that all have read. No lock and no
 * count is shared: the receiver writes one word of its header, once.
 *
 * The ring is divided into chunks. A chunk is used again when every header in it has been read, in any order of
 * chunks, the hottest first; a message never spans chunks. A stopped receiver pins only chunks that hold its messages,
 * and may pin a quota of them: a message that would exceed the quota finds no room, others go on. Headers of receivers
 * that are gone count as read.
 *
 * The sender calls create, reserve, destroy under its communicator's lock. A receiver calls header functions from any
 * thread.
 */
#ifndef SPC_RING_H
#define SPC_RING_H

#include <stdint.h>

#include "base/spc_atomic.h"
#include "segment/spc_status.h"

#define SPC_RING_ALIGNMENT 16

typedef struct spc_ring_header_shared {
    _Atomic uint32_t read;  /* 1: its receiver no longer needs the payload; 2: the sender has seen that */
    uint32_t destination;   /* rank */
    uint32_t payload_bytes;
    uint32_t payload_offset; /* from this header: the last of k headers has h, the first k times h */
} spc_ring_header_shared_t;

_Static_assert(sizeof(spc_ring_header_shared_t) == 16, "spc_ring_header_shared_t lies in shared memory");

typedef struct spc_ring spc_ring_t; /* private to the sender */

int spc_ring_create(void *base, uint64_t size_bytes, uint32_t nodes, const spc_status_shared_t *status,
                    spc_ring_t **ring);
void spc_ring_destroy(spc_ring_t *ring);

/* The longest payload for this many destinations, maybe 0. Longer messages go in parts. */
uint64_t spc_ring_payload_max(const spc_ring_t *ring, uint32_t destination_count);

/* Reserves room for one payload behind a header for each destination, in this order; headers are filled in. The caller
 * writes the payload, then announces each header. SPC_EAGAIN if there is no room now; SPC_EINVAL if there never is. */
int spc_ring_reserve(spc_ring_t *ring, const int32_t *destinations, uint32_t destination_count,
                     uint64_t payload_bytes, spc_ring_header_shared_t **headers, void **payload);

/* Bytes that are not reclaimed yet; for tests. */
uint64_t spc_ring_used(spc_ring_t *ring);

static inline void *spc_ring_payload(spc_ring_header_shared_t *header) {
    return (unsigned char *)header + header->payload_offset;
}

/* Called by the receiver, once. seq_cst: the sender may sleep until there is room; the caller notifies its event next.
 * Pairs with the sender's load when it reclaims. */
static inline void spc_ring_mark_read(spc_ring_header_shared_t *header) {
    atomic_store_explicit(&header->read, 1, memory_order_seq_cst);
}

#endif
