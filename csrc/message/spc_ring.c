/* SPDX-License-Identifier: MIT */
#include "message/spc_ring.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/spc_error.h"

#define CHUNKS_MIN 4u
#define CHUNKS_MAX 32u
#define CHUNK_BYTES_WANTED 4096u

/* Values of a header's `read`. Only the sender writes RECLAIMED, and only over a value that it saw as read. */
enum { UNREAD = 0, READ = 1, RECLAIMED = 2 };

typedef struct chunk {
    uint64_t fill;    /* where the next message goes */
    uint64_t scanned; /* all memory before is reclaimed */
    uint64_t used_at; /* tick of the last use: the highest is the hottest */
    uint32_t unread;  /* headers not reclaimed */
} chunk_t;

struct spc_ring {
    unsigned char *base;
    uint64_t chunk_bytes;
    uint64_t tick;
    const spc_status_shared_t *status;
    uint32_t nodes;
    uint32_t chunk_count;
    uint32_t current;
    uint32_t quota;   /* chunks that one destination may pin */
    uint32_t *pinned; /* by destination: chunks with a header it has not read */
    uint32_t *unread; /* by chunk and destination: such headers */
    chunk_t chunk[CHUNKS_MAX];
};

static uint32_t choose_chunk_count(uint64_t size_bytes) {
    uint64_t wanted = size_bytes / CHUNK_BYTES_WANTED;
    return wanted < CHUNKS_MIN ? CHUNKS_MIN : wanted > CHUNKS_MAX ? CHUNKS_MAX : (uint32_t)wanted;
}

int spc_ring_create(void *base, uint64_t size_bytes, uint32_t nodes, const spc_status_shared_t *status,
                    spc_ring_t **ring) {
    spc_ring_t *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return SPC_ENOMEM;
    }
    made->base = base;
    made->status = status;
    made->nodes = nodes;
    made->chunk_count = choose_chunk_count(size_bytes);
    made->chunk_bytes = size_bytes / made->chunk_count & ~(uint64_t)(SPC_RING_ALIGNMENT - 1);
    made->quota = made->chunk_count / nodes > 2 ? made->chunk_count / nodes : 2;
    made->pinned = calloc(nodes, sizeof(*made->pinned));
    made->unread = calloc((size_t)made->chunk_count * nodes, sizeof(*made->unread));
    if (made->pinned == NULL || made->unread == NULL) {
        spc_ring_destroy(made);
        return SPC_ENOMEM;
    }
    *ring = made;
    return SPC_OK;
}

void spc_ring_destroy(spc_ring_t *ring) {
    if (ring != NULL) {
        free(ring->pinned);
        free(ring->unread);
        free(ring);
    }
}

uint64_t spc_ring_payload_max(const spc_ring_t *ring, uint32_t destination_count) {
    uint64_t headers = (uint64_t)destination_count * sizeof(spc_ring_header_shared_t);
    return headers < ring->chunk_bytes ? ring->chunk_bytes - headers : 0;
}

static uint64_t message_bytes(uint32_t header_count, uint64_t payload_bytes) {
    return spc_round_up(header_count * sizeof(spc_ring_header_shared_t) + payload_bytes, SPC_RING_ALIGNMENT);
}

static bool is_done(const spc_ring_t *ring, const spc_ring_header_shared_t *header) {
    /* Pairs with spc_ring_mark_read: the payload has been read before it is written again. seq_cst, because this may
     * be the second test of a sender about to sleep. */
    if (atomic_load_explicit(&header->read, memory_order_seq_cst) == READ) {
        return true;
    }
    return spc_status_is_gone(ring->status, header->destination);
}

/* Reclaims the read headers of one message; true if all of it is reclaimed. */
static bool reclaim_message(spc_ring_t *ring, uint32_t chunk, spc_ring_header_shared_t *headers,
                            uint32_t count) {
    uint32_t *unread = &ring->unread[(size_t)chunk * ring->nodes];
    bool all = true;
    for (uint32_t i = 0; i < count; i++) {
        spc_ring_header_shared_t *header = &headers[i];
        /* relaxed: RECLAIMED is this sender's own word. */
        if (atomic_load_explicit(&header->read, memory_order_relaxed) == RECLAIMED) {
            continue;
        }
        if (!is_done(ring, header)) {
            all = false;
            continue;
        }
        atomic_store_explicit(&header->read, RECLAIMED, memory_order_relaxed);
        ring->chunk[chunk].unread--;
        if (--unread[header->destination] == 0) {
            ring->pinned[header->destination]--;
        }
    }
    return all;
}

