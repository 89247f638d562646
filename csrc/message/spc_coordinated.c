/* SPDX-License-Identifier: MIT */
#include "message/spc_coordinated.h"

#include <stdlib.h>
#include <string.h>

#include "base/spc_error.h"

struct spc_coordinated {
    unsigned char *shared;
    uint32_t rank;
    uint32_t nodes;
    uint32_t cycle;
    bool published;
    bool counted;
    bool to_nobody;     /* something was sent in this cycle, to no destination */
    _Atomic bool open;  /* relaxed: a caller in another thread may as well have asked earlier */
    uint64_t sent;      /* the sum of the row */
    uint64_t handed;    /* the sum of handed_by */
    uint64_t expected;  /* the sum of the column, once counted */
    uint64_t *row;      /* by destination; not published yet */
    uint64_t *handed_by; /* by source */
};

static uint64_t half_bytes(uint32_t nodes) {
    return spc_round_up(sizeof(spc_coordinated_half_shared_t) + nodes * sizeof(uint64_t), SPC_CACHE_LINE);
}

uint64_t spc_coordinated_bytes(uint32_t nodes) {
    return 2 * nodes * half_bytes(nodes);
}

static spc_coordinated_half_shared_t *half_at(void *shared, uint32_t rank, uint32_t nodes, uint32_t cycle) {
    uint64_t index = 2 * (uint64_t)rank + cycle % 2;
    return (spc_coordinated_half_shared_t *)(void *)((unsigned char *)shared + index * half_bytes(nodes));
}

static spc_coordinated_half_shared_t *half_of(const spc_coordinated_t *coordinated, uint32_t rank) {
    return half_at(coordinated->shared, rank, coordinated->nodes, coordinated->cycle);
}

int spc_coordinated_create(void *shared, uint32_t rank, uint32_t nodes, uint32_t cycle,
                           spc_coordinated_t **coordinated) {
    if (nodes == 0 || rank >= nodes || (uintptr_t)shared % SPC_CACHE_LINE != 0) {
        return SPC_EINVAL;
    }
    spc_coordinated_t *made = calloc(1, sizeof(*made));
    uint64_t *numbers = calloc(2 * (size_t)nodes, sizeof(*numbers));
    if (made == NULL || numbers == NULL) {
        free(made);
        free(numbers);
        return SPC_ENOMEM;
    }
    made->shared = shared;
    made->rank = rank;
    made->nodes = nodes;
    made->cycle = cycle;
    made->row = numbers;
    made->handed_by = numbers + nodes;
    *coordinated = made;
    return SPC_OK;
}

void spc_coordinated_destroy(spc_coordinated_t *coordinated) {
    if (coordinated != NULL) {
        free(coordinated->row);
        free(coordinated);
    }
}

/* ---- queries ---- */

bool spc_coordinated_is_open(const spc_coordinated_t *coordinated) {
    return atomic_load_explicit(&coordinated->open, memory_order_relaxed);
}

int32_t spc_coordinated_tag(const spc_coordinated_t *coordinated) {
    return (int32_t)(coordinated->cycle & INT32_MAX);
}

bool spc_coordinated_is_published(const spc_coordinated_t *coordinated) {
    return coordinated->published;
}

bool spc_coordinated_is_counted(const spc_coordinated_t *coordinated) {
    return coordinated->counted;
}

bool spc_coordinated_is_over(const spc_coordinated_t *coordinated) {
    return coordinated->counted && coordinated->handed == coordinated->expected;
}

uint64_t spc_coordinated_missing(const spc_coordinated_t *coordinated, uint32_t source) {
    return half_of(coordinated, source)->count[coordinated->rank] - coordinated->handed_by[source];
}

/* ---- sending ---- */

static void set_open(spc_coordinated_t *coordinated) {
    bool open = coordinated->published || coordinated->sent != 0 || coordinated->to_nobody;
    atomic_store_explicit(&coordinated->open, open, memory_order_relaxed);
}

int spc_coordinated_note_send(spc_coordinated_t *coordinated, const int32_t *destinations, uint32_t count) {
    if (coordinated->published) {
        return SPC_ECYCLE;
    }
    for (uint32_t i = 0; i < count; i++) {
        coordinated->row[destinations[i]]++;
    }
    coordinated->sent += count;
    coordinated->to_nobody = coordinated->to_nobody || count == 0;
    set_open(coordinated);
    return SPC_OK;
}

void spc_coordinated_undo_send(spc_coordinated_t *coordinated, int32_t destination) {
    coordinated->row[destination]--;
    coordinated->sent--;
    set_open(coordinated);
}

/* ---- receiving ---- */

void spc_coordinated_publish(spc_coordinated_t *coordinated) {
    spc_coordinated_half_shared_t *half = half_of(coordinated, coordinated->rank);
    memcpy(half->count, coordinated->row, coordinated->nodes * sizeof(uint64_t));
    /* Pairs with spc_coordinated_count. */
    atomic_store_explicit(&half->stamp, coordinated->cycle + 1, memory_order_release);
    coordinated->published = true;
    set_open(coordinated);
}

bool spc_coordinated_count(spc_coordinated_t *coordinated) {
    uint64_t expected = 0;
    for (uint32_t source = 0; source < coordinated->nodes; source++) {
        const spc_coordinated_half_shared_t *half = half_of(coordinated, source);
        /* Acquire pairs with spc_coordinated_publish: the counts belong to this cycle. */
        if (atomic_load_explicit(&half->stamp, memory_order_acquire) != coordinated->cycle + 1) {
            return false;
        }
        expected += half->count[coordinated->rank];
    }
    coordinated->expected = expected;
    coordinated->counted = true;
    return true;
}

void spc_coordinated_note_handed(spc_coordinated_t *coordinated, int32_t source) {
    coordinated->handed_by[source]++;
    coordinated->handed++;
}

void spc_coordinated_undo_handed(spc_coordinated_t *coordinated, int32_t source) {
    coordinated->handed_by[source]--;
    coordinated->handed--;
}

void spc_coordinated_next(spc_coordinated_t *coordinated) {
    memset(coordinated->row, 0, 2 * (size_t)coordinated->nodes * sizeof(uint64_t)); /* and handed_by */
    coordinated->sent = 0;
    coordinated->handed = 0;
    coordinated->expected = 0;
    coordinated->published = false;
    coordinated->counted = false;
    coordinated->to_nobody = false;
    coordinated->cycle++;
    set_open(coordinated);
}

/* ---- gateways ---- */

uint32_t spc_coordinated_read_row(const void *shared, uint32_t rank, uint32_t nodes, uint64_t counts[]) {
    const spc_coordinated_half_shared_t *half[2];
    uint32_t stamp[2];
    for (uint32_t i = 0; i < 2; i++) {
        half[i] = half_at((void *)(uintptr_t)shared, rank, nodes, i);
        stamp[i] = atomic_load_explicit(&half[i]->stamp, memory_order_acquire); /* pairs with publish */
    }
    const uint32_t newest = (int32_t)(stamp[1] - stamp[0]) > 0;
    memcpy(counts, half[newest]->count, nodes * sizeof(uint64_t));
    return stamp[newest];
}

void spc_coordinated_write_row(void *shared, uint32_t rank, uint32_t nodes, uint32_t stamp,
                               const uint64_t counts[]) {
    spc_coordinated_half_shared_t *half = half_at(shared, rank, nodes, stamp - 1);
    memcpy(half->count, counts, nodes * sizeof(uint64_t));
    /* Pairs with spc_coordinated_count. */
    atomic_store_explicit(&half->stamp, stamp, memory_order_release);
}
