/* SPDX-License-Identifier: MIT */
/*
 * spc_layout: the meaning of spc_signature_t.layout for a reduced value, beside its operator and length.
 *
 * Nodes of one run may be written in C, C++ and Python, and take part in one operation if their values are of the same
 * kind. So every language takes the kinds and the hash from here. Pure functions; any thread may call them.
 *
 * A layout has the kind in its topmost byte, which names the value in a mismatch, and below it a hash: of the details
 * that the kind leaves open (`hash`, made by spc_layout_mix from 0 on) and of the step, for values that take several
 * operations.
 */
#ifndef SPC_LAYOUT_H
#define SPC_LAYOUT_H

#include <stdint.h>

typedef enum spc_kind {
    SPC_KIND_INT = 1,
    SPC_KIND_FLOAT = 2,
    SPC_KIND_BOOL = 3,
    SPC_KIND_ARRAY = 4,
    SPC_KIND_TUPLE = 5, /* hash: of its length, then of the type of each item */
    SPC_KIND_COMPLEX = 6,
    SPC_KIND_SCALAR = 7,
    SPC_KIND_SIMTIME = 8
} spc_kind_t;

static inline uint64_t spc_layout_mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

/* For an array, after its kind and the type of its elements. */
static inline uint64_t spc_layout_mix_shape(uint64_t hash, uint32_t dimensions, const int64_t *shape) {
    hash = spc_layout_mix(hash, dimensions);
    for (uint32_t i = 0; i < dimensions; i++) {
        hash = spc_layout_mix(hash, (uint64_t)shape[i]);
    }
    return hash;
}

static inline uint64_t spc_layout_of(uint64_t kind, uint64_t hash, uint64_t step) {
    return kind << 56 | spc_layout_mix(hash, step) >> 8;
}

/* For a number or time by itself. */
static inline uint64_t spc_layout_of_one(uint64_t kind) {
    return spc_layout_of(kind, spc_layout_mix(0, kind), 0);
}

#endif