/* Checks every message of a chunk that may have been read meanwhile; empties the chunk if all have been. */
static void reclaim_chunk(spc_ring_t *ring, uint32_t index) {
    chunk_t *chunk = &ring->chunk[index];
    unsigned char *start = ring->base + index * ring->chunk_bytes;
    bool prefix = true;
    for (uint64_t at = chunk->scanned; at < chunk->fill;) {
        spc_ring_header_shared_t *headers = (spc_ring_header_shared_t *)(start + at);
        /* The first header's offset skips all of them: it gives their number. */
        uint32_t count = headers->payload_offset / (uint32_t)sizeof(*headers);
        at += message_bytes(count, headers->payload_bytes);
        prefix = reclaim_message(ring, index, headers, count) && prefix;
        if (prefix) {
            chunk->scanned = at;
        }
    }
    if (chunk->unread == 0) {
        chunk->fill = 0;
        chunk->scanned = 0;
    }
}

static void reclaim_all(spc_ring_t *ring) {
    for (uint32_t i = 0; i < ring->chunk_count; i++) {
        if (ring->chunk[i].unread != 0) {
            reclaim_chunk(ring, i);
        }
    }
}

/* Makes the hottest empty chunk the current one. */
static bool open_chunk(spc_ring_t *ring) {
    uint32_t best = ring->chunk_count;
    for (uint32_t i = 0; i < ring->chunk_count; i++) {
        const chunk_t *chunk = &ring->chunk[i];
        if (chunk->unread == 0 && (best == ring->chunk_count || chunk->used_at > ring->chunk[best].used_at)) {
            best = i;
        }
    }
    if (best == ring->chunk_count) {
        return false;
    }
    ring->chunk[best].fill = 0;
    ring->chunk[best].scanned = 0;
    ring->current = best;
    return true;
}

static bool within_quota(const spc_ring_t *ring, const int32_t *destinations, uint32_t count) {
    const uint32_t *unread = &ring->unread[(size_t)ring->current * ring->nodes];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = (uint32_t)destinations[i];
        if (unread[rank] == 0 && ring->pinned[rank] >= ring->quota) {
            return false;
        }
    }
    return true;
}

/* A current chunk with room for `bytes`, within the quotas of all destinations. */
static bool find_room(spc_ring_t *ring, uint64_t bytes, const int32_t *destinations, uint32_t count) {
    if (ring->chunk[ring->current].fill + bytes > ring->chunk_bytes) {
        reclaim_chunk(ring, ring->current);
        if (!open_chunk(ring)) {
            reclaim_all(ring);
            if (!open_chunk(ring)) {
                return false;
            }
        }
    }
    if (within_quota(ring, destinations, count)) {
        return true;
    }
    reclaim_all(ring);
    return ring->chunk[ring->current].fill + bytes <= ring->chunk_bytes
           && within_quota(ring, destinations, count);
}

int spc_ring_reserve(spc_ring_t *ring, const int32_t *destinations, uint32_t destination_count,
                     uint64_t payload_bytes, spc_ring_header_shared_t **headers, void **payload) {
    uint64_t bytes = message_bytes(destination_count, payload_bytes);
    if (bytes > ring->chunk_bytes) {
        return SPC_EINVAL;
    }
    if (!find_room(ring, bytes, destinations, destination_count)) {
        return SPC_EAGAIN;
    }
    chunk_t *chunk = &ring->chunk[ring->current];
    uint32_t *unread = &ring->unread[(size_t)ring->current * ring->nodes];
    spc_ring_header_shared_t *first =
        (spc_ring_header_shared_t *)(ring->base + ring->current * ring->chunk_bytes + chunk->fill);
    for (uint32_t i = 0; i < destination_count; i++) {
        uint32_t rank = (uint32_t)destinations[i];
        first[i].destination = rank;
        first[i].payload_bytes = (uint32_t)payload_bytes;
        first[i].payload_offset = (destination_count - i) * (uint32_t)sizeof(*first);
        /* Relaxed: published by the announcement's release. */
        atomic_store_explicit(&first[i].read, UNREAD, memory_order_relaxed);
        if (unread[rank]++ == 0) {
            ring->pinned[rank]++;
        }
    }
    chunk->unread += destination_count;
    chunk->fill += bytes;
    chunk->used_at = ++ring->tick;
    *headers = first;
    *payload = first + destination_count;
    return SPC_OK;
}

uint64_t spc_ring_used(spc_ring_t *ring) {
    uint64_t used = 0;
    reclaim_all(ring);
    for (uint32_t i = 0; i < ring->chunk_count; i++) {
        used += ring->chunk[i].unread != 0 ? ring->chunk[i].fill - ring->chunk[i].scanned : 0;
    }
    return used;
}
